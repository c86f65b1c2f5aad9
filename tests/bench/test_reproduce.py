"""Experiments as data: which cells there are, what each needs, and what can change its key."""

import json
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread

import pytest
from evaluation_runs import write_run

from meterveil.attackers.registry import PAPER_SIX
from meterveil.bench import reported, results
from meterveil.bench.evaluate import DEFAULT_ATTACKERS
from meterveil.bench.reproduce import experiments, steps
from meterveil.bench.reproduce.cells import FULL, QUICK, choose
from meterveil.bench.reproduce.experiments import OURS, DefenceSpec
from meterveil.bench.reproduce.plan import plan, record, reproduce, trial_of
from meterveil.bench.reproduce.runner import Local
from meterveil.bench.reproduce.steps import PlannedDefence
from meterveil.bench.reproduce.workspace import Workspace, built_library
from meterveil.data import outputs
from meterveil.data.cache import cache_folder
from meterveil.data.load import load
from meterveil.data.protocols import FURTHER_HOUSES, UKDALE_HOUSE1
from meterveil.data.signatures import Collection, Signature, save
from meterveil.data.synthetic import decoy_library
from meterveil.defenders.rationed import Rationed
from meterveil.defenders.training_settings import ManagerSettings
from meterveil.errors import InputError

RECORDED = Path(__file__).parents[2] / "results"


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path / "results", cache_folder())


def cells(*arguments, **changes):
    return [replace(entry.cell, **changes) for entry in choose(*arguments)]


def tasks_by_kind(made):
    kinds = ("probe", "train", "fit", "measure")
    return {kind: {key for key, task in made.tasks.items() if task.kind == kind} for kind in kinds}


def count_kinds(made):
    return {kind: len(keys) for kind, keys in tasks_by_kind(made).items() if keys}


def test_every_row_that_the_paper_prints_is_a_row_of_the_same_name():
    ours = {(entry.table, entry.cell.dataset, entry.row) for entry in choose()}
    for table in reported.TABLES:
        printed = reported.figures(table)
        assert {(table, *names) for names in zip(printed["dataset"], printed["label"], strict=True)} <= ours


def test_every_row_of_every_table_is_recorded_once_with_one_run():
    figures = results.read(RECORDED)
    for entry in choose(threats=["fixed"]):
        rows = results.where(figures, **entry.cell.columns, threat="fixed")
        assert len(set(rows["run"])) == 1, entry


def test_a_cell_that_several_tables_show_is_one_cell():
    shown = [
        entry.cell
        for table, row in (("overall_transfer", "ours"), ("probe_ablation", "transformer"), ("lambda", "lambda 1"))
        for entry in choose([table], ["ukdale"], ["fixed"], rows=[row])
    ]
    assert len(shown) == 3
    assert len(set(shown)) == 1
    assert len({entry.cell for entry in choose()}) < len(choose())


def test_tables_have_their_own_data_sets_and_threats_unless_others_are_named():
    assert {(cell.dataset, cell.threat) for cell in cells(["battery_sensitivity"])} == {("ukdale", "fixed")}
    assert {cell.threat for cell in cells(["many_days"])} == {"fixed", "adaptive"}
    named = choose(["battery_sensitivity"], ["redd", "synthetic"], ["adaptive"], rows=["main"])
    assert [(entry.cell.dataset, entry.cell.threat) for entry in named] == [
        ("redd", "adaptive"),
        ("synthetic", "adaptive"),
    ]
    adaptive = {entry.table for entry in choose(threats=["adaptive"])}
    assert adaptive == {"as_published", "baseline_comparison", "gap_to_random_equal", "informed_attackers", "many_days"}
    assert "probe_ablation" not in {entry.table for entry in choose(datasets=["redd"])}


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ({"tables": ["magic"]}, "no table 'magic'; known are overall_transfer"),
        ({"tables": ["heldout"]}, "no table 'heldout'"),
        ({"datasets": ["eco"]}, "no data set 'eco'; [Kk]nown are ukdale, redd, refit, synthetic"),
        ({"tables": ["many_days"], "datasets": ["refit"]}, "data sets that have its days"),
        ({"threats": ["clean"]}, "no threat model 'clean'"),
        ({"tables": ["lambda_sweep"], "rows": ["ours"]}, "no row 'ours'; known are lambda 0"),
        ({"tables": ["heldout_day_generalization"], "datasets": ["synthetic"]}, "data sets that have its days"),
        ({"rows": ["lstm"], "threats": ["adaptive"]}, "name the table"),
    ],
)
def test_unknown_names_are_refused(named, words):
    with pytest.raises(InputError, match=words):
        choose(**named)


