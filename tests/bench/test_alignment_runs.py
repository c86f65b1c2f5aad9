"""Condition A1 as a command: which trainings it takes, what it has measured already, and how it ends."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from meterveil.attackers.protocol import Prediction
from meterveil.bench import cards
from meterveil.bench.alignment import __main__ as command
from meterveil.bench.alignment import origin
from meterveil.bench.alignment.measure import Panel, cards_of
from meterveil.bench.alignment.picture import check_alike
from meterveil.bench.alignment.snapshots import Asked, Snapshot, learn_with_snapshots
from meterveil.core.battery import Battery
from meterveil.core.env import EnvParams
from meterveil.core.tariff import PAPER_TARIFF, flat
from meterveil.data import synthetic
from meterveil.data.simulation import Setup, episodes
from meterveil.data.windows import Scaler
from meterveil.defenders.manager.manager_policy import Mlp
from meterveil.defenders.manager.probes import Probe
from meterveil.defenders.run_folder import load_trained
from meterveil.defenders.training_settings import manager_settings
from meterveil.errors import InputError

LIBRARY = synthetic.decoy_library()
TINY = manager_settings(
    "fast", probe="identity", budget_days=4, horizon=256, slots=8, minibatch=128, epochs=2
)
HOME = synthetic.household(np.random.default_rng(0), days=2)
ASKED = Asked(HOME, tuple(HOME.days()), Setup(LIBRARY), TINY)


class Copies:
    """Takes the meter for its one target."""

    def predict(self, meter):
        return Prediction({"fridge": meter.reading_w}, {})


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained") / "run"
    return folder, learn_with_snapshots(ASKED, folder)


@pytest.fixture
def run(trained, tmp_path):
    """Return a copy of the training that may be spoiled."""
    return shutil.copytree(trained[0], tmp_path / "run")


def test_a_training_keeps_its_manager_after_every_update(trained):
    folder, snapshots = trained
    learned = load_trained(folder)
    count = len(learned.document["curve"])
    assert [one.update for one in snapshots] == [round(share * count) for share in (0, 0.25, 0.5, 0.75, 1)]
    assert len(list((folder / "snapshots").iterdir())) == count + 1
    for weight, kept in zip(learned.network.weights, snapshots[-1].network.weights, strict=True):
        np.testing.assert_array_equal(weight, kept)
    assert len({one.digest for one in snapshots}) == len({one.update for one in snapshots})


def test_a_finished_training_is_taken_as_it_is(run, trained):
    again = learn_with_snapshots(ASKED, run)
    assert [one.digest for one in again] == [one.digest for one in trained[1]]


OTHERS = {
    "household": replace(ASKED, household=replace(HOME, name="the neighbours")),
    "days": replace(ASKED, days=ASKED.days[:1]),
    "seed": replace(ASKED, setup=Setup(LIBRARY, seed=1)),
    "battery": replace(ASKED, setup=Setup(LIBRARY, Battery(budget_kwh=4.0))),
    "tariff": replace(ASKED, setup=Setup(LIBRARY, tariff=flat(0.2))),
    "library": replace(ASKED, setup=Setup(LIBRARY.subset([0, 1, 2]))),
    "preset": replace(ASKED, options=manager_settings("fast", probe="identity")),
    "probe": replace(ASKED, options=replace(TINY, probe="cnn")),
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("status", ["finished", "unfinished"])
def test_a_training_that_is_not_the_one_asked_for_is_refused_and_left_alone(run, name, status):
    document = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**document, "status": status}))
    before = (run / "run.json").read_bytes()
    with pytest.raises(InputError, match=rf"is not the one asked for \(other: {name}\); give another folder"):
        learn_with_snapshots(OTHERS[name], run)
    assert (run / "run.json").read_bytes() == before


def test_a_household_of_the_same_name_with_other_readings_is_another(run):
    other = replace(HOME, aggregate_w=HOME.aggregate_w + 1.0)
    with pytest.raises(InputError, match="belongs to another training"):
        learn_with_snapshots(replace(ASKED, household=other), run)


def test_snapshots_that_do_not_lead_to_what_was_learned_are_refused(run):
    *_, before, last = sorted((run / "snapshots").iterdir())
    shutil.copy(before, last)
    with pytest.raises(InputError, match="are of another training"):
        learn_with_snapshots(ASKED, run)


@pytest.mark.parametrize("spoil", [lambda path: path.unlink(), lambda path: path.write_bytes(b"half")])
def test_a_snapshot_that_is_missing_or_damaged_is_named(run, spoil):
    spoil(run / "snapshots" / "00000.safetensors")
    with pytest.raises(InputError, match=r"kept no whole snapshot .*00000\.safetensors"):
        learn_with_snapshots(ASKED, run)


def test_a_training_killed_before_its_last_update_was_kept_goes_on_whole(run, trained):
    document = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**document, "status": "unfinished"}))
    sorted((run / "snapshots").iterdir())[-1].unlink()
    assert [one.digest for one in learn_with_snapshots(ASKED, run)] == [one.digest for one in trained[1]]


def test_a_training_without_snapshots_and_a_probe_without_a_training_are_refused(run):
    shutil.rmtree(run / "snapshots")
    document = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**document, "status": "unfinished"}))
    with pytest.raises(InputError, match="kept no snapshots"):
        learn_with_snapshots(ASKED, run)
    (run / "run.json").unlink()
    with pytest.raises(InputError, match="holds no training"):
        learn_with_snapshots(ASKED, run)


@pytest.fixture(scope="module")
def panel():
    days = episodes(HOME, HOME.days(), PAPER_TARIFF)
    probe = Probe("identity", Scaler(300.0, 400.0))
    truth = {"fridge": days.load_w}
    return Panel(EnvParams(Battery(), LIBRARY), days, probe, TINY, {"copies": Copies()}, truth)


def test_everything_that_can_change_a_figure_is_stated(panel):
    fits = {"copies": "a"}
    said = origin.shared(panel, fits, plays=16, seed=0)
    assert said == origin.shared(replace(panel), dict(fits), plays=16, seed=0)
    brighter = replace(panel.days, load_w=panel.days.load_w + 1.0)
    others = (
        origin.shared(panel, {"copies": "b"}, plays=16, seed=0),
        origin.shared(panel, fits, plays=17, seed=0),
        origin.shared(panel, fits, plays=16, seed=1),
        origin.shared(replace(panel, days=brighter), fits, plays=16, seed=0),
        origin.shared(replace(panel, truth={"fridge": brighter.load_w}), fits, plays=16, seed=0),
        origin.shared(replace(panel, truth={"kettle": panel.days.load_w}), fits, plays=16, seed=0),
        origin.shared(replace(panel, preset=replace(TINY, gamma=0.9)), fits, plays=16, seed=0),
        origin.shared(replace(panel, probe=Probe("identity", Scaler(0.0, 400.0))), fits, plays=16, seed=0),
        origin.shared(
            replace(panel, params=EnvParams(Battery(budget_kwh=4.0), LIBRARY)), fits, plays=16, seed=0
        ),
    )
    assert len({json.dumps(one) for one in (said, *others)}) == 1 + len(others)


def test_other_code_makes_other_figures(panel, monkeypatch):
    said = origin.shared(panel, {}, plays=16, seed=0)
    monkeypatch.setattr(origin, "code_hash", lambda module: f"another {module}")
    assert origin.shared(panel, {}, plays=16, seed=0)["code"] != said["code"]


def test_a_snapshot_is_known_once_every_reader_has_cards_of_it(panel, trained, tmp_path):
    first, *_, last = trained[1]
    settings = {**origin.of_snapshot(first), **origin.shared(panel, {}, plays=16, seed=0)}
    folder = tmp_path / "alignment_fast" / "redd"
    assert not origin.is_known(folder, panel, settings)
    cards.write(tmp_path, cards_of("redd", panel.measure(first, 16, 0), "alignment_fast", settings, 2))
    assert origin.is_known(folder, panel, settings)
    retrained = Snapshot(first.update, last.network)
    assert not origin.is_known(folder, panel, {**settings, **origin.of_snapshot(retrained)})
    assert not origin.is_known(folder, panel, {**settings, "code": "other"})
    (folder / "copies--update-0.json").unlink()
    assert not origin.is_known(folder, panel, settings)


def test_cards_that_were_not_measured_alike_are_not_drawn_together():
    zero, last = (
        {"dataset": "redd", "row": f"co, update {at}", "settings": {"update": at, "snapshot": at, "run": "a"}}
        for at in (0, 73)
    )
    check_alike([zero, last])
    check_alike([zero, {**last, "dataset": "ukdale", "settings": {"update": 73, "run": "b"}}])
    with pytest.raises(InputError, match="co, update 73 and co, update 0 were not measured alike; remove"):
        check_alike([zero, {**last, "settings": {**last["settings"], "run": "b"}}])


def ending(monkeypatch, capsys, *words):
    """Give the command; return its exit code and the one line that it says."""
    monkeypatch.setattr("sys.argv", ["alignment", *map(str, words)])
    with pytest.raises(SystemExit) as end:
        command.main()
    printed = capsys.readouterr()
    assert printed.out == ""
    [line] = printed.err.splitlines()
    return end.value.code, line


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--data", "nowhere"), "'nowhere' is not a folder of data sets; pass --data or set METERVEIL_DATA"),
        (("--data", ".", "--plays", 3), "3 plays say nothing about a gradient; give 16 or more"),
        (("--data", ".", "mars"), "there is no protocol 'mars'"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line_before_any_work(words, said, monkeypatch, capsys):
    monkeypatch.setattr(command, "measure", lambda *_: pytest.fail("it began to work"))
    code, line = ending(monkeypatch, capsys, *words)
    assert code == 2
    assert said in line


def test_an_interrupt_is_heard_without_a_traceback(monkeypatch, capsys, tmp_path):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(command.House, "of", interrupted)
    assert ending(monkeypatch, capsys, "--data", tmp_path) == (130, "stopped")


def test_weights_name_a_snapshot():
    weights = tuple(np.full(shape, 0.5) for shape in ((6, 4), (4, 4), (4, 3)))
    one = Snapshot(2, Mlp(weights, tuple(np.zeros(size) for size in (4, 4, 3))))
    moved = Snapshot(2, replace(one.network, biases=tuple(np.ones(size) for size in (4, 4, 3))))
    assert origin.of_snapshot(one) == origin.of_snapshot(Snapshot(2, replace(one.network)))
    assert origin.of_snapshot(one) != origin.of_snapshot(moved)
