"""Network of the informed attacker: a U-Net over whole days, its input channels and its loss."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  the usual name

from meterveil.core.arrays import FloatArray

_POOLS = (3, 4, 4)
_SPANS = (3, 10, 30)
"""Minutes of the differences that follow a slowly moving level."""
_AFTER = (120, 5)
"""Minutes and number of the spans after the day whose middle reading is shown: a level there depends on the day."""
_WINDOWS = (5, 15, 60, 180)
"""Half widths, in minutes, of the local means and deviations."""


class Examples(NamedTuple):
    """Inputs of a network and their labels; labels are empty where only inputs are known."""

    inputs: Tensor  # (batch, channel, minute)
    odds: Tensor  # (batch, target, minute) log-odds of the prior
    on: Tensor
    power: Tensor  # as a multiple of the usual power
    known: Tensor

    def rows(self, index: Tensor) -> Examples:
        """Pick some of the examples."""
        return Examples(*(part[index] for part in self))


class _Block(nn.Module):
    """Convolution, normalisation and ReLU, added to the input where the widths agree."""

    def __init__(self, into: int, out: int, dilation: int = 1) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(into, out, 5, padding=2 * dilation, dilation=dilation)
        self.norm = nn.GroupNorm(4, out)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.norm(self.convolution(x)))
        return x + y if x.shape == y.shape else y


class UNet(nn.Module):
    """U-Net along the day: four resolutions from a minute to 48, with heads for the state and for the power.

    The power is an expectation: a base power, plus the probability of use times what use adds to it. A power that is
    learned apart from the state stays near zero for rare appliances.
    """

    def __init__(self, channels: int, targets: int, width: int) -> None:
        super().__init__()
        self.channels = channels
        widths = (width, 2 * width, 3 * width, 3 * width)
        deeper = list(pairwise(widths))
        self.first = nn.Sequential(_Block(channels, width), _Block(width, width))
        self.down = nn.ModuleList(nn.Sequential(_Block(a, b), _Block(b, b, 2)) for a, b in deeper)
        self.deepest = _Block(widths[-1], widths[-1], 4)
        self.narrow = nn.ModuleList(nn.Conv1d(b, a, 1) for a, b in reversed(deeper))
        self.up = nn.ModuleList(_Block(a, a) for a, _ in reversed(deeper))
        self.last = _Block(width, width)
        self.state = nn.Conv1d(width, targets, 1)
        self.power = nn.Conv1d(width, targets, 1)
        self.power_in_use = nn.Conv1d(width, targets, 1)
        for part in (p for head in (self.state, self.power, self.power_in_use) for p in head.parameters()):
            nn.init.zeros_(part)
        nn.init.ones_(cast(Tensor, self.power_in_use.bias))

    def forward(self, inputs: Tensor, odds: Tensor) -> tuple[Tensor, Tensor]:
        """Return log-odds of each target being on, and its power as a multiple of the usual one."""
        length = inputs.shape[-1]
        padded = F.pad(inputs, (0, -length % math.prod(_POOLS)), mode="replicate")
        levels = [self.first(padded)]
        for pool, down in zip(_POOLS, self.down, strict=True):
            levels.append(down(F.max_pool1d(levels[-1], pool)))
        x = self.deepest(levels.pop())
        for narrow, up in zip(self.narrow, self.up, strict=True):
            beside = levels.pop()
            x = up(F.interpolate(narrow(x), size=beside.shape[-1]) + beside)
        x = self.last(x)[..., :length]
        state = self.state(x) + odds
        return state, self.power(x) + torch.sigmoid(state) * self.power_in_use(x)


def loss_of(network: nn.Module, examples: Examples) -> Tensor:
    """Add the cross-entropy of the state, with more weight on rare appliances, and the error of the power."""
    state, power = network(examples.inputs, examples.odds)
    entropy = F.binary_cross_entropy_with_logits(state, examples.on, reduction="none") * examples.known
    share = examples.on.mean(dim=(0, 2)).clamp(0.005, 0.2)
    error = F.huber_loss(power, examples.power, reduction="none", delta=3.0) * examples.known
    return (0.1 * entropy.mean(dim=(0, 2)) / share).mean() + error.mean()


def read(network: nn.Module, examples: Examples) -> tuple[Tensor, Tensor]:
    """Return log-odds and power for all examples, a few at a time."""
    batches = zip(torch.split(examples.inputs, 32), torch.split(examples.odds, 32), strict=True)
    with torch.no_grad():
        parts = [network(*batch) for batch in batches]
    states, powers = zip(*parts, strict=True)
    return torch.cat(states), torch.cat(powers)


def reading_channels(shown_w: FloatArray) -> list[FloatArray]:
    """Return the reading, its differences over several spans, and local means and deviations."""
    next_w, step_w = _differences(shown_w, 1)
    channels = [shown_w / 1000.0, _compressed(shown_w), step_w / 1000.0, _compressed(step_w)]
    channels += [np.clip(step_w, -20.0, 20.0) / 10.0, _compressed(next_w)]
    for minutes in _SPANS:
        channels += [np.clip(part, -60.0, 60.0) / 30.0 for part in _differences(shown_w, minutes)]
    for minutes in _WINDOWS:
        mean_w, deviation_w = _local(shown_w, minutes)
        channels += [(shown_w - mean_w) / 1000.0, _compressed(deviation_w)]
    return channels


def following_channels(shown_w: FloatArray, after_w: FloatArray) -> list[FloatArray]:
    """Return the middle reading of each of the hours after the day, constant along the day, and where it is known."""
    minutes, spans = _AFTER
    following_w = np.full((len(shown_w), spans * minutes), np.nan)
    known = min(after_w.shape[1], following_w.shape[1])
    following_w[:, :known] = after_w[:, :known]
    parts_w = following_w.reshape(-1, spans, minutes)
    middle_w = np.sort(parts_w, axis=2)[:, :, minutes // 2]  # NaN comes last: unknown where half of the minutes are
    channels = [np.nan_to_num(middle_w) / 1000.0, ~np.isnan(middle_w)]
    return [np.repeat(part[:, [n]], shown_w.shape[1], axis=1) for part in channels for n in range(spans)]


def inverted_channels(load_w: FloatArray) -> list[FloatArray]:
    """Return an estimate of the load, its change, and means over a few minutes; zero where there is none."""
    change_w = load_w - np.pad(load_w, ((0, 0), (1, 0)), mode="edge")[:, :-1]
    return [_compressed(load_w), change_w / 1000.0, *(_local(load_w, minutes)[0] / 1000.0 for minutes in (2, 10))]


def _differences(values: FloatArray, minutes: int) -> tuple[FloatArray, FloatArray]:
    """Return the change in the next minutes and in the last ones."""
    wide = np.pad(values, ((0, 0), (minutes, minutes)), mode="edge")
    return wide[:, 2 * minutes :] - values, values - wide[:, : -2 * minutes]


def _local(values: FloatArray, minutes: int) -> tuple[FloatArray, FloatArray]:
    """Return mean and deviation within so many minutes on either side."""
    length = values.shape[1]
    low = np.clip(np.arange(length) - minutes, 0, length)
    high = np.clip(np.arange(length) + minutes + 1, 0, length)
    sums = (np.cumsum(np.pad(power, ((0, 0), (1, 0))), axis=1) for power in (values, values**2))
    mean, square = ((total[:, high] - total[:, low]) / (high - low) for total in sums)
    return mean, np.sqrt(np.maximum(square - mean**2, 0.0))


def _compressed(watts: FloatArray) -> FloatArray:
    return np.asarray(np.sign(watts) * np.log1p(np.abs(watts)) / 7.0)
