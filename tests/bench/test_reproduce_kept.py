"""What a results folder holds of a cell: what replaces it, what is swept away, and what must stay."""

import json
from dataclasses import replace

import pytest

from meterveil.bench import cards
from meterveil.bench.cards import Card
from meterveil.bench.reproduce import kept
from meterveil.bench.reproduce.choosing import cells
from meterveil.bench.reproduce.engines import Local
from meterveil.bench.reproduce.measuring import Excuse
from meterveil.bench.reproduce.place import Place
from meterveil.bench.reproduce.plan import plan
from meterveil.bench.reproduce.runner import run
from meterveil.bench.reproduce.task import Task, left
from meterveil.data.cache import cache_folder
from meterveil.errors import InputError

TABLE, DATASET = "baseline_comparison", "synthetic"


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path / "results", cache_folder())


@pytest.fixture
def cell():
    [found] = cells([TABLE], [DATASET], ["fixed"], rows=["flat"])
    return replace(found, seeds=2, attackers=("co",))


def write(place, row, threat="fixed", table=TABLE, dataset=DATASET, key="of an earlier effort", seeds=2):
    settings = {"cell": key} if key else {}
    card = Card(table, row, "rmse", dataset, 1.0, None, None, tuple(range(seeds)), 1, threat, settings)
    [path] = cards.write(place.results, [card])
    return path


def of_others(place):
    """Write cards that look much like those of the fixed cell of `flat` and are not."""
    return [
        write(place, "dae kettle, flat, adaptive", "adaptive"),
        write(place, "dae kettle, flat_decoys, fixed"),
        write(place, "dae kettle, not, flat, fixed"),
        write(place, "meter toaster, flat_decoys", "clean"),
        write(place, "battery, flat, fixed", "clean"),  # of a row that is called "flat, fixed"
        write(place, "seq2point kettle, flat, fixed", key=None),  # of another command
        write(place, "dae kettle, flat, fixed", table="many_days"),
        write(place, "dae kettle, flat, fixed", dataset="redd"),
    ]


def test_what_an_earlier_effort_left_of_a_cell_goes_and_nothing_else_does(place, cell):
    old = [
        write(place, "dae kettle, flat, fixed"),
        write(place, "meter toaster, flat", "clean"),
        write(place, "co fridge, flat, fixed"),
    ]
    others = of_others(place)
    found = plan([cell], place)
    assert run(found, Local(1)).failed == {}
    assert [path.exists() for path in old] == [False, False, True]
    assert {card["settings"]["cell"] for card in json.loads(old[-1].read_text())} == set(found.cells)
    assert all(path.exists() for path in others)
    assert left(found.tasks, found.cells, place) == []


def test_a_run_that_died_before_it_swept_is_mended_without_measuring_again(place, cell):
    found = plan([cell], place)
    assert run(found, Local(1)).failed == {}
    headline = place.results / TABLE / DATASET / "headline--flat--fixed.json"
    written = headline.stat().st_mtime_ns
    old = write(place, "dae kettle, flat, fixed")
    assert [task.kind for task in left(found.tasks, found.cells, place)] == ["measure"]
    assert run(found, Local(1)).failed == {}
    assert not old.exists()
    assert headline.stat().st_mtime_ns == written
    assert left(found.tasks, found.cells, place) == []


def test_the_adaptive_cell_leaves_alone_what_depends_on_no_attacker(place, cell):
    write(place, "dae kettle, flat, adaptive", "adaptive")
    write(place, "battery, flat", "clean")
    write(place, "dae kettle, flat, fixed")
    swept = kept.left_behind(place, replace(cell, threat="adaptive"), "a new key")
    assert [path.name for path in swept] == ["dae-kettle--flat--adaptive.json"]


def test_an_excuse_leaves_what_was_measured_alone(place, cell):
    step = Excuse(cell, "house 1 is not among the data at hand")
    task = Task(step.key(), cell.title, step)
    assert left({task.key: task}, [task.key], place) == [task]
    write(place, kept.headline(cell))
    assert left({task.key: task}, [task.key], place) == []


def test_an_excuse_takes_the_place_of_another(place, cell):
    first, second = (Excuse(cell, f"the record ends on day {day}") for day in (1, 2))
    for step in (first, second):
        assert not step.is_finished(place, step.key())
        step.run(place, step.key())
        assert step.is_finished(place, step.key())


def test_fewer_seeds_do_not_replace_more(place, cell):
    write(place, kept.headline(cell), seeds=5)
    words = "holds baseline_comparison, flat, synthetic, fixed over 5 seeds, and 2 would replace them; give"
    with pytest.raises(InputError, match=f"{words} another folder with --results, or --seeds 5"):
        plan([cell], place)
    assert len(plan([replace(cell, seeds=5)], place).cells) == 1
    assert len(plan([replace(cell, threat="adaptive")], place).cells) == 1


def test_fewer_attackers_do_not_replace_more(place, cell):
    path = write(place, kept.headline(cell))
    [document] = json.loads(path.read_text())
    document["settings"]["attackers"] = [*cell.attackers, "bert4nilm"]
    path.write_text(json.dumps([document]))
    with pytest.raises(InputError, match=r"bert4nilm.* read it, and .* would replace them; give another"):
        plan([cell], place)
    more = replace(cell, attackers=(*cell.attackers, "bert4nilm"))
    assert len(plan([more], place).cells) == 1


@pytest.mark.parametrize("text", ["", "[]", "{}", "[1]", '[{"settings": null}]'])
def test_a_file_that_holds_no_cards_is_no_finished_cell(place, cell, text):
    path = cards.path_of(place.results, TABLE, DATASET, kept.headline(cell))
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert not kept.is_whole(place, cell, "key")
    assert not kept.has_figures(place, cell)
    kept.check_effort(place, cell)
