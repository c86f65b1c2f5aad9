"""Measure Condition A1 of appendix B along trainings: `python -m experiments.alignment --library FILE`.

Makes results/study_alignment.csv and the pictures alignment-fast.png and alignment-fast-risks.png in docs/img
for docs/alignment.md. Trains a manager on each house as `meterveil train` does and takes five snapshots of
it. At each, the validation days are simulated many times, and the policy gradients of the probe's risk and of
each attacker's risk are estimated and compared. Test days are not used. `--picture` only draws what is
recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from experiments import study
from experiments.policy_gradients import (
    REACH,
    Alignment,
    Interval,
    Rollouts,
    act,
    advantage,
    align,
    gradients,
    hours_to_go,
    mean_of,
    paid_to_go,
    scores,
)
from meterveil.attackers.fitting import fit
from meterveil.attackers.protocol import Attacker, Meter
from meterveil.attackers.registry import PAPER_SIX
from meterveil.core.arrays import FloatArray, IntArray
from meterveil.core.env import WINDOW, EnvParams
from meterveil.core.scenario import Scenario
from meterveil.data.files import data_folder
from meterveil.data.household import AGGREGATE, Household
from meterveil.data.load import load
from meterveil.data.protocols import protocol
from meterveil.data.signatures import library as read_library
from meterveil.data.simulation import Setup, episodes
from meterveil.data.splits import Days, only_days
from meterveil.defenders.manager import ppo
from meterveil.defenders.manager.manager_training import manager_key, train
from meterveil.defenders.manager.probe_reward import LOSSES, ProbeReward
from meterveil.defenders.manager.probes import Probe, train_probe
from meterveil.defenders.run_folder import CHECKPOINT, own_randomness
from meterveil.defenders.trained_policies import ManagerPolicy, Mlp
from meterveil.defenders.training_settings import MANAGER_PRESETS, ManagerSettings
from meterveil.plots import look
from meterveil.plots.html import save

PROBE, FAMILY = "probe", "all six"
"""Readers beside the attackers: the probe, and the mean of the paper's six attackers."""
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Snapshots, as shares of the updates of a training."""
COMPARISONS = {"risk": ("hours", "hours"), "reward": ("paid", "paid"), "training": ("paid", "hours")}
"""Comparison -> kind of the probe's risk, kind of the attacker's risk.

`risk` is Condition A1: mean loss over the hours of the day. `reward` takes both as the manager is rewarded:
the hours that end with a decision. `training` compares the manager's reward with the attackers' loss over
the day.
"""
AT_ONCE = 128
"""Windows that the probe reads at once; larger batches are slower."""
THURSDAY = 3
"""Weekday of day 0 of a scenario, 1 January 1970."""
UNBOUNDED = "unbounded: noise leaves the probe's gradient no norm"

Truth = Mapping[str, FloatArray]
"""Appliance -> (day, lead + minute) true power; NaN where unknown."""
WindowLoss = Callable[[IntArray, IntArray], FloatArray]
"""From episodes and minutes to the losses of the hours that end there."""


class Snapshot(NamedTuple):
    """Manager after a number of updates."""

    update: int
    network: Mlp


class Risk(NamedTuple):
    """Loss of one reader on masked hours minus its loss on the same clean hours (`eq:privacy_reward`)."""

    paid: FloatArray  # (decision,) of the hour that ends with it; 0 where it moved no energy (D5)
    hours: FloatArray  # (episode, hour) of every hour of the day


class Measured(NamedTuple):
    """Figures of one snapshot."""

    alignments: dict[tuple[str, str], Alignment]
    """Reader and comparison -> alignment with the probe's gradient."""
    means: dict[tuple[str, str], Interval]
    """Reader and kind of risk (`hours`: of an hour, `paid`: sum over the decisions of a day) -> risk."""


def snapshots(settings: ManagerSettings, setup: Setup, scenario: Scenario, probe: Probe) -> list[Snapshot]:
    """Train as `meterveil train` does and return the manager at the shares of the updates."""
    key = manager_key(settings, setup, scenario, probe)
    reward = ProbeReward(probe, scenario, settings.weight, settings.loss)
    households = ppo.TrainingHouseholds(EnvParams(setup.battery, setup.library), scenario, reward, settings)
    with own_randomness():
        model = ppo.build(settings, households, setup.seed)
    networks = [ppo.actor(model)]
    with TemporaryDirectory() as folder:

        def keep(_: object) -> None:
            ppo.restore(Path(folder) / CHECKPOINT, model, households, key)
            networks.append(ppo.actor(model))

        train(settings, setup, scenario, probe, Path(folder), keep)
    last = len(networks) - 1
    return [Snapshot(round(share * last), networks[round(share * last)]) for share in SHARES]


