"""Make the shipped model from UK-DALE: `python -m meterveil.audit.train --data DIR`.

DIR holds `ukdale`; `refit` and `redd` beside it teach nothing: they only set how sure the model may be in
homes that it does not know (REFIT, March 2014) and measure it there. The same data, seed and versions give
the same file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from rich.progress import Progress

from meterveil.audit.examples import source_of
from meterveil.audit.learning import TARGETS, Recipe, decide, train
from meterveil.audit.model import CARD, FORMAT, SHIPPED, WEIGHTS, Decision, Model, Reading, load_model
from meterveil.audit.network import onnx_bytes
from meterveil.audit.scoring import score
from meterveil.audit.uses import SHAPES, agreeing, runs_of, word_of
from meterveil.data import outputs
from meterveil.data.folders import data_folder
from meterveil.data.household import Household
from meterveil.data.load import load
from meterveil.data.protocols import on_threshold_w
from meterveil.data.splits import consecutive_pieces
from meterveil.endings import ending_in_one_line

ATTRIBUTION = (
    "Trained from UK-DALE, houses 1 and 2 (J. Kelly and W. Knottenbelt, Scientific Data 2:150007, 2015, "
    "doi:10.1038/sdata.2015.7), CC BY 4.0; averaged to one minute, mixed and rescaled. Probabilities of uses "
    "set with REFIT, house 2, March 2014 (D. Murray, L. Stankovic and V. Stankovic, Scientific Data "
    "4:160122, 2017, doi:10.1038/sdata.2016.122), CC BY 4.0."
)
PAPER_DAY = date(2013, 3, 18)
"""The day that the paper tests on teaches nothing."""


@dataclass(frozen=True)
class Part:
    """Say which days of a house teach, which set probabilities and which measure; half-open."""

    house: int
    calibrate_from: date
    measure_from: date


OTHERS = {
    "refit_house_2": ("refit", Part(2, date(2014, 3, 1), date(2014, 4, 1))),
    "redd_house_2": ("redd", Part(2, date.min, date.min)),
}
"""Homes that teach nothing: name -> (folder, days)."""

PARTS = (Part(1, date(2013, 6, 18), date(2013, 7, 10)), Part(2, date(2013, 6, 28), date(2013, 7, 15)))


def measure(model: Model, homes: Sequence[Household]) -> dict[str, dict[str, float]]:
    """Score the model on days or homes that taught nothing, appliance by appliance."""
    readings = [model.read(home.aggregate_w) for home in homes]
    found: dict[str, dict[str, float]] = {}
    for name, decision in model.decisions.items():
        pairs = [
            (home, reading)
            for home, reading in zip(homes, readings, strict=True)
            if name in home.appliances_w
        ]
        if pairs:
            cut = float(decision.minute.probability(np.array(decision.cut)))
            truth = np.concatenate([home.appliances_w[name] for home, _ in pairs])
            said = np.concatenate([reading.probability[name] for _, reading in pairs])
            made = score(name, truth, said, cut)
            found[name] = {**made._asdict(), "likely_right": _likely_right(name, pairs)}
    return {name: {key: round(value, 3) for key, value in row.items()} for name, row in found.items()}


def _likely_right(name: str, pairs: Sequence[tuple[Household, Reading]]) -> float:
    """Return the share that is right of the uses that the model does not call unsure."""
    right: list[bool] = []
    for home, reading in pairs:
        sure = [use for use in reading.uses if use.appliance == name and word_of(use.probability) != "unsure"]
        true = runs_of(home.appliances_w[name] >= on_threshold_w(name), SHAPES[name])
        right += list(agreeing([(use.start, use.end) for use in sure], true, len(home.minutes)))
    return float(np.mean(right)) if right else 0.0


def _days(home: Household, start: date, end: date) -> list[Household]:
    days = [day for day in home.days() if start <= day < end and day != PAPER_DAY]
    return consecutive_pieces(home, days)


def _metered(home: Household) -> Household:
    """Keep the targets that this house meters most of the time."""
    return home.select(name for name in TARGETS if name in home.appliances_w and home.coverage()[name] > 0.5)


def make(folder: Path, recipe: Recipe, report: Callable[[int, float], None] | None = None) -> bytes:
    """Train, and return the network as an ONNX file."""
    homes = [(part, _metered(load(folder / "ukdale", part.house))) for part in PARTS]
    first = [home.between(home.days()[0], part.calibrate_from) for part, home in homes]
    return onnx_bytes(train([source_of(without_paper_day(home), TARGETS) for home in first], recipe, report))


def without_paper_day(home: Household) -> Household:
    """Make the paper's day unknown to the meter and to every sub-meter: mixed homes take from both."""
    hidden = home.minutes.tz_localize(None).normalize() == pd.Timestamp(PAPER_DAY)
    return replace(
        home,
        aggregate_w=np.where(hidden, np.nan, home.aggregate_w),
        appliances_w={name: np.where(hidden, np.nan, watts) for name, watts in home.appliances_w.items()},
    )


