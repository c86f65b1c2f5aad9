"""A defence at work on test days, and what attackers read behind it."""

import dataclasses

import numpy as np
import pytest
from evaluation_runs import write_run
from meterveil.bench.adaptive_curve import Curve, masked_test_days
from meterveil.bench.evaluation.cards import cards_of
from meterveil.bench.evaluation.compare import find, gap_cards, gap_rows, gaps
from meterveil.bench.evaluation.days import check_days, synthetic_trial, trial_of
from meterveil.bench.evaluation.measure import Spec, evaluate, measure_bare
from meterveil.bench.evaluation.reported import papers_headline
from meterveil.bench.evaluation.scores import BEST_F1, headline, significant, strongest
from meterveil.bench.strength import HouseDays, papers_raw

from meterveil.attackers.protocol import AGGREGATE
from meterveil.bench import strength
from meterveil.bench.evaluation.page import case_rows, defence_rows, write_evaluation
from meterveil.core.arrays import KWH_PER_W_MINUTE
from meterveil.core.battery import Battery
from meterveil.core.tariff import PAPER_TARIFF
from meterveil.data.load import load
from meterveil.data.protocols import REDD_HOUSE2
from meterveil.defenders.defence import common_setup, find_defence, find_defences
from meterveil.errors import InputError
from meterveil.plots.evaluation import Point, defences_figure

SEEDS = 3


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
def bare(home, trial, setup):
    spec = Spec(trial, setup, {"fixed": ("co",)}, SEEDS)
    return measure_bare(spec, {trial.test.key: home}, workers=1)


@pytest.fixture(scope="module")
def measured(bare):
    return {name: evaluate(bare, find_defence(name), workers=1) for name in ("none", "flat", "random_equal")}


def test_the_first_days_teach_and_the_later_ones_are_read(home, trial):
    days = home.days()
    assert trial.training[0].days == tuple(days[:4])
    assert trial.test.days == tuple(days[4:])
    assert trial.table == "evaluation_2_days"


def test_nothing_is_changed_where_nothing_defends(measured):
    result = measured["none"]
    assert all(case.delta == 0.0 for case in result.cases["fixed"] if case.n_days)
    assert headline(result.cases["fixed"], "rmse").value == pytest.approx(0.0, abs=1e-9)
    assert significant(result.cases["fixed"], "f1")[0] == 0
    assert strongest(result.cases["fixed"], result.prior, BEST_F1).leak.value == pytest.approx(1.0)
    assert all(case.delta == 0.0 for case in result.information)
    assert not result.played.physical.throughput_kwh.any()


def test_a_defence_makes_attackers_worse_and_the_meter_tell_less(measured):
    for name in ("flat", "random_equal"):
        result = measured[name]
        assert headline(result.cases["fixed"], "f1").value > 20.0
        harmed, count = significant(result.cases["fixed"], "f1")
        assert 0 < harmed <= count == 3  # nobody used the dishwasher
        fridge = next(case for case in result.information if case.target == "fridge")
        assert fridge.masked < 0.6 * fridge.raw


def test_chance_differs_between_seeds_and_a_rule_does_not(measured):
    assert measured["random_equal"].played.alike == (0, 1, 2)
    assert measured["flat"].played.alike == (0, 0, 0)
    assert all(case.spread == 0.0 for case in measured["flat"].cases["fixed"] if case.n_days)


def test_attackers_of_the_bare_meter_are_those_of_meterveil_attack(home, trial, bare, setup, tmp_path):
    jobs = []
    strength.measure(trial, {trial.test.key: home}, ["co", "prior"], workers=1, on_done=jobs.append)
    again = Spec(trial, setup, {"fixed": ("co",)}, SEEDS)
    measure_bare(again, {trial.test.key: home}, workers=1, on_done=jobs.append)
    assert jobs == []
    [raw] = [c for c in strength.measure(trial, {trial.test.key: home}, ["co"]) if _is_fridge_rmse(c)]
    assert raw.measured == pytest.approx(np.nanmean(bare.scores["co"]["fridge", "rmse"]))


def _is_fridge_rmse(card):
    return (card.row, card.column) == ("co fridge", "rmse")


