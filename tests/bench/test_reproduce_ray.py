"""The same plan on a cluster: two nodes on this machine, one of which is lost."""

import os
import socket
import sys
import threading

import pytest
from reproduce_steps import Note, begun, finished, plan_of
from test_reproduce_quick import figures_in, recorded
from test_reproduce_runner import until
from typer.testing import CliRunner

from meterveil.bench.reproduce.engines import LostWorkerError, Ray
from meterveil.bench.reproduce.runner import Listener, run
from meterveil.cli import app
from meterveil.errors import InputError

ray = pytest.importorskip("ray", reason="ray is not installed: it is the extra cluster")

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


SOON = {
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 1000,
    "health_check_failure_threshold": 5,
}
"""A node is given up after seconds instead of half a minute."""


@pytest.fixture(scope="module")
def cluster():
    """Start a head that also works; a second node joins in the test."""
    from ray.cluster_utils import Cluster  # noqa: PLC0415

    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_worker_niceness", "0")  # by itself Ray lets everybody else go first
    found = Cluster()
    add_node(found, num_cpus=2, include_dashboard=False, _system_config=SOON)
    yield found
    ray.shutdown()
    found.shutdown()
    monkeypatch.undo()


def add_node(cluster, **wanted):
    """Start a node; on a busy machine the half minute that Ray gives its processes may be too short."""
    for attempt in range(3):
        try:
            return cluster.add_node(**wanted)
        except Exception as error:
            if attempt == 2 or "timed out" not in str(error):
                raise
    raise AssertionError


def test_an_address_where_nobody_listens_is_refused_at_once():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
    with pytest.raises(InputError, match=f"no Ray cluster at {address} .*: .*; start one with ray start"):
        Ray(address).connect()


def fault():
    raise ValueError("a fault of the call")


def test_a_fault_of_a_call_is_no_lost_worker(cluster):
    with pytest.raises(ValueError, match="a fault of the call"):
        list(Ray(cluster.address).run([fault], lambda: None))


def test_fewer_processors_than_were_counted_are_a_lost_worker(cluster, monkeypatch):
    engine = Ray(cluster.address)
    engine.connect()
    monkeypatch.setattr(Ray, "_processors", lambda self: 99)
    with pytest.raises(LostWorkerError, match="with 99 processes"):
        list(engine.run([os.getpid], lambda: None))


def test_a_real_cell_comes_out_on_a_cluster_as_it_did_on_one_machine(cluster, tmp_path, monkeypatch):
    monkeypatch.setenv("METERVEIL_CACHE", str(tmp_path / "cache"))
    asked = ("--quick", "--dataset", "synthetic", "--table", "probe_ablation", "--row", "identity")
    where = ("--engine", "ray", "--address", cluster.address, "--results", str(tmp_path / "results"))
    result = CliRunner().invoke(app, ["reproduce", *asked, *where])
    assert result.exit_code == 0, result.output
    known = {name: figures for name, figures in recorded().items() if name.startswith("probe_ablation/")}
    assert figures_in(tmp_path / "results") == known


def test_a_lost_node_costs_what_was_under_way(cluster, tmp_path):
    second = add_node(cluster, num_cpus=1)
    cluster.wait_for_nodes()
    names = [f"t{number}" for number in range(6)]
    plan = plan_of(tmp_path, **{name: Note(waits_for="go") for name in names})
    deaths, reasons = [], []

    def lose_a_node():
        try:
            until(lambda: len(begun(tmp_path)) >= 3, seconds=300)
        finally:  # or the run would never end
            cluster.remove_node(second, allow_graceful=False)

    def on_death(reason, left):
        deaths.append(left)
        reasons.append(reason)
        (tmp_path / "go").touch()

    loser = threading.Thread(target=lose_a_node)
    loser.start()
    engine = Ray(cluster.address)
    summary = run(plan, engine, Listener(on_death=on_death))
    loser.join()
    assert (summary.done, summary.failed) == (6, {}), reasons
    assert deaths[0] == 6  # nothing was finished, and on a busy machine there may be more deaths than ours
    assert finished(tmp_path) == set(names)