def finish(weights: bytes, folder: Path, recipe: Recipe) -> Model:
    """Set probabilities, measure, and put all of it on a card."""
    homes = {f"ukdale_house_{part.house}": (part, load(folder / "ukdale", part.house)) for part in PARTS}
    for name, (path, part) in OTHERS.items():
        if (folder / path).is_dir():
            homes[name] = (part, load(folder / path, part.house))
    homes["synthetic"] = (Part(0, date.min, date.min), load("synthetic", days=28))
    calibrating = {
        name: _days(_metered(home), part.calibrate_from, part.measure_from)
        for name, (part, home) in homes.items()
    }
    taught = [piece for name in homes if name.startswith("ukdale") for piece in calibrating[name]]
    strangers = [piece for name in OTHERS for piece in calibrating.get(name, [])]
    decisions = decide(weights, taught, strangers, np.random.default_rng(recipe.seed))
    model = Model(weights, decisions, {})
    accuracy = {
        name: measure(model, _days(_metered(home), part.measure_from, date.max))
        for name, (part, home) in homes.items()
    }
    return Model(weights, decisions, _card(weights, decisions, recipe, accuracy))


def _card(
    weights: bytes, decisions: dict[str, Decision], recipe: Recipe, accuracy: dict[str, Any]
) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "weights": hashlib.sha256(weights).hexdigest(),
        "attribution": ATTRIBUTION,
        "recipe": asdict(recipe),
        "parts": [{key: str(value) for key, value in asdict(part).items()} for part in PARTS],
        "decisions": {name: asdict(decision) for name, decision in decisions.items()},
        "accuracy": accuracy,
    }


def save(model: Model, folder: Path) -> None:
    """Write weights and card."""
    outputs.write_whole(folder / WEIGHTS, lambda temporary: temporary.write_bytes(model.weights))
    outputs.write_text(folder / CARD, json.dumps(model.card, indent=1) + "\n")


app = typer.Typer(add_completion=False)


@app.command()
@ending_in_one_line()
def main(
    data: Annotated[Path | None, typer.Option(help="Folder with ukdale; default: $METERVEIL_DATA.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the model and its card.")] = SHIPPED,
    steps: Annotated[int, typer.Option(min=1, help="Steps of training.")] = Recipe.steps,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all chance.")] = Recipe.seed,
    reuse: Annotated[
        bool, typer.Option(help="Keep the weights in --out; only set probabilities and measure.")
    ] = False,
) -> None:
    """Make the model that `meterveil audit` ships with, and measure it."""
    folder = data_folder(data)
    recipe = Recipe(steps=steps, seed=seed)
    if reuse:
        weights = load_model(out).weights
    else:
        with Progress(transient=True) as bar:
            task = bar.add_task("training", total=steps)
            weights = make(folder, recipe, lambda step, _: bar.update(task, completed=step))
    model = finish(weights, folder, recipe)
    save(model, out)
    for home, found in model.card["accuracy"].items():
        typer.echo("\n".join(f"{home} {name}: {scores}" for name, scores in found.items()))


if __name__ == "__main__":
    app()
