"""Picture of README, a day with its decoys by name: `python -m experiments.demo_picture`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go

from meterveil.bench.simulation import simulate
from meterveil.core.arrays import BoolArray
from meterveil.data.load import SYNTHETIC, load
from meterveil.data.signatures import library
from meterveil.data.simulation import Run, Setup
from meterveil.data.synthetic import FIRST_DAY
from meterveil.plots import look, save
from meterveil.plots.simulation import load_and_meter

_LABELS = 9
"""Most labels in the picture of a day."""
_LABEL_ROOM_MINUTES = 80
_LABEL_LEAST_SHARE = 0.5
"""Smallest share of a signature that was replayed for it to be labelled."""


def hero_figure(run: Run) -> go.Figure:
    """Draw load and meter of a day in one panel, with the decoys by name."""
    figure = go.Figure()
    x = look.time_axis(figure, run.minutes)
    kept, outline, meter = load_and_meter(run, x)
    kept.update(y=look.whole(np.nan_to_num(np.minimum(run.load_w, run.meter_w))))
    decoys = _difference(run, x, run.battery_w > 0, "decoy: the battery charges", look.DECOY)
    hidden = _difference(run, x, run.battery_w < 0, "hidden: the battery discharges", look.HIDDEN)
    figure.add_traces([kept, outline, decoys, hidden, meter])
    for replay in _labelled(run):
        figure.add_annotation(_label(run, x, replay))
    figure.update_yaxes(**look.WATTS, range=[0, _top_w(run) * 1.2])
    figure = look.figure_of(figure, f"One day in the {run.household} household with {run.defence}", 520)
    return figure.update_layout(barmode="overlay", margin_b=56)


class Replay(NamedTuple):
    """One replay of a signature, as positions in the minutes of the run."""

    name: str
    start: int
    end: int
    peak: int
    charges: bool
    energy: float


def replays(run: Run) -> list[Replay]:
    """List the replays that moved energy, in order of time."""
    library = run.setup.library
    replayed: list[Replay] = []
    changes = np.flatnonzero(np.diff(run.decoy, prepend=-1, append=-1))
    for start, end in pairwise(changes):
        power_w = run.battery_w[start:end]
        if run.decoy[start] == library.size or not np.any(power_w):
            continue
        peak = int(start) + int(np.argmax(np.abs(power_w)))
        name = library.names[run.decoy[start]]
        energy = float(np.sum(np.abs(power_w)))
        replayed.append(Replay(name, int(start), int(end), peak, bool(run.battery_w[peak] > 0), energy))
    return replayed


def _labelled(run: Run) -> list[Replay]:
    """Choose the largest charging replays whose labels do not overlap."""
    chosen: list[Replay] = []
    charging = (replay for replay in replays(run) if replay.charges and _stands_out(run, replay))
    for replay in sorted(charging, key=lambda replay: -replay.energy):
        if all(abs(replay.peak - other.peak) >= _LABEL_ROOM_MINUTES for other in chosen):
            chosen.append(replay)
    return chosen[:_LABELS]


def _stands_out(run: Run, replay: Replay) -> bool:
    """Return whether most of the signature was replayed and its label would cover nothing else."""
    whole = float(run.setup.library.watts[run.decoy[replay.start]].sum())
    if replay.energy < _LABEL_LEAST_SHARE * whole:
        return False
    half = _LABEL_ROOM_MINUTES // 2
    middle = (replay.start + replay.end) // 2
    if not half <= middle <= len(run.minutes) - half:
        return False
    beside_w = run.meter_w[max(middle - half, 0) : middle + half]
    return float(np.nanmax(beside_w)) <= _top_w(run, slice(replay.start, replay.end))


def _label(run: Run, x: Any, replay: Replay) -> dict[str, Any]:
    return {
        "x": x[(replay.start + replay.end) // 2],
        "y": _top_w(run, slice(replay.start, replay.end)),
        "text": "decoy<br>" + look.readable(replay.name).replace(" ", "<br>"),
        "showarrow": False,
        "yanchor": "bottom",
        "font": {"size": 13, "color": "#8a5f00"},
    }


def _difference(run: Run, x: Any, mask: BoolArray, name: str, colour: str) -> go.Bar:
    """Fill the area between load and meter."""
    lower_w = np.minimum(run.load_w, run.meter_w)
    return go.Bar(
        x=look.milliseconds(x[mask]),
        y=look.whole(np.abs(run.battery_w[mask])),
        base=look.whole(lower_w[mask]),
        name=name,
        width=look.MINUTE_MS,
        offset=0,
        marker={"color": colour, "line": {"width": 0.4, "color": colour}},
        hoverinfo="skip",
    )


def _top_w(run: Run, part: slice = slice(None)) -> float:
    return float(np.nanmax(np.maximum(run.load_w, run.meter_w)[part]))


def draw(picture: Path) -> tuple[Run, go.Figure]:
    """Simulate the day with the random baseline and draw it."""
    run = simulate(load(SYNTHETIC), "random_equal", FIRST_DAY, 1, Setup(library()))
    figure = hero_figure(run)
    save(figure, picture)
    return run, figure


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--picture", type=Path, default=Path("docs/img/demo-day.png"))
    draw(parser.parse_args(arguments).picture)


if __name__ == "__main__":
    main()
