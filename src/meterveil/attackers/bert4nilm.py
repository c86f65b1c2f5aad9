"""BERT4NILM: Z. Yue et al., "BERT4NILM: a bidirectional transformer model for NILM", NILM workshop 2020.

A convolution, pooling to half as many tokens, learned positions, two layers of attention (256 wide, two
heads, 1,024 hidden units), and back to minutes. A quarter of the minutes of a training window is masked.

Original: a network for each appliance, 480 samples of 6 s (48 minutes), Adam 1e-4, batch 128, up to 100
epochs, float64, losses on the masked minutes alone, targets divided by a cutoff. Changes for one-minute data:
one network for all appliances, with a wider last layer; 128 minutes; masking only in the first part of the
training, and losses on all minutes, since a masked minute may be half of a kettle's use and its neighbours do
not show it; fewer, larger steps; targets in standard deviations, so that no cutoff is needed. A pooled pair
of minutes can be a whole use of the microwave, so the output of the convolution is also passed around the
pooling; layers normalise their input instead of their output, which allows larger steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

import torch
from torch import Tensor, nn

from meterveil.attackers.examples import Batch
from meterveil.attackers.neural import Loss, Neural, Recipe

VERSION = 1  # raise it when a change alters the figures of this attacker

WINDOW = 128
MASKED_SHARE = 0.25
MASKED_UNTIL = 0.3
"""Share of the training after which windows are complete, as in prediction."""

MASKED = -1.0
"""Scaled reading of a masked minute; BERT4NILM's choice."""

_DIVERGENCE, _ABSOLUTE = 0.1, 0.1
"""Weights of the divergence and of the absolute error relative to the squared error."""

_KEPT, _RANDOM = 0.1, 0.2
"""Bounds that keep a tenth of the chosen minutes, replace a tenth by noise, and mask the others."""


class WindowTransformer(nn.Module):
    """Network from (batch, 1, window) readings to (batch, outputs, window); the window is even."""

    def __init__(self, window: int, width: int, outputs: int, layers: int = 2, dropout: float = 0.1) -> None:
        super().__init__()
        self.embed = nn.Conv1d(1, width, 5, padding=2, padding_mode="replicate")
        self.pool = nn.LPPool1d(2.0, 2, stride=2)
        self.position = nn.Parameter(torch.empty(window // 2, width))
        self.enter = nn.Sequential(nn.LayerNorm(width), nn.Dropout(dropout))
        self.blocks = nn.ModuleList(block(width, heads=2, dropout=dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.widen = nn.ConvTranspose1d(width, width, 4, stride=2, padding=1)
        hidden = 64 * max(outputs // 2, 1)
        self.leave = nn.Sequential(nn.Linear(width, hidden), nn.Tanh(), nn.Linear(hidden, outputs))
        nn.init.trunc_normal_(self.position, std=0.02, a=-0.04, b=0.04)

    def forward(self, seen: Tensor) -> Tensor:
        minutes = self.embed(seen)
        tokens = self.enter(self.pool(minutes).movedim(1, 2) + self.position)
        for layer in self.blocks:
            tokens = layer(tokens)
        widened = self.widen(self.norm(tokens).movedim(1, 2)) + minutes
        return cast(Tensor, self.leave(widened.movedim(1, 2))).movedim(2, 1)


def block(width: int, heads: int, dropout: float) -> nn.TransformerEncoderLayer:
    """Build a layer of attention with a feed-forward network four times as wide."""
    sizes = width, heads, 4 * width
    return nn.TransformerEncoderLayer(*sizes, dropout, "gelu", batch_first=True, norm_first=True)


def window_recipe(
    build: Callable[[int], nn.Module], loss: Loss, window: int, epochs: int, learning_rate: float
) -> Recipe:
    """Return the training settings that transformers share; they estimate every minute of a window."""
    recipe = Recipe(build, loss, window, window, mixing=0.75, stacking=0.3, overlap=2, batch=4, patience=30)
    return replace(recipe, epochs=epochs, learning_rate=learning_rate)


def masked(seen: Tensor, share: float) -> tuple[Tensor, Tensor]:
    """Mask this share of the minutes; return the input of the network and which minutes were chosen."""
    chosen = torch.rand_like(seen) < share
    fate, noise = torch.rand_like(seen), torch.randn_like(seen)
    replaced = torch.where(fate < _KEPT, seen, torch.where(fate < _RANDOM, noise, MASKED))
    return torch.where(chosen, replaced, seen), chosen


def disaggregation_loss(answer: Tensor, batch: Batch) -> Tensor:
    """Sum the four losses of BERT4NILM over whole windows: divergence, squared error, state, absolute error.

    The divergence compares how a target's use is spread over the minutes. The soft margin is applied to the
    on/off output; as published it was applied to a thresholded power, which has no gradient.
    """
    predicted, logit, power, on = answer[:, 0], answer[:, 1], batch.power, batch.on
    shares = predicted.log_softmax(-1), power.log_softmax(-1)
    divergence = nn.functional.kl_div(*shares, reduction="none", log_target=True).sum(dim=-1).mean()
    state = torch.mean(batch.state_weight * nn.functional.softplus(logit * (1.0 - 2.0 * on)))
    wrong = (on > 0) | ((logit > 0) != (on > 0))
    absolute = torch.mean(torch.abs(predicted - power) * wrong)
    error = nn.functional.mse_loss(predicted, power)
    return _DIVERGENCE * divergence + error + state + _ABSOLUTE * absolute


def network(targets: int) -> nn.Module:
    """Build two layers of attention, 256 wide."""
    transformer = WindowTransformer(WINDOW, width=256, outputs=2 * targets)
    return nn.Sequential(transformer, nn.Unflatten(1, (2, targets)))


def loss(network: nn.Module, batch: Batch, done: float) -> Tensor:
    """Return the loss, on masked windows in the first part of the training."""
    seen = masked(batch.seen, MASKED_SHARE)[0] if done < MASKED_UNTIL else batch.seen
    return disaggregation_loss(network(seen), batch)


def bert4nilm() -> Neural:
    """Build the attacker with its documented settings."""
    return Neural(window_recipe(network, loss, WINDOW, epochs=90, learning_rate=3e-4))