def probe_risk(rollouts: Rollouts, reward: ProbeReward) -> Risk:
    """Measure the risk of the probe as the manager's reward does."""

    def loss(episode: IntArray, minute: IntArray) -> FloatArray:
        parts = [np.arange(at, min(at + AT_ONCE, len(minute))) for at in range(0, len(minute), AT_ONCE)]
        return np.concatenate([some(episode[part], minute[part]) for part in parts])

    def some(episode: IntArray, minute: IntArray) -> FloatArray:
        past_w = rollouts.hour_before(episode, minute)
        return reward.privacy(rollouts.day[episode], minute, past_w, np.ones(len(minute), dtype=np.bool_))

    return _risk(rollouts, loss)


def attacker_risk(rollouts: Rollouts, reward: ProbeReward, attacker: Attacker, truth: Truth) -> Risk:
    """Measure the risk of an attacker on the same hours, in standard deviations of the load."""
    days, std_w = rollouts.days, reward.probe.scaler.std
    padded_w = np.pad(rollouts.power_w, ((0, 0), (days.lead, 0)))
    masked = attacker.predict(_meter(days.rows(rollouts.day), padded_w)).watts
    clean = attacker.predict(_meter(days, np.zeros_like(days.load_w))).watts
    first = days.lead - WINDOW

    def loss(episode: IntArray, minute: IntArray) -> FloatArray:
        day, columns = rollouts.day[episode], first + minute[:, None] + np.arange(WINDOW)
        lost = np.zeros(len(episode))
        for target, true_w in truth.items():
            watts = masked[target][episode[:, None], columns], clean[target][day[:, None], columns]
            errors = (np.nan_to_num((part - true_w[day[:, None], columns]) / std_w) for part in watts)
            defended, unprotected = (LOSSES[reward.loss](error.astype(np.float32), std_w) for error in errors)
            lost += (defended - unprotected) / len(truth)
        return np.where(reward.complete[day, minute], lost, 0.0)

    return _risk(rollouts, loss)


def _risk(rollouts: Rollouts, loss: WindowLoss) -> Risk:
    made, moved = rollouts.decisions, rollouts.moved
    paid = np.zeros(len(moved))
    paid[moved] = loss(made.episode[moved], made.ends[moved])
    episodes_, minutes = rollouts.power_w.shape
    ends = np.arange(WINDOW, minutes + 1, WINDOW)
    episode, end = (part.ravel() for part in np.meshgrid(np.arange(episodes_), ends, indexing="ij"))
    return Risk(paid, loss(episode, end).reshape(episodes_, len(ends)))


def _meter(days: Scenario, power_w: FloatArray) -> Meter:
    return Meter(days.load_w + power_w, days.minute_of_day, (days.day + THURSDAY) % 7)


@dataclass(frozen=True)
class Panel:
    """Probe and attackers that read the same days."""

    setup: Setup
    days: Scenario
    probe: Probe
    settings: ManagerSettings
    attackers: Mapping[str, Attacker]
    truth: Truth

    def measure(self, network: Mlp, plays: int, seed: int = 0) -> Measured:
        """Compare the gradients of all readers at a snapshot."""
        reward = ProbeReward(self.probe, self.days, loss=self.settings.loss)
        manager = ManagerPolicy(network, self.setup.library.n_actions, self.settings.masked)
        played = act(manager, self.setup, self.days, plays, seed)
        attacked = {
            name: attacker_risk(played, reward, attacker, self.truth) for name, attacker in self.attackers.items()
        }
        family = Risk(*(np.mean(parts, axis=0) for parts in zip(*attacked.values(), strict=True)))
        risks = {PROBE: probe_risk(played, reward), **attacked, FAMILY: family}
        return Measured(_compare(self._gradients(played, network, risks)), _means(played, risks))

    def _gradients(
        self, played: Rollouts, network: Mlp, risks: Mapping[str, Risk]
    ) -> dict[tuple[str, str], FloatArray]:
        """Return (play, parameter) gradients by reader and kind of risk."""
        to_go = {}
        for name, risk in risks.items():
            reach = 0 if name == PROBE else REACH
            to_go[name, "paid"] = paid_to_go(played, risk.paid, self.settings.gamma, reach)
            to_go[name, "hours"] = hours_to_go(played, risk.hours, reach)
        weights = advantage(played, np.stack(list(to_go.values()), axis=1))
        factors = scores(network, played.decisions)
        return {case: gradients(played, factors, weight) for case, weight in zip(to_go, weights.T, strict=True)}