def test_quick_effort_shortens_trainings_and_changes_no_label():
    quick, full = choose(effort=QUICK), choose(effort=FULL)
    assert [(entry.table, entry.row, entry.cell.title) for entry in quick] == [
        (entry.table, entry.row, entry.cell.title) for entry in full
    ]
    assert {entry.cell.seeds for entry in quick} == {2}
    trainings = [entry.cell.spec(entry.cell.defence).training for entry in quick]
    assert {training.budget_days for training in trainings if isinstance(training, ManagerSettings)} == {10.0}


def test_adaptive_attackers_have_fewer_trainings_and_fewer_rows():
    chosen = choose(["baseline_comparison"], ["redd"])
    assert {(entry.cell.threat, entry.cell.seeds) for entry in chosen} == {("fixed", 5), ("adaptive", 3)}
    attackers = {entry.cell.threat: entry.cell.attackers for entry in chosen}
    assert attackers == DEFAULT_ATTACKERS
    rows = {entry.row for entry in chosen if entry.cell.threat == "adaptive"}
    assert rows == {"none", "random_equal", "flat", "flat_decoys", "ours", "veil"}
    assert len(choose(["baseline_comparison"], ["redd"], ["adaptive"], rows=["ddql_mi"])) == 1


def test_tables_share_trainings(workspace):
    tables = ["overall_transfer", "probe_ablation", "signature_size_ablation", "lambda_sweep"]
    made = plan(cells(tables, ["synthetic"], seeds=2, attackers=("co",)), workspace)
    policies = 1 + 3 + 4 + 7
    assert count_kinds(made) == {"probe": 2 * 4, "train": 2 * policies, "fit": 2, "measure": policies}


def test_informed_attackers_read_every_defence_in_every_house_the_first_ones_on_many_days_first():
    chosen = cells(["informed"])
    houses = {(cell.dataset, cell.house, cell.days) for cell in chosen}
    assert {(dataset, house) for dataset, house, _ in houses} == {("ukdale", 1), ("redd", 2), *FURTHER_HOUSES}
    every = {cell.label for cell in chosen if not cell.against}
    assert all({c.label for c in chosen if (c.dataset, c.house, c.days) == house} >= every for house in houses)
    assert {(cell.threat, cell.attackers) for cell in chosen} == {("adaptive", ("informed",))}
    assert [(cell.label, cell.dataset, cell.days) for cell in chosen[:3]] == [
        ("none", "ukdale", "held_out"),
        ("none", "redd", "held_out"),
        ("flat_decoys", "ukdale", "held_out"),
    ]
    assert set(cells(["many_days"], [], ["adaptive"])) <= set(chosen)


def test_houses_beyond_the_papers_have_policies_of_the_papers_house_and_days_of_their_own(real_data, workspace):
    whole = replace(workspace, data=real_data, library=built_library(real_data, workspace.cache))
    for dataset, house in FURTHER_HOUSES:
        trial = trial_of(whole, dataset, house, "held_out", "adaptive")
        assert (len(trial.training[0].days), trial.test.key) == (10, (dataset, house))
        assert len(trial.test.days) >= 45
        [cell] = cells(["informed"], [dataset], [], QUICK, ["ours"])[-1:]
        trainings = {task.title for task in plan([cell], whole).tasks.values() if task.kind == "train"}
        assert trainings == {"manager on ukdale, seed 0", "manager on ukdale, seed 1"}


def test_the_papers_day_and_the_held_out_days_share_adaptive_fits(real_data, workspace):
    whole = replace(workspace, data=real_data)
    for dataset, house in (("ukdale", 1), ("redd", 2)):
        paper, held_out = (trial_of(whole, dataset, house, days, "adaptive") for days in ("paper", "held_out"))
        assert paper.fitted == held_out.fitted
        assert paper.training == held_out.training


