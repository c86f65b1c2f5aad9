"""Reproduction on a Ray cluster: two nodes on this machine, one of which is lost."""

import os
import socket
import sys
import threading

import pytest
from reproduce_tasks import Note, finished, started, tasks_of, until, workspace_in
from test_reproduce_quick import GOLDEN, figures_in
from typer.testing import CliRunner

from meterveil.bench.reproduce.runner import Ray, run
from meterveil.bench.results import where
from meterveil.cli import app
from meterveil.errors import InputError

ray = pytest.importorskip("ray", reason="ray is not installed: it is the extra cluster")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

HEALTH_CHECKS = {
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 1000,
    "health_check_failure_threshold": 5,
}
"""A lost node is noticed after seconds instead of half a minute."""


@pytest.fixture(scope="module")
def cluster():
    """Start a head node with two processors; a test adds a second node."""
    from ray.cluster_utils import Cluster  # noqa: PLC0415

    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_worker_niceness", "0")
    started_cluster = Cluster()
    add_node(started_cluster, num_cpus=2, include_dashboard=False, _system_config=HEALTH_CHECKS)
    yield started_cluster
    ray.shutdown()
    started_cluster.shutdown()
    monkeypatch.undo()


def add_node(cluster, **wanted):
    """Start a node; on a busy machine Ray's own half minute may be too short."""
    for attempt in range(3):
        try:
            return cluster.add_node(**wanted)
        except Exception as error:
            if attempt == 2 or "timed out" not in str(error):
                raise
    raise AssertionError


def test_an_address_without_a_cluster_is_refused_at_once():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
    with pytest.raises(InputError, match=f"cannot connect .* {address}.*ray start"):
        Ray(address).connect()


def test_a_cell_has_the_same_figures_on_a_cluster(cluster, tmp_path, monkeypatch):
    monkeypatch.setenv("METERVEIL_CACHE", str(tmp_path / "cache"))
    cell = ("--quick", "--dataset", "synthetic", "--table", "probe_ablation", "--row", "identity")
    options = ("--engine", "ray", "--address", cluster.address, "--results", str(tmp_path / "results"))
    result = CliRunner().invoke(app, ["reproduce", *cell, *options])
    assert result.exit_code == 0, result.output
    golden = where(GOLDEN, defence="ours_identity").reset_index(drop=True)
    assert figures_in(tmp_path / "results").equals(golden)


def test_a_lost_node_costs_only_unfinished_tasks(cluster, tmp_path):
    second = add_node(cluster, num_cpus=1)
    cluster.wait_for_nodes()
    tasks = tasks_of(**{f"t{number}": Note("go") for number in range(6)})

    def lose_a_node():
        try:
            until(lambda: len(started(tmp_path)) >= 3, seconds=300)
        finally:
            cluster.remove_node(second, allow_graceful=False)
            (tmp_path / "go").touch()

    loser = threading.Thread(target=lose_a_node)
    loser.start()
    errors = {task.key: error for task, error in run(tasks, workspace_in(tmp_path), Ray(cluster.address))}
    loser.join()
    assert errors == {task.key: "" for task in tasks}
    assert finished(tmp_path) == set(errors)
