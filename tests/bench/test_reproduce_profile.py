"""What tasks took, however often they were stopped, and what that foretells of the others."""

import json

import pytest
from reproduce_steps import Note, plan_of

from meterveil.bench.reproduce.choosing import cells
from meterveil.bench.reproduce.engines import Local
from meterveil.bench.reproduce.profile import Share, foretell, profile, scope_of, totals
from meterveil.bench.reproduce.runner import run
from meterveil.bench.reproduce.spending import Spent, spending, spent
from meterveil.errors import InputError


def known(plan, **seconds):
    """Write down what tasks took, as if they had run."""
    for key, took in seconds.items():
        path = plan.place.spent(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"seconds": took, "cpu_seconds": took / 2}))
        (plan.place.results / f"{key}.json").write_text("done")


def test_an_attempt_that_failed_adds_its_part_to_what_the_next_one_takes(tmp_path):
    run(plan_of(tmp_path, a=Note(fails="input")), Local(1))
    plan = plan_of(tmp_path, a=Note())
    path = plan.place.spent("a")
    first = json.loads(path.read_text())
    assert (first["attempts"], first["unknown"]) == (1, 0)
    path.write_text(json.dumps(first | {"seconds": 100.0}))
    run(plan, Local(1))
    both = spent(plan.place, "a")
    assert (both.attempts, both.unknown) == (2, 0)
    assert both.seconds >= 100.0


def test_what_ended_by_itself_is_not_added_to_the_same_task_for_other_results(tmp_path):
    plan = plan_of(tmp_path, a=Note())
    run(plan, Local(1))
    path = plan.place.spent("a")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"seconds": 100.0}))
    (plan.place.results / "a.json").unlink()
    run(plan, Local(1))
    again = spent(plan.place, "a")
    assert again.attempts == 1
    assert again.seconds < 100.0


def test_an_interrupt_leaves_the_part_until_then(tmp_path):
    plan = plan_of(tmp_path, a=Note())
    known(plan, a=100.0)
    attempt = spending(plan.place, plan.tasks["a"])
    attempt.__enter__()
    assert spent(plan.place, "a") == Spent(100.0, 50.0, attempts=2, unknown=1)
    assert not attempt.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert spent(plan.place, "a").seconds >= 100.0
    assert (spent(plan.place, "a").attempts, spent(plan.place, "a").unknown) == (2, 0)


def test_a_killed_attempt_stays_unknown_for_ever(tmp_path):
    run(plan_of(tmp_path, a=Note(fails="death"), b=Note()), Local(2))  # in processes of their own
    plan = plan_of(tmp_path, a=Note(), b=Note())
    run(plan, Local(1))
    record = spent(plan.place, "a")
    assert record.unknown == record.attempts - 1 > 0
    assert spent(plan.place, "b").unknown == 0


def test_a_damaged_record_is_none(tmp_path):
    plan = plan_of(tmp_path, a=Note())
    known(plan, a=1.0)
    plan.place.spent("a").write_text('{"seconds": ')
    assert spent(plan.place, "a") is None


def test_the_time_left_is_foretold_from_finished_tasks_of_the_same_sort(tmp_path):
    plan = plan_of(tmp_path, a=Note(9), b=Note(9), c=Note(9), d=Note(9))
    assert set(foretell(plan).values()) == {9}
    known(plan, a=2.0, b=4.0, d=99.0)
    (tmp_path / "d.json").unlink()  # stopped halfway
    assert set(foretell(plan).values()) == {3.0}


def test_a_task_without_a_record_counts_as_the_mean_of_its_sort():
    records = (Spent(cpu_seconds=60.0), Spent(cpu_seconds=120.0))
    share = Share("paper", "train: manager, fast", 5, records, Spent(cpu_seconds=90.0))
    assert share.measured_minutes == 3.0
    assert share.minutes == 3.0 + 3 * 1.5
    unknown = Share("paper", "adapt: fhmm", 7, (), None)
    assert totals([share, unknown]) == {"paper": (7.5, ("adapt: fhmm",))}


def test_what_the_paper_prints_is_told_from_what_stands_beside_it():
    found = {(cell.table, cell.row.label, cell.dataset, cell.threat): scope_of(cell) for cell in cells()}
    assert found["overall_transfer", "ours", "redd", "fixed"] == "paper"
    assert found["lambda_sweep", "lambda 0", "ukdale", "fixed"] == "paper"
    assert found["baseline_comparison", "flat", "ukdale", "fixed"] == "beside"
    assert found["baseline_comparison", "ours", "redd", "fixed"] == "beside"
    assert found["many_days", "ours", "ukdale", "adaptive"] == "adaptive"


def test_without_any_record_there_is_no_profile(tmp_path):
    with pytest.raises(InputError, match="no task of these cells has left a record of its time; run"):
        profile(plan_of(tmp_path, a=Note()))
