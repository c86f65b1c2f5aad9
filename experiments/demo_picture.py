"""Picture of README, a day with the default defence: `python -m experiments.demo_picture`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go

from meterveil.bench.simulation import simulate
from meterveil.core.arrays import BoolArray
from meterveil.data.load import SYNTHETIC, load
from meterveil.data.signatures import library
from meterveil.data.simulation import Run, Setup
from meterveil.data.synthetic import FIRST_DAY
from meterveil.defenders import DEFAULT_DEFENCE
from meterveil.plots import look, save
from meterveil.plots.simulation import load_and_meter

_HISTORY_DAYS = 7
"""Days before the one that is drawn, which the defence plans with."""


def hero_figure(run: Run) -> go.Figure:
    """Draw load and meter of a day in one panel, with what the battery adds and takes away."""
    figure = go.Figure()
    x = look.time_axis(figure, run.minutes)
    kept, outline, meter = load_and_meter(run, x)
    kept.update(y=look.whole(np.nan_to_num(np.minimum(run.load_w, run.meter_w))))
    added = _difference(run, x, run.battery_w > 0, "added: the battery charges", look.DECOY)
    hidden = _difference(run, x, run.battery_w < 0, "hidden: the battery discharges", look.HIDDEN)
    figure.add_traces([kept, outline, added, hidden, meter])
    top_w = float(np.nanmax(np.maximum(run.load_w, run.meter_w)))
    figure.update_yaxes(**look.WATTS, range=[0, top_w * 1.1])
    figure = look.figure_of(figure, f"One day in the {run.household} household with {run.defence}", 520)
    return figure.update_layout(barmode="overlay", margin_b=56)


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


def draw(picture: Path) -> tuple[Run, go.Figure]:
    """Simulate a day with the default defence and draw it."""
    day = FIRST_DAY + timedelta(days=_HISTORY_DAYS)
    run = simulate(load(SYNTHETIC), DEFAULT_DEFENCE, day, 1, Setup(library()))
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