@pytest.mark.parametrize(("label", "table"), [("one day", "baseline_comparison"), ("many days", "many_days")])
@pytest.mark.parametrize("threat", experiments.THREATS)
def test_a_difference_needs_what_both_defences_need(label, table, threat, workspace):
    gap = plan(cells(["gap_to_random_equal"], ["synthetic"], [threat], QUICK, [label]), workspace)
    both = plan(cells([table], ["synthetic"], [threat], QUICK, ["ours", "random_equal"]), workspace)
    [measure] = tasks_by_kind(gap)["measure"]
    needed = {need for key in tasks_by_kind(both)["measure"] for need in both.tasks[key].needs}
    assert set(gap.tasks[measure].needs) == needed
    assert set(gap.tasks) - {measure} == set(both.tasks) - tasks_by_kind(both)["measure"]


def test_a_key_changes_with_everything_that_can_change_a_figure(workspace, tmp_path, monkeypatch):
    def keys(cell, where=workspace):
        return tasks_by_kind(plan([cell], where))

    [cell] = cells(["overall_transfer"], ["synthetic"], seeds=2, attackers=("co",))
    same = keys(cell)
    assert keys(cell) == same
    stronger = (Signature("kettle", (2500.0,) * 9), *Collection.of_library(decoy_library()).signatures[1:])
    library = save(Collection("test", stronger), tmp_path / "library.json")
    changed = {
        "library": keys(cell, replace(workspace, library=library)),
        "battery": keys(replace(cell, battery=(("capacity_kwh", 2.0),))),
        "weight": keys(replace(cell, defence="ours_lambda_0.5")),
        "days": keys(replace(cell, days="held_out")),
        "attackers": keys(replace(cell, attackers=("mean",))),
        "rule": keys(replace(cell, defence="ours_rationed")),
    }
    for name, other in changed.items():
        assert not other["measure"] & same["measure"], name
        assert (other["train"] != same["train"]) == (name in ("library", "battery", "weight")), name
        assert other["probe"] == same["probe"]
    monkeypatch.setattr(steps, "VERSION", 99)
    raised = keys(cell)
    assert raised["measure"] != same["measure"]
    assert (raised["train"], raised["fit"]) == (same["train"], same["fit"])


def test_a_key_does_not_change_with_a_label_or_with_copies_that_nobody_uses(workspace, monkeypatch):
    [cell] = cells(["baseline_comparison"], ["synthetic"], ["fixed"], QUICK, ["flat"])
    monkeypatch.setitem(experiments.DEFENCES, "flat_renamed", DefenceSpec("flat"))
    keys = [set(plan([c], workspace).cells) for c in (cell, replace(cell, defence="flat_renamed", copies=7))]
    assert keys[0] == keys[1]


def test_random_equal_moves_what_the_trainings_moved_on_their_training_days(workspace):
    for seed, moved_kwh in enumerate([6.0, 7.5]):
        folder = workspace.folder("train", f"of-{seed}")
        write_run(folder, "home", [], seed, figures={"training_days_moved_kwh": moved_kwh})
    defence = PlannedDefence("random_equal", DefenceSpec("random_equal", OURS), (), ("of-0", "of-1"))
    [policy] = defence.load(workspace).policies
    assert policy.throughput_kwh == 6.75
    assert defence.settings(workspace) == {"equal_to_kwh": 6.75}


def test_a_rationed_defence_wraps_the_policies_of_its_trainings(workspace):
    home = load("synthetic")
    write_run(workspace.folder("train", "ration-0"), home.name, home.days()[:2])
    plain, rationed = (
        PlannedDefence("ours", DefenceSpec(rule, OURS), (), ("ration-0",)).load(workspace) for rule in ("", "rationed")
    )
    [policy] = rationed.policies
    assert isinstance(policy, Rationed)
    assert type(policy.policy) is type(plain.policies[0])
    assert rationed.settings == plain.settings


def test_a_manager_can_act_with_a_mask_that_its_training_did_not_have(workspace):
    home = load("synthetic")
    write_run(workspace.folder("train", "mask-0"), home.name, home.days()[:2])
    specs = [DefenceSpec(training=OURS, acts_masked=masked) for masked in (False, True)]
    plain, masked = (PlannedDefence("ours", spec, (), ("mask-0",)) for spec in specs)
    assert [defence.load(workspace).policies[0].masked for defence in (plain, masked)] == [False, True]
    assert plain.origins != masked.origins
    assert masked.settings(workspace)["acts_masked"]


