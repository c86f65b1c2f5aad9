"""DAE: J. Kelly and W. Knottenbelt, "Neural NILM: deep neural networks applied to energy disaggregation".

BuildSys 2015. A denoising autoencoder: a convolution of eight filters, three dense layers with a bottleneck
of 128 units, and a transposed convolution. The other loads of the house are the noise that it removes.

Original: a network for each appliance, with windows of 13 to 154 minutes at 6 s; half of the training on
synthetic aggregates, as here; Nesterov momentum over 300,000 steps. Changes for one-minute data: 128 minutes
for all appliances, and Adam; the first two layers are shared, the others belong to one appliance each.
Windows are not centred on their own mean, since the level helps to detect lighting on validation days. A
second output estimates whether the appliance is on.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from meterveil.attackers.neural import Neural, Recipe, power_and_state_loss

VERSION = 1  # raise it when a change alters the figures of this attacker

WINDOW = 128
_FILTERS, _WIDTH, _BOTTLENECK = 8, 4, 128


class Network(nn.Module):
    """Network from (batch, 1, window) readings to (batch, 2, target, window)."""

    def __init__(self, targets: int, window: int = WINDOW) -> None:
        super().__init__()
        minutes = window - _WIDTH + 1
        inner = minutes * _FILTERS
        self.encode = nn.Sequential(
            nn.Conv1d(1, _FILTERS, _WIDTH),
            nn.Flatten(),
            nn.Linear(inner, inner),
            nn.ReLU(),
            nn.Linear(inner, _BOTTLENECK * targets),
            nn.ReLU(),
        )
        self.decode = nn.ModuleList(
            nn.Sequential(
                nn.Linear(_BOTTLENECK, inner),
                nn.ReLU(),
                nn.Unflatten(1, (_FILTERS, minutes)),
                nn.ConvTranspose1d(_FILTERS, 2, _WIDTH),
            )
            for _ in range(targets)
        )

    def forward(self, seen: Tensor) -> Tensor:
        codes = self.encode(seen).split(_BOTTLENECK, dim=1)
        return torch.stack([decode(code) for decode, code in zip(self.decode, codes, strict=True)], dim=2)


def dae() -> Neural:
    """Build the attacker with its documented settings."""
    recipe = Recipe(Network, power_and_state_loss, WINDOW, WINDOW, windows=2880, overlap=16)
    return Neural(replace(recipe, epochs=150, patience=40))
