"""Three cells of the quick mode, measured from nothing and compared with what they were.

After a change that is meant to change them: `python tests/bench/test_reproduce_quick.py` writes them anew.
"""

import json
import tempfile
from pathlib import Path

import pytest

from meterveil.bench.report.lookup import Recorded
from meterveil.bench.report.reading import read_results
from meterveil.bench.reproduce.choosing import QUICK, cells
from meterveil.bench.reproduce.engines import Local
from meterveil.bench.reproduce.place import Place
from meterveil.bench.reproduce.plan import plan
from meterveil.bench.reproduce.profile import profile
from meterveil.bench.reproduce.runner import run
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
    return found, figures_in(folder / "results")


def figures_in(results):
    """Read the figures of all cards, by file and column; how long a training took is another every time."""
    return {
        path.relative_to(results).as_posix(): {
            card["column"]: card["measured"]
            for card in json.loads(path.read_text())
            if card["column"] != "training_seconds"
        }
        for path in sorted(results.rglob("*.json"))
    }


def recorded():
    return json.loads(KNOWN.read_text())


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Measure once; return the folder beside plan and figures."""
    folder = tmp_path_factory.mktemp("quick")
    with pytest.MonkeyPatch.context() as own:
        own.setenv("METERVEIL_CACHE", str(folder / "cache"))
        return folder, *measured(folder)


def test_three_quick_cells_come_out_as_they_did(whole):
    _, found, figures = whole
    assert left(found.tasks, found.cells, found.place) == []
    assert figures == recorded()  # every digit that a card has


def test_a_report_accepts_what_was_measured(whole):
    folder = whole[0]
    read = read_results(folder / "results")
    written = [card for path in (folder / "results").rglob("*.json") for card in json.loads(path.read_text())]
    assert len(read.cards) == len(written)
    assert set(read.tables) == {("baseline_comparison", "synthetic"), ("probe_ablation", "synthetic")}
    found = Recorded(read.of("baseline_comparison", "synthetic"))
    assert set(found.labels) == {"rule_based", "flat"}
    assert found.attackers("adaptive") == ("co", "fhmm")
    assert found.find("rule_based", "rmse_increase_percent") is not None


def test_a_profile_counts_every_task_once_and_foretells_what_has_no_record(whole):
    folder, found, _ = whole
    shares = profile(found)
    assert sum(one.tasks for one in shares) == sum(len(one.recorded) for one in shares) == len(found.tasks)
    records = [json.loads(path.read_text()) for path in (folder / "cache" / "spent").iterdir()]
    spent_minutes = sum(record["cpu_seconds"] for record in records) / 60
    assert sum(one.minutes for one in shares) == pytest.approx(spent_minutes)
    assert {(one.scope, one.sort): one.tasks for one in shares}["beside", "train: manager, fast"] == 2
    lost = next(
        path for path in (folder / "cache" / "spent").iterdir() if '"kind": "train"' in path.read_text()
    )
    kept = lost.read_text()
    lost.unlink()
    [train] = [one for one in profile(found) if one.sort == "train: manager, fast"]
    lost.write_text(kept)
    assert (train.tasks, len(train.recorded)) == (2, 1)
    assert train.minutes == pytest.approx(2 * train.measured_minutes)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        KNOWN.write_text(json.dumps(measured(Path(place))[1], indent=1) + "\n")
