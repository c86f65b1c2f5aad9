"""Observe how the manager learns: `python -m experiments.training_observations --library FILE`.

Makes results/study_training_observations.csv and the pictures training-probes.png, training-lengths.png and
training-rates.png in docs/img, all for docs/training.md: does a trained probe measure more than the battery's
RMS power, does a reward per decision favour short replays, and what do the paper's learning rate and a larger
one learn? The last fifth of the training days is used for measuring; test days are not used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from experiments import study
from experiments.decisions import Played, play_decisions
from meterveil.core.arrays import FloatArray
from meterveil.core.env import WINDOW, EnvParams
from meterveil.core.rollout import rollout
from meterveil.core.scenario import Scenario
from meterveil.data.files import data_folder
from meterveil.data.household import Household
from meterveil.data.load import load
from meterveil.data.protocols import Protocol, protocol
from meterveil.data.signatures import library as read_library
from meterveil.data.simulation import Setup, episodes
from meterveil.defenders.manager.manager_training import Update, train
from meterveil.defenders.manager.probe_reward import ProbeReward
from meterveil.defenders.manager.probes import Probe, train_probe
from meterveil.defenders.trained_policies import ManagerPolicy, Mlp
from meterveil.defenders.training_days import Trained
from meterveil.defenders.training_settings import MANAGER_PRESETS, ManagerSettings
from meterveil.plots import look
from meterveil.plots.html import save

PROBES = ("transformer", "lstm", "cnn")
PLAYS = 10
"""Number of times that a validation day is simulated, because a policy is random."""
POINTS = 300
"""Recorded points of each probe; more of them would hide each other."""
LATER_DECISIONS = 600_000
"""Second place at which the learning curves are read; the first is the end of the paper's budget."""

PAPER, FAST = (replace(MANAGER_PRESETS[name], budget_days=1200.0) for name in ("paper", "fast"))
CURVES: dict[str, ManagerSettings] = {
    "paper, 2e-5": PAPER,
    "paper, 1e-3": replace(PAPER, learning_rate=1e-3),
    "fast": replace(FAST, anneal=False, loss="mse", reward_scale=0.01),
}
"""Settings of the learning curves, with four times the paper's budget."""


@dataclass(frozen=True)
class House:
    """House with its split training days."""

    name: str
    protocol: Protocol
    household: Household
    setup: Setup
    learning: Scenario
    validation: Scenario
    """Validation days, each repeated as often as it is simulated."""

    @classmethod
    def of(cls, name: str, data: Path, setup: Setup) -> House:
        """Read the house of a protocol."""
        chosen = protocol(name)
        household = load(data / chosen.dataset, chosen.house, appliances=[])
        learning, days = (episodes(household, days, setup.tariff) for days in chosen.split(household))
        validation = days.rows(np.repeat(np.arange(days.batch), PLAYS))
        return cls(name, chosen, household, setup, learning, validation)

    @property
    def params(self) -> EnvParams:
        """Battery and signatures of the environment."""
        return EnvParams(self.setup.battery, self.setup.library)

    @property
    def random_manager(self) -> ManagerPolicy:
        """Untrained manager: every action is equally likely."""
        sizes = (6, 64, 64, self.setup.library.n_actions)
        weights = tuple(np.zeros(shape, dtype=np.float32) for shape in pairwise(sizes))
        biases = tuple(np.zeros(size, dtype=np.float32) for size in sizes[1:])
        return ManagerPolicy(Mlp(weights, biases), self.setup.library.n_actions)


class ProbeErrors(NamedTuple):
    """Errors of a probe on disturbed hours."""

    rms_w: FloatArray  # battery power of each hour
    error_w: FloatArray  # of the probe

    @property
    def correlation(self) -> float:
        """Correlation of error and power."""
        return float(np.corrcoef(self.rms_w, self.error_w)[0, 1])


