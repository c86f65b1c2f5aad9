"""Three cells of the quick mode, measured from nothing and compared with what they were.

After a change that is meant to change them: `python tests/bench/test_reproduce_quick.py` writes them anew.
"""

import json
import tempfile
from pathlib import Path

import pytest

from meterveil.bench.reproduce.engines import Local
from meterveil.bench.reproduce.place import Place
from meterveil.bench.reproduce.plan import plan
from meterveil.bench.reproduce.runner import run
from meterveil.bench.reproduce.specs import QUICK, cells
from meterveil.bench.reproduce.task import left

KNOWN = Path(__file__).with_name("reproduce_quick.json")
ASKED = [
    ("baseline_comparison", "rule_based", "fixed"),
    ("baseline_comparison", "flat", "adaptive"),
    ("probe_ablation", "identity", "fixed"),
]


def measured(folder):
    """Measure the three cells; return plan and figures, by file and column."""
    chosen = [
        cell for table, row, threat in ASKED for cell in cells([table], ["synthetic"], [threat], QUICK, [row])
    ]
    found = plan(chosen, Place(folder / "results", folder / "cache"))
    summary = run(found, Local(1))
    assert summary.failed == {}
    files = sorted((folder / "results").rglob("*.json"))
    return found, {
        path.relative_to(folder / "results").as_posix(): {
            card["column"]: card["measured"]
            for card in json.loads(path.read_text())
            if card["column"] != "training_seconds"
        }
        for path in files
    }


def test_three_quick_cells_come_out_as_they_did(tmp_path, monkeypatch):
    monkeypatch.setenv("METERVEIL_CACHE", str(tmp_path / "cache"))
    found, figures = measured(tmp_path)
    assert left(found.tasks, found.cells, found.place) == []
    known = json.loads(KNOWN.read_text())
    assert figures.keys() == known.keys()
    for name, columns in known.items():
        assert numbers(figures[name]) == pytest.approx(numbers(columns), rel=1e-5, abs=1e-6, nan_ok=True), (
            name
        )


def numbers(columns):
    return {column: float("nan") if value is None else value for column, value in columns.items()}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        KNOWN.write_text(json.dumps(measured(Path(place))[1], indent=1) + "\n")
