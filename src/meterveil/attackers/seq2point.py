"""Seq2Point: C. Zhang et al., "Sequence-to-point learning with neural networks for NILM", AAAI 2018.

Five convolutions in time and a dense layer map a window to its middle minute. Neighbouring windows share
nearly all of their convolutions, so the stack runs once along a stretch and the dense layer becomes a
convolution as wide as what the stack leaves of a window. The function is the same.

Original: a network for each appliance, 599 samples of 6 to 8 s (60 to 80 minutes), Adam 1e-3, MSE, batch
1000, at most 50 epochs with early stopping. Changes for one-minute data: 99 minutes, the usual choice at this
rate, and smaller batches, since ten days have few minutes. All appliances share all layers but the last,
which also estimates whether each appliance is on.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import cast

import torch
from torch import Tensor, nn

from meterveil.attackers.examples import Batch
from meterveil.attackers.neural import Neural, Recipe, power_and_state_loss

VERSION = 1  # raise it when a change alters the figures of this attacker

WINDOW = 99
STRETCH = 128
"""Minutes estimated by one pass of the stack in training."""

EVERY = 4
"""Spacing of the minutes of a stretch that the loss uses in training."""

_STACK = ((1, 30, 10), (30, 30, 8), (30, 40, 6), (40, 50, 5), (50, 50, 5))
"""(in, out, width) of each convolution, unpadded."""


class Network(nn.Module):
    """Network from (batch, 1, WINDOW - 1 + n) readings to (batch, 2, target, n)."""

    def __init__(self, targets: int) -> None:
        super().__init__()
        shrunk = WINDOW - sum(width - 1 for _, _, width in _STACK)
        layers: list[nn.Module] = []
        for inner, outer, width in _STACK:
            layers += [nn.Conv1d(inner, outer, width), nn.ReLU()]
        self.stack = nn.Sequential(*layers)
        self.dense = nn.Conv1d(_STACK[-1][1], 1024, shrunk)
        self.out = nn.Sequential(nn.Conv1d(1024, 2 * targets, 1), nn.Unflatten(1, (2, targets)))

    def forward(self, seen: Tensor) -> Tensor:
        return self.answer(seen, every=1)

    def answer(self, seen: Tensor, every: int) -> Tensor:
        """Estimate only one window in `every`, which saves most of the work of the dense layer."""
        dense = nn.functional.conv1d(self.stack(seen), self.dense.weight, self.dense.bias, stride=every)
        return cast(Tensor, self.out(torch.relu(dense)))


def loss(network: nn.Module, batch: Batch, done: float) -> Tensor:
    """Return the loss of one window in four: neighbours are nearly equal and appear in other epochs."""
    thinned = batch._replace(power=batch.power[..., ::EVERY], on=batch.on[..., ::EVERY])
    return power_and_state_loss(partial(cast(Network, network).answer, every=EVERY), thinned, done)


def seq2point() -> Neural:
    """Build the attacker with its documented settings."""
    recipe = Recipe(Network, loss, WINDOW - 1 + STRETCH, STRETCH, windows=90, overlap=1, batch=4)
    return Neural(replace(recipe, epochs=110, patience=30))