def test_cells_of_two_threats_and_a_difference_are_recorded_side_by_side(workspace):
    named = (["baseline_comparison"], ["synthetic"], [], QUICK, ["flat"])
    flat, adaptive = cells(*named, attackers=("co",), copies=1)
    random, gap = replace(flat, defence="random"), replace(flat, against="random")
    made = plan([flat, adaptive, random, gap], workspace)
    assert [error for _, error in reproduce(made, Local(1)) if error] == []
    figures = results.read(workspace.results)
    keys = {cell: key for key, cell in made.cells.items()}
    owner = {"": flat, "fixed": flat, "adaptive": adaptive}  # the fixed cell came first
    for threat, cell in owner.items():
        assert set(results.where(figures, defence="flat", threat=threat)["run"]) == {keys[cell]}
    differences = results.where(figures, defence="flat minus random").set_index(["attacker", "metric"])
    assert set(differences["run"]) == {keys[gap]}
    assert len(differences) == 4
    for name in differences.index:
        parts = [
            results.where(figures, defence=defence, threat="fixed", appliance="all")
            .set_index(["attacker", "metric"])
            .loc[name]
            for defence in ("flat", "random")
        ]
        expected = parts[0]["value"] - parts[1]["value"]
        assert differences.loc[name, "value"] == pytest.approx(expected, rel=1e-4)
        assert differences.loc[name, "spread"] == pytest.approx(parts[1]["spread"], rel=1e-4)
    assert results.read_runs(workspace.results)[keys[gap]].settings["against"] == "random"


def recorded_cell(workspace, cell, key, value=1.0, write=results.write, **changes):
    figure = results.Figure(
        **cell.columns, threat=cell.threat, attacker="co", appliance="kettle", metric="rmse", value=value, run=key
    )
    write(workspace.results, [replace(figure, **changes)], [results.Run(key, {})])


def test_a_cell_is_finished_outdated_or_missing(workspace):
    [cell] = cells(["baseline_comparison"], ["synthetic"], ["fixed"], QUICK, ["flat"])
    made = plan([cell], workspace)
    [key] = made.cells
    assert made.states[cell] == "missing"
    recorded_cell(workspace, cell, "old")
    assert plan([cell], workspace).states[cell] == "outdated"
    recorded_cell(workspace, cell, key)
    assert plan([cell], workspace).states[cell] == "finished"


def test_a_plan_waits_while_another_process_writes_results(workspace, monkeypatch):
    reading, read_runs = Event(), results.read_runs
    monkeypatch.setattr(results, "read_runs", lambda folder: (reading.set(), read_runs(folder))[1])
    cells_of_flat = cells(["baseline_comparison"], ["synthetic"], ["fixed"], QUICK, ["flat"])
    planning = Thread(target=plan, args=(cells_of_flat, workspace))
    with outputs.locked(workspace.results):
        planning.start()
        assert not reading.wait(1.0)
    assert reading.wait(30.0)
    planning.join(30.0)


def test_recording_a_cell_removes_all_of_its_earlier_figures_also_those_that_it_waited_for(workspace):
    [cell] = cells(["baseline_comparison"], ["synthetic"], ["fixed"], QUICK, ["flat"])
    recorded_cell(workspace, cell, "old", metric="old_metric")
    recorded_cell(workspace, replace(cell, defence="none"), "other")
    made = plan([cell], workspace)
    [key] = made.cells
    done = steps.not_measured(workspace, key, cell, "a test")
    path = workspace.done_file("measure", key)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(done))
    recording = Thread(target=record, args=(made, made.tasks[key]))
    with outputs.locked(workspace.results):
        recording.start()
        recording.join(0.5)
        assert recording.is_alive()
        recorded_cell(workspace, cell, "newer", metric="old_metric", write=results.write_locked)
    recording.join(30.0)
    path.unlink()
    assert set(results.read(workspace.results)["run"]) == {"other", key}
    assert set(results.read_runs(workspace.results)) == {"other", key}


@pytest.mark.parametrize(
    ("changes", "words"), [({"seeds": 5}, "with 5 seeds.* 2 seeds"), ({"attacker": "dae"}, "attackers dae")]
)
def test_less_effort_does_not_replace_more(workspace, changes, words):
    [cell] = cells(["baseline_comparison"], ["synthetic"], ["fixed"], QUICK, ["flat"])
    recorded_cell(workspace, cell, "old", **changes)
    with pytest.raises(InputError, match=words):
        plan([cell], workspace)
    assert plan([replace(cell, threat="adaptive")], workspace).cells
    if "attacker" in changes:
        assert plan([replace(cell, attackers=("informed",))], workspace).states == {
            replace(cell, attackers=("informed",)): "outdated"
        }


