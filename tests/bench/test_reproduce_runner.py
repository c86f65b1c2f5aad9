"""The runner: what it runs and in which order, and what a death costs."""

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from reproduce_steps import Note, begun, finished, plan_of, workers

from meterveil.bench.reproduce.engines import Local
from meterveil.bench.reproduce.runner import MOST_DEATHS, Listener, run
from meterveil.bench.reproduce.task import left, waves
from meterveil.errors import InputError


def until(condition, seconds=120.0):
    """Wait for something that another process does."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.02)


def is_alive(pid):
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def test_what_is_needed_is_done_first_and_the_long_ones_lead(tmp_path):
    plan = plan_of(
        tmp_path, probe=Note(1), quick=Note(2), train=(Note(5), "probe"), cell=(Note(), "train", "quick")
    )
    names = [[task.key for task in wave] for wave in waves(list(plan.tasks.values()))]
    assert names == [["quick", "probe"], ["train"], ["cell"]]


def test_what_only_a_finished_task_needed_is_not_done_again(tmp_path):
    plan = plan_of(tmp_path, probe=Note(), train=(Note(), "probe"), cell=(Note(), "train"))
    assert run(plan, Local(1)).done == 3
    (tmp_path / "train.json").unlink()
    (tmp_path / "probe.json").unlink()
    del plan.cells["train"], plan.cells["probe"]
    assert left(plan.tasks, plan.cells, plan.place) == []
    assert run(plan, Local(1)).done == 0
    assert begun(tmp_path) == ["probe", "train", "cell"]


@pytest.mark.parametrize("fails", ["input", "bug"])
def test_a_failure_costs_only_what_needed_it_and_is_named(tmp_path, fails):
    plan = plan_of(
        tmp_path, bad=Note(fails=fails), after=(Note(), "bad"), last=(Note(), "after"), good=Note()
    )
    summary = run(plan, Local(1))
    assert (summary.done, summary.skipped) == (1, 2)
    assert finished(tmp_path) == {"good"}
    [(title, reason)] = summary.failed.items()
    assert title == "task bad"
    words = {"input": "bad is not to be had; give another", "bug": "KeyError: 'bad' (run, line"}
    assert reason.startswith(words[fails])


def test_a_killed_worker_costs_what_was_under_way(tmp_path):
    plan = plan_of(
        tmp_path, a=Note(2), b=Note(2), c=(Note(waits_for="go"), "a"), d=(Note(waits_for="go"), "a")
    )
    deaths = []

    def kill_one():
        until(lambda: {"c", "d"} <= set(begun(tmp_path)))
        os.kill(workers(tmp_path)[-1], signal.SIGKILL)

    def on_death(reason, left):
        deaths.append(left)
        (tmp_path / "go").touch()

    killer = threading.Thread(target=kill_one)
    killer.start()
    summary = run(plan, Local(2), Listener(on_death=on_death))
    killer.join()
    assert (summary.done, summary.failed, deaths) == (4, {}, [2])
    assert finished(tmp_path) == {"a", "b", "c", "d"}
    assert sorted(begun(tmp_path)) == ["a", "b", "c", "c", "d", "d"]


def test_a_task_that_kills_its_worker_every_time_is_named_and_the_others_are_done(tmp_path):
    steps = {name: Note() for name in "abcd"}
    plan = plan_of(tmp_path, deadly=Note(9, fails="death"), after=(Note(), "deadly"), **steps)
    summary = run(plan, Local(2))
    assert finished(tmp_path) == set(steps)
    assert summary.skipped == 1
    [(title, reason)] = summary.failed.items()
    assert title == "task deadly"
    assert reason.startswith("its worker died")
    assert reason.endswith("try with --workers 1")
    assert begun(tmp_path).count("deadly") <= 2 * MOST_DEATHS + 1


def test_two_runs_at_once_share_the_work(tmp_path):
    plan = plan_of(tmp_path, a=Note(waits_for="go"), b=Note(), c=(Note(), "a"))
    both = [threading.Thread(target=run, args=(plan, Local(1))) for _ in range(2)]
    for one in both:
        one.start()
    until(lambda: begun(tmp_path))
    (tmp_path / "go").touch()
    for one in both:
        one.join()
    assert sorted(begun(tmp_path)) == ["a", "b", "c"]


PARENT = """
from pathlib import Path
from reproduce_steps import Note, plan_of
from meterveil.bench.reproduce.engines import Local
from meterveil.bench.reproduce.runner import run
folder = Path({folder!r})
never = Note(waits_for="never")
run(plan_of(folder, first=Note(), second=Note(), long=(never, "first"), longer=(never, "second")), Local(2))
"""


HEARING = ("env", "--default-signal=INT")
"""A shell's background jobs do not hear Ctrl-C; these commands must."""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_parent_takes_its_workers_along_and_the_next_run_goes_on(tmp_path, how):
    folder = tmp_path / "results"
    parent = subprocess.Popen(
        [*HEARING, sys.executable, "-c", PARENT.format(folder=str(folder))],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    until(lambda: {"long", "longer"} <= set(begun(folder)))
    parent.send_signal(how)
    assert parent.wait(60) != 0
    until(lambda: not any(map(is_alive, workers(folder))))
    assert finished(folder) == {"first", "second"}
    run(plan_of(folder, first=Note(), second=Note(), long=Note(), longer=Note()), Local(1))
    assert finished(folder) == {"first", "second", "long", "longer"}
    assert sorted(begun(folder)) == ["first", "long", "long", "longer", "longer", "second"]


def test_a_full_disk_ends_the_run_with_the_reason_and_leaves_nothing_half_written(tmp_path):
    plan = plan_of(tmp_path, small=Note(), large=(Note(size=200_000), "small"), after=(Note(), "large"))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(
            InputError, match=r"large\.json: File too large; make room, and go on with the same"
        ):
            run(plan, Local(1))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert {path.name for path in tmp_path.iterdir()} == {"small.json", "begun.log", "cache"}
    assert run(plan, Local(1)).done == 2
    assert begun(tmp_path) == ["small", "large", "large", "after"]
