"""CO: G. W. Hart, "Nonintrusive appliance load monitoring", Proceedings of the IEEE, 1992; as in NILMTK.

Every appliance has a few states: off, and two levels found by clustering. Each minute is decoded by itself:
the chosen combination has the sum nearest to the reading. In the original, `CO(floors=(0,))`, the modelled
appliances explain the whole reading. Here the floor of the readings is subtracted first, with the width that
scores best on the last training days; no floor is a candidate too. NILMTK's silhouette score never prefers
one level to two, so it is left out. One-minute data need no change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from meterveil.attackers.classical import best_on_last_days, floor_w, running_levels_w
from meterveil.attackers.protocol import Arrays, Meter, Prediction, check_targets, filled, truth_w
from meterveil.core.arrays import FloatArray
from meterveil.data.household import AGGREGATE, Household
from meterveil.errors import InputError

VERSION = 1  # raise it when a change alters the figures of this attacker

FEW_APPLIANCES = 12
"""Most appliances that get two running levels; with more, each gets one (NILMTK)."""

MAX_COMBINATIONS = 2**20
"""Bound on memory: 12 appliances of 3 states, or 20 of 2."""


@dataclass(frozen=True)
class CO:
    """Attacker by combinatorial optimisation."""

    floors: tuple[int, ...] = (0, 31, 61, 121)
    """Candidate widths of the floor in minutes; odd, or 0 for none."""
    targets: tuple[str, ...] = ()
    levels_w: Mapping[str, FloatArray] = field(default_factory=dict)
    """Appliance -> (state,) whole watts, increasing from 0."""
    floor_minutes: int = 0

    def fit(self, households: Sequence[Household], targets: Sequence[str], rng: np.random.Generator) -> Self:
        check_targets(households, targets)
        candidates = [replace(self, targets=tuple(targets), floor_minutes=floor) for floor in self.floors]
        return best_on_last_days(candidates, households, CO._clustered, targets)

    def predict(self, meter: Meter) -> Prediction:
        reading_w = filled(meter.reading_w)
        base_w = floor_w(reading_w, self.floor_minutes)
        drawn_w = nearest_combination(list(self.levels_w.values()), reading_w - base_w)
        watts = dict(zip(self.levels_w, drawn_w, strict=True))
        if AGGREGATE in self.targets:
            watts[AGGREGATE] = base_w + np.sum(list(watts.values()), axis=0)
        return Prediction(watts, {})

    def arrays(self) -> Arrays:
        levels = {f"{name}/levels_w": levels for name, levels in self.levels_w.items()}
        return {"floor_minutes": np.asarray(self.floor_minutes), **levels}

    def restored(self, targets: Sequence[str], arrays: Arrays) -> Self:
        levels_w = {name: arrays[f"{name}/levels_w"] for name in targets if name != AGGREGATE}
        floor_minutes = int(arrays["floor_minutes"])
        return replace(self, targets=tuple(targets), levels_w=levels_w, floor_minutes=floor_minutes)

    def _clustered(self, households: Sequence[Household]) -> Self:
        appliances = [target for target in self.targets if target != AGGREGATE]
        clusters = 2 if len(appliances) <= FEW_APPLIANCES else 1
        if (clusters + 1) ** len(appliances) > MAX_COMBINATIONS:
            raise InputError(f"{len(appliances)} appliances have too many states; give CO at most 20 targets")
        levels_w = {}
        for name in appliances:
            power_w = np.concatenate([truth_w(household, name) for household in households])
            levels = running_levels_w(power_w[~np.isnan(power_w)], clusters)
            levels_w[name] = np.unique(np.round(np.append(levels, 0.0)))
        return replace(self, levels_w=levels_w)


def nearest_combination(levels_w: Sequence[FloatArray], reading_w: FloatArray) -> list[FloatArray]:
    """Return each appliance's power in the combination of levels whose sum is nearest to the reading.

    Of two equally near sums the lower one is taken, of equal sums the first in the order of `product`.
    """
    shape = [len(levels) for levels in levels_w]
    sums_w = np.zeros(1)
    for levels in levels_w:
        sums_w = np.add.outer(sums_w, levels).ravel()
    distinct_w, first = np.unique(sums_w, return_index=True)
    nearest = first[np.searchsorted((distinct_w[1:] + distinct_w[:-1]) / 2.0, reading_w)]
    states = np.unravel_index(nearest, shape) if shape else ()
    return [levels[state] for levels, state in zip(levels_w, states, strict=True)]
