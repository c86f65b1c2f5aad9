"""The runner: order of tasks, failures, lost workers, interrupts and a full disk."""

import os
import resource
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from reproduce_tasks import Note, finished, started, tasks_of, unfinished, until, workers, workspace_in

from meterveil.bench.reproduce.runner import Local, blocks, run, waves
from meterveil.errors import InputError


def run_all(folder, tasks, count=1):
    """Run what is not done; return the reasons of failures by key."""
    outcomes = run(unfinished(folder, tasks), workspace_in(folder), Local(count))
    return {task.key: error for task, error in outcomes}


def test_needed_tasks_come_first():
    tasks = tasks_of(probe=Note(), quick=Note(), train=(Note(), "probe"), cell=(Note(), "train", "quick"))
    groups = [[task.key for task in group] for group in waves(tasks)]
    assert groups == [["probe", "quick"], ["train"], ["cell"]]


def test_first_cells_do_not_wait_for_what_only_later_ones_need():
    tasks = tasks_of(fit=Note(), one=(Note(), "fit"), two=(Note(), "fit"), train=Note(), three=(Note(), "train"))
    tasks = [replace(task, kind="measure") if task.key in ("one", "two", "three") else task for task in tasks]
    assert [[task.key for task in block] for block in blocks(tasks, 2)] == [["fit", "one", "two"], ["train", "three"]]
    assert [len(block) for block in blocks(tasks)] == [5]


@pytest.mark.parametrize(
    ("fails", "words"), [("input", "bad cannot be read; give another"), ("bug", "KeyError: 'bad'")]
)
def test_a_failure_stops_only_the_tasks_that_need_it(tmp_path, fails, words):
    tasks = tasks_of(bad=Note(fails=fails), after=(Note(), "bad"), last=(Note(), "after"), good=Note())
    errors = run_all(tmp_path, tasks)
    assert finished(tmp_path) == {"good"}
    assert errors["bad"].startswith(words)
    assert [key for key, error in errors.items() if not error] == ["good"]
    assert sorted(started(tmp_path)) == ["bad", "good"]


def test_a_killed_worker_costs_only_unfinished_tasks(tmp_path, caplog):
    tasks = tasks_of(a=Note(), b=Note(), c=(Note("go"), "a"), d=(Note("go"), "a"))

    def kill_one():
        until(lambda: {"c", "d"} <= set(started(tmp_path)))
        os.kill(workers(tmp_path)[-1], signal.SIGKILL)
        (tmp_path / "go").touch()

    killer = threading.Thread(target=kill_one)
    killer.start()
    errors = run_all(tmp_path, tasks, count=2)
    killer.join()
    assert not any(errors.values())
    assert finished(tmp_path) == set("abcd")
    assert "a worker died" in caplog.text
    assert started(tmp_path).count("a") == 1


def test_a_task_that_always_kills_its_worker_ends_the_run_and_finished_work_stays(tmp_path):
    tasks = tasks_of(a=Note(), deadly=(Note(fails="death"), "a"))
    with pytest.raises(InputError, match=r"died 4 times .* task deadly; memory .* 1 worker"):
        run_all(tmp_path, tasks, count=2)
    assert finished(tmp_path) == {"a"}


def test_two_runs_at_once_share_the_work(tmp_path):
    tasks = tasks_of(a=Note("go"), b=Note(), c=(Note(), "a"))
    both = [threading.Thread(target=run_all, args=(tmp_path, tasks)) for _ in range(2)]
    for thread in both:
        thread.start()
    until(lambda: started(tmp_path))
    (tmp_path / "go").touch()
    for thread in both:
        thread.join()
    assert sorted(started(tmp_path)) == ["a", "b", "c"]


PARENT = """
from pathlib import Path
from reproduce_tasks import Note, tasks_of, workspace_in
from meterveil.bench.reproduce.runner import Local, run
never = Note("never")
tasks = tasks_of(first=Note(), second=Note(), long=(never, "first"), longer=(never, "second"))
list(run(tasks, workspace_in(Path({folder!r})), Local(2)))
"""


def is_alive(pid):
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_parent_ends_its_workers_and_the_next_run_continues(tmp_path, how):
    folder = tmp_path / "results"
    parent = subprocess.Popen(
        # background jobs of a shell ignore Ctrl-C otherwise
        ["env", "--default-signal=INT", sys.executable, "-c", PARENT.format(folder=str(folder))],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    until(lambda: {"long", "longer"} <= set(started(folder)))
    parent.send_signal(how)
    assert parent.wait(60) != 0
    until(lambda: not any(map(is_alive, workers(folder))))
    assert finished(folder) == {"first", "second"}
    run_all(folder, tasks_of(first=Note(), second=Note(), long=Note(), longer=Note()))
    assert finished(folder) == {"first", "second", "long", "longer"}
    assert sorted(started(folder)) == ["first", "long", "long", "longer", "longer", "second"]


def test_a_full_disk_ends_the_run_and_leaves_no_partial_file(tmp_path):
    tasks = tasks_of(small=Note(), large=(Note(size=200_000), "small"), after=(Note(), "large"))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(InputError, match=r"large\.json: File too large; free some space and repeat"):
            run_all(tmp_path, tasks)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [path.name for path in (tmp_path / "cache/reproduce/note").iterdir()] == ["small.json"]
    assert not any(run_all(tmp_path, tasks).values())
    assert started(tmp_path) == ["small", "large", "large", "after"]