def test_a_cell_without_data_is_recorded_as_not_measured_and_never_replaces_figures(workspace, tmp_path):
    (tmp_path / "data/ukdale/house_1").mkdir(parents=True)
    (tmp_path / "data/ukdale/house_1/labels.dat").write_text("1 mains\n")
    [cell] = cells(["heldout_day_generalization"], [], [], FULL, ["2013-03-30 house 4"])
    whole = replace(workspace, data=tmp_path / "data")
    made = plan([cell], whole)
    assert [error for _, error in reproduce(made, Local(1)) if error] == []
    figures = results.read(workspace.results)
    assert figures["value"].isna().all()
    assert set(figures["metric"]) == {"rmse_increase_percent", "f1_reduction_percent"}
    assert set(figures["note"]) == {"not measured: house 4 of ukdale is not among the data"}
    assert plan([cell], whole).states[cell] == "finished"
    other = replace(whole, results=tmp_path / "other")
    recorded_cell(other, cell, "measured elsewhere")
    assert plan([cell], other).states[cell] == "finished"


def test_the_data_decide_what_cannot_be_measured(real_data, workspace):
    whole = replace(workspace, data=real_data, library=built_library(real_data, workspace.cache))
    tables = ["heldout_day_generalization", "heldout_day_generalization_redd"]
    made = plan(cells(tables, seeds=2, attackers=("co",)), whole)
    reasons = {}
    trials = {}
    for key, cell in made.cells.items():
        details = made.tasks[key].work.keywords
        if "reason" in details:
            reasons[cell.dataset, cell.house] = details["reason"]
        else:
            trials[cell.house, cell.days] = details["trial"]
    assert list(reasons) == [("ukdale", 4), ("redd", 4)]
    assert "dishwasher was in use on 2011-05-01, but on none of the other 2" in reasons["redd", 4]
    assert str(real_data) not in " ".join(reasons.values())
    other = trials[2, "2013-07-15"]
    assert other.targets == ("fridge", "kettle", "microwave")
    assert [str(day) for day in other.training[0].days][4:6] == ["2013-07-14", "2013-07-16"]
    assert len(other.training[0].days) == 10
    assert trials[1, "2013-01-18"].training[0].days == UKDALE_HOUSE1.training
    assert trials[1, "2013-03-30"].targets == ("fridge",)
    assert trials[3, "2011-05-25"].targets == ("fridge", "microwave", "dishwasher")


LESS_EFFORT = {
    "as_published, ukdale house 1, paper, fixed": {"seeds": 3},
    "as_published, redd house 2, paper, fixed": {"seeds": 3},
    **{f"ours_adaptive, ukdale house 1, {days}, adaptive": {"seeds": 2} for days in ("held_out", "paper")},
    "ours_adaptive, ukdale house 2, held_out, adaptive": {"seeds": 2},
    **{
        f"{defence}, {house}, {days}, adaptive": {"seeds": 2}
        for defence in ("ddql_flat", "ddql_mi")
        for house in ("ukdale house 1", "ukdale house 2", "redd house 2", "refit house 2")
        for days in ("held_out", "paper")
    },
}
"""Cells that were measured with fewer trainings, as docs/defences.md, fidelity.md and learned-defence.md say."""


@pytest.mark.slow
def test_every_recorded_cell_is_finished_with_these_data_libraries_and_versions(real_data, workspace):
    """Fails where a VERSION was raised, or a key changed, and the cells were not measured again."""
    library = built_library(real_data, workspace.cache)
    measured = [replace(entry.cell, **LESS_EFFORT.get(entry.cell.title, {})) for entry in choose()]
    made = plan(measured, Workspace(RECORDED, workspace.cache, real_data, library))
    assert [cell.title for cell, state in made.states.items() if state == "outdated"] == []


def test_cases_of_the_paper_that_the_data_lack_are_recorded_without_a_value(real_data, workspace):
    [cell] = cells(["overall_transfer"], ["ukdale"])
    whole = replace(workspace, data=real_data)
    trial = trial_of(whole, "ukdale", 1, "paper")
    figures = list(steps.absent_figures(cell, trial, whole.household("ukdale", 1), "key"))
    assert {(figure.attacker, figure.appliance) for figure in figures} == {(name, "toaster") for name in PAPER_SIX}
    assert {figure.note for figure in figures} == {"not measured: the toaster is not metered on 2013-03-18"}
    assert {figure.value for figure in figures} == {None}
