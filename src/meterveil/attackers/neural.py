"""An attacker made of one network that reads all targets, built and trained by a recipe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from meterveil.attackers.examples import (
    Examples,
    Scaling,
    clock_of,
    scaling_of,
    series_of,
)
from meterveil.attackers.protocol import AGGREGATE, FloatArray, Meter, Prediction, check_targets, filled
from meterveil.attackers.supervised import Recipe, train
from meterveil.data.household import Household
from meterveil.data.splits import learning_and_choosing_days
from meterveil.errors import InputError

WINDOWS_AT_ONCE = 512
"""Bounds the memory of a prediction, however many days come in one batch."""

_NETWORK, _SCALING = "network/", "scaling/"
"""Prefixes of the stored arrays' names."""


class Fitted(NamedTuple):
    """A trained network, what it reads, and the scaling of its learning days."""

    network: nn.Module
    targets: tuple[str, ...]
    scaling: Scaling


@dataclass(frozen=True)
class Neural:
    """Attack with a network of one recipe."""

    recipe: Recipe
    fitted: Fitted | None = None

    def fit(self, households: Sequence[Household], targets: Sequence[str], rng: np.random.Generator) -> Self:
        """Train one network for all targets."""
        check_targets(households, targets)
        learning, choosing = [], []
        for household in households:
            learn, choose = learning_and_choosing_days(household)
            learning += series_of(household, targets, learn)
            choosing += series_of(household, targets, choose)
        recipe, scaling = _fitting(self.recipe, households), scaling_of(learning, targets)
        learning_set, choosing_set = (
            Examples.of(part, targets, scaling, recipe.window, recipe.output, recipe.clock)
            for part in (learning, choosing)
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(rng.integers(2**63)))
            network = recipe.build(len(targets))
            train(network, recipe, learning_set, choosing_set, rng)
        return replace(self, fitted=Fitted(network, tuple(targets), scaling))

    def predict(self, meter: Meter) -> Prediction:
        """Slide the network over the readings."""
        network, targets, scaling = self._known()
        power, probability = _slide(network, self.recipe, scaling, filled(meter.reading_w), clock_of(meter))
        scaled = zip(targets, power, scaling.power_factor_w, scaling.power_shift_w, strict=True)
        watts = {
            target: np.maximum(one * factor_w + shift_w, 0.0) for target, one, factor_w, shift_w in scaled
        }
        on = {target: one for target, one in zip(targets, probability, strict=True) if target != AGGREGATE}
        return Prediction(watts, on)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the weights and the scaling."""
        network, _, scaling = self._known()
        weights = {f"{_NETWORK}{name}": one.numpy() for name, one in network.state_dict().items()}
        return weights | {f"{_SCALING}{name}": one for name, one in scaling._asdict().items()}

    def restored(self, targets: Sequence[str], arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Rebuild the network and fill its weights in."""
        network = self.recipe.build(len(targets))
        weights = {name: one for name, one in arrays.items() if name.startswith(_NETWORK)}
        network.load_state_dict(
            {name.removeprefix(_NETWORK): torch.from_numpy(one.copy()) for name, one in weights.items()}
        )
        scaling = Scaling(*(arrays[f"{_SCALING}{name}"] for name in Scaling._fields))
        return replace(self, fitted=Fitted(network.eval(), tuple(targets), scaling))

    def _known(self) -> Fitted:
        if self.fitted is None:
            raise InputError("this attacker has not learned yet; call fit first")
        return self.fitted


def _fitting(recipe: Recipe, households: Sequence[Household]) -> Recipe:
    """Leave masked households as they are: what an appliance adds to a bare meter, the battery took away."""
    is_masked = any(AGGREGATE in household.appliances_w for household in households)
    return replace(recipe, mixing=0.0, stacking=0.0) if is_masked else recipe


def _slide(
    network: nn.Module, recipe: Recipe, scaling: Scaling, reading_w: FloatArray, clock: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Average what overlapping windows say of each minute: power and state, (target, batch, minute) each.

    The middle of a window counts most.
    """
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
    said = answers.double().numpy().reshape(batch, count, *answers.shape[1:])
    said = np.moveaxis(said, 0, 3)  # (window, 2, target, batch, output)
    totals = np.zeros((*said.shape[1:-1], (count - 1) * step + recipe.output))
    weights = np.zeros(totals.shape[-1])
    for number in range(count):
        part = slice(number * step, number * step + recipe.output)
        totals[..., part] += said[number] * weight
        weights[part] += weight
    first = recipe.output - step
    middle = slice(first, first + minutes)
    power, probability = totals[..., middle] / weights[middle]
    return power, probability
