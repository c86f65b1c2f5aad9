"""Privacy rewards of the two DDQL defences, minute by minute.

DDQL-flat (Shateri et al., "Privacy-cost management in smart meters using deep RL", ISGT Europe 2020) rewards
a meter near the mean load of the training days. The distance is in kW and not squared.

DDQL-MI (Shateri et al., "Privacy-cost management in smart meters with mutual information-based RL", 2021)
rewards a low mutual information of loads and readings: the sum over minutes of H(y_t | loads before) -
H(y_t | loads before, readings so far), of which the battery changes the second term only. An H-network
predicts every load y_t from all readings up to that minute and all loads before it. The reward is
-log p(y_t); the network learns from the days of every epoch. Its recurrent state is carried along, so that
a day costs as many steps as it has minutes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from meterveil.core.arrays import FloatArray
from meterveil.core.scenario import Scenario
from meterveil.defenders.bundle import Arrays
from meterveil.defenders.run_folder import network_arrays, restore_network
from meterveil.defenders.training_settings import DdqlSettings

CLASS_W, CLASSES = 50.0, 101
"""Width and number of the load classes: steps of 50 W up to 5 kW, as published."""

MOST_NATS = 7.0
"""Largest reward of a minute, so that one surprising minute does not outweigh an hour."""

_CHUNK_MINUTES = 60
"""Minutes that gradients reach back; the state itself reaches back to midnight."""

State = tuple[Tensor, Tensor]


class PrivacyReward:
    """Reward for privacy, (minute, batch); by default without state and learning."""

    def begin(self, batch: int) -> None:
        """Begin new days."""

    def score(self, load_w: FloatArray, meter_w: FloatArray) -> FloatArray:
        """Return the rewards of the next minutes of the days; values with an unknown load are ignored."""
        raise NotImplementedError

    def learn(self, load_w: FloatArray, meter_w: FloatArray) -> float:
        """Learn from whole days and return the loss."""
        return 0.0

    def arrays(self) -> Arrays:
        """Return everything that changes from epoch to epoch."""
        return {}

    def restore(self, arrays: Arrays) -> None:
        """Restore what `arrays` returned."""


@dataclass(frozen=True)
class FlatReward(PrivacyReward):
    """Reward for a meter near a constant level."""

    level_w: float

    @classmethod
    def of(cls, scenario: Scenario) -> FlatReward:
        """Build the reward, with the mean of the training days as its level."""
        return cls(float(np.nanmean(scenario.load_w[:, scenario.lead :])))

    def score(self, load_w: FloatArray, meter_w: FloatArray) -> FloatArray:
        """Return minus the distance from the level in kW."""
        return -np.abs(meter_w - self.level_w) / 1000.0


class HNetwork(nn.Module):
    """Forward LSTM that predicts the class of a load."""

    def __init__(self, hidden: int, layers: int, scale_w: float, embedding: int = 16) -> None:
        super().__init__()
        self.scale_w = scale_w
        self.before = nn.Embedding(CLASSES, embedding)
        self.reading = nn.Embedding(CLASSES, embedding)
        self.lstm = nn.LSTM(2 * embedding + 2, hidden, layers)
        self.answer = nn.Linear(hidden, CLASSES)

    def forward(self, before_w: Tensor, meter_w: Tensor, state: State | None) -> tuple[Tensor, State]:
        """Return log p of every class of the load, (minute, batch, class), and the last state."""
        levels = torch.stack([before_w, meter_w], dim=-1) / self.scale_w
        parts = [self.before(classes(before_w)), self.reading(classes(meter_w)), levels]
        hidden, state = self.lstm(torch.cat(parts, dim=-1), state)
        return torch.log_softmax(self.answer(hidden), dim=-1), state


def classes(watts: Tensor) -> Tensor:
    """Return the class of each load."""
    return torch.clamp(torch.round(watts / CLASS_W), 0, CLASSES - 1).long()


class MiReward(PrivacyReward):
    """Reward for loads that the H-network cannot predict."""

    def __init__(self, settings: DdqlSettings, scale_w: float) -> None:
        self.settings = settings
        self.network = HNetwork(settings.h_hidden, settings.h_layers, scale_w)
        self.optimiser = torch.optim.RMSprop(self.network.parameters(), lr=settings.h_learning_rate)
        self.begin(0)

    @classmethod
    def of(cls, settings: DdqlSettings, scenario: Scenario) -> MiReward:
        """Build the reward, scaled by the deviation of the training loads."""
        return cls(settings, max(float(np.nanstd(scenario.load_w[:, scenario.lead :])), 1.0))

    def begin(self, batch: int) -> None:
        self.state: State | None = None
        self.last_w = np.zeros(batch)

    def score(self, load_w: FloatArray, meter_w: FloatArray) -> FloatArray:
        """Return the surprise of each minute in nats, (minute, batch); blocks of a day follow each other."""
        with torch.no_grad():
            missed, self.state, self.last_w = self._missed(load_w, meter_w, self.state, self.last_w)
        return np.minimum(missed.numpy().astype(np.float64), MOST_NATS)

    def learn(self, load_w: FloatArray, meter_w: FloatArray) -> float:
        """Train the network on whole days, (minute, batch); return the mean loss of the last pass in nats."""
        known = ~np.isnan(load_w)
        for _ in range(self.settings.h_passes):
            state, last_w, total = None, np.zeros(load_w.shape[1]), 0.0
            for begin in range(0, len(load_w), _CHUNK_MINUTES):
                chunk = slice(begin, begin + _CHUNK_MINUTES)
                missed, state, last_w = self._missed(load_w[chunk], meter_w[chunk], state, last_w)
                counts = torch.from_numpy(known[chunk])
                loss = (missed * counts).sum() / max(int(counts.sum()), 1)
                self.optimiser.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
                self.optimiser.step()
                state = (state[0].detach(), state[1].detach())
                total += float(loss.detach()) * int(counts.sum())
        return total / max(int(known.sum()), 1)

    def arrays(self) -> Arrays:
        return network_arrays(self.network, self.optimiser)

    def restore(self, arrays: Arrays) -> None:
        restore_network(self.network, self.optimiser, arrays)

    def _missed(
        self, load_w: FloatArray, meter_w: FloatArray, state: State | None, last_w: FloatArray
    ) -> tuple[Tensor, State, FloatArray]:
        """Return -log p of the loads, (minute, batch), the last state and the last load."""
        known_w, reading_w = np.nan_to_num(load_w), np.nan_to_num(meter_w)
        before_w = np.concatenate([last_w[None], known_w[:-1]])
        loads, before, reading = (torch.from_numpy(part.astype(np.float32)) for part in (known_w, before_w, reading_w))
        odds, state = self.network(before, reading, state)
        missed = -odds.gather(-1, classes(loads)[..., None])[..., 0]
        return missed, state, known_w[-1]


REWARDS: dict[str, Callable[[DdqlSettings, Scenario], PrivacyReward]] = {
    "ddql_flat": lambda settings, scenario: FlatReward.of(scenario),
    "ddql_mi": MiReward.of,
}