class Habit(NamedTuple):
    """Behaviour of a manager on a day."""

    replays: float
    minutes: float  # of a replay
    reward: float  # of the day
    hourly_error_w: float  # RMS battery power of an hour, mean over all hours of the day


def probe_errors(house: House, probe: Probe) -> ProbeErrors:
    """Replay random signatures and compare the probe's error with the battery's RMS power."""
    reward = ProbeReward(probe, house.validation, loss="rmse_kw")
    rng = np.random.default_rng(0)
    played = play_decisions(house.random_manager, house.params, house.validation, reward, rng).moved
    ends = played.begins + played.minutes
    known = reward.complete[played.row, ends]
    error_w = 1000.0 * (played.reward + reward.clean[played.row, ends])[known]
    return ProbeErrors(np.sqrt(np.mean(played.past_w**2, axis=1))[known], error_w)


def by_length(played: Played) -> Iterator[tuple[int, float]]:
    """Yield the length in minutes and the mean reward of the replays of each frequent length."""
    lengths, counts = np.unique(played.minutes, return_counts=True)
    for minutes in lengths[counts >= max(len(played.minutes) // 200, 1)]:
        yield int(minutes), float(played.reward[played.minutes == minutes].mean())


def habit(house: House, manager: ManagerPolicy, reward: ProbeReward) -> tuple[Habit, Played]:
    """Simulate the validation days and sum up the manager's behaviour."""
    rng = np.random.default_rng(1)
    played = play_decisions(manager, house.params, house.validation, reward, rng)
    moved, days = played.moved, house.validation.batch
    hourly_w = hourly_error_w(house, manager)
    day_reward = float(played.reward.sum()) / days
    return Habit(len(moved.row) / days, float(moved.minutes.mean()), day_reward, hourly_w), moved


def hourly_error_w(house: House, manager: ManagerPolicy) -> float:
    """Return the RMS battery power of the hour before each minute, mean over all minutes."""
    rngs = [np.random.default_rng([2, row]) for row in range(house.validation.batch)]
    power_w = rollout(manager, house.setup.battery, house.setup.library, house.validation, rngs).power_w
    squares = np.cumsum(np.pad(power_w**2, ((0, 0), (WINDOW, 0))), axis=1)
    hours = (squares[:, WINDOW:] - squares[:, :-WINDOW]) / WINDOW
    return float(np.mean(np.sqrt(np.maximum(hours, 0.0))))


def curve_of(trained: Trained[ManagerPolicy, Update], smoothing: int = 6) -> list[tuple[int, float]]:
    """Return decisions and the reward of a day, mean over a few updates."""
    known = [(u.decisions, u.reward_per_day) for u in trained.curve if u.reward_per_day is not None]
    decisions, reward = np.array(known).T
    smooth = np.convolve(reward, np.full(smoothing, 1.0 / smoothing), mode="valid")
    return [(int(at), float(value)) for at, value in zip(decisions[smoothing - 1 :], smooth, strict=True)]


class Figures:
    """Figures of one house; points of a picture have their place on the axis as `x`."""

    def __init__(self, house: House) -> None:
        self.rows: list[dict[str, Any]] = []
        self.shared = {"dataset": house.name, "seeds": 1, "n_days": house.validation.batch // PLAYS}

    def add(self, row: str, metric: str, value: float, x: float | None = None) -> None:
        """Add one figure."""
        self.rows.append({**self.shared, "row": row, "metric": metric, "value": value, "x": x})


def observe(house: House, curves: dict[str, ManagerSettings]) -> list[dict[str, Any]]:
    """Make the three observations on one house."""
    figures = Figures(house)
    for kind in PROBES:
        probe = train_probe(kind, house.household, house.protocol.training, 0)
        observe_probe(house, probe, figures)
    formula = Probe("identity", probe.scaler)
    trained = {name: train(settings, house.setup, house.learning, formula) for name, settings in curves.items()}
    managers = {"chance": house.random_manager, **{name: run.policy for name, run in trained.items()}}
    observe_managers(house, managers, ProbeReward(formula, house.validation), figures)
    observe_curves(trained, figures)
    return figures.rows


def observe_probe(house: House, probe: Probe, figures: Figures) -> None:
    """Compare a probe's error with the battery's RMS power."""
    errors, row = probe_errors(house, probe), f"{probe.kind} probe"
    figures.add(row, "correlation", errors.correlation)
    for metric in ("rmse_w", "explained"):
        figures.add(row, metric, probe.quality[metric])
    count = len(errors.rms_w)
    for number in np.linspace(0, count - 1, min(POINTS, count)).astype(np.int64):
        figures.add(row, "error_w", errors.error_w[number], errors.rms_w[number])


def observe_managers(house: House, managers: dict[str, ManagerPolicy], reward: ProbeReward, figures: Figures) -> None:
    """Measure what managers do, and the reward of random replays by their length."""
    for name, manager in managers.items():
        behaviour, moved = habit(house, manager, reward)
        for metric, value in behaviour._asdict().items():
            figures.add(name, metric, value)
        if name == "chance":
            for minutes, paid in by_length(moved):
                figures.add(name, "reward_per_decision", paid, minutes)
                figures.add(name, "reward_per_minute", paid / minutes, minutes)


def observe_curves(trained: dict[str, Trained[ManagerPolicy, Update]], figures: Figures) -> None:
    """Record the learning curves, and their value at the end of the paper's budget and later."""
    paper, minutes = next(iter(trained)), MANAGER_PRESETS["paper"].budget_minutes
    updates = trained[paper].curve
    budget = next((u.decisions for u in updates if u.minutes >= minutes), updates[-1].decisions)
    figures.add(paper, "budget_decisions", budget)
    for name, run in trained.items():
        curve = curve_of(run)
        for at in (budget, LATER_DECISIONS):
            if at <= curve[-1][0]:
                figures.add(name, f"reward_at_{at}", next(value for place, value in curve if place >= at))
        for decisions, value in curve:
            figures.add(name, "reward_of_day", value, decisions)


def probe_figure(table: pd.DataFrame) -> go.Figure:
    """Draw each probe's error against the battery's RMS power, a row of panels for each house."""
    houses = sorted(table["dataset"].unique())
    rows = [f"{kind} probe" for kind in PROBES]
    known = table.set_index(["dataset", "row", "metric"])["value"]
    titles = [
        f"<b>{house}, {row.removesuffix(' probe')}</b>: correlation {known[house, row, 'correlation']:.4f}"
        for house in houses
        for row in rows
    ]
    panels = make_subplots(
        len(houses), len(rows), subplot_titles=titles, horizontal_spacing=0.05, vertical_spacing=0.14
    )
    for place, (house, row) in enumerate((house, row) for house in houses for row in rows):
        at = place // len(rows) + 1, place % len(rows) + 1
        points = _series(table, house, row, "error_w")
        top_w = points["x"].max()
        diagonal = go.Scatter(x=[0, top_w], y=[0, top_w], mode="lines", line={"color": look.GRID, "width": 2})
        marker = {"color": look.METER, "size": 4, "opacity": 0.5}
        panels.add_trace(diagonal, *at)
        panels.add_trace(go.Scatter(x=points["x"], y=points["value"], mode="markers", marker=marker), *at)
    panels.update_xaxes(**look.WATTS)
    panels.update_xaxes(title="RMS power of the battery in the hour", row=len(houses))
    panels.update_yaxes(**look.WATTS)
    panels.update_yaxes(title="RMS error of the probe", col=1)
    title = "Error of each probe against the RMS power of the battery"
    return look.figure_of(panels, title, 90 + 330 * len(houses)).update_layout(showlegend=False)


def length_figure(table: pd.DataFrame) -> go.Figure:
    """Draw the reward of replays by their length, and the behaviour of each manager."""
    headings = ("Reward a decision", "Reward a minute", "Replays a day", "Error of an hour, mean of the day")
    titles = [f"<b>{heading}</b>" for heading in headings]
    panels = make_subplots(2, 2, subplot_titles=titles, vertical_spacing=0.2, horizontal_spacing=0.1)
    managers = ["chance", *CURVES]
    for number, house in enumerate(sorted(table["dataset"].unique())):
        style = {"name": house, "legendgroup": house}
        for column, metric in enumerate(("reward_per_decision", "reward_per_minute"), start=1):
            points = _series(table, house, "chance", metric)
            line = go.Scatter(x=points["x"], y=points["value"], mode="lines+markers", **style)
            panels.add_trace(line.update(showlegend=column == 1, line_color=look.CYCLE[number]), 1, column)
        for column, metric in enumerate(("replays", "hourly_error_w"), start=1):
            values = [_series(table, house, name, metric)["value"].iloc[0] for name in managers]
            bars = go.Bar(x=managers, y=values, showlegend=False, marker_color=look.CYCLE[number], **style)
            panels.add_trace(bars, 2, column)
    panels.update_xaxes(title="minutes of a replay", row=1)
    panels.update_yaxes(rangemode="tozero")
    panels.update_yaxes(ticksuffix=" W", row=2, col=2)
    figure = look.figure_of(panels, "Reward by length of a replay, and what managers do", 720)
    return figure.update_layout(bargap=0.3, margin_t=100, legend_y=1.04)


def curve_figure(table: pd.DataFrame) -> go.Figure:
    """Draw the reward of a day along the trainings, with the end of the paper's budget."""
    houses = sorted(table["dataset"].unique())
    titles = [f"<b>{house}</b>" for house in houses]
    panels = make_subplots(1, len(houses), subplot_titles=titles, horizontal_spacing=0.08)
    for column, house in enumerate(houses, start=1):
        for number, name in enumerate(CURVES):
            points = _series(table, house, name, "reward_of_day")
            line = go.Scatter(x=points["x"], y=points["value"], name=name, legendgroup=name, mode="lines")
            panels.add_trace(line.update(showlegend=column == 1, line_color=look.CYCLE[number]), 1, column)
        budget = _series(table, house, "paper, 2e-5", "budget_decisions")["value"].iloc[0]
        panels.add_vline(x=budget, line_dash="dot", line_color=look.INK, row=1, col=column)
    panels.update_xaxes(title="decisions (dotted: the paper's 300 days)", tickformat="~s")
    panels.update_yaxes(title="reward of a day", col=1)
    panels.update_yaxes(rangemode="tozero")
    figure = look.figure_of(panels, "Reward of a day by learning rate", 460)
    return figure.update_layout(margin_t=110, legend_y=1.1)


def _series(table: pd.DataFrame, house: str, row: str, metric: str) -> pd.DataFrame:
    chosen = (table["dataset"] == house) & (table["row"] == row) & (table["metric"] == metric)
    return table[chosen].sort_values("x")


def main(arguments: Sequence[str] | None = None) -> None:
    """Observe the given houses and draw all recorded ones."""
    parser = study.options(__doc__ or "")
    parser.add_argument("houses", nargs="*", default=["redd", "ukdale"], help="protocols; default: both")
    options = parser.parse_args(arguments)
    if not options.picture:
        setup = Setup(read_library(options.library))
        for name in options.houses:
            house = House.of(name, data_folder(options.data), setup)
            settings = {"house": house.protocol.house, "library": setup.library.digest()[:12]}
            key = f"training_observations_{name}"
            study.record(options.results, "training_observations", key, observe(house, CURVES), settings)
    table = study.read(options.results, "training_observations")
    drawn = {"probes": probe_figure, "lengths": length_figure, "rates": curve_figure}
    for name, figure in drawn.items():
        save(figure(table), options.pictures / f"training-{name}.png", width=1000)


if __name__ == "__main__":
    main()
