"""Measures Condition A1 on one house: at every snapshot, for every attacker, in three ways."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from meterveil.attackers.fitting import Job
from meterveil.attackers.protocol import Attacker
from meterveil.attackers.registry import PAPER_SIX
from meterveil.attackers.threat import fixed
from meterveil.bench.alignment import gradients as gr
from meterveil.bench.alignment.estimate import Alignment, Interval, align, mean_of
from meterveil.bench.alignment.risks import Risk, Truth, attacker_risk, mean_risk, probe_risk
from meterveil.bench.alignment.rollouts import Rollouts, act
from meterveil.bench.alignment.snapshots import Snapshot
from meterveil.bench.cards import Card
from meterveil.bench.evaluation.days import trial_of
from meterveil.bench.strength import Trial
from meterveil.core.arrays import FloatArray
from meterveil.core.env import EnvParams
from meterveil.core.scenario import Scenario
from meterveil.data.household import Household
from meterveil.data.load import load
from meterveil.data.protocols import Protocol, protocol
from meterveil.data.simulation import Setup, episodes
from meterveil.data.splits import Days
from meterveil.defenders.manager.manager_policy import ManagerPolicy
from meterveil.defenders.manager.probe_reward import ProbeReward
from meterveil.defenders.manager.probes import Probe
from meterveil.defenders.training_settings import ManagerSettings

PROBE, FAMILY = "probe", "all six"
"""Names of two that read beside the attackers: the proxy itself, and the mean of the paper's six."""

COMPARISONS = {"risk": ("hours", "hours"), "reward": ("paid", "paid"), "training": ("paid", "hours")}
"""Name -> which risk of the probe meets which risk of an attacker.

`risk` is Condition A1: mean loss over the hours of the day on both sides. `reward` takes both as the manager
is paid, by the hours that end with its decisions. `training` lets what the manager climbs meet what attackers
lose over the day.
"""


@dataclass(frozen=True)
class House:
    """Hold what the measurements on one house share."""

    name: str
    protocol: Protocol
    household: Household
    trial: Trial
    setup: Setup

    @classmethod
    def of(cls, name: str, data: Path, setup: Setup) -> House:
        """Read the house of a protocol."""
        chosen = protocol(name)
        household = load(data / chosen.dataset, chosen.house)
        return cls(name, chosen, household, trial_of(chosen, household, "paper", setup.seed), setup)

    @property
    def judging(self) -> Days:
        """Days of the rollouts: of the training days those that validate."""
        return self.protocol.split(self.household).validation

    def scenario(self) -> Scenario:
        """Make a row of every day of the rollouts."""
        return episodes(self.household, self.judging, self.setup.tariff)

    def jobs(self) -> list[Job]:
        """Name the fits on the bare training days that `meterveil attack` and `evaluate` make and keep."""
        trial = self.trial
        taught = trial.taught({trial.test.key: self.household})
        return [Job(name, trial.fitted, taught, trial.seed) for name in PAPER_SIX]

    def panel(self, probe: Probe, chosen: ManagerSettings) -> Panel:
        """Gather all who read the days of the rollouts."""
        params, one = EnvParams(self.setup.battery, self.setup.library), self.jobs()[0]
        attackers = fixed(PAPER_SIX, one.households, one.targets, one.seed, workers=1)
        return Panel(params, self.scenario(), probe, chosen, attackers, self.truth())

    def truth(self) -> Truth:
        """Lay the targets out as the scenario lays the load out."""
        return {target: self._channel(target) for target in self.trial.targets}

    def _channel(self, target: str) -> FloatArray:
        own = replace(self.household, aggregate_w=self.household.appliances_w[target])
        return episodes(own, self.judging, self.setup.tariff).load_w


class Found(NamedTuple):
    """What was found at one snapshot."""

    update: int
    alignments: dict[tuple[str, str], Alignment]
    """Reader and comparison -> how the reader's gradient lies to the probe's."""
    means: dict[tuple[str, str], Interval]
    """Reader and kind of risk (`hours`: of an hour, `paid`: of all decisions of a day) -> the risk itself."""


