"""Double Q-learning over battery powers: replay buffer, update and checkpoint of both DDQL defences.

van Hasselt et al., "Deep reinforcement learning with double Q-learning" (AAAI 2016): the online network
chooses the next action, the target network values it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from meterveil.core.arrays import BoolArray, FloatArray, IntArray
from meterveil.core.env import OBSERVATION
from meterveil.defenders.bundle import Arrays
from meterveil.defenders.run_folder import network_arrays, read_checkpoint, restore_network, save_checkpoint
from meterveil.defenders.trained_policies import LAYERS, Mlp, QPolicy
from meterveil.defenders.training_settings import DdqlSettings

Float32Array = npt.NDArray[np.float32]


def double_q_target(reward: Tensor, over: Tensor, gamma: float, online_next: Tensor, target_next: Tensor) -> Tensor:
    """Return reward plus discounted target value of the action that the online network would take next.

    `reward` and `over` are (batch,), the values of the next minute's actions (batch, action).
    """
    chosen = online_next.argmax(dim=1, keepdim=True)
    following = target_next.gather(1, chosen)[:, 0]
    return reward + gamma * torch.where(over, torch.zeros_like(following), following)


class Minutes(NamedTuple):
    """Experience, one entry per minute."""

    observation: Float32Array  # (minute, 6)
    action: IntArray
    reward: Float32Array
    following: Float32Array  # (minute, 6) a minute later
    over: BoolArray  # the day ended


class Replay:
    """Buffer of the latest minutes."""

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
        """Overwrite the oldest minutes."""
        count = len(minutes.action)
        place = (self.added + np.arange(count))[-self.size :] % self.size
        parts: Iterator[tuple[npt.NDArray[Any], npt.NDArray[Any]]] = zip(self.kept, minutes, strict=True)
        for kept, new in parts:
            kept[place] = new[-self.size :]
        self.added += count

    def sample(self, rng: np.random.Generator, count: int) -> Minutes:
        """Draw minutes with replacement."""
        drawn = rng.integers(min(self.added, self.size), size=count)
        parts: Iterator[Any] = (part[drawn] for part in self.kept)
        return Minutes(*parts)


class Scale(NamedTuple):
    """Mean and deviation that observations are standardised with."""

    mean: FloatArray  # (6,)
    deviation: FloatArray  # (6,)


OPTIMISERS: dict[str, Callable[[Iterable[nn.Parameter], float], torch.optim.Optimizer]] = {
    "rmsprop": lambda parameters, rate: torch.optim.RMSprop(parameters, lr=rate),
    "adam": lambda parameters, rate: torch.optim.Adam(parameters, lr=rate, fused=True),
}


class Learner:
    """Online network, target network and optimiser."""

    def __init__(self, settings: DdqlSettings, powers: FloatArray, scale: Scale) -> None:
        self.settings, self.powers_w, self.scale = settings, powers, scale
        self.online, self.target = (_network(settings.hidden, len(powers)) for _ in range(2))
        self.target.load_state_dict(self.online.state_dict())
        self.optimiser = OPTIMISERS[settings.optimiser](self.online.parameters(), settings.learning_rate)
        self._mean, self._deviation = (torch.from_numpy(part.astype(np.float32)) for part in scale)
        self.updates = 0

    def update(self, minutes: Minutes) -> float:
        """Take one gradient step towards the double-Q targets; return the loss."""
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
        """Return the policy, with the standardisation folded into the first layer."""
        layers = [layer for layer in self.online if isinstance(layer, nn.Linear)]
        weights = [layer.weight.detach().numpy().T.astype(np.float64) for layer in layers]
        biases = [layer.bias.detach().numpy().astype(np.float64) for layer in layers]
        biases[0] = biases[0] - (self.scale.mean / self.scale.deviation) @ weights[0]
        weights[0] = weights[0] / self.scale.deviation[:, None]
        network = Mlp(tuple(map(np.ascontiguousarray, weights)), tuple(biases), "relu")
        return QPolicy(network, self.powers_w)

    def _scaled(self, observation: Float32Array) -> Tensor:
        return (torch.from_numpy(observation) - self._mean) / self._deviation


def save(path: Path, learner: Learner, replay: Replay, signal: Arrays, key: str, curve: list[dict[str, Any]]) -> None:
    """Write everything that the next epoch depends on; `key` identifies the training.

    Random draws depend on seed and epoch only, so no generator is stored.
    """
    groups = {
        "online": network_arrays(learner.online, learner.optimiser),
        "target": network_arrays(learner.target),
        "replay": {name: part[: replay.added] for name, part in replay.kept._asdict().items()},
        "signal": signal,
    }
    document = {"key": key, "updates": learner.updates, "added": replay.added, "curve": curve}
    save_checkpoint(path, document, groups)


def restore(path: Path, learner: Learner, replay: Replay, key: str) -> tuple[Arrays, list[dict[str, Any]]]:
    """Restore learner and replay; return the arrays of the reward and the curve so far."""
    document, groups = read_checkpoint(path, key)
    restore_network(learner.online, learner.optimiser, groups["online"])
    restore_network(learner.target, None, groups["target"])
    learner.updates, replay.added = document["updates"], document["added"]
    for name, part in replay.kept._asdict().items():
        part[: replay.added] = groups["replay"][name]
    curve: list[dict[str, Any]] = document["curve"]
    return groups.get("signal", {}), curve


def _network(hidden: int, actions: int) -> nn.Sequential:
    widths = [len(OBSERVATION), *[hidden] * (LAYERS - 1), actions]
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1])
