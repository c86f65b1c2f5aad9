"""DDQL-MI (Shateri et al., "Privacy-cost management in smart meters with mutual information-based RL", 2021).

An H-network guesses every minute's load y_t from all readings up to that minute and all loads before it. What
it misses is what the meter hides: the mutual information of loads and readings is the sum over minutes of
H(y_t | loads before) - H(y_t | loads before, readings so far); the battery moves the second term only.
The reward is that term's sample, -log p(y_t); the network learns anew from every epoch's days.

Its recurrent state is carried along: a day costs as many steps as it has minutes, where reading the growing
day again in every minute costs their square.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from meterveil.core.arrays import FloatArray
from meterveil.core.scenario import Scenario
from meterveil.defenders.ddql.checkpoint import restore_trained, trained_arrays
from meterveil.defenders.ddql.settings import Settings
from meterveil.defenders.runs import Arrays

CLASS_W, CLASSES = 50.0, 101
"""Loads are told apart in steps of 50 W up to 5 kW, as published."""

MOST_NATS = 7.0
"""A guess that is off by more than this pays no more: one surprising minute must not outweigh an hour."""

_CHUNK_MINUTES = 60
"""Gradients reach back this far; the state itself reaches back to midnight."""

State = tuple[Tensor, Tensor]


class HNetwork(nn.Module):
    """Guess the class of a load, reading forwards only: a state that is carried cannot know the future."""

    def __init__(self, hidden: int, layers: int, scale_w: float, embedding: int = 16) -> None:
        super().__init__()
        self.scale_w = scale_w
        self.before = nn.Embedding(CLASSES, embedding)
        self.reading = nn.Embedding(CLASSES, embedding)
        self.lstm = nn.LSTM(2 * embedding + 2, hidden, layers)
        self.answer = nn.Linear(hidden, CLASSES)

    def forward(self, before_w: Tensor, meter_w: Tensor, state: State | None) -> tuple[Tensor, State]:
        """Return log p of every class of the load, (minute, batch, class), and the state behind them."""
        levels = torch.stack([before_w, meter_w], dim=-1) / self.scale_w
        parts = [self.before(classes(before_w)), self.reading(classes(meter_w)), levels]
        hidden, state = self.lstm(torch.cat(parts, dim=-1), state)
        return torch.log_softmax(self.answer(hidden), dim=-1), state


def classes(watts: Tensor) -> Tensor:
    """Tell the class of each load."""
    return torch.clamp(torch.round(watts / CLASS_W), 0, CLASSES - 1).long()


class MiSignal:
    """Pay for loads that the H-network cannot guess."""

    def __init__(self, settings: Settings, scale_w: float) -> None:
        self.settings = settings
        self.network = HNetwork(settings.h_hidden, settings.h_layers, scale_w)
        self.optimiser = torch.optim.RMSprop(self.network.parameters(), lr=settings.h_learning_rate)
        self.begin(0)

    @classmethod
    def of(cls, settings: Settings, scenario: Scenario) -> MiSignal:
        """Scale by the deviation of the loads that are learned from."""
        return cls(settings, max(float(np.nanstd(scenario.load_w[:, scenario.lead :])), 1.0))

    def begin(self, batch: int) -> None:
        """Know nothing of the day yet."""
        self.state: State | None = None
        self.last_w = np.zeros(batch)

    def score(self, load_w: FloatArray, meter_w: FloatArray) -> FloatArray:
        """Return what the network misses of each minute, in nats; arrays are (minute, batch).

        Blocks of minutes follow each other: the state at the end of one is that at the beginning of the next.
        """
        with torch.no_grad():
            missed, self.state, self.last_w = self._missed(load_w, meter_w, self.state, self.last_w)
        return np.minimum(missed.numpy().astype(np.float64), MOST_NATS)

    def learn(self, load_w: FloatArray, meter_w: FloatArray) -> float:
        """Read whole days, (minute, batch), and return the mean loss of the last reading, in nats."""
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
        """Return network and optimiser."""
        return trained_arrays(self.network, self.optimiser)

    def restore(self, arrays: Arrays) -> None:
        """Take network and optimiser back."""
        restore_trained(self.network, self.optimiser, arrays)

    def _missed(
        self, load_w: FloatArray, meter_w: FloatArray, state: State | None, last_w: FloatArray
    ) -> tuple[Tensor, State, FloatArray]:
        """Return -log p of the loads, (minute, batch), the state behind them, and the last load."""
        known_w, reading_w = np.nan_to_num(load_w), np.nan_to_num(meter_w)
        before_w = np.concatenate([last_w[None], known_w[:-1]])
        loads, before, reading = (
            torch.from_numpy(part.astype(np.float32)) for part in (known_w, before_w, reading_w)
        )
        odds, state = self.network(before, reading, state)
        missed = -odds.gather(-1, classes(loads)[..., None])[..., 0]
        return missed, state, known_w[-1]