def test_the_masked_days_are_those_that_an_adaptive_curve_reads(home, trial, setup, measured):
    one = find_defence("random_equal")
    expected = masked_test_days(Curve(trial, "random_equal", one.policies[0], setup, SEEDS), home)
    found = [day for row in measured["random_equal"].played.days for day in row]
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours.aggregate_w, theirs.aggregate_w)
        np.testing.assert_array_equal(ours.appliances_w[AGGREGATE], theirs.appliances_w[AGGREGATE])


def test_charge_is_carried_over_midnight_and_every_kwh_is_paid_for(measured):
    played = measured["random_equal"].played
    for row, days in enumerate(played.days):
        soc = 0.5
        for number, day in enumerate(days):
            power_w = day.aggregate_w - day.appliances_w[AGGREGATE]
            moved_kwh = np.abs(power_w).sum() * KWH_PER_W_MINUTE
            gained = power_w.sum() * KWH_PER_W_MINUTE / Battery().capacity_kwh
            soc_end = played.physical.soc_end[row, number]
            clock = np.asarray(day.minutes.hour * 60 + day.minutes.minute)
            energy = (PAPER_TARIFF.price(clock, clock) * power_w).sum() * KWH_PER_W_MINUTE
            assert soc_end == pytest.approx(soc + gained)
            assert played.physical.throughput_kwh[row, number] == pytest.approx(moved_kwh)
            assert played.physical.total_cost[row, number] == pytest.approx(energy + 0.075 * moved_kwh)
            neutral = energy + 0.075 * moved_kwh + (soc - soc_end) * Battery().capacity_kwh * 0.1317
            assert played.physical.soc_neutral_cost[row, number] == pytest.approx(neutral)
            soc = soc_end


def test_the_day_that_is_drawn_is_the_day_that_was_measured(measured):
    for result in measured.values():
        run, day = result.played.example, result.played.days[0][0]
        np.testing.assert_array_equal(run.meter_w, day.aggregate_w)
    library = measured["random_equal"].spec.setup.library
    drawn = measured["random_equal"].played.example
    assert set(np.unique(drawn.decoy[drawn.battery_w != 0])) <= set(range(library.size))


def test_an_attacker_that_adapts_reads_more_than_one_that_never_saw_the_defence(setup):
    home = load("synthetic", days=4)
    targets = ("fridge", "kettle")
    trial = dataclasses.replace(synthetic_trial(home, "many"), targets=targets, also_learned=())
    spec = Spec(trial, setup, {"fixed": ("fhmm",), "adaptive": ("fhmm",)}, seeds=2, copies=2)
    jobs = []
    bare = measure_bare(spec, {trial.test.key: home}, 1)
    result = evaluate(bare, find_defence("random_equal"), 1, jobs.append)
    read = {threat: strongest(cases, result.prior, "rmse") for threat, cases in result.cases.items()}
    assert read["adaptive"].masked.value < read["fixed"].masked.value
    assert [job.name for job in jobs] == ["fhmm"]
    same = evaluate(bare, find_defence("none"), 1, jobs.append)
    assert same.cases["adaptive"][0].delta == 0.0
    assert len(jobs) == 1


def test_cards_are_distinct_and_written_for_every_figure(measured):
    made = [card for result in measured.values() for card in cards_of(result)]
    assert len({card.key for card in made}) == len(made)
    assert {card.table for card in made} == {"evaluation_2_days"}
    found = {(card.row, card.column): card for card in made}
    result = measured["random_equal"]
    [fridge] = [c for c in result.cases["fixed"] if (c.target, c.metric) == ("fridge", "rmse")]
    card = found["co fridge, random_equal, fixed", "rmse"]
    assert (card.measured, card.spread) == (pytest.approx(fridge.masked), pytest.approx(fridge.spread))
    assert (card.seeds, card.n_days, card.reported) == ((0, 1, 2), 2, None)
    assert found["co fridge, random_equal, fixed", "rmse_delta"].measured == pytest.approx(fridge.delta)
    assert found["headline, flat, fixed", "f1_cases"].measured == 3
    assert found["battery, none", "throughput_kwh"].measured == 0.0
    assert found["meter fridge, flat", "information_bits"].threat_model == "clean"


