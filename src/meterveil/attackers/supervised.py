"""The one supervised loop that all neural attackers share: early stopping, best weights kept, seeded."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from meterveil.attackers.examples import Batch, Examples
from meterveil.attackers.protocol import IntArray
from meterveil.errors import InputError

Progress = Callable[[int, float], None]
"""Called after every epoch with its number and the validation loss."""


class Loss(Protocol):
    """Judge a network on a batch; `done` is the share of the training that lies behind it."""

    def __call__(self, network: nn.Module, batch: Batch, done: float) -> Tensor:
        """Return one number to make small."""
        ...


@dataclass(frozen=True)
class Recipe:
    """Say how a network is built and trained.

    It maps (batch, channel, window) to (batch, 2, target, output): each target's scaled power and the logit
    of its being on, for the middle `output` minutes of the window. The first channel is the scaled reading.
    One network reads all targets: what a house looks like is learned once, not once for each appliance.
    """

    build: Callable[[int], nn.Module]
    """Build a network for so many targets."""
    loss: Loss
    window: int
    output: int
    clock: bool = False
    """Let the network see the time of day and of the week as four more channels."""
    windows: int = 180
    """Windows of an epoch, drawn anew for each: a fit takes as long on forty days as on ten."""
    mixing: float = 0.5
    """Share of the training windows in which targets are exchanged for those of other windows."""
    stacking: float = 0.2
    """Share of them onto which another window's other loads are stacked: ten days hold few evenings."""
    overlap: int = 4
    """In a prediction every minute is seen by this many windows, and their answers are averaged."""
    batch: int = 64
    epochs: int = 50
    patience: int = 10
    """Epochs without a better validation loss before training stops."""
    learning_rate: float = 1e-3
    """At its height: it rises over the first twentieth of the training and falls along a cosine to zero."""
    averaging: float = 0.98
    """How much of the averaged weights every step keeps; those are what is judged and kept."""


def power_and_state_loss(network: Callable[[Tensor], Tensor], batch: Batch, done: float) -> Tensor:
    """Squared error of the power plus cross-entropy of the state: what every network is judged by."""
    del done
    answer = network(batch.seen)
    weight = batch.state_weight.expand_as(batch.on)
    state = nn.functional.binary_cross_entropy_with_logits(answer[:, 1], batch.on, weight)
    return nn.functional.mse_loss(answer[:, 0], batch.power) + state


def train(
    network: nn.Module,
    recipe: Recipe,
    learning: Examples,
    choosing: Examples,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> None:
    """Train until the validation loss stops falling; leave the best weights in the network."""
    if not len(learning.starts) or not len(choosing.starts):
        raise InputError(
            f"no stretch of {recipe.window} minutes without a gap to learn from; give more or better days"
        )
    optimiser = torch.optim.Adam(network.parameters(), lr=recipe.learning_rate)
    averaged = AveragedModel(network, multi_avg_fn=get_ema_multi_avg_fn(recipe.averaging))  # type: ignore[no-untyped-call]
    best_loss, best, since = np.inf, _weights(network), 0
    for epoch in range(recipe.epochs):
        network.train()
        batches = list(_epoch(learning, recipe, rng))
        for number, batch in enumerate(batches):
            done = (epoch + number / len(batches)) / recipe.epochs
            optimiser.param_groups[0]["lr"] = recipe.learning_rate * _pace(done)
            optimiser.zero_grad(set_to_none=True)
            recipe.loss(network, batch, done).backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
            averaged.update_parameters(network)
        loss_now = validation_loss(averaged.module, recipe, choosing)
        since = 0 if loss_now < best_loss else since + 1
        if since == 0:
            best_loss, best = loss_now, _weights(averaged.module)
        if progress:
            progress(epoch, loss_now)
        if since >= recipe.patience:
            break
    if not np.isfinite(best_loss):
        raise InputError("the network learned nothing: its loss is no number; look for impossible readings")
    network.load_state_dict(best)
    network.eval()


def validation_loss(network: nn.Module, recipe: Recipe, choosing: Examples) -> float:
    """Judge the network on windows that tile the validation days."""
    network.eval()
    starts = choosing.starts[:: recipe.output]
    with torch.inference_mode():
        losses = [
            float(power_and_state_loss(network, choosing.batch(part), 1.0)) * len(part)
            for part in np.array_split(starts, max(len(starts) // recipe.batch, 1))
        ]
    return float(np.sum(losses)) / len(starts)


def _epoch(learning: Examples, recipe: Recipe, rng: np.random.Generator) -> Iterator[Batch]:
    chosen = rng.choice(learning.starts, min(recipe.windows, len(learning.starts)), replace=False)
    for own in np.array_split(chosen, max(round(len(chosen) / recipe.batch), 1)):
        batch = learning.mixed(own, _donors(own, learning, recipe.mixing, rng))
        share = torch.from_numpy((rng.random(len(own)) < recipe.stacking).astype(np.float32))
        yield learning.stacked(batch, rng.choice(learning.starts, len(own)), share)


def _donors(own: IntArray, learning: Examples, mixing: float, rng: np.random.Generator) -> IntArray:
    """Choose where targets come from, (target, batch): in a mixed window one is in use, others may change.

    Those come from any stretch, as often with a use as in life; the one use makes up for how rare some are.
    What is never on, as the aggregate, stays where it is.
    """
    count, mixed = len(learning.uses), rng.random(len(own)) < mixing
    chosen = rng.integers(count, size=len(own))
    donors = np.tile(own, (count, 1))
    for number, uses in enumerate(learning.uses):
        if len(uses.starts):
            other = np.where(rng.random(len(own)) < 0.5, rng.choice(learning.starts, len(own)), own)
            other = np.where(chosen == number, uses.draw(len(own), rng), other)
            donors[number] = np.where(mixed, other, own)
    return donors


def _pace(done: float) -> float:
    return min(done / 0.05, 0.5 * (1.0 + math.cos(math.pi * done)))


def _weights(network: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in network.state_dict().items()}
