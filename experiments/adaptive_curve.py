"""Scores of adaptive attackers by the amount of training: `python -m experiments.adaptive_curve redd flat`.

An undertrained adaptive attacker overstates protection (D11). A curve shows its score over the masked copies,
or the epochs, that it learned from; where it still rises, the defence is not measured yet. The figures are
rows of the results table; `--picture` only draws what is recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from experiments import study
from meterveil.attackers.fitting import COPIES, Options, adaptive, fit
from meterveil.attackers.registry import attacker
from meterveil.bench import results
from meterveil.bench.attack import base_figure, read, run_of, score_figures, strength_figures
from meterveil.bench.attack_page import heading, mean_over_appliances
from meterveil.bench.cases import score
from meterveil.bench.evaluate import held_out_rngs
from meterveil.bench.results import Figure, Run, battery_label
from meterveil.bench.trial import Houses, Trial, attack_trial
from meterveil.core.rollout import Policy
from meterveil.data.files import data_folder
from meterveil.data.household import Household
from meterveil.data.load import load
from meterveil.data.protocols import protocol
from meterveil.data.signatures import library
from meterveil.data.simulation import Setup, mask
from meterveil.data.splits import consecutive_pieces
from meterveil.defenders import defender
from meterveil.errors import InputError
from meterveil.plots import look, save
from meterveil.plots.attack import COLOURS, METRICS, colour, label

SUBJECT = "adaptive curve"
"""Subject of the runs that are points of a curve."""
PRIOR = "prior"
"""Attacker that guesses from routine and never sees the meter."""
STEPS = {"copies": "masked copies of the training days", "epochs": "most epochs of training"}
"""What a curve can run along -> its name for readers."""
DRAWS = 5
"""Masked forms of the test day that are read, each with randomness that no attacker has seen."""


class Point(NamedTuple):
    """Amount of training of an attacker."""

    copies: int = COPIES  # of the masked training days; with 0 it learns from clean days
    epochs: int | None = None  # at most; None for as many as its recipe says


@dataclass(frozen=True)
class Curve:
    """House under attack, and the defence that masks its meter."""

    trial: Trial
    name: str
    """Label of the defence in results."""
    policy: Policy
    setup: Setup
    draws: int = DRAWS

    def run(self, point: Point, houses: Houses, names: Sequence[str]) -> Run:
        """Describe a point for the runs table."""
        described: dict[str, object] = {"subject": SUBJECT, "defence": self.name, "draws": self.draws}
        described["library"] = self.setup.library.digest()[:12]
        described["learned_from"] = self.trial.training_label
        return run_of(self.trial, houses, names, **described, **point._asdict())

    def measure(self, point: Point, houses: Houses, names: Sequence[str], run: str, workers: int = 2) -> list[Figure]:
        """Fit attackers on training days that the defence masked, and score them on masked test days."""
        trial = self.trial
        options: Options = {"workers": workers, "epochs": point.epochs}
        data = (names, trial.training_households(houses), trial.fitted, trial.seed)
        if point.copies:
            fitted = adaptive(*data, self.policy, self.setup, point.copies, **options)
        else:
            fitted = fit(*data, **options)
        days = self.masked_days(houses[trial.test.key].select(trial.learned))
        copies = f" x {point.copies} copies" if point.copies else ""
        epochs = "" if point.epochs is None else f", {point.epochs} epochs"
        base = replace(
            base_figure(trial, run),
            defence=self.name,
            battery=battery_label(self.setup.battery),
            threat="adaptive" if point.copies else "fixed",
            training=f"{trial.training_label}{copies}{epochs}",
            seeds=self.draws,
        )
        scores = {name: score(reader, days, trial.read) for name, reader in fitted.items()}
        return [replace(figure, n_days=len(trial.test.days)) for figure in score_figures(base, scores)]

    def masked_days(self, home: Household) -> list[Household]:
        """Run the defence over the test days, SoC carried over midnight, once per draw."""
        rngs = held_out_rngs(self.trial.seed, self.draws)
        pieces = consecutive_pieces(home, self.trial.test.days)
        copies = [copy for piece in pieces for copy in mask(self.policy, self.setup, piece, rngs).households]
        return [copy.day(day) for copy in copies for day in copy.days()]


def measure_curve(curve: Curve, points: Sequence[Point], houses: Houses, names: Sequence[str], folder: Path) -> None:
    """Record the scores without a defence, and each point as soon as it is measured."""
    clean_names = tuple(dict.fromkeys((*names, PRIOR)))
    clean = run_of(curve.trial, houses, clean_names)
    results.write(folder, strength_figures(read(curve.trial, houses, clean_names), clean.key), [clean])
    for point in points:
        run = curve.run(point, houses, names)
        results.write(folder, curve.measure(point, houses, names, run.key), [run])


class Recorded(NamedTuple):
    """Figures of a curve."""

    steps: str  # what the curve runs along: `copies` or `epochs`
    points: pd.DataFrame  # with the column `step`
    clean: pd.DataFrame  # the same attackers and guessing from routine, without a defence


def recorded(folder: Path, dataset: str, defence: str, steps: str) -> Recorded:
    """Find the recorded figures of a curve."""
    table = results.where(results.read(folder), dataset=dataset, days="paper", aggregate="mains")
    step = {}
    for key, run in results.read_runs(folder).items():
        along = "copies" if run.settings.get("epochs") is None else "epochs"
        if (run.settings.get("subject"), run.settings.get("defence"), along) == (SUBJECT, defence, steps):
            step[key] = run.settings[steps]
    points = table[table["run"].isin(step)]
    if points.empty:
        raise InputError(f"{folder} holds no curve of {defence} on {dataset}; run without --picture first")
    learned_from = f"{len(protocol(dataset).training)} days"
    names = [*points["attacker"].unique(), PRIOR]
    clean = results.where(table, threat="clean", training=learned_from, attacker=names)
    return Recorded(steps, points.assign(step=points["run"].map(step)), clean)


def rows(curve: Recorded) -> list[list[str]]:
    """Write a table with one row per attacker and amount of training, mean over appliances."""
    parts = {"no defence": curve.clean}
    parts |= {f"{step} {curve.steps}": part for step, part in curve.points.groupby("step")}
    lines = []
    for words, part in parts.items():
        means = {metric: mean_over_appliances(part, metric) for metric in METRICS}
        for name in means["rmse"]:
            figures = [f"{means[metric][name]:.4g}" for metric in METRICS if name in means[metric]]
            lines.append([name, words, *figures])
    return [["attacker", "learned from", *METRICS], *sorted(lines, key=lambda line: line[0])]


def figure(curve: Recorded, defence: str) -> go.Figure:
    """Draw a panel for each metric: every attacker's score against the copies or epochs it learned from.

    Dotted is the same attacker without a defence, grey the prior.
    """
    lines = {metric: _lines(curve.points, metric) for metric in METRICS}
    shown = [metric for metric in METRICS if lines[metric]]
    panels = make_subplots(1, len(shown), subplot_titles=[f"<b>{METRICS[m]}</b>" for m in shown])
    ticks = sorted(curve.points["step"].unique().tolist())
    for column, metric in enumerate(shown, start=1):
        clean = mean_over_appliances(curve.clean, metric)
        traces = []
        for name, line in lines[metric].items():
            traces.append(_curve(name, line, ticks))
            if name in clean:
                traces.append(_level(f"{label(name)} without a defence", clean[name], ticks, "dot", colour(name)))
        if PRIOR in clean:
            traces.append(_level("prior (never looks)", clean[PRIOR], ticks, "dash", COLOURS[PRIOR]))
        for trace in traces:
            panels.add_trace(trace.update(showlegend=column == 1), 1, column)
    panels.update_annotations(font_size=13)
    panels.update_yaxes(rangemode="tozero")
    panels.update_xaxes(tickvals=list(range(len(ticks))), ticktext=[str(step) for step in ticks])
    panels.update_xaxes(title={"text": STEPS[curve.steps], "font": {"size": 13}, "standoff": 6})
    title = f"{heading(curve.clean)}, with {look.readable(defence)}"
    drawn = look.figure_of(panels, title, 440)
    return drawn.update_layout(legend_y=-0.24, legend_yanchor="top", margin_b=130, hovermode="closest")


def _lines(points: pd.DataFrame, metric: str) -> dict[str, dict[int, tuple[float, float]]]:
    """Return attacker -> step -> mean and spread."""
    lines: dict[str, dict[int, tuple[float, float]]] = {}
    for step, part in points.groupby("step"):
        spreads = mean_over_appliances(part, metric, "spread")
        for name, value in mean_over_appliances(part, metric).items():
            lines.setdefault(name, {})[int(str(step))] = (value, spreads.get(name, 0.0))
    return lines


def _curve(name: str, line: dict[int, tuple[float, float]], ticks: Sequence[int]) -> go.Scatter:
    values, spreads = zip(*(line[step] for step in sorted(line)), strict=True)
    return go.Scatter(
        x=[ticks.index(step) for step in sorted(line)],
        y=list(values),
        error_y={"array": list(spreads), "thickness": 1, "width": 3},
        name=label(name),
        legendgroup=name,
        mode="lines+markers",
        line={"color": colour(name), "width": 2},
        hovertemplate="%{y:.3g}",
    )


def _level(name: str, value: float, ticks: Sequence[int], dash: str, line_colour: str) -> go.Scatter:
    return go.Scatter(
        x=[-0.25, len(ticks) - 0.75],
        y=[value] * 2,
        name=name,
        legendgroup=name,
        mode="lines",
        line={"width": 1.5, "dash": dash, "color": line_colour},
        hovertemplate="%{y:.3g}",
    )


def _points(copies: Sequence[int], epochs: Sequence[int], names: Sequence[str]) -> list[Point]:
    if not epochs:
        return [Point(number) for number in copies]
    others = [name for name in names if not hasattr(attacker(name), "recipe")]
    if others:
        raise InputError(f"{', '.join(others)} is not trained in epochs; name networks, such as seq2point")
    if len(copies) > 1:
        raise InputError("--copies with --epochs would be two curves; give one number of copies")
    return [Point(copies[0], number) for number in epochs]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure a curve and draw it."""
    parser = study.options(__doc__ or "")
    parser.add_argument("on", choices=["redd", "ukdale"])
    parser.add_argument("defence", help="name of an untrained defence")
    parser.add_argument("--attackers", nargs="+", default=["fhmm", "seq2point"])
    parser.add_argument("--copies", nargs="+", type=int, help=f"default: 0 1 3 12; with --epochs {COPIES}")
    parser.add_argument("--epochs", nargs="+", type=int, default=[], help="most epochs, such as 3 10 30")
    options = parser.parse_args(arguments)
    name = f"{options.defence}_shipped_signatures" if options.library is None else options.defence
    if not options.picture:
        copies = options.copies or ([COPIES] if options.epochs else [0, 1, 3, 12])
        points = _points(copies, options.epochs, options.attackers)
        curve_of = (name, defender(options.defence), Setup(library(options.library)))
        paper = protocol(options.on)
        household = load(data_folder(options.data) / paper.dataset, paper.house)
        curve = Curve(attack_trial(paper, household), *curve_of)
        houses = {curve.trial.test.key: household}
        measure_curve(curve, points, houses, options.attackers, options.results)
    steps = "epochs" if options.epochs else "copies"
    found = recorded(options.results, options.on, name, steps)
    for row in rows(found):
        print(*row, sep="\t")
    house = protocol(options.on).house
    save(figure(found, name), options.pictures / f"{options.on}-{house}-paper-{options.defence}-{steps}.png")


if __name__ == "__main__":
    main()
