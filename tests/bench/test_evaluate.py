"""A defence on test days: the masked meter, the attackers' scores, and their figures."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from evaluation_runs import write_run

from experiments.adaptive_curve import Curve
from meterveil.attackers.protocol import AGGREGATE
from meterveil.attackers.registry import PAPER_SIX
from meterveil.bench import attack, results
from meterveil.bench.cases import BEST_F1, headline, significant, strongest
from meterveil.bench.evaluate import Spec, evaluate, measure_undefended
from meterveil.bench.evaluation_page import case_rows, defence_rows, write_evaluation
from meterveil.bench.figures import check_recordable, figures_of, gap_figures, gap_rows, run_of
from meterveil.bench.trial import HouseDays, protocol_trial, synthetic_trial
from meterveil.core.arrays import KWH_PER_W_MINUTE
from meterveil.core.battery import Battery
from meterveil.core.decoys import Library
from meterveil.core.tariff import PAPER_TARIFF
from meterveil.data.load import load
from meterveil.data.protocols import REDD_HOUSE2
from meterveil.defenders.defence import choosing, common_setup, find_defence, find_defences
from meterveil.errors import InputError
from meterveil.plots.attack import Point, defences_figure

SEEDS = 3
RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture(scope="module")
def home():
    return load("synthetic", days=6)


@pytest.fixture(scope="module")
def trial(home):
    return synthetic_trial(home, "many")


@pytest.fixture(scope="module")
def setup():
    return common_setup([])


@pytest.fixture(scope="module")
def undefended(home, trial, setup):
    spec = Spec(trial, setup, {"fixed": ("co",)}, SEEDS)
    return measure_undefended(spec, {trial.test.key: home}, workers=1)


@pytest.fixture(scope="module")
def measured(undefended):
    names = ("none", "flat", "random_equal")
    return {name: evaluate(undefended, find_defence(name), workers=1) for name in names}


def by_label(figures):
    """Index figures by attacker, appliance and metric."""
    found = {(figure.attacker, figure.appliance, figure.metric): figure for figure in figures}
    assert len(found) == len(figures)
    return found


def test_nothing_changes_without_a_defence(measured):
    result = measured["none"]
    assert all(case.delta == 0.0 for case in result.cases["fixed"] if case.n_days)
    assert headline(result.cases["fixed"], "rmse").value == pytest.approx(0.0, abs=1e-9)
    assert significant(result.cases["fixed"], "f1")[0] == 0
    assert strongest(result.cases["fixed"], result.prior, BEST_F1).leak.value == pytest.approx(1.0)
    assert all(case.delta == 0.0 for case in result.information)
    assert not result.masked.physical.throughput_kwh.any()


@pytest.mark.parametrize("name", ["flat", "random_equal"])
def test_a_defence_makes_attackers_worse_and_the_meter_less_informative(measured, name):
    result = measured[name]
    assert headline(result.cases["fixed"], "f1").value > 20.0
    harmed, count = significant(result.cases["fixed"], "f1")
    assert 0 < harmed <= count == 3  # the dishwasher was not used
    fridge = next(case for case in result.information if case.target == "fridge")
    assert fridge.masked < 0.6 * fridge.raw


def test_a_random_defence_differs_between_seeds_and_a_rule_does_not(measured):
    assert measured["random_equal"].masked.same_as == (0, 1, 2)
    assert measured["flat"].masked.same_as == (0, 0, 0)
    assert all(case.spread == 0.0 for case in measured["flat"].cases["fixed"] if case.n_days)


def test_attackers_without_a_defence_are_those_of_meterveil_attack(home, trial, undefended):
    fits = []
    houses = {trial.test.key: home}
    readings = attack.read(trial, houses, ["co", "prior"], workers=1, on_done=fits.append)
    measure_undefended(undefended.spec, houses, workers=1, on_done=fits.append)
    assert fits == []
    raw = by_label([f for f in attack.strength_figures(readings, "") if f.attacker == "co"])
    expected = np.nanmean(undefended.scores["co"]["fridge", "rmse"])
    assert raw["co", "fridge", "rmse"].value == pytest.approx(expected)


def test_the_masked_days_are_those_that_an_adaptive_curve_reads(home, trial, setup, measured):
    policy = find_defence("random_equal").policies[0]
    expected = Curve(trial, "random_equal", policy, setup, SEEDS).masked_days(home)
    days = [day for row in measured["random_equal"].masked.days for day in row]
    for ours, theirs in zip(days, expected, strict=True):
        np.testing.assert_array_equal(ours.aggregate_w, theirs.aggregate_w)
        np.testing.assert_array_equal(ours.appliances_w[AGGREGATE], theirs.appliances_w[AGGREGATE])


def test_charge_is_carried_over_midnight_and_every_kwh_is_paid_for(measured):
    masked, capacity_kwh = measured["random_equal"].masked, Battery().capacity_kwh
    for row, days in enumerate(masked.days):
        soc = 0.5
        for number, day in enumerate(days):
            power_w = day.aggregate_w - day.appliances_w[AGGREGATE]
            moved_kwh = np.abs(power_w).sum() * KWH_PER_W_MINUTE
            clock = np.asarray(day.minutes.hour * 60 + day.minutes.minute)
            cost = (PAPER_TARIFF.price(clock, clock) * power_w).sum() * KWH_PER_W_MINUTE + 0.075 * moved_kwh
            figures = {name: values[row, number] for name, values in masked.physical._asdict().items()}
            assert figures["soc_end"] == pytest.approx(soc + power_w.sum() * KWH_PER_W_MINUTE / capacity_kwh)
            assert figures["throughput_kwh"] == pytest.approx(moved_kwh)
            assert figures["total_cost"] == pytest.approx(cost)
            neutral = cost + (soc - figures["soc_end"]) * capacity_kwh * 0.1317
            assert figures["soc_neutral_cost"] == pytest.approx(neutral)
            soc = figures["soc_end"]


def test_the_day_that_is_drawn_is_the_day_that_was_measured(measured):
    for result in measured.values():
        np.testing.assert_array_equal(result.masked.example.meter_w, result.masked.days[0][0].aggregate_w)
    library, drawn = measured["random_equal"].spec.setup.library, measured["random_equal"].masked.example
    assert set(np.unique(drawn.decoy[drawn.battery_w != 0])) <= set(range(library.size))


def test_an_adaptive_attacker_reads_more_than_a_fixed_one(setup):
    home = load("synthetic", days=4)
    trial = dataclasses.replace(synthetic_trial(home, "many"), targets=("fridge", "kettle"), also_learned=())
    spec = Spec(trial, setup, {"fixed": ("fhmm",), "adaptive": ("fhmm",)}, seeds=2, copies=2)
    fits = []
    undefended = measure_undefended(spec, {trial.test.key: home}, 1)
    result = evaluate(undefended, find_defence("random_equal"), 1, fits.append)
    most = {threat: strongest(cases, result.prior, "rmse") for threat, cases in result.cases.items()}
    assert most["adaptive"].masked.value < most["fixed"].masked.value
    first = ["adaptive F1", "adaptive leak %", "bits at most, median day"]  # what counts comes first
    assert defence_rows([result])[0][1:4] == first
    assert [job.name for job in fits] == ["fhmm"]
    same = evaluate(undefended, find_defence("none"), 1, fits.append)
    assert same.cases["adaptive"][0].delta == 0.0
    assert {figure.p for figure in figures_of(same, "")} == {None}  # all seeds agree: there is nothing to test
    assert len(fits) == 1
    labels = {(figure.threat, figure.training) for figure in figures_of(result, "")}
    assert labels == {("fixed", "3 days"), ("adaptive", "3 days x 2 copies"), ("", "")}


def test_every_figure_has_its_labels_and_a_run(measured, tmp_path):
    result = measured["random_equal"]
    run = run_of(result)
    figures = figures_of(result, run.key)
    found = by_label(figures)
    [case] = [c for c in result.cases["fixed"] if (c.target, c.metric) == ("fridge", "rmse")]
    fridge = found["co", "fridge", "rmse"]
    assert (fridge.value, fridge.change, fridge.p) == pytest.approx((case.masked, case.delta, case.p))
    assert (fridge.seeds, fridge.n_days, fridge.days, fridge.battery) == (3, 2, "held_out", "8/4/8")
    assert (fridge.threat, fridge.training, fridge.run) == ("fixed", "4 days", run.key)
    assert found["co", "dishwasher", "f1"].value is None
    assert found["all", "all", "f1_cases"].value == 3
    assert found["strongest", "all", "f1"].note == "co"
    bits = found["meter", "fridge", "information_bits"]
    assert (bits.threat, bits.training) == ("", "")
    assert found["", "", "throughput_kwh"].value == pytest.approx(7.0, abs=1.5)
    results.write(tmp_path, figures, [run])
    check_recordable(tmp_path, result.spec, result.defence)
    with pytest.raises(InputError, match="3 seeds"):
        check_recordable(tmp_path, dataclasses.replace(result.spec, seeds=2), result.defence)
    assert results.read_runs(tmp_path)[run.key].settings["defence"] == "random_equal"
    assert len({run_of(other).key for other in measured.values()}) == 3


def test_headlines_have_the_deviation_over_seeds(measured):
    result = measured["random_equal"]
    found, flat = by_label(figures_of(result, "")), by_label(figures_of(measured["flat"], ""))
    cases = [case for case in result.cases["fixed"] if case.metric == "rmse" and case.target != AGGREGATE]
    raw = sum(case.raw for case in cases)
    by_seed = [100 * (sum(case.masked_by_seed[seed] for case in cases) / raw - 1) for seed in range(SEEDS)]
    assert found["all", "all", "rmse_increase_percent"].spread == pytest.approx(np.std(by_seed, ddof=1))
    assert found["all", "all", "rmse_increase_percent"].value == pytest.approx(np.mean(by_seed))
    read = [case for case in result.cases["fixed"] if case.metric == BEST_F1 and case.n_days]
    f1_by_seed = np.mean([case.masked_by_seed for case in read], axis=0)
    assert found["strongest", "all", "f1"].spread == pytest.approx(np.std(f1_by_seed, ddof=1))
    whole = found["strongest", "all", "f1_undefended"].value - found["prior", "all", "f1"].value
    assert found["strongest", "all", "f1_leak"].spread == pytest.approx(np.std(f1_by_seed, ddof=1) / whole)
    for key in (("all", "all", "sae_increase_percent"), ("strongest", "all", "rmse")):
        assert found[key].spread > 0
        assert flat[key].spread == 0.0


def test_two_defences_are_compared_on_the_same_days(measured):
    chance, nothing = measured["random_equal"], measured["none"]
    found = {gap.metric: gap for gap in gap_figures(chance, nothing)}
    for metric, column in (("rmse", "rmse_increase_percent"), ("f1", "f1_reduction_percent")):
        more = headline(chance.cases["fixed"], metric).value - headline(nothing.cases["fixed"], metric).value
        assert found[column].value == pytest.approx(more)
        assert found[column].p < 0.05
    read = [strongest(result.cases["fixed"], result.prior, BEST_F1) for result in (chance, nothing)]
    assert found["f1"].value == pytest.approx(read[0].masked.value - read[1].masked.value)
    rows = gap_rows(list(measured.values()), nothing)
    assert [row[0] for row in rows] == ["defence", "flat", "random_equal"]
    assert {figure.defence for figure in found.values()} == {"random_equal minus none"}
    for gap in gap_figures(chance, chance):
        assert (gap.value, gap.p) == (0.0, 1.0)
    other = dataclasses.replace(nothing.spec, attackers={})
    with pytest.raises(InputError, match="only on the same days"):
        gap_figures(chance, dataclasses.replace(nothing, spec=other))


def test_the_page_has_a_row_for_each_defence_and_each_case(measured, tmp_path):
    rows = defence_rows(list(measured.values()))
    assert [row[0] for row in rows] == ["defence", "none", "flat", "random_equal"]
    assert rows[0][1:4] == ["fixed F1", "fixed leak %", "bits at most, median day"]
    assert rows[1][3] == "no\u00a0bound"
    assert rows[0][-4:] == ["RMSE Inc. %", "F1 Red. %", "RMSE sig.", "F1 sig."]
    assert rows[1][-4:] == ["0.0", "0.0", "0/4", "0/3"]
    assert {"misled", "undertrained"} & set(rows[2])
    assert len(case_rows(measured["flat"], "fixed")) == 1 + len(measured["flat"].spec.trial.read)
    page = write_evaluation(list(measured.values()), tmp_path).read_text()
    for words in ("A day with random_equal", "synthetic house 1, 2 days from", "below guessing from routine"):
        assert words in page
    assert "A day with none" not in page


def test_a_leak_is_unknown_where_attackers_read_no_more_than_routine_without_a_defence(measured, tmp_path):
    known = dict.fromkeys(measured["flat"].prior, np.ones(2))
    weak = dataclasses.replace(measured["flat"], prior=known)
    rows = defence_rows([weak])
    assert rows[1][rows[0].index("fixed leak %")] == "unknown"
    page = write_evaluation([weak], tmp_path).read_text()
    assert "without the meter, gives F1 1.00" in page
    assert "Use stronger attackers or more days" in page


def test_the_page_explains_intervals_and_co_only_where_there_are_any(measured, tmp_path):
    few = [measured["none"], measured["random_equal"]]
    page = write_evaluation(few, tmp_path / "few", few[0]).read_text()
    assert "95 % intervals" not in page
    assert "CO learns" not in page
    spec = measured["none"].spec
    week = dataclasses.replace(spec.trial.test, days=tuple(spec.trial.test.days[:1]) * 7)
    many_days = dataclasses.replace(spec.trial, test=week)
    both = dataclasses.replace(spec, trial=many_days, attackers={"fixed": ("co",), "adaptive": ("co",)})
    longer = [dataclasses.replace(result, spec=both) for result in few]
    page = write_evaluation(longer, tmp_path / "many", longer[0]).read_text()
    assert page.count("95 % intervals over days.") == 2
    assert "CO learns" in page


def test_names_of_points_near_an_edge_point_away_from_it_and_apart():
    points = [Point("none", 0.0, 0.58), Point("trained", 8.0, 0.30), Point("flat", 8.0, 0.31)]
    (trace,) = defences_figure(points, 0.1, 0.58, "adaptive").data
    none, trained, flat = trace.textposition
    assert none.endswith("right")
    assert (trained, flat) == ("bottom left", "top left")


def test_trained_defences_are_measured_with_one_run_for_each_seed(home, undefended, trial, tmp_path):
    for seed in range(2):
        write_run(tmp_path / "ppo" / str(seed), home.name, trial.training[0].days, seed)
    defence = find_defence(str(tmp_path / "ppo"))
    assert (defence.name, defence.method, len(defence.policies)) == ("ppo", "manager", 2)
    result = evaluate(undefended, defence, 1)
    assert (result.seeds, result.masked.same_as) == (2, (0, 1))
    assert by_label(figures_of(result, ""))["", "", "training_seconds"].value == 60.5
    assert run_of(result).settings["training_seeds"] == [0, 1]
    assert evaluate(undefended, find_defence(str(tmp_path / "ppo" / "0")), 1).seeds == SEEDS
    seen = write_run(tmp_path / "seen", home.name, trial.test.days)
    with pytest.raises(InputError, match=f"seen was trained on {trial.test.days[0]}, a test day"):
        evaluate(undefended, find_defence(str(seen)))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"attackers": {"fixed": ("oracle",)}}, "no attacker 'oracle'"),
        ({"attackers": {"fixed": ("prior",)}}, "none of the fixed attackers sees the meter"),
        ({"seeds": 1}, "seeds=1 gives no significance"),
    ],
)
def test_what_cannot_be_measured_is_refused(undefended, changes, words):
    with pytest.raises(InputError, match=words):
        dataclasses.replace(undefended.spec, **changes)


def test_the_papers_figures_are_shown_only_with_its_day_battery_and_attackers(home, trial, setup, tmp_path):
    house = ("ukdale", 1)
    training = (HouseDays(*house, trial.training[0].days),)
    there = dataclasses.replace(trial, training=training, test=HouseDays(*house, trial.test.days[:1]), days="paper")
    spec = Spec(there, setup, {"fixed": ("co",)}, 2)
    measured = evaluate(measure_undefended(spec, {house: home}, 1), find_defence("rule_based"), 1)
    papers = dataclasses.replace(spec, attackers={"fixed": PAPER_SIX})
    result = dataclasses.replace(measured, spec=papers)
    head, row = defence_rows([result])
    assert row[head.index("paper's RMSE Inc. %")] == "32.4"
    ours = find_defence(str(write_run(tmp_path / "ppo", home.name, trial.training[0].days)))
    head, row = defence_rows([dataclasses.replace(result, defence=ours)])
    assert row[head.index("paper's F1 Red. %")] == "79.3"
    smaller = dataclasses.replace(setup, battery=Battery(capacity_kwh=2.0))
    fuller = dataclasses.replace(setup, soc_start=0.9)
    for changes in ({"trial": trial}, {"setup": smaller}, {"setup": fuller}, {"attackers": {"fixed": ("co",)}}):
        other = dataclasses.replace(result, spec=dataclasses.replace(papers, **changes))
        assert "paper's RMSE Inc. %" not in defence_rows([other])[0], changes


def test_energy_wear_and_total_cost_stand_beside_the_neutral_cost(measured):
    head, row = defence_rows([measured["random_equal"]])
    costs = [float(row[head.index(name)].split()[0]) for name in ("energy cost", "wear cost", "total cost")]
    assert costs[0] + costs[1] == pytest.approx(costs[2], abs=2e-3)
    assert costs[1] == pytest.approx(0.075 * float(row[head.index("kWh a day")].split()[0]), abs=2e-3)
    assert head.index("neutral cost a day") == head.index("total cost") + 1


def test_a_battery_starts_where_the_setup_says(undefended):
    fuller = dataclasses.replace(undefended.spec, setup=dataclasses.replace(undefended.spec.setup, soc_start=0.9))
    result = evaluate(dataclasses.replace(undefended, spec=fuller), find_defence("none"), 1)
    assert result.masked.physical.soc_end == pytest.approx(0.9)
    assert result.masked.example.soc_start == 0.9
    assert run_of(result).settings["soc_start"] == 0.9
    assert "soc_start" not in run_of(evaluate(undefended, find_defence("none"), 1)).settings


def test_a_managers_choice_can_be_changed_and_is_recorded(undefended, home, trial, tmp_path):
    defence = find_defence(str(write_run(tmp_path / "ppo", home.name, trial.training[0].days)))
    greedy = evaluate(undefended, defence.choosing("greedy"), 1)
    assert greedy.masked.same_as == (0, 0, 0)
    assert evaluate(undefended, defence, 1).masked.same_as == (0, 1, 2)
    assert run_of(greedy).settings["choice"] == "greedy"
    assert defence.settings["choice"] == "sampled"
    assert (defence.has_choice, find_defence("flat").has_choice) == (True, False)
    with pytest.raises(InputError, match="no choice 'bold'; known are sampled, greedy"):
        defence.choosing("bold")
    flat = find_defence("flat")
    changed = choosing([flat, defence], "greedy")
    assert changed[0] == flat
    assert changed[1].settings["choice"] == "greedy"
    with pytest.raises(InputError, match="flat is no trained manager, which alone has a choice; leave `choice` out"):
        choosing([flat], "greedy")


@pytest.mark.slow
def test_recorded_figures_come_out_again_to_the_digit(real_data):
    home = load(real_data / "redd", 2)
    trial = protocol_trial(REDD_HOUSE2, home, "paper")
    spec = Spec(trial, common_setup([]), {"fixed": ("co", "fhmm")})
    undefended = measure_undefended(spec, {trial.test.key: home}, 1)
    recorded = results.read(RESULTS).set_index(list(results.IDENTITY))
    for name in ("none", "flat"):
        figures = figures_of(evaluate(undefended, find_defence(name), 1), "")
        compared = [figure for figure in figures if figure.attacker not in ("all", "strongest")]
        fresh = results.to_table(compared).set_index(list(results.IDENTITY))
        known = recorded.loc[fresh.index]
        assert len(fresh) > 90
        for column in ("value", "change", "spread", "low", "high"):
            digits = fresh[column].map("{:.6g}".format)
            assert digits.equals(known[column].map("{:.6g}".format)), column
        varies = fresh["spread"] > 0.0  # where all seeds agree there is no p
        np.testing.assert_allclose(fresh["p"][varies], known["p"][varies], rtol=1e-5, atol=1e-30)
        assert fresh[["seeds", "n_days", "note"]].equals(known[["seeds", "n_days", "note"]])


def test_runs_bring_their_own_signatures_battery_and_tariff(home, setup, tmp_path):
    library = Library.of(setup.library.signatures()[:3], setup.library.source)
    small = {"capacity_kwh": 2.0}
    runs = [write_run(tmp_path / name, home.name, (), library=library, battery=small) for name in "ab"]
    defences = find_defences([str(run) for run in runs])
    assert common_setup(defences).library.digest() == library.digest()
    assert common_setup(defences).battery == Battery(capacity_kwh=2.0)
    other = find_defence(str(write_run(tmp_path / "c", home.name, (), battery=small)))
    with pytest.raises(InputError, match="signatures that differ"):
        common_setup([*defences, other])
    larger = find_defence(str(write_run(tmp_path / "d", home.name, (), library=library)))
    with pytest.raises(InputError, match="different settings of battery"):
        common_setup([*defences, larger])
    assert common_setup([*defences, larger], battery=Battery()).battery == Battery()


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["magic"], "no defence and no folder 'magic'; known are none, random"),
        (["random_equal:much"], "no number of kWh a day"),
        (["random_equal:-1"], "0 or more"),
        (["flat", "none", "flat"], "flat is named twice"),
    ],
)
def test_an_unknown_or_repeated_defence_is_refused(names, words):
    with pytest.raises(InputError, match=words):
        find_defences(names)


def test_a_day_without_any_appliance_is_refused(trial, setup):
    with pytest.raises(InputError, match="no appliance was used on 2024-04-19"):
        Spec(dataclasses.replace(trial, targets=()), setup)
