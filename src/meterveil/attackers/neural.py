"""An attacker made of networks, one per target, all built and trained by the same recipe."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from meterveil.attackers.examples import (
    Examples,
    Scaling,
    clock_of,
    learning_and_choosing_days,
    scaling_of,
    series_of,
)
from meterveil.attackers.protocol import AGGREGATE, FloatArray, Meter, Prediction, check_targets, filled
from meterveil.attackers.supervised import Recipe, train
from meterveil.data.household import Household

WINDOWS_AT_ONCE = 512
"""Bounds the memory of a prediction, however many days come in one batch."""


class Fitted(NamedTuple):
    """A trained network with the scaling of its learning days."""

    network: nn.Module
    scaling: Scaling


@dataclass(frozen=True)
class Neural:
    """Attack with networks of one recipe."""

    recipe: Recipe
    fitted: Mapping[str, Fitted] = field(default_factory=dict)
    progress: Callable[[str, int, float], None] | None = None
    """Called after every epoch with the target, the epoch and the validation loss."""

    def fit(self, households: Sequence[Household], targets: Sequence[str], rng: np.random.Generator) -> Self:
        """Train a network for every target."""
        check_targets(households, targets)
        children = rng.spawn(len(targets))
        fitted = {
            target: self._fit_one(households, target, child)
            for target, child in zip(targets, children, strict=True)
        }
        return replace(self, fitted=fitted)

    def predict(self, meter: Meter) -> Prediction:
        """Slide every network over the readings."""
        reading_w, clock = filled(meter.reading_w), clock_of(meter)
        watts, on = {}, {}
        for target, (network, scaling) in self.fitted.items():
            power, probability = _slide(network, self.recipe, scaling, reading_w, clock)
            watts[target] = np.maximum(power * scaling.power_factor_w + scaling.power_shift_w, 0.0)
            if target != AGGREGATE:
                on[target] = probability
        return Prediction(watts, on)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return weights and scalings, named target/weight."""
        found: dict[str, npt.NDArray[Any]] = {}
        for target, (network, scaling) in self.fitted.items():
            found[f"{target}/scaling"] = np.asarray(scaling, dtype=np.float64)
            found |= {f"{target}/{name}": value.numpy() for name, value in network.state_dict().items()}
        return found

    def restored(self, targets: Sequence[str], arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Rebuild the networks and fill their weights in."""
        return replace(self, fitted={target: self._restore_one(f"{target}/", arrays) for target in targets})

    def _fit_one(self, households: Sequence[Household], target: str, rng: np.random.Generator) -> Fitted:
        learning, choosing = [], []
        for household in households:
            learn, choose = learning_and_choosing_days(household)
            learning += series_of(household, target, learn)
            choosing += series_of(household, target, choose)
        recipe, scaling = self.recipe, scaling_of(learning, target)
        learning_set, choosing_set = (
            Examples.of(part, target, scaling, recipe.window, recipe.output, recipe.clock)
            for part in (learning, choosing)
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(rng.integers(2**63)))
            network = recipe.build()
            train(network, recipe, learning_set, choosing_set, rng, self._report(target))
        return Fitted(network, scaling)

    def _report(self, target: str) -> Callable[[int, float], None] | None:
        report = self.progress
        return None if report is None else lambda epoch, loss: report(target, epoch, loss)

    def _restore_one(self, prefix: str, arrays: Mapping[str, npt.NDArray[Any]]) -> Fitted:
        mine = {name.removeprefix(prefix): value for name, value in arrays.items() if name.startswith(prefix)}
        scaling = Scaling(*map(float, mine.pop("scaling")))
        network = self.recipe.build()
        network.load_state_dict({name: torch.from_numpy(value.copy()) for name, value in mine.items()})
        return Fitted(network.eval(), scaling)


def _slide(
    network: nn.Module, recipe: Recipe, scaling: Scaling, reading_w: FloatArray, clock: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Average what overlapping windows say of each minute; the middle of a window counts most."""
    batch, minutes = reading_w.shape
    step = max(recipe.output // recipe.overlap, 1)
    margin = (recipe.window - recipe.output) // 2 + recipe.output - step
    count = -(-(minutes + recipe.output - step) // step)
    after = (count - 1) * step + recipe.window - margin - minutes
    seen = ((reading_w - scaling.reading_shift_w) / scaling.reading_factor_w)[:, None]
    if recipe.clock:
        seen = np.concatenate([seen, clock], axis=1)
    padded = np.pad(seen, ((0, 0), (0, 0), (margin, after)), mode="edge").astype(np.float32)
    windows = torch.from_numpy(padded).unfold(2, recipe.window, step).movedim(2, 1).flatten(0, 1)
    with torch.inference_mode():
        answers = torch.cat([network(part) for part in torch.split(windows, WINDOWS_AT_ONCE)])
        answers[:, 1].sigmoid_()
    weight = np.minimum(np.arange(1, recipe.output + 1), np.arange(recipe.output, 0, -1)).astype(np.float64)
    totals = np.zeros((3, batch, (count - 1) * step + recipe.output))
    said = answers.double().numpy().reshape(batch, count, 2, recipe.output)
    for number in range(count):
        part = slice(number * step, number * step + recipe.output)
        totals[:2, :, part] += np.moveaxis(said[:, number], 1, 0) * weight
        totals[2, :, part] += weight
    first = recipe.output - step
    middle = totals[:, :, first : first + minutes]
    return middle[0] / middle[2], middle[1] / middle[2]
