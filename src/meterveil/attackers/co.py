"""CO: G. W. Hart, "Nonintrusive appliance load monitoring", Proceedings of the IEEE, 1992; as in NILMTK.

Every appliance has a few states (off, and two levels found by clustering); each minute alone, the combination
is chosen whose sum is nearest to the reading. Original: the modelled appliances explain the whole reading,
`CO(floors=(0,))`. Since the mains carry more than them, here the floor of the readings is taken away first,
with the width that reads the last training days best; no floor is among the candidates. NILMTK's silhouette
never prefers one level to two (one has no silhouette), so there is none here. One-minute data need no change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from meterveil.attackers.protocol import (
    AGGREGATE,
    FloatArray,
    Meter,
    Prediction,
    check_targets,
    filled,
    truth_w,
)
from meterveil.attackers.residual import best_on_last_days, floor_w
from meterveil.attackers.states import running_levels_w
from meterveil.data.household import Household
from meterveil.errors import InputError

VERSION = 1
"""Part of the key of a stored fit; raise it when a change alters the figures of this attacker."""

FEW_APPLIANCES = 12
"""Up to here an appliance has two running levels, beyond it one (NILMTK)."""

MAX_COMBINATIONS = 2**20
"""Bounds memory: 12 appliances of 3 states, or 20 of 2."""


@dataclass(frozen=True)
class CO:
    """Attack by combinatorial optimisation."""

    floors: tuple[int, ...] = (0, 31, 61, 121)
    """Minutes of the floors to choose from; odd, or 0 for none."""
    targets: tuple[str, ...] = ()
    levels_w: Mapping[str, FloatArray] = field(default_factory=dict)
    """Appliance -> (state,) whole watts, increasing from 0."""
    floor_minutes: int = 0

    def fit(self, households: Sequence[Household], targets: Sequence[str], rng: np.random.Generator) -> Self:
        """Find each appliance's states and the best floor; nothing is random, so `rng` is left alone."""
        check_targets(households, targets)
        asked = replace(self, targets=tuple(targets))
        candidates = [replace(asked, floor_minutes=floor) for floor in self.floors]
        return best_on_last_days(candidates, households, lambda one, known: one._learned(known), targets)

    def predict(self, meter: Meter) -> Prediction:
        """Look every minute up in the sorted sums of all combinations, at once."""
        reading_w = filled(meter.reading_w)
        base_w = floor_w(reading_w, self.floor_minutes)
        watts = dict(
            zip(
                self.levels_w,
                nearest_combination(list(self.levels_w.values()), reading_w - base_w),
                strict=True,
            )
        )
        if AGGREGATE in self.targets:
            watts[AGGREGATE] = base_w + np.sum(list(watts.values()), axis=0)
        return Prediction(watts, {})

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return every appliance's states and the floor."""
        levels = {f"{name}/levels_w": levels for name, levels in self.levels_w.items()}
        return {"floor_minutes": np.asarray(self.floor_minutes), **levels}

    def restored(self, targets: Sequence[str], arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Take the states and the floor from `arrays`."""
        levels_w = {name: arrays[f"{name}/levels_w"] for name in targets if name != AGGREGATE}
        return replace(
            self, targets=tuple(targets), levels_w=levels_w, floor_minutes=int(arrays["floor_minutes"])
        )

    def _learned(self, households: Sequence[Household]) -> Self:
        appliances = [target for target in self.targets if target != AGGREGATE]
        clusters = 2 if len(appliances) <= FEW_APPLIANCES else 1
        if (clusters + 1) ** len(appliances) > MAX_COMBINATIONS:
            raise InputError(
                f"CO would have to try more than {MAX_COMBINATIONS:,} combinations of "
                f"{len(appliances)} appliances; ask for at most 20"
            )
        levels_w = {}
        for name in appliances:
            power_w = np.concatenate([truth_w(household, name) for household in households])
            levels = running_levels_w(power_w[~np.isnan(power_w)], clusters)
            levels_w[name] = np.unique(np.round(np.append(levels, 0.0)))
        return replace(self, levels_w=levels_w)


def nearest_combination(levels_w: Sequence[FloatArray], reading_w: FloatArray) -> list[FloatArray]:
    """Return what each appliance draws in the combination of levels whose sum is nearest to the reading.

    Of two sums that are as near the lower one is taken, of equal sums the first in the order of `product`.
    """
    shape = [len(levels) for levels in levels_w]
    sums_w = np.zeros(1)
    for levels in levels_w:
        sums_w = np.add.outer(sums_w, levels).ravel()
    distinct_w, first = np.unique(sums_w, return_index=True)
    found = first[np.searchsorted((distinct_w[1:] + distinct_w[:-1]) / 2.0, reading_w)]
    states = np.unravel_index(found, shape) if shape else ()
    return [levels[state] for levels, state in zip(levels_w, states, strict=True)]
