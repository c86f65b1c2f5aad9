"""Double Q-learning over battery powers: the replay and the update that both DDQL defences share.

van Hasselt et al., "Deep reinforcement learning with double Q-learning" (AAAI 2016): the online network
chooses the next action, the target network values it, so that one network's noise is not taken for promise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from meterveil.core.arrays import BoolArray, FloatArray, IntArray
from meterveil.core.env import OBSERVATION
from meterveil.defenders.ddql.policy import LAYERS, QPolicy
from meterveil.defenders.ddql.settings import Settings

Float32Array = npt.NDArray[np.float32]


def double_q_target(
    reward: Tensor, over: Tensor, gamma: float, online_next: Tensor, target_next: Tensor
) -> Tensor:
    """Value what was done: its reward, and the target's value of what the online network would do next.

    `reward` and `over` are (batch,), the values of the next minute's actions (batch, action).
    """
    chosen = online_next.argmax(dim=1, keepdim=True)
    following = target_next.gather(1, chosen)[:, 0]
    return reward + gamma * torch.where(over, torch.zeros_like(following), following)


class Minutes(NamedTuple):
    """What happened, one entry per minute."""

    observation: Float32Array  # (minute, 6)
    action: IntArray
    reward: Float32Array
    following: Float32Array  # (minute, 6) what was seen a minute later
    over: BoolArray  # the day ended


class Replay:
    """Keep the latest minutes, and draw from them."""

    def __init__(self, size: int) -> None:
        width = len(OBSERVATION)
        self.kept = Minutes(
            np.zeros((size, width), dtype=np.float32),
            np.zeros(size, dtype=np.int64),
            np.zeros(size, dtype=np.float32),
            np.zeros((size, width), dtype=np.float32),
            np.zeros(size, dtype=np.bool_),
        )
        self.size, self.added = size, 0

    def add(self, minutes: Minutes) -> None:
        """Put minutes in place of the oldest ones."""
        count = len(minutes.action)
        place = (self.added + np.arange(count))[-self.size :] % self.size
        parts: Iterator[tuple[npt.NDArray[Any], npt.NDArray[Any]]] = zip(self.kept, minutes, strict=True)
        for kept, new in parts:
            kept[place] = new[-self.size :]
        self.added += count

    def sample(self, rng: np.random.Generator, count: int) -> Minutes:
        """Draw minutes, with replacement."""
        drawn = rng.integers(min(self.added, self.size), size=count)
        parts: Iterator[Any] = (part[drawn] for part in self.kept)
        return Minutes(*parts)


class Scale(NamedTuple):
    """Bring what is seen to mean 0 and deviation 1."""

    mean: FloatArray  # (6,)
    deviation: FloatArray  # (6,)


OPTIMISERS: dict[str, Callable[[Iterable[nn.Parameter], float], torch.optim.Optimizer]] = {
    "rmsprop": lambda parameters, rate: torch.optim.RMSprop(parameters, lr=rate),
    "adam": lambda parameters, rate: torch.optim.Adam(parameters, lr=rate, fused=True),
}


class Learner:
    """Hold the two networks and the optimiser."""

    def __init__(self, settings: Settings, powers: FloatArray, scale: Scale) -> None:
        self.settings, self.powers_w, self.scale = settings, powers, scale
        self.online, self.target = (_network(settings.hidden, len(powers)) for _ in range(2))
        self.target.load_state_dict(self.online.state_dict())
        self.optimiser = OPTIMISERS[settings.optimiser](self.online.parameters(), settings.learning_rate)
        self._mean, self._deviation = (torch.from_numpy(part.astype(np.float32)) for part in scale)
        self.updates = 0

    def update(self, minutes: Minutes) -> float:
        """Take one step towards the double-Q targets of these minutes; return the loss."""
        now, following = self._scaled(minutes.observation), self._scaled(minutes.following)
        with torch.no_grad():
            target = double_q_target(
                torch.from_numpy(minutes.reward),
                torch.from_numpy(minutes.over),
                self.settings.gamma,
                self.online(following),
                self.target(following),
            )
        value = self.online(now).gather(1, torch.from_numpy(minutes.action)[:, None])[:, 0]
        loss = nn.functional.smooth_l1_loss(value, target)
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()
        self.updates += 1
        if self.updates % self.settings.target_every == 0:
            self.target.load_state_dict(self.online.state_dict())
        return float(loss.detach())

    def slow_down(self, left: float) -> None:
        """Set the learning rate to this share of the full one."""
        for group in self.optimiser.param_groups:
            group["lr"] = self.settings.learning_rate * left

    def policy(self) -> QPolicy:
        """Take out what acts; the scaling becomes part of the first layer."""
        layers = [layer for layer in self.online if isinstance(layer, nn.Linear)]
        weights = [layer.weight.detach().numpy().T.astype(np.float64) for layer in layers]
        biases = [layer.bias.detach().numpy().astype(np.float64) for layer in layers]
        biases[0] = biases[0] - (self.scale.mean / self.scale.deviation) @ weights[0]
        weights[0] = weights[0] / self.scale.deviation[:, None]
        return QPolicy(tuple(map(np.ascontiguousarray, weights)), tuple(biases), self.powers_w)

    def _scaled(self, observation: Float32Array) -> Tensor:
        return (torch.from_numpy(observation) - self._mean) / self._deviation


def _network(hidden: int, actions: int) -> nn.Sequential:
    widths = [len(OBSERVATION), *[hidden] * (LAYERS - 1), actions]
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


@contextmanager
def own_randomness(seed: int) -> Iterator[None]:
    """Draw weights from the seed, in one thread, and leave torch as it was: sums then round the same way."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(threads)
