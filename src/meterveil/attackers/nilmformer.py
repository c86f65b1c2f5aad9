"""NILMFormer: A. Petralia et al., "NILMFormer: NILM that accounts for non-stationarity", KDD 2025.

Every window is scaled to zero mean and unit spread. The removed mean and spread enter as a token of their
own, from which the level of the target is restored at the end. Dilated convolutions (1, 2, 4, 8) embed the
load in three quarters of the 96 features, the clock takes the last quarter; three layers with eight heads
follow, in which no minute attends to itself.

Original: a network for each appliance; one-minute data already, windows of 128 to 720, Adam 1e-4, batch 64;
a clock of minute, hour, weekday and month. Changes: one network for all appliances; 128 minutes; the clock is
the time of day and of the week, since ten days have no months and the minute of an hour tells nothing; layer
normalisation instead of batch statistics; fewer, larger steps.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import torch
from torch import Tensor, nn

from meterveil.attackers.bert4nilm import block, window_recipe
from meterveil.attackers.neural import Neural, power_and_state_loss

VERSION = 1  # raise it when a change alters the figures of this attacker

WINDOW = 128
_WIDTH, _LAYERS, _HEADS, _DROPOUT = 96, 3, 8, 0.2
_DILATIONS = (1, 2, 4, 8)
_CLOCK = 4
"""Channels of the clock."""


class Embedding(nn.Module):
    """Residual stack of dilated convolutions."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.enter = nn.Conv1d(1, width, 1)
        self.steps = nn.ModuleList()
        for dilation in _DILATIONS:
            convolution = nn.Conv1d(width, width, 3, padding="same", dilation=dilation)
            self.steps.append(nn.Sequential(convolution, nn.GELU(), nn.GroupNorm(1, width)))

    def forward(self, load: Tensor) -> Tensor:
        """Embed (batch, 1, minute) as (batch, width, minute)."""
        embedded = self.enter(load)
        for step in self.steps:
            embedded = embedded + step(embedded)
        return cast(Tensor, embedded)


class Network(nn.Module):
    """Network from (batch, 1 + clock, window) to (batch, 2, target, window)."""

    def __init__(self, targets: int) -> None:
        super().__init__()
        self.load = Embedding(_WIDTH * 3 // 4)
        self.clock = nn.Conv1d(_CLOCK, _WIDTH // 4, 1)
        self.level = nn.Linear(2, _WIDTH)
        self.blocks = nn.ModuleList(block(_WIDTH, _HEADS, _DROPOUT) for _ in range(_LAYERS))
        self.norm = nn.LayerNorm(_WIDTH)
        last = nn.Conv1d(_WIDTH, 2 * targets, 3, padding="same")
        self.out = nn.Sequential(last, nn.Unflatten(1, (2, targets)))
        self.restore = nn.Sequential(nn.Linear(_WIDTH, 2 * targets), nn.Unflatten(1, (2, targets, 1)))

    def forward(self, seen: Tensor) -> Tensor:
        load = seen[:, :1]
        spread, mean = torch.std_mean(load, dim=-1, keepdim=True, correction=0)
        shape = self.load((load - mean) / (spread + 1e-2))
        minutes = torch.cat([shape, self.clock(seen[:, 1:])], dim=1).movedim(1, 2)
        level = self.level(torch.cat([mean, spread], dim=-1))
        tokens = torch.cat([level, minutes], dim=1)
        itself = torch.eye(tokens.shape[1], dtype=torch.bool)
        for layer in self.blocks:
            tokens = layer(tokens, src_mask=itself)
        tokens = self.norm(tokens)
        answer = cast(Tensor, self.out(tokens[:, 1:].movedim(1, 2)))
        shift, stretch = self.restore(tokens[:, 0]).unbind(dim=1)
        power = answer[:, 0] * (1.0 + stretch) + shift
        return torch.stack([power, answer[:, 1]], dim=1)


def nilmformer() -> Neural:
    """Build the attacker with its documented settings."""
    recipe = window_recipe(Network, power_and_state_loss, WINDOW, epochs=70, learning_rate=5e-4)
    return Neural(replace(recipe, clock=True))