def test_headlines_say_how_far_seeds_are_apart(measured):
    found = {(card.row, card.column): card for result in measured.values() for card in cards_of(result)}
    result, row = measured["random_equal"], "headline, random_equal, fixed"
    cases = [case for case in result.cases["fixed"] if case.metric == "rmse" and case.target != AGGREGATE]
    raw = sum(case.raw for case in cases)
    by_seed = [100 * (sum(case.masked_by_seed[seed] for case in cases) / raw - 1) for seed in range(SEEDS)]
    assert found[row, "rmse_increase_percent"].spread == pytest.approx(np.std(by_seed, ddof=1))
    assert found[row, "rmse_increase_percent"].measured == pytest.approx(np.mean(by_seed))
    read = [case for case in result.cases["fixed"] if case.metric == BEST_F1 and case.n_days]
    f1_by_seed = np.mean([case.masked_by_seed for case in read], axis=0)
    assert found[row, "strongest_f1"].spread == pytest.approx(np.std(f1_by_seed, ddof=1))
    whole = found[row, "strongest_f1_raw"].measured - found[row, "prior_f1"].measured
    assert found[row, "f1_leak"].spread == pytest.approx(np.std(f1_by_seed, ddof=1) / whole)
    for column in ("mae_increase_percent", "sae_increase_percent", "f1_reduction_percent", "strongest_rmse"):
        assert found[row, column].spread > 0
        assert found["headline, flat, fixed", column].spread == 0.0


def test_the_papers_comparison_stands_beside_its_baselines(home, bare, trial, setup):
    """The figures are of UK-DALE; whose days they stand beside is the trial's to say."""
    days = HouseDays("ukdale", 1, trial.test.days[:1])
    training = (HouseDays("ukdale", 1, trial.training[0].days),)
    there = dataclasses.replace(trial, training=training, test=days, reported=papers_raw("ukdale"))
    spec = Spec(there, setup, {"fixed": ("co",)}, 2)
    result = evaluate(measure_bare(spec, {("ukdale", 1): home}, 1), find_defence("rule_based"), 1)
    found = {(card.row, card.column): card for card in cards_of(result)}
    assert found["headline, rule_based, fixed", "rmse_increase_percent"].reported == 32.44
    assert found["headline, rule_based, fixed", "f1_significant"].reported == 10
    assert found["battery, rule_based", "degradation_cost"].reported == 0.207
    assert found["co fridge, rule_based, fixed", "rmse"].reported is None
    assert "the paper has 24" in found["headline, rule_based, fixed", "rmse_increase_percent"].note


def test_a_table_that_the_paper_does_not_have_gets_none_of_its_figures(home, trial, setup, tmp_path):
    days = HouseDays("ukdale", 1, trial.test.days[:1])
    run = write_run(tmp_path / "ppo", home.name, trial.training[0].days)
    one = dataclasses.replace(find_defence(str(run)), name="lambda 0")
    spec = Spec(
        dataclasses.replace(trial, test=days, table="lambda_sweep", reported=papers_raw("ukdale")),
        setup,
        {"fixed": ("co",)},
        2,
    )
    result = evaluate(measure_bare(spec, {trial.test.key: home, ("ukdale", 1): home}, 1), one, 1)
    assert papers_headline(result) == {}
    assert {card.reported for card in cards_of(result)} == {None}
    by_itself = dataclasses.replace(spec, trial=dataclasses.replace(spec.trial, table="evaluation_paper_day"))
    there = dataclasses.replace(result, spec=by_itself)
    assert papers_headline(there)["rmse_increase_percent"] == 107.12
    found = {(card.row, card.column): card for card in cards_of(there)}
    assert found["co fridge, lambda 0, fixed", "rmse"].reported is not None


def test_the_page_has_a_row_for_each_defence_and_each_case(measured, tmp_path):
    rows = defence_rows(list(measured.values()))
    assert [row[0] for row in rows] == ["defence", "none", "flat", "random_equal"]
    assert rows[0][:5] == ["defence", "RMSE Inc. %", "F1 Red. %", "RMSE sig.", "F1 sig."]
    assert rows[1][1:5] == ["0.0", "0.0", "0/4", "0/3"]
    assert len(case_rows(measured["flat"], "fixed")) == 1 + len(measured["flat"].spec.trial.read)
    page = write_evaluation(list(measured.values()), tmp_path).read_text()
    assert "What is read behind random_equal" in page
    assert "<title>meterveil, synthetic house 1, 2 days from" in page
    assert page.index("attackers tried to tell from the meter alone") < page.index("ratios of means")


