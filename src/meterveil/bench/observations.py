"""Three observations on how the manager learns: `python -m meterveil.bench.observations`.

Does a trained probe say more than the battery's RMS power? Does a reward per decision favour short replays?
What do the paper's learning rate and a larger one learn? Writes the result cards and pictures that
docs/training.md speaks of. The last fifth of the training days judges; no test day is touched.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from meterveil.bench.cards import Card, write
from meterveil.core.arrays import FloatArray
from meterveil.core.battery import Battery
from meterveil.core.env import WINDOW, EnvParams
from meterveil.core.rollout import rollout
from meterveil.core.scenario import Scenario
from meterveil.core.tariff import PAPER_TARIFF
from meterveil.data.files import data_folder
from meterveil.data.household import Household
from meterveil.data.load import load
from meterveil.data.protocols import Protocol, protocol
from meterveil.data.settings import library as read_library
from meterveil.data.simulation import Setup, episodes
from meterveil.defenders.manager import probes
from meterveil.defenders.manager.manager_policy import ManagerPolicy, Mlp, Played, play_decisions
from meterveil.defenders.manager.manager_training import Trained, train
from meterveil.defenders.manager.probe_reward import ProbeReward
from meterveil.defenders.manager.probe_training import train_probe
from meterveil.defenders.training_settings import ManagerSettings, manager_settings
from meterveil.endings import ending_in_one_line
from meterveil.plots.saving import save
from meterveil.plots.training import Habit, ProbeErrors, curve_figure, length_figure, probe_figure

TABLE = "training_observations"
KINDS = ("transformer", "lstm", "cnn")
DAYS_EACH = 10
"""How often a validation day is played: a policy throws dice."""
LONG_DAYS = 1200.0
"""Budget of the learning curves, four times the paper's."""

CURVES: dict[str, ManagerSettings] = {
    "paper, 2e-5": manager_settings("paper", budget_days=LONG_DAYS),
    "paper, 1e-3": manager_settings("paper", budget_days=LONG_DAYS, learning_rate=1e-3),
    "fast": manager_settings("fast", budget_days=LONG_DAYS, anneal=False, loss="mse", reward_scale=0.01),
}


@dataclass(frozen=True)
class House:
    """Hold what the observations on one house share."""

    name: str
    protocol: Protocol
    household: Household
    params: EnvParams
    learning: Scenario
    judging: Scenario
    """Validation days, each as often as it is played."""

    @classmethod
    def of(cls, name: str, data: Path, library: Path | None) -> House:
        """Read the house of a protocol and split its training days."""
        chosen = protocol(name)
        household = load(data / chosen.dataset, chosen.house, appliances=[])
        split = chosen.split(household)
        learning, judging = (
            episodes(household, days, PAPER_TARIFF) for days in (split.train, split.validation)
        )
        repeated = judging.rows(np.repeat(np.arange(judging.batch), DAYS_EACH))
        params = EnvParams(Battery(), read_library(library))
        return cls(name, chosen, household, params, learning, repeated)

    def probe(self, kind: str, kept: Path) -> probes.Probe:
        """Train a probe on the training days, or take the one that was kept."""
        folder = kept / f"{self.name}-{kind}"
        if not (folder / probes.CARD).exists():
            probes.save(train_probe(kind, self.household, self.protocol.training, 0), folder)
        return probes.load(folder)

    def card(self, row: str, column: str, measured: float, **settings: Any) -> Card:
        """Write one figure down."""
        return Card(
            table=TABLE,
            row=row,
            column=column,
            dataset=self.name,
            measured=measured,
            reported=None,
            seeds=(0,),
            n_days=self.judging.batch // DAYS_EACH,
            settings={"house": self.protocol.house, "library": self.params.library.digest()[:12], **settings},
        )


def uniform(n_actions: int) -> ManagerPolicy:
    """Build a manager that has learned nothing: every action is as likely as any other."""
    sizes = (6, 64, 64, n_actions)
    weights = tuple(np.zeros(shape, dtype=np.float32) for shape in pairwise(sizes))
    return ManagerPolicy(
        Mlp(weights, tuple(np.zeros(size, dtype=np.float32) for size in sizes[1:])), n_actions
    )


def probe_errors(house: House, probe: probes.Probe) -> ProbeErrors:
    """Let chance replay signatures, and compare the probe's error with the battery's RMS power."""
    reward = ProbeReward(probe, house.judging, loss="rmse_kw")
    manager = uniform(house.params.library.n_actions)
    played = play_decisions(manager, house.params, house.judging, reward, np.random.default_rng(0)).moved
    ends = played.begins + played.minutes
    known = reward.complete[played.row, ends]
    error_w = 1000.0 * (played.reward + reward.clean[played.row, ends])[known]
    rms_w = np.sqrt(np.mean(played.past_w**2, axis=1))[known]
    return ProbeErrors(rms_w, error_w, float(np.corrcoef(rms_w, error_w)[0, 1]))


