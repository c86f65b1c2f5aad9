"""Neural attackers: recipe, supervised training and prediction, shared by all networks.

Training is seeded, stops early on the validation days, and keeps the best weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from meterveil.attackers.examples import Batch, Examples, Scaling, clock_of, scaling_of, series_of
from meterveil.attackers.protocol import Arrays, Meter, Prediction, below, check_targets, filled
from meterveil.core.arrays import FloatArray, IntArray
from meterveil.data.household import AGGREGATE, Household
from meterveil.data.splits import training_and_validation_days
from meterveil.errors import InputError

WINDOWS_AT_ONCE = 512
"""Bound on the memory of a prediction."""


Loss = Callable[[nn.Module, Batch, float], Tensor]
"""(network, batch, done) -> loss; `done` is the share of the training that is finished."""


@dataclass(frozen=True)
class Recipe:
    """Architecture and training settings of a network.

    It maps (batch, channel, window) to (batch, 2, target, output): each target's scaled power and the logit
    of being on, for the middle `output` minutes of the window. The first channel is the scaled reading. One
    network estimates all targets.
    """

    build: Callable[[int], nn.Module]
    """Build a network for this number of targets."""
    loss: Loss
    window: int
    output: int
    clock: bool = False
    """Whether the network sees the time of day and of the week, as four more channels."""
    windows: int = 180
    """Windows drawn for each epoch, whatever the number of days."""
    mixing: float = 0.5
    """Share of the training windows in which targets are replaced by those of other windows."""
    stacking: float = 0.2
    """Share of the training windows to which the other loads of another window are added."""
    overlap: int = 4
    """Windows that cover a minute in a prediction; their outputs are averaged."""
    batch: int = 64
    epochs: int = 50
    patience: int = 10
    """Epochs without a better validation loss before training stops."""
    learning_rate: float = 1e-3
    """Peak rate: it rises over the first twentieth of the training and falls to zero along a cosine."""
    averaging: float = 0.98
    """Decay of the moving average of the weights, which is validated and kept."""


class Fitted(NamedTuple):
    """Trained network, its targets and the scaling of its learning days."""

    network: nn.Module
    targets: tuple[str, ...]
    scaling: Scaling


@dataclass(frozen=True)
class Neural:
    """Attacker with one network for all targets."""

    recipe: Recipe
    fitted: Fitted | None = None

    def fit(self, households: Sequence[Household], targets: Sequence[str], rng: np.random.Generator) -> Self:
        check_targets(households, targets)
        learning, choosing = [], []
        for household in households:
            learn, choose = training_and_validation_days(household)
            learning += series_of(household, targets, learn)
            choosing += series_of(household, targets, choose)
        recipe, scaling = _fitting(self.recipe, households), scaling_of(learning, targets)
        shape = recipe.window, recipe.output, recipe.clock
        examples = [Examples.of(part, targets, scaling, *shape) for part in (learning, choosing)]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(rng.integers(2**63)))
            network = recipe.build(len(targets))
            train(network, recipe, examples[0], examples[1], rng)
        return replace(self, fitted=Fitted(network, tuple(targets), scaling))

    def predict(self, meter: Meter) -> Prediction:
        network, targets, scaling = self._known()
        power, probability = _slide(network, self.recipe, scaling, filled(meter.reading_w), clock_of(meter))
        scaled = zip(targets, power, scaling.power_factor_w, scaling.power_shift_w, strict=True)
        watts = {target: np.maximum(part * by_w + shift_w, 0.0) for target, part, by_w, shift_w in scaled}
        on = {target: part for target, part in zip(targets, probability, strict=True) if target != AGGREGATE}
        return Prediction(watts, on)

    def arrays(self) -> Arrays:
        network, _, scaling = self._known()
        scales = {f"scaling/{name}": part for name, part in scaling._asdict().items()}
        return stored_weights(network, "network/") | scales

    def restored(self, targets: Sequence[str], arrays: Arrays) -> Self:
        network = load_weights(self.recipe.build(len(targets)), arrays, "network/")
        scaling = Scaling(**below(arrays, "scaling/"))
        return replace(self, fitted=Fitted(network, tuple(targets), scaling))

    def _known(self) -> Fitted:
        if self.fitted is None:
            raise InputError("this attacker is not fitted; call fit first")
        return self.fitted


def moving_average(network: nn.Module, decay: float) -> AveragedModel:
    """Return a copy of a network whose weights are to follow those of the network."""
    return AveragedModel(network, multi_avg_fn=get_ema_multi_avg_fn(decay))  # type: ignore[no-untyped-call]


def weights_of(network: nn.Module) -> dict[str, Tensor]:
    """Copy the weights of a network."""
    return {name: value.detach().clone() for name, value in network.state_dict().items()}


def stored_weights(network: nn.Module, prefix: str) -> dict[str, npt.NDArray[Any]]:
    """Return the weights of a network as arrays whose names begin with a prefix."""
    return {f"{prefix}{name}": part.numpy() for name, part in network.state_dict().items()}


def load_weights(network: nn.Module, arrays: Arrays, prefix: str) -> nn.Module:
    """Give a network the weights that `stored_weights` returned."""
    weights = below(arrays, prefix).items()
    network.load_state_dict({name: torch.from_numpy(part.copy()) for name, part in weights})
    return network.eval()


def power_and_state_loss(network: Callable[[Tensor], Tensor], batch: Batch, done: float) -> Tensor:
    """Return squared error of the power plus cross-entropy of the state, which validates every network."""
    del done
    answer = network(batch.seen)
    weight = batch.state_weight.expand_as(batch.on)
    state = nn.functional.binary_cross_entropy_with_logits(answer[:, 1], batch.on, weight)
    return nn.functional.mse_loss(answer[:, 0], batch.power) + state


def train(
    network: nn.Module, recipe: Recipe, learning: Examples, choosing: Examples, rng: np.random.Generator
) -> list[float]:
    """Train until the validation loss stops falling, keep the best weights, return the loss of each epoch."""
    if not len(learning.starts) or not len(choosing.starts):
        window = f"{recipe.window} minutes without a gap"
        raise InputError(f"no stretch of {window} in the training days; give more days")
    optimiser = torch.optim.Adam(network.parameters(), lr=recipe.learning_rate)
    averaged = moving_average(network, recipe.averaging)
    best_loss, best, since = np.inf, weights_of(network), 0
    losses = []
    for epoch in range(recipe.epochs):
        network.train()
        batches = list(_epoch(learning, recipe, rng))
        for number, batch in enumerate(batches):
            done = (epoch + number / len(batches)) / recipe.epochs
            pace = min(done / 0.05, 0.5 * (1.0 + math.cos(math.pi * done)))
            optimiser.param_groups[0]["lr"] = recipe.learning_rate * pace
            optimiser.zero_grad(set_to_none=True)
            recipe.loss(network, batch, done).backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
            averaged.update_parameters(network)
        loss_now = validation_loss(averaged.module, recipe, choosing)
        losses.append(loss_now)
        since += 1
        if loss_now < best_loss:
            best_loss, best, since = loss_now, weights_of(averaged.module), 0
        if since >= recipe.patience:
            break
    if not np.isfinite(best_loss):
        raise InputError("training failed: the validation loss is not finite; check for impossible readings")
    network.load_state_dict(best)
    network.eval()
    return losses


def validation_loss(network: nn.Module, recipe: Recipe, choosing: Examples) -> float:
    """Return the loss on windows that tile the validation days."""
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
    """Choose the windows that targets are taken from, (target, batch).

    In a mixed window one target comes from a window in which it is on, which makes rare uses more frequent;
    the others may come from any window. A target that is never on, such as the aggregate, is not moved.
    """
    count, mixed = len(learning.uses), rng.random(len(own)) < mixing
    chosen = rng.integers(count, size=len(own))
    donors = np.tile(own, (count, 1))
    for number, uses in enumerate(learning.uses):
        if len(uses.starts):
            other = np.where(rng.random(len(own)) < 0.5, rng.choice(learning.starts, len(own)), own)
            other = np.where(chosen == number, rng.choice(uses.starts, len(own), p=uses.odds), other)
            donors[number] = np.where(mixed, other, own)
    return donors


def _fitting(recipe: Recipe, households: Sequence[Household]) -> Recipe:
    """Turn augmentation off for masked households: there, a battery changed what an appliance adds."""
    is_masked = any(AGGREGATE in household.appliances_w for household in households)
    return replace(recipe, mixing=0.0, stacking=0.0) if is_masked else recipe


def _slide(
    network: nn.Module, recipe: Recipe, scaling: Scaling, reading_w: FloatArray, clock: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return power and on-probability, (target, batch, minute) each; the middle of a window weighs most."""
    batch, minutes = reading_w.shape
    step = max(recipe.output // recipe.overlap, 1)
    margin = (recipe.window - recipe.output) // 2 + recipe.output - step
    count = -(-(minutes + recipe.output - step) // step)
    after = (count - 1) * step + recipe.window - margin - minutes
    seen = scaling.reading(reading_w)[:, None]
    if recipe.clock:
        seen = np.concatenate([seen, clock], axis=1)
    padded = np.pad(seen, ((0, 0), (0, 0), (margin, after)), mode="edge").astype(np.float32)
    windows = torch.from_numpy(padded).unfold(2, recipe.window, step).movedim(2, 1).flatten(0, 1)
    with torch.inference_mode():
        answers = torch.cat([network(part) for part in torch.split(windows, WINDOWS_AT_ONCE)])
        answers[:, 1].sigmoid_()
    weight = np.minimum(np.arange(1, recipe.output + 1), np.arange(recipe.output, 0, -1)).astype(np.float64)
    outputs = answers.double().numpy().reshape(batch, count, *answers.shape[1:])
    outputs = np.moveaxis(outputs, 0, 3)  # (window, 2, target, batch, output)
    totals = np.zeros((*outputs.shape[1:-1], (count - 1) * step + recipe.output))
    weights = np.zeros(totals.shape[-1])
    for number in range(count):
        part = slice(number * step, number * step + recipe.output)
        totals[..., part] += outputs[number] * weight
        weights[part] += weight
    middle = slice(recipe.output - step, recipe.output - step + minutes)
    power, probability = totals[..., middle] / weights[middle]
    return power, probability