def test_the_page_speaks_of_brackets_and_of_co_only_where_there_are_any(measured, tmp_path):
    results = [measured["none"], measured["flat"]]
    page = write_evaluation(results, tmp_path / "few", results[0]).read_text()
    assert "Brackets are" not in page
    assert "CO takes the states" not in page
    spec = measured["none"].spec
    week = dataclasses.replace(spec.trial.test, days=tuple(spec.trial.test.days[:1]) * 7)
    both = dataclasses.replace(
        spec,
        trial=dataclasses.replace(spec.trial, test=week),
        attackers={"fixed": ("co",), "adaptive": ("co",)},
    )
    longer = [dataclasses.replace(result, spec=both) for result in results]
    page = write_evaluation(longer, tmp_path / "many", longer[0]).read_text()
    assert page.count("Brackets are 95 % intervals over days.") == 2
    assert "CO takes the states" in page


def test_names_of_points_near_an_edge_point_away_from_it_and_apart():
    points = [Point("none", 0.0, 0.58), Point("trained", 8.0, 0.30), Point("flat", 8.0, 0.31)]
    (trace,) = defences_figure(points, 0.1, 0.58, "adaptive").data
    none, trained, flat = trace.textposition
    assert none.endswith("right")
    assert (trained, flat) == ("bottom left", "top left")
    assert list(trace.text) == [point.name for point in points]


def test_two_defences_are_compared_on_the_same_days(measured):
    chance, nothing = measured["random_equal"], measured["none"]
    found = {gap.column: gap for gap in gaps(chance, nothing)}
    for metric, column in (("rmse", "rmse_increase_percent"), ("f1", "f1_reduction_percent")):
        more = headline(chance.cases["fixed"], metric).value - headline(nothing.cases["fixed"], metric).value
        assert found[column].difference.value == pytest.approx(more)
        assert found[column].p < 0.05
    read = [strongest(result.cases["fixed"], result.prior, BEST_F1) for result in (chance, nothing)]
    gap = found["strongest_f1"].difference
    assert gap.value == pytest.approx(read[0].masked.value - read[1].masked.value)
    assert [row[0] for row in gap_rows(list(measured.values()), nothing)] == [
        "defence",
        "flat",
        "random_equal",
    ]
    assert {card.row for card in gap_cards(chance, nothing)} == {"random_equal against none, fixed"}


def test_a_defence_does_not_differ_from_itself(measured):
    for gap in gaps(measured["random_equal"], measured["random_equal"]):
        assert (gap.difference.value, gap.p) == (0.0, 1.0)


def test_a_defence_that_was_not_measured_cannot_be_compared_with(measured):
    with pytest.raises(InputError, match="nill is not among the defences; compare with one of none, flat"):
        find(list(measured.values()), "nill")


def test_trained_defences_are_measured_with_one_run_for_each_seed(home, bare, trial, tmp_path):
    for seed in range(2):
        write_run(tmp_path / "ppo" / str(seed), home.name, trial.training[0].days, seed)
    one = find_defence(str(tmp_path / "ppo"))
    assert (one.name, one.method, len(one.policies)) == ("ppo", "manager", 2)
    result = evaluate(bare, one, 1)
    assert result.seeds == 2
    assert result.played.alike == (0, 1)
    found = {(card.row, card.column): card for card in cards_of(result)}
    assert found["battery, ppo", "training_seconds"].measured == 60.5
    assert found["battery, ppo", "training_seconds"].settings["training_seeds"] == [0, 1]
    alone = evaluate(bare, find_defence(str(tmp_path / "ppo" / "0")), 1)
    assert alone.seeds == SEEDS


def test_a_defence_that_has_seen_a_test_day_is_refused(home, bare, trial, tmp_path):
    seen = write_run(tmp_path / "seen", home.name, trial.test.days)
    with pytest.raises(InputError, match=f"seen was trained on {trial.test.days[0]}, a test day"):
        evaluate(bare, find_defence(str(seen)))


