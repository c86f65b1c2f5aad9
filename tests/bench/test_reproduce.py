"""The experiments as data: which cells there are, what each needs, and what can change its number."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from evaluation_runs import write_run
from meterveil.bench.evaluation.reported import claims, papers_case

from meterveil.attackers.registry import PAPER_SIX
from meterveil.bench import cards
from meterveil.bench.reported import TABLES as PRINTED
from meterveil.bench.reported.claimed import claimed
from meterveil.bench.reproduce import entrant, measuring, specs
from meterveil.bench.reproduce.choosing import FULL, QUICK, cells
from meterveil.bench.reproduce.days import training_days, trial_for
from meterveil.bench.reproduce.engines import Local
from meterveil.bench.reproduce.entrant import Entrant
from meterveil.bench.reproduce.measuring import Excuse, absent_cards
from meterveil.bench.reproduce.place import Place, built_library
from meterveil.bench.reproduce.plan import plan
from meterveil.bench.reproduce.runner import run
from meterveil.bench.reproduce.specs import OURS, EqualTo, RationOf, Row, Training
from meterveil.bench.reproduce.task import left
from meterveil.cli.evaluate import _attackers
from meterveil.data.cache import cache_folder
from meterveil.data.load import load
from meterveil.data.signatures import Collection, Signature, save
from meterveil.data.synthetic import decoy_library
from meterveil.defenders.defence import trained_defence
from meterveil.defenders.rationed import Rationed
from meterveil.errors import InputError
from meterveil.fingerprint import sources


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path / "results", cache_folder())


def kinds(found):
    names = [task.kind for task in found.tasks.values()]
    return {name: names.count(name) for name in names}


def keys(found):
    return {task.kind: key for key, task in found.tasks.items()}


def test_every_row_that_the_paper_prints_is_a_cell_of_the_same_name():
    ours = {(cell.table, cell.dataset, cell.row.label) for cell in cells()}
    for table in PRINTED:
        assert {(table, dataset, label) for dataset, label, _ in claimed(table)} <= ours


def test_tables_have_the_data_sets_and_threats_of_their_own_unless_others_are_asked_for():
    assert {cell.dataset for cell in cells(["battery_sensitivity"])} == {"ukdale"}
    assert {cell.threat for cell in cells(["battery_sensitivity"])} == {"fixed"}
    assert {cell.threat for cell in cells(["many_days"])} == {"fixed", "adaptive"}
    asked = cells(["battery_sensitivity"], ["redd", "synthetic"], ["adaptive"], rows=["main"])
    assert [(cell.dataset, cell.threat) for cell in asked] == [
        ("redd", "adaptive"),
        ("synthetic", "adaptive"),
    ]
    assert {cell.table for cell in cells(datasets=["redd"])} == {
        "overall_transfer",
        "baseline_comparison",
        "heldout_day_generalization_redd",
        "gap_to_chance",
        "remedies",
        "many_days",
    }
    alone = cells(threats=["adaptive"])
    assert {cell.table for cell in alone} == {"baseline_comparison", "gap_to_chance", "many_days"}


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"tables": ["magic"]}, "no table 'magic'; known are overall_transfer; baseline_comparison"),
        ({"tables": ["heldout"]}, "no table 'heldout'; known are"),
        ({"datasets": ["refit"]}, "no data set 'refit'; known are ukdale; redd; synthetic"),
        ({"threats": ["clean"]}, "no threat model 'clean'; known are fixed; adaptive"),
        ({"tables": ["lambda_sweep"], "rows": ["ours"]}, "no row 'ours'; known are lambda 0; lambda 0.02"),
        (
            {"tables": ["heldout_day_generalization"], "datasets": ["synthetic"]},
            "heldout_day_generalization cannot be measured on synthetic: the rows name days",
        ),
        (
            {"rows": ["lstm"], "threats": ["adaptive"]},
            "by default no such row is measured under adaptive attackers; name its table with",
        ),
    ],
)
def test_what_is_not_known_is_refused_with_what_is(asked, words):
    with pytest.raises(InputError, match=words):
        cells(**asked)


def test_the_beginning_of_a_name_is_enough_where_it_is_the_only_one():
    assert cells(["battery"]) == cells(["battery_sensitivity"])
    assert {cell.table for cell in cells(["heldout_day_generalization"])} == {"heldout_day_generalization"}


def test_a_quick_effort_shortens_every_training_and_no_row_changes_its_name():
    quick, full = (cells(effort=effort) for effort in (QUICK, FULL))
    assert [cell.title for cell in quick] == [cell.title for cell in full]
    trainings = [cell.row.defence for cell in quick if isinstance(cell.row.defence, Training)]
    assert {training.budget_days for training in trainings} == {10.0}
    assert {cell.seeds for cell in quick} == {2}


def test_tables_ask_the_attackers_of_an_evaluation_where_nobody_is_named():
    asked = {cell.threat: cell.attackers for cell in cells()}
    assert asked == _attackers("fixed,adaptive", "")
    assert asked == {"fixed": PAPER_SIX, "adaptive": ("fhmm", "bert4nilm")}


def test_an_adaptive_attacker_meets_fewer_trainings_and_a_row_alone_only_where_it_is_named():
    asked = cells(["baseline_comparison"], ["redd"])
    assert {(cell.threat, cell.seeds) for cell in asked} == {("fixed", 5), ("adaptive", 3)}
    rows = {cell.row.label for cell in asked if cell.threat == "adaptive"}
    assert rows == {"none", "random_equal", "flat", "flat_decoys", "ours"}
    [named] = cells(["baseline_comparison"], ["redd"], ["adaptive"], rows=["ddql_mi"])
    assert named.row.label == "ddql_mi"
    assert [cell.threat for cell in cells(["baseline_comparison"], ["redd"], rows=["ddql_mi"])] == ["fixed"]


def test_tables_share_the_trainings_that_are_the_same(place):
    tables = ["overall_transfer", "probe_ablation", "signature_size_ablation", "lambda_sweep"]
    asked = [replace(cell, seeds=2, attackers=("co",)) for cell in cells(tables, ["synthetic"])]
    found = plan(asked, place)
    assert kinds(found) == {
        "probe": 2 * 4,
        "train": 2 * (1 + 3 + 4 + 7),
        "attack": 2,
        "measure": 1 + 4 + 5 + 8,
    }


def test_an_adaptive_attacker_is_fitted_for_every_policy_and_never_for_no_defence(place):
    rows = ["none", "random_equal", "flat", "ours"]
    asked = cells(["baseline_comparison"], ["synthetic"], ["adaptive"], rows=rows)
    found = plan([replace(cell, seeds=2, attackers=("co", "fhmm")) for cell in asked], place)
    assert kinds(found)["adapt"] == 2 * (0 + 1 + 1 + 2)
    needed = {task.title: task.needs for task in found.tasks.values()}
    assert len(needed["co against random_equal on synthetic"]) == 2  # the trainings whose throughput it takes
    assert needed["co against flat on synthetic"] == ()


@pytest.mark.parametrize(("label", "table"), [("one day", "baseline_comparison"), ("many days", "many_days")])
@pytest.mark.parametrize("threat", specs.THREATS)
def test_a_gap_needs_exactly_what_the_rows_of_both_defences_need(label, table, threat, place):
    gap = cells(["gap_to_chance"], ["synthetic"], [threat], QUICK, [label])
    both = cells([table], ["synthetic"], [threat], QUICK, ["ours", "random_equal"])
    tasks = [plan(asked, place).tasks for asked in (gap, both)]
    of_gap, of_both = (
        {key: task.needs for key, task in found.items() if task.kind != "measure"} for found in tasks
    )
    assert of_gap == of_both
    [measure] = [task for task in tasks[0].values() if task.kind == "measure"]
    needed = {key for task in tasks[1].values() if task.kind == "measure" for key in task.needs}
    assert set(measure.needs) == needed
    assert len(measure.needs) == len(needed)


def test_a_quick_gap_is_that_of_quick_trainings():
    [cell] = cells(["gap_to_chance"], ["synthetic"], ["fixed"], QUICK, ["one day"])
    [(first, ours), (second, chance)] = cell.row.defences
    assert (first, second) == ("ours", "random_equal")
    assert ours.budget_days == 10.0
    assert chance == EqualTo(ours)


def test_a_key_changes_with_whatever_can_change_the_number(place, tmp_path):
    [cell] = cells(["overall_transfer"], ["synthetic"])
    cell = replace(cell, seeds=2, attackers=("co",))
    same, other = (keys(plan([cell], place)) for _ in range(2))
    assert same == other
    whole = Collection.of_library(decoy_library())
    stronger = (Signature("kettle", (2500.0,) * 9), *whole.signatures[1:])
    library = save(Collection("test", stronger), tmp_path / "library.json")
    changed = {
        "library": keys(plan([cell], replace(place, library=library))),
        "battery": keys(
            plan([replace(cell, row=replace(cell.row, battery=(("capacity_kwh", 2.0),)))], place)
        ),
        "weight": keys(plan([replace(cell, row=Row("ours", Training(weight=0.5)))], place)),
        "days": keys(plan([replace(cell, row=replace(cell.row, days="many"))], place)),
        "attackers": keys(plan([replace(cell, attackers=("mean",))], place)),
    }
    for what, found in changed.items():
        assert found["measure"] != same["measure"], what
        assert (found["train"] != same["train"]) == (what in ("library", "battery", "weight")), what
        assert found["probe"] == same["probe"]
    assert changed["attackers"]["attack"] == same["attack"]  # the prior, the last of them


def test_the_key_of_a_cell_hashes_the_code_that_makes_its_figures(place, monkeypatch):
    [cell] = cells(["baseline_comparison"], ["synthetic"], ["fixed"], QUICK, ["flat"])
    before = keys(plan([cell], place))
    read = set()

    def another_hash(*modules):
        read.update(sources(*modules))
        return "other"

    monkeypatch.setattr(measuring, "code_hash", another_hash)
    after = keys(plan([cell], place))
    assert after["measure"] != before["measure"]
    assert after["attack"] == before["attack"]
    names = ("cards", "compare", "measure", "defences", "scores")
    assert read >= {f"meterveil.bench.evaluation.{name}" for name in names}


def test_chance_moves_what_the_trainings_moved_on_their_training_days(place):
    for seed, moved_kwh in enumerate([6.0, 7.5]):
        folder = place.run(f"of-{seed}")
        folder.mkdir(parents=True)
        (folder / "run.json").write_text(json.dumps({"figures": {"training_days_moved_kwh": moved_kwh}}))
    one = Entrant("random_equal", EqualTo(OURS), runs=("of-0", "of-1"))
    [policy] = one.contender(place).policies
    assert policy.throughput_kwh == 6.75
    assert one.settings(place) == {"equal_to_kwh": 6.75}


def test_a_ration_holds_the_policies_of_its_trainings_back(place):
    home = load("synthetic")
    write_run(place.run("ration-0"), home.name, home.days()[:2])
    bare, rationed = (
        Entrant("ours", defence, runs=("ration-0",)).contender(place) for defence in (OURS, RationOf(OURS))
    )
    [policy], [alone] = rationed.policies, bare.policies
    assert isinstance(policy, Rationed)
    assert type(policy.policy) is type(alone)
    assert rationed.settings | {"defence": ""} == bare.settings | {"defence": ""}


def test_the_key_of_a_ration_hashes_the_code_that_holds_back(place, monkeypatch):
    asked = cells(["remedies"], ["synthetic"], ["adaptive"], QUICK, ["ours, one day", "rationed, one day"])
    before = plan(asked, place)
    monkeypatch.setattr(entrant, "code_hash", lambda *modules: "other")
    after = plan(asked, place)
    titles = [
        {task.title for key, task in found.tasks.items() if key not in other.tasks}
        for found, other in ((before, after), (after, before))
    ]
    assert titles[0] == titles[1]
    assert titles[0] == {
        "remedies, rationed, one day, synthetic, adaptive",
        *(f"{name} against rationed, one day on synthetic" for name in ("co", "fhmm")),
    }


def test_a_ration_acts_with_the_very_trainings_of_ours_and_meets_attackers_of_its_own(place):
    asked = cells(["remedies"], ["synthetic"], ["adaptive"], QUICK, ["rationed, one day"])
    ours = cells(["baseline_comparison"], ["synthetic"], ["adaptive"], QUICK, ["ours"])
    rationed, alone = (plan(part, place).tasks for part in (asked, ours))
    by_kind = [
        {k: {key for key in part if part[key].kind == k} for k in ("train", "adapt")}
        for part in (rationed, alone)
    ]
    assert by_kind[0]["train"] == by_kind[1]["train"]
    assert len(by_kind[0]["adapt"]) == len(by_kind[1]["adapt"])
    assert not by_kind[0]["adapt"] & by_kind[1]["adapt"]


def test_the_cells_of_two_threats_do_not_overwrite_each_other(place):
    asked = cells(["baseline_comparison"], ["synthetic"], rows=["flat"])
    found = plan([replace(cell, seeds=2, attackers=("co",), copies=1) for cell in asked], place)
    assert run(found, Local(1)).failed == {}
    assert left(found.tasks, found.cells, place) == []
    folder = place.results / "baseline_comparison" / "synthetic"
    by_threat = {cell.threat: key for key, cell in found.cells.items()}
    owners = {
        "headline--flat--fixed": "fixed",
        "headline--flat--adaptive": "adaptive",
        "co-kettle--flat--adaptive": "adaptive",
        "battery--flat": "fixed",
        "meter-fridge--flat": "fixed",
    }
    for name, threat in owners.items():
        kept = json.loads((folder / f"{name}.json").read_text())
        assert {card["settings"]["cell"] for card in kept} == {by_threat[threat]}, name
    assert not list(folder.glob(".*"))


def test_the_card_of_a_gap_is_the_difference_of_the_cards_of_both(place):
    row = Row("one day", "flat", against="random_equal")
    both = cells(["baseline_comparison"], ["synthetic"], ["fixed"], QUICK, ["flat"])
    flat = replace(both[0], attackers=("co",))
    chance = replace(flat, row=Row("random_equal", "random_equal"))
    found = plan([replace(flat, table="gap_to_chance", row=row), flat, chance], place)
    assert run(found, Local(1)).failed == {}
    assert left(found.tasks, found.cells, place) == []
    kept = {}
    for card in cards.read(place.results):
        kept[card["table"], card["row"], card["column"]] = card
    for column in ("rmse_increase_percent", "f1_reduction_percent", "strongest_f1", "f1_leak"):
        gap = kept["gap_to_chance", "headline, one day, fixed", f"{column}_difference"]
        parts = [
            kept["baseline_comparison", f"headline, {name}, fixed", column]
            for name in ("flat", "random_equal")
        ]
        assert gap["measured"] == pytest.approx(parts[0]["measured"] - parts[1]["measured"], rel=1e-4)
        assert gap["spread"] == pytest.approx(parts[1]["spread"], rel=1e-4)  # a rule throws no dice
        assert gap["settings"]["against"] == "random_equal"
    assert {path.name for path in (place.results / "gap_to_chance").rglob("*.json")} == {
        "headline--one-day--fixed.json"
    }


def test_a_row_of_a_table_brings_its_own_line_of_the_paper():
    assert claims("probe_ablation", "ukdale", "lstm")["rmse_increase_percent"] == 100.71
    assert claims("battery_sensitivity", "ukdale", "power 1 kW")["f1_significant"] == 14
    assert claims("baseline_comparison", "ukdale", "ddql_mi")["training_hours"] == 6.6
    assert claims("heldout_day_generalization_redd", "redd", "2011-04-30 house 2")["f1_raw"] == 0.545
    assert claims("probe_ablation", "redd", "lstm") == {}
    assert claims("many_days", "ukdale", "ours") == {}


@pytest.mark.parametrize(
    ("table", "label", "has_cases"),
    [
        ("overall_transfer", "ours", True),
        ("baseline_comparison", "ours", True),
        ("baseline_comparison", "ours (paper's settings)", False),
        ("probe_ablation", "lstm", False),
        ("evaluation_paper_day", "my-run", True),
    ],
)
def test_the_paper_prints_cases_of_its_own_defence_only(table, label, has_cases, tmp_path):
    trial = SimpleNamespace(table=table, reported=True, test=SimpleNamespace(dataset="ukdale"))
    one = trained_defence(label, [write_run(tmp_path / "run", "UK-DALE house 1", [])])
    result = SimpleNamespace(spec=SimpleNamespace(trial=trial), contender=one)
    case = SimpleNamespace(attacker="co", target="kettle", metric="rmse")
    assert papers_case(result, case) == (
        {"masked": 274.23, "delta": 187.61, "p_value": 0.0} if has_cases else {}
    )


def test_the_time_of_a_probe_that_trainings_share_counts_for_each(tmp_path):
    folders = [write_run(tmp_path / str(seed), "home", [], seed, probe_seconds=5.0) for seed in range(2)]
    assert trained_defence("ours", folders).training_seconds == (65.0, 66.0)


def test_a_cell_without_data_says_so_beside_what_the_paper_prints(place):
    [cell] = cells(["heldout_day_generalization"], rows=["2013-03-30 house 4"])
    step = Excuse(cell, "house 4 of ukdale is not among the data at hand")
    assert not step.is_finished(place, step.key())
    step.run(place, step.key())
    assert step.is_finished(place, step.key())
    [path] = place.results.rglob("*.json")
    kept = {card["column"]: card for card in json.loads(path.read_text())}
    assert kept["rmse_increase_percent"]["reported"] == 109.9
    assert kept["f1_masked"]["reported"] == 0.568
    assert {card["measured"] for card in kept.values()} == {None}
    assert {card["note"] for card in kept.values()} == {f"not measured: {step.reason}"}


def test_a_gap_without_data_says_so_of_every_difference(place):
    [cell] = cells(["gap_to_chance"], ["redd"], ["adaptive"], rows=["many days"])
    step = Excuse(cell, "house 2 of redd is not among the data at hand")
    step.run(place, step.key())
    assert step.is_finished(place, step.key())
    kept = cards.read(place.results)
    assert {card["row"] for card in kept} == {"headline, many days, adaptive"}
    assert [card["column"] for card in kept] == [
        "rmse_increase_percent_difference",
        "f1_reduction_percent_difference",
        "strongest_f1_difference",
        "f1_leak_difference",
    ]


def test_the_data_at_hand_decide_what_cannot_be_measured(real_data, place):
    whole = replace(place, data=real_data, library=built_library(real_data, place.cache))
    tables = ["heldout_day_generalization", "heldout_day_generalization_redd"]
    found = plan([replace(cell, seeds=2, attackers=("co",)) for cell in cells(tables)], whole)
    excused = {
        task.step.cell.row.label: task.step.reason for task in found.tasks.values() if task.kind == "excuse"
    }
    assert list(excused) == ["2013-03-30 house 4", "2011-05-01 house 4"]
    assert "dishwasher was in use on 2011-05-01, but on none of the other 2" in excused["2011-05-01 house 4"]
    assert str(real_data) not in " ".join(excused.values())
    trials = {
        task.step.cell.row.label: task.step.trial for task in found.tasks.values() if task.kind == "measure"
    }
    other = trials["2013-07-15 house 2"]
    assert other.targets == ("fridge", "kettle", "microwave")
    assert [str(day) for day in other.training[0].days][4:6] == ["2013-07-14", "2013-07-16"]
    assert len(other.training[0].days) == 10
    assert trials["2013-01-18 house 1"].training[0].days == training_days("ukdale", None)
    assert trials["2013-03-30 house 1"].targets == ("fridge",)
    assert trials["2011-05-25 house 3"].targets == ("fridge", "microwave", "dishwasher")
    assert not any(
        trial.reported for label, trial in trials.items() if "house 1" in label and "03-18" not in label
    )


def test_cases_of_the_paper_that_the_data_lack_have_a_card_each(real_data, place):
    [cell] = cells(["overall_transfer"], ["ukdale"])
    home = replace(place, data=real_data).household("ukdale", 1)
    found = list(absent_cards(cell, trial_for(cell, home), home))
    assert {card.row for card in found} == {f"{name} toaster, ours, fixed" for name in PAPER_SIX}
    assert {card.note for card in found} == {
        "not measured: the toaster is not metered in the data at hand on 2013-03-18"
    }
    [masked] = [card for card in found if card.row.startswith("co ") and card.column == "rmse"]
    assert (masked.measured, masked.reported) == (None, 188.11)
