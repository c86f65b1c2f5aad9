"""Seq2Point: C. Zhang et al., "Sequence-to-point learning with neural networks for NILM", AAAI 2018.

Five convolutions in time and a dense layer map a window to its middle minute. The window slides by one
minute, so neighbouring windows share nearly all of their convolutions: here the stack runs once along a stretch
and the dense layer becomes a convolution as wide as what the stack leaves of a window: the same function.

Original: 599 samples of 6 to 8 s (60 to 80 minutes), Adam 1e-3, MSE, batch 1000, at most 50 epochs with early
stopping. For one-minute data: 99 minutes, the usual choice at this rate; everything else as published. Beside
the power, a second output says whether the appliance is on.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from meterveil.attackers.neural import Neural
from meterveil.attackers.supervised import Recipe, power_and_state_loss

WINDOW = 99
STRETCH = 128
"""Minutes answered for at once in training: one pass of the stack for as many windows."""

_STACK = ((1, 30, 10), (30, 30, 8), (30, 40, 6), (40, 50, 5), (50, 50, 5))
"""(in, out, width) of each convolution, unpadded."""


class Network(nn.Module):
    """Map (batch, WINDOW - 1 + n) readings to (batch, 2, n)."""

    def __init__(self) -> None:
        super().__init__()
        shrunk = WINDOW - sum(width - 1 for _, _, width in _STACK)
        layers: list[nn.Module] = []
        for inner, outer, width in _STACK:
            layers += [nn.Conv1d(inner, outer, width), nn.ReLU()]
        self.stack = nn.Sequential(*layers)
        self.dense = nn.Conv1d(_STACK[-1][1], 1024, shrunk)
        self.out = nn.Conv1d(1024, 2, 1)

    def forward(self, reading: Tensor) -> Tensor:
        """Answer for the middle minute of every window of the stretch."""
        return cast(Tensor, self.out(torch.relu(self.dense(self.stack(reading[:, None])))))


def seq2point() -> Neural:
    """Build the attacker with its documented settings."""
    return Neural(
        Recipe(
            build=Network,
            loss=power_and_state_loss,
            window=WINDOW - 1 + STRETCH,
            output=STRETCH,
            stride=STRETCH // 2,
            overlap=1,
            batch=8,
            epochs=50,
            patience=10,
        )
    )
