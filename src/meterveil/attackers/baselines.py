"""The floors: what can be said about a home's appliances without reading its meter.

An attacker that does not beat `Mean` and `AlwaysOff` has learned nothing. `Prior` knows the hour, the weekday
and each appliance's habits from the training days: no defence can push an adaptive attacker below it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from meterveil.attackers.decisions import recentred
from meterveil.attackers.habits import Profile, learn_profile
from meterveil.attackers.protocol import AGGREGATE, Meter, Prediction, check_targets, truth_w
from meterveil.data.household import Household

VERSION = 1
"""Part of the key of a stored fit; raise it when a change alters the figures of these predictors."""


@dataclass(frozen=True)
class Mean:
    """Say the training mean, always."""

    mean_w: Mapping[str, float] = field(default_factory=dict)

    def fit(self, households: Sequence[Household], targets: Sequence[str], rng: np.random.Generator) -> Self:
        """Average every target over the known minutes; nothing is random."""
        check_targets(households, targets)
        power_w = {name: np.concatenate([truth_w(one, name) for one in households]) for name in targets}
        return replace(self, mean_w={name: float(np.nanmean(values)) for name, values in power_w.items()})

    def predict(self, meter: Meter) -> Prediction:
        """Repeat the means."""
        shape = meter.reading_w.shape
        return Prediction({name: np.full(shape, mean_w) for name, mean_w in self.mean_w.items()}, {})

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the means."""
        return {name: np.asarray(mean_w) for name, mean_w in self.mean_w.items()}

    def restored(self, targets: Sequence[str], arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Take the means from `arrays`."""
        return replace(self, mean_w={name: float(arrays[name]) for name in targets})


@dataclass(frozen=True)
class AlwaysOff:
    """Say that nothing ever runs."""

    targets: tuple[str, ...] = ()

    def fit(self, households: Sequence[Household], targets: Sequence[str], rng: np.random.Generator) -> Self:
        """Remember the names."""
        check_targets(households, targets)
        return replace(self, targets=tuple(targets))

    def predict(self, meter: Meter) -> Prediction:
        """Say 0 W."""
        return Prediction({name: np.zeros(meter.reading_w.shape) for name in self.targets}, {})

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return nothing: nothing was learned."""
        return {}

    def restored(self, targets: Sequence[str], arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Remember the names."""
        return replace(self, targets=tuple(targets))


@dataclass(frozen=True)
class Prior:
    """Say what is usual at this minute of this kind of day, without looking at the meter."""

    profiles: Mapping[str, Profile] = field(default_factory=dict)

    def fit(self, households: Sequence[Household], targets: Sequence[str], rng: np.random.Generator) -> Self:
        """Learn every target's day; nothing is random."""
        check_targets(households, targets)
        return replace(self, profiles={name: learn_profile(households, name) for name in targets})

    def predict(self, meter: Meter) -> Prediction:
        """Look the minutes up; of `meter` only the clock is used."""
        weekend = (meter.weekday >= 5).astype(np.int64)
        watts, on = {}, {}
        for name, (mean_w, probability, threshold) in self.profiles.items():
            watts[name] = mean_w[weekend, meter.minute_of_day]
            if name != AGGREGATE:
                on[name] = recentred(probability, threshold)[weekend, meter.minute_of_day]
        return Prediction(watts, on)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return every target's day."""
        return {
            f"{name}/{part}": np.asarray(values)
            for name, profile in self.profiles.items()
            for part, values in profile._asdict().items()
        }

    def restored(self, targets: Sequence[str], arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Take the days from `arrays`."""
        profiles = {
            name: Profile(arrays[f"{name}/mean_w"], arrays[f"{name}/on"], float(arrays[f"{name}/threshold"]))
            for name in targets
        }
        return replace(self, profiles=profiles)