def _compare(gradient: Mapping[tuple[str, str], FloatArray]) -> dict[tuple[str, str], Alignment]:
    """Compare every reader with the probe; the probe itself only where two kinds of its risk differ."""
    return {
        (name, comparison): align(gradient[PROBE, own], gradient[name, other])
        for comparison, (own, other) in COMPARISONS.items()
        for name in dict.fromkeys(name for name, _ in gradient)
        if (name, own) != (PROBE, other)
    }


def _means(played: Rollouts, risks: Mapping[str, Risk]) -> dict[tuple[str, str], Interval]:
    means = {}
    for name, risk in risks.items():
        paid = np.bincount(played.decisions.episode, risk.paid, len(played.day))
        for kind, by_episode in (("paid", paid), ("hours", risk.hours.mean(axis=1))):
            means[name, kind] = mean_of(np.bincount(played.play, by_episode) / played.days.batch)
    return means


def figures_of(dataset: str, update: int, measured: Measured, days: int) -> Iterator[dict[str, Any]]:
    """List all figures of a snapshot with their intervals."""
    cases = {
        (reader, f"{comparison}_{name}"): interval
        for (reader, comparison), alignment in measured.alignments.items()
        for name, interval in alignment._asdict().items()
    }
    cases |= {(reader, f"{kind}_mean"): interval for (reader, kind), interval in measured.means.items()}
    for (reader, metric), interval in cases.items():
        known = {name: part if np.isfinite(part) else None for name, part in interval._asdict().items()}
        if metric.endswith("inner_product"):
            known = {"value": interval.value}
        yield {
            "dataset": dataset,
            "row": f"{reader}, update {update}",
            "attacker": reader,
            "update": update,
            "metric": metric,
            **known,
            "seeds": 1,
            "n_days": days,
            "note": "" if np.isfinite(interval.value) else UNBOUNDED,
        }


def measure_house(name: str, data: Path, setup: Setup, plays: int, results: Path) -> None:
    """Train on one house, measure every snapshot and record the figures."""
    chosen, settings = protocol(name), MANAGER_PRESETS["fast"]
    household = load(data / chosen.dataset, chosen.house)
    with own_randomness():
        probe = train_probe(settings.probe, household, chosen.training, setup.seed)
    managers = snapshots(settings, setup, episodes(household, chosen.training, setup.tariff), probe)
    _, days = chosen.split(household)
    targets = chosen.present_targets(household, chosen.test[0])
    learned = tuple(sorted(targets))
    taught = only_days(household.select(learned), chosen.training)
    attackers = fit(PAPER_SIX, [taught], (*learned, AGGREGATE), setup.seed, workers=1)
    truth = {target: _channel(household, target, days, setup) for target in targets}
    scenario = episodes(household, days, setup.tariff)
    panel = Panel(setup, scenario, probe, settings, attackers, truth)
    with own_randomness():
        measured = {snapshot.update: panel.measure(snapshot.network, plays) for snapshot in managers}
    figures = [row for update, part in measured.items() for row in figures_of(name, update, part, len(days))]
    about = {"house": chosen.house, "library": setup.library.digest()[:12], "preset": "fast", "plays": plays}
    study.record(results, "alignment", f"alignment_{name}", figures, {**about, "days": [str(day) for day in days]})


def _channel(household: Household, target: str, days: Days, setup: Setup) -> FloatArray:
    own = replace(household, aggregate_w=household.appliances_w[target])
    return episodes(own, days, setup.tariff).load_w