def test_runs_bring_their_own_signatures_battery_and_tariff(home, setup, tmp_path):
    library = setup.library.subset([0, 1, 2])
    small = {"capacity_kwh": 2.0}
    runs = [write_run(tmp_path / name, home.name, (), library=library, battery=small) for name in "ab"]
    found = find_defences([str(run) for run in runs])
    assert common_setup(found).library.digest() == library.digest()
    assert common_setup(found).battery == Battery(capacity_kwh=2.0)
    other = find_defence(str(write_run(tmp_path / "c", home.name, (), battery=small)))
    with pytest.raises(InputError, match="signatures that differ"):
        common_setup([*found, other])
    larger = find_defence(str(write_run(tmp_path / "d", home.name, (), library=library)))
    with pytest.raises(InputError, match="different settings of battery; evaluate them one at a time"):
        common_setup([*found, larger])
    assert common_setup([*found, larger], battery=Battery()).battery == Battery()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("magic", "no defence and no folder 'magic'; known are none, random"),
        ("runs/missing", "no defence and no folder 'runs/missing'"),
        ("random_equal:much", "has no number of kWh a day; write it as random_equal:7.5"),
        ("random_equal:-1", "give 0 or more"),
    ],
)
def test_a_defence_that_is_not_known_is_refused(name, words):
    with pytest.raises(InputError, match=words):
        find_defence(name)


def test_a_folder_without_a_training_is_refused(tmp_path):
    with pytest.raises(InputError, match="holds no training"):
        find_defence(str(tmp_path))
    (tmp_path / "run.json").write_text('{"format": "something-else"}')
    with pytest.raises(InputError, match="holds no training"):
        find_defence(str(tmp_path))


def test_two_defences_of_one_name_are_refused():
    with pytest.raises(InputError, match="flat is named twice"):
        find_defences(["flat", "none", "flat"])


def test_what_cannot_be_measured_is_refused(home, trial, setup):
    with pytest.raises(InputError, match="there is no attacker 'oracle'; known are co, fhmm"):
        Spec(trial, setup, {"fixed": ("oracle",)})
    with pytest.raises(InputError, match="no fixed attacker looks at the meter; add one of co"):
        Spec(trial, setup, {"fixed": ("prior",)})
    with pytest.raises(InputError, match="1 seed gives no significance; give 2 or more"):
        Spec(trial, setup, {"fixed": ("co",)}, seeds=1)
    with pytest.raises(InputError, match="no appliance was used on 2024-04-19"):
        Spec(dataclasses.replace(trial, targets=()), setup)
    with pytest.raises(InputError, match="there are no days 'all'; known are paper and many"):
        check_days("all")


def test_a_household_shorter_than_a_day_is_refused(home, trial, setup):
    short = dataclasses.replace(
        home, minutes=home.minutes[60:1200], aggregate_w=home.aggregate_w[60:1200], appliances_w={}
    )
    with pytest.raises(InputError, match="records 0 whole days; an evaluation needs 4 or more"):
        synthetic_trial(short, "paper")
    spec = Spec(trial, setup, {"fixed": ("co",)})
    with pytest.raises(InputError, match=r"does not record|has no"):
        measure_bare(spec, {trial.test.key: short})


def test_the_papers_tables_stand_beside_a_trained_defence_on_its_own_day(real_data, tmp_path):
    house = load(real_data / "redd", 2)
    trial = trial_of(REDD_HOUSE2, house, "paper")
    assert trial.test.days == REDD_HOUSE2.test[:1]
    for seed in range(2):
        write_run(tmp_path / "ppo" / str(seed), house.name, REDD_HOUSE2.training, seed)
    one = find_defence(str(tmp_path / "ppo"))
    spec = Spec(trial, common_setup([one]), {"fixed": ("co",)})
    result = evaluate(measure_bare(spec, {("redd", 2): house}, 1), one, 1)
    found = {(card.row, card.column): card for card in cards_of(result)}
    assert found["headline, ppo, fixed", "rmse_increase_percent"].reported == 165.9
    assert found["headline, ppo, fixed", "rmse_significant"].reported == 22
    assert found["headline, ppo, fixed", "rmse_cases"].reported == 30
    assert found["co fridge, ppo, fixed", "rmse"].reported == 118.83
    assert found["co fridge, ppo, fixed", "rmse_delta"].reported == 41.56
    assert found["headline, ppo, fixed", "f1_reduction_percent"].measured > 0
    assert headline(result.cases["fixed"], "rmse").value > 0


def test_many_days_of_redd_are_its_two_held_out_ones(real_data):
    trial = trial_of(REDD_HOUSE2, load(real_data / "redd", 2), "many")
    assert trial.test.days == REDD_HOUSE2.test
    assert trial.reported == {}
    assert trial.table == "evaluation_2_days"