@dataclass(frozen=True)
class Panel:
    """Everybody who reads what a manager does on a house's days."""

    params: EnvParams
    days: Scenario
    probe: Probe
    preset: ManagerSettings
    attackers: Mapping[str, Attacker]
    truth: Truth

    @property
    def readers(self) -> tuple[str, ...]:
        """Name all who lose something, in the order of their figures."""
        return (PROBE, *self.attackers, FAMILY)

    @cached_property
    def reward(self) -> ProbeReward:
        """Judge the days as the training does."""
        return ProbeReward(self.probe, self.days, loss=self.preset.loss)

    def measure(self, snapshot: Snapshot, plays: int, seed: int) -> Found:
        """Compare the gradients at a snapshot; with the same seed all of them throw the same dice."""
        manager = ManagerPolicy(snapshot.network, self.params.library.n_actions, self.preset.masked)
        played = act(manager, self.params, self.days, plays, seed)
        risks = self._risks(played)
        gradients = self._gradients(played, gr.scores(snapshot.network, played.decisions), risks)
        return Found(snapshot.update, _compared(gradients), _means(played, risks))

    def _risks(self, played: Rollouts) -> dict[str, Risk]:
        attacked = (attacker_risk(played, self.reward, one, self.truth) for one in self.attackers.values())
        risks = dict(zip(self.attackers, attacked, strict=True))
        return {PROBE: probe_risk(played, self.reward), **risks, FAMILY: mean_risk(list(risks.values()))}

    def _gradients(
        self, played: Rollouts, found: gr.Scores, risks: Mapping[str, Risk]
    ) -> dict[tuple[str, str], FloatArray]:
        """Return (play, parameter) gradients by reader and kind of risk."""
        to_go = {}
        for name, risk in risks.items():
            reach = 0 if name == PROBE else gr.REACH
            to_go[name, "paid"] = gr.paid_to_go(played, risk, self.preset.gamma, reach)
            to_go[name, "hours"] = gr.hours_to_go(played, risk, reach)
        weights = gr.advantage(played, np.stack(list(to_go.values()), axis=1))
        return {
            kind: gr.gradients(played, found, weight) for kind, weight in zip(to_go, weights.T, strict=True)
        }


def _compared(gradients: Mapping[tuple[str, str], FloatArray]) -> dict[tuple[str, str], Alignment]:
    """Compare every reader with the probe; the probe itself only where its two risks meet."""
    readers = dict.fromkeys(name for name, _ in gradients)
    return {
        (name, comparison): align(gradients[PROBE, own], gradients[name, other])
        for comparison, (own, other) in COMPARISONS.items()
        for name in readers
        if (name, own) != (PROBE, other)
    }


def _means(played: Rollouts, risks: Mapping[str, Risk]) -> dict[tuple[str, str], Interval]:
    """Average the risks themselves."""
    found, episodes = {}, len(played.day)
    for name, risk in risks.items():
        paid = np.bincount(played.decisions.episode, risk.paid, episodes)
        for kind, by_episode in (("paid", paid), ("hours", risk.hours.mean(axis=1))):
            found[name, kind] = mean_of(np.bincount(played.play, by_episode) / played.days.batch)
    return found


def cards_of(house: str, found: Found, table: str, settings: dict[str, Any], n_days: int) -> list[Card]:
    """Write down what was found: figures and their intervals."""
    cards = []
    for reader, column, value in _figures(found):
        known = np.isfinite(value)
        card = Card(
            table=table,
            row=row_of(reader, found.update),
            column=column,
            dataset=house,
            measured=value if known else None,
            n_days=n_days,
            threat_model="fixed",
            settings=settings,
            note="" if known else "unbounded: noise leaves the probe's gradient no norm",
        )
        cards.append(card)
    return cards


def row_of(reader: str, update: int) -> str:
    """Name the row of a reader's cards."""
    return f"{reader}, update {update}"


def _figures(found: Found) -> Iterator[tuple[str, str, float]]:
    """Name every figure: reader, column, value."""
    for (reader, comparison), one in found.alignments.items():
        yield reader, f"{comparison}_inner_product", one.inner_product.value
        for name in ("cosine", "gamma"):
            yield from _bounded(reader, f"{comparison}_{name}", getattr(one, name))
    for (reader, kind), mean in found.means.items():
        yield from _bounded(reader, f"{kind}_mean", mean)


def _bounded(reader: str, column: str, one: Interval) -> Iterator[tuple[str, str, float]]:
    yield reader, column, one.value
    yield reader, f"{column}_low", one.low
    yield reader, f"{column}_high", one.high