def draw(table: pd.DataFrame, metric: str, headings: Mapping[str, str], title: str) -> go.Figure:
    """Draw a row of panels for each kind of figure and a column for each house.

    A mark is filled where its interval excludes the reference line: 0 for cosines, the first snapshot for
    risks, which are drawn as shares of it.
    """
    relative = metric == "mean"
    houses = sorted(table["dataset"].unique())
    readers = sorted(table["attacker"].unique(), key=lambda name: (name not in (FAMILY, PROBE), name))
    colours = {name: look.CYCLE[place % len(look.CYCLE)] for place, name in enumerate(readers)}
    colours |= {FAMILY: look.INK, PROBE: look.LOAD}
    titles = [f"<b>{house}</b>: {heading}" for heading in headings.values() for house in houses]
    spacing = {"vertical_spacing": 0.3 / len(headings) ** 1.1, "horizontal_spacing": 0.05}
    panels = make_subplots(len(headings), len(houses), subplot_titles=titles, shared_yaxes=True, **spacing)
    for place, (kind, house) in enumerate((kind, house) for kind in headings for house in houses):
        at = {"row": place // len(houses) + 1, "col": place % len(houses) + 1}
        part = table[(table["metric"] == f"{kind}_{metric}") & (table["dataset"] == house)]
        for number, reader in enumerate(readers):
            points = part[part["attacker"] == reader].sort_values("update")
            if len(points):
                aside = (number - (len(readers) - 1) / 2) * 0.09
                line = _line(points, colours[reader], aside, relative=relative)
                panels.add_trace(line.update(legendrank=number), **at)
        panels.update_xaxes(tickvals=sorted(part["update"].unique()), **at)
        panels.add_hline(y=float(relative), line_color=look.INK, line_width=1, **at)
    for reader in readers:
        next(panels.select_traces({"legendgroup": reader})).showlegend = True
    panels.update_xaxes(title="updates of the manager", row=len(headings))
    panels.update_yaxes(**({"tickformat": ".0%"} if relative else {"range": [-1.05, 1.05]}))
    panels.update_yaxes(title="share of the first snapshot" if relative else "cosine", col=1)
    height = 300 * len(headings)
    key = '  <span style="font-size:12px">filled: the 95 % interval excludes the line</span>'
    figure = look.figure_of(panels, title + key, height + 170).update_annotations(font_size=12)
    margin = {"t": 115, "b": 55, "l": 85}
    return figure.update_layout(margin=margin, legend_y=1 + 25 / height, hovermode="closest")


def _line(points: pd.DataFrame, colour: str, aside: float, *, relative: bool) -> go.Scatter:
    """Draw one reader, moved aside by a share of the step between snapshots; only risks get lines."""
    reader, level = points["attacker"].iloc[0], points["value"].iloc[0] if relative else 0.0
    unit = level if relative else 1.0
    update, is_thick = points["update"], reader in (FAMILY, PROBE)
    step = (update.iloc[-1] - update.iloc[0]) / max(len(points) - 1, 1) or 1.0
    clear = (points["low"] > level) | (points["high"] < level)
    errors = {
        "array": (points["high"] - points["value"]) / unit,
        "arrayminus": (points["value"] - points["low"]) / unit,
    }
    return go.Scatter(
        x=update + aside * step,
        y=points["value"] / unit,
        error_y={**errors, "thickness": 1, "width": 3, "color": colour},
        name=look.readable(reader),
        legendgroup=reader,
        showlegend=False,
        mode="lines+markers" if relative else "markers",
        line={"color": colour, "width": 3 if is_thick else 1},
        marker={
            "size": 10 if is_thick else 7,
            "color": [colour if is_clear else "white" for is_clear in clear],
            "line": {"color": colour, "width": 1.5},
        },
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the given houses and draw all recorded ones."""
    parser = study.options(__doc__ or "")
    parser.add_argument("houses", nargs="*", default=["redd", "ukdale"], help="protocols; default: both")
    parser.add_argument("--plays", type=int, default=64, help="number of simulations of the days")
    options = parser.parse_args(arguments)
    if not options.picture:
        setup = Setup(read_library(options.library))
        for name in options.houses:
            measure_house(name, data_folder(options.data), setup, options.plays, options.results)
    table = study.read(options.results, "alignment")
    cosines = {
        "risk": "loss over the day, of probe and attacker (A1)",
        "reward": "loss as the manager is rewarded, of probe and attacker",
        "training": "the manager's reward and the attacker's loss over the day",
    }
    risks = {"paid": "sum of the rewarded losses of a day", "hours": "mean loss of an hour over the day"}
    save(
        draw(table, "cosine", cosines, "Alignment of attackers' gradients with the probe's"),
        options.pictures / "alignment-fast.png",
        width=1100,
    )
    save(
        draw(table, "mean", risks, "Risk of probe and attackers during training"),
        options.pictures / "alignment-fast-risks.png",
        width=1100,
    )


if __name__ == "__main__":
    main()
