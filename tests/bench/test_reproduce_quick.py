"""Golden digits: three cells of the quick mode, measured from an empty cache.

Run `python tests/bench/test_reproduce_quick.py` to write them again after a change that is meant to.
"""

import tempfile
from pathlib import Path

import pytest

from meterveil.bench import results
from meterveil.bench.reproduce.cells import QUICK, choose
from meterveil.bench.reproduce.plan import plan, reproduce
from meterveil.bench.reproduce.runner import Local
from meterveil.bench.reproduce.workspace import Workspace

pytestmark = pytest.mark.slow

FILE = Path(__file__).with_name("reproduce_quick.csv")
ROWS = [
    ("baseline_comparison", "rule_based", "fixed"),
    ("baseline_comparison", "flat", "adaptive"),
    ("probe_ablation", "identity", "fixed"),
]
UNTIMED = ["run"]
GOLDEN = results.read_file(FILE).drop(columns=UNTIMED)


def cells():
    return [
        entry.cell for table, row, threat in ROWS for entry in choose([table], ["synthetic"], [threat], QUICK, [row])
    ]


def measure(folder):
    made = plan(cells(), Workspace(folder / "results", folder / "cache"))
    assert [error for _, error in reproduce(made, Local(1)) if error] == []
    return made


def figures_in(folder):
    """Read the figures without keys and durations."""
    table = results.read(folder)
    return table[table["metric"] != "training_seconds"].drop(columns=UNTIMED).reset_index(drop=True)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("quick")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("METERVEIL_CACHE", str(folder / "cache"))
        return folder, measure(folder)


def test_three_quick_cells_have_their_golden_digits(measured):
    assert figures_in(measured[0] / "results").equals(GOLDEN)


def test_measured_cells_are_finished_and_have_runs_with_data_and_versions(measured):
    folder, made = measured
    assert set(made.states.values()) == {"finished"}
    again = plan(cells(), Workspace(folder / "results", folder / "cache"))
    assert again.unfinished() == []
    runs = results.read_runs(folder / "results")
    assert set(runs) == set(again.cells)
    assert all(run.data and run.versions and run.settings["attackers"] == ["co", "fhmm"] for run in runs.values())


def test_figures_come_from_the_cache_for_another_results_folder(measured, tmp_path):
    folder, _ = measured
    other = plan(cells(), Workspace(tmp_path, folder / "cache"))
    assert {task.kind for task in other.unfinished()} == {"measure"}
    list(reproduce(other, Local(1)))
    assert figures_in(tmp_path).equals(GOLDEN)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        measure(Path(scratch))
        table = results.read(Path(scratch) / "results").assign(run="")
        FILE.write_text(results.to_csv(table[table["metric"] != "training_seconds"]))