def by_length(played: Played) -> list[tuple[int, float, float]]:
    """Return what replays of each length that occurs often earned: minutes, a decision, a minute."""
    lengths, counts = np.unique(played.minutes, return_counts=True)
    found = []
    for minutes in lengths[counts >= max(len(played.minutes) // 200, 1)]:
        paid = float(played.reward[played.minutes == minutes].mean())
        found.append((int(minutes), paid, paid / int(minutes)))
    return found


def habit(house: House, manager: ManagerPolicy, reward: ProbeReward) -> tuple[Habit, Played]:
    """Play the validation days and sum up what the manager does."""
    played = play_decisions(manager, house.params, house.judging, reward, np.random.default_rng(1))
    moved, days = played.moved, house.judging.batch
    summary = Habit(
        replays=len(moved.row) / days,
        minutes=float(moved.minutes.mean()),
        reward=float(played.reward.sum()) / days,
        hourly_error_w=hourly_error_w(house, manager),
    )
    return summary, moved


def hourly_error_w(house: House, manager: ManagerPolicy) -> float:
    """RMS battery power of the hour before each minute, mean over all minutes."""
    rngs = [np.random.default_rng([2, row]) for row in range(house.judging.batch)]
    power_w = rollout(manager, house.params.battery, house.params.library, house.judging, rngs).power_w
    squares = np.cumsum(np.pad(power_w**2, ((0, 0), (WINDOW, 0))), axis=1)
    hours: FloatArray = (squares[:, WINDOW:] - squares[:, :-WINDOW]) / WINDOW
    return float(np.mean(np.sqrt(np.maximum(hours, 0.0))))


class Found(NamedTuple):
    """What was found on one house."""

    errors: dict[str, ProbeErrors]
    lengths: list[tuple[int, float, float]]
    habits: dict[str, Habit]
    curves: dict[str, list[tuple[int, float]]]
    budget: int
    cards: list[Card]


def observe(house: House, kept: Path) -> Found:
    """Make the three observations on one house."""
    fitted = {kind: house.probe(kind, kept) for kind in KINDS}
    errors = {kind: probe_errors(house, probe) for kind, probe in fitted.items()}
    cards = [house.card(f"{kind} probe", "correlation", found.correlation) for kind, found in errors.items()]
    for kind, probe in fitted.items():
        cards += [house.card(f"{kind} probe", name, probe.quality[name]) for name in ("rmse_w", "explained")]
    formula = probes.Probe("identity", fitted[KINDS[0]].scaler)
    reward = ProbeReward(formula, house.judging)
    trained = {name: _learn(house, formula, settings) for name, settings in CURVES.items()}
    managers = {"chance": uniform(house.params.library.n_actions)}
    managers |= {name: one.policy for name, one in trained.items()}
    habits: dict[str, Habit] = {}
    lengths: list[tuple[int, float, float]] = []
    for name, manager in managers.items():
        habits[name], moved = habit(house, manager, reward)
        lengths = lengths or by_length(moved)
        cards += [house.card(name, field, value) for field, value in habits[name]._asdict().items()]
    budget = next(
        update.decisions
        for update in trained["paper, 2e-5"].curve
        if update.minutes >= manager_settings("paper").budget_minutes
    )
    curves = {name: _days(one) for name, one in trained.items()}
    for name, curve in curves.items():
        reached = [at for at in (budget, 600_000) if at <= curve[-1][0]]
        cards += [house.card(name, f"reward_at_{at}", _at(curve, at)) for at in reached]
    return Found(errors, lengths, habits, curves, budget, cards)


def _learn(house: House, probe: probes.Probe, settings: ManagerSettings) -> Trained:
    setup = Setup(house.params.library, house.params.battery)
    return train(settings, setup, house.learning, probe)


def _days(trained: Trained, smoothing: int = 6) -> list[tuple[int, float]]:
    """Return decisions and the reward of a day, mean over a few updates."""
    known = [(u.decisions, u.reward_per_day) for u in trained.curve if u.reward_per_day is not None]
    decisions, reward = np.array(known).T
    smooth = np.convolve(reward, np.full(smoothing, 1.0 / smoothing), mode="valid")
    return [(int(at), float(value)) for at, value in zip(decisions[smoothing - 1 :], smooth, strict=True)]


def _at(curve: Sequence[tuple[int, float]], decisions: int) -> float:
    return next(value for at, value in curve if at >= decisions)


def draw(found: dict[str, Found], folder: Path) -> None:
    """Draw the three pictures."""
    pictures = {
        "training-probes.png": probe_figure({name: one.errors for name, one in found.items()}),
        "training-lengths.png": length_figure(
            {name: one.lengths for name, one in found.items()},
            {name: one.habits for name, one in found.items()},
        ),
        "training-rates.png": curve_figure(
            {name: one.curves for name, one in found.items()},
            {name: one.budget for name, one in found.items()},
        ),
    }
    for name, figure in pictures.items():
        save(figure, folder / name, width=1000)


@ending_in_one_line()
def main() -> None:
    """Observe the houses that are named, and write cards and pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("houses", nargs="*", default=["redd", "ukdale"], help="protocols; default: both")
    parser.add_argument("--data", type=Path, help="folder of data sets; default: $METERVEIL_DATA")
    parser.add_argument("--library", type=Path, help="JSON file of signatures; default: the synthetic ones")
    parser.add_argument(
        "--probes", type=Path, default=Path("out/probes"), help="folder in which probes are kept"
    )
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--pictures", type=Path, default=Path("docs/img"))
    asked = parser.parse_args()
    data = data_folder(asked.data)
    houses = [House.of(name, data, asked.library) for name in asked.houses]
    found = {house.name: observe(house, asked.probes) for house in houses}
    write(asked.results, [card for one in found.values() for card in one.cards])
    draw(found, asked.pictures)


if __name__ == "__main__":
    main()
