"""Homes that never were, from two that are: appliances of one on the background of another, rescaled.

Two homes are few. A network that sees them only as they are learns their base load, their fridge and which
kettle goes with which oven. Mixing, scaling and strange loads teach it the shapes instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from meterveil.audit.features import WIDE_MINUTES, FloatArray, features, lowest
from meterveil.data.household import Household
from meterveil.data.protocols import on_threshold_w

MINUTES = 1440
"""Length of an example."""

MIXED_SHARE = 0.6
"""Of the examples, this share takes every appliance from another home or another day than its background."""
NEAR_A_USE_SHARE = 0.6
"""Of the appliances of a mixed example, this share is taken from a stretch with a use in it."""

CALM_W, CALM_MINUTES = 300.0, 91
"""A background below this for so long, around a minute, runs no washing machine."""
PACE_SPREAD = 0.15
GAIN_SPREAD = 0.2
"""Log-normal spreads of how fast and how strong an appliance of another home is."""


class Source(NamedTuple):
    """A home to draw from, (minute,); zero where unknown."""

    rest_w: FloatArray
    """The meter without the appliances that are asked for."""
    targets_w: dict[str, FloatArray]
    """Only those that this home meters."""
    starts: npt.NDArray[np.int64]
    """Minutes at which an example without a gap may begin."""
    use_starts: dict[str, npt.NDArray[np.int64]]
    """Those of them from which the example holds a use."""
    calm: npt.NDArray[np.bool_]
    """(minute,) whether the background is too small, for long enough, to hide an appliance that heats."""


class Batch(NamedTuple):
    """Examples; a label counts only where its weight is one."""

    seen: npt.NDArray[np.float32]  # (batch, channel, minute)
    on: npt.NDArray[np.float32]  # (batch, appliance, minute)
    weight: npt.NDArray[np.float32]  # (batch, appliance, minute)


def source_of(household: Household, targets: Sequence[str]) -> Source:
    """Split a home into its background and its appliances."""
    metered = {
        name: household.appliances_w[name]
        for name in targets
        if name in household.appliances_w and np.mean(~np.isnan(household.appliances_w[name])) > 0.5
    }
    total_w = np.sum(list(metered.values()), axis=0)
    known = ~np.isnan(household.aggregate_w + total_w)
    runs = np.convolve(known, np.ones(MINUTES), mode="valid")
    starts = np.flatnonzero(runs == MINUTES)
    targets_w = {name: np.nan_to_num(watts) for name, watts in metered.items()}
    uses = {name: _starts_with_a_use(watts, name, starts) for name, watts in targets_w.items()}
    rest_w = np.maximum(np.nan_to_num(household.aggregate_w - total_w), 0.0)
    return Source(rest_w, targets_w, starts, uses, _calm(rest_w))


def draw(sources: Sequence[Source], targets: Sequence[str], count: int, rng: np.random.Generator) -> Batch:
    """Draw examples: some are homes as they are, more are homes as they might be."""
    drawn = [_example(sources, targets, rng) for _ in range(count)]
    reading_w, on, weight = (np.stack(part) for part in zip(*drawn, strict=True))
    return Batch(features(reading_w), on.astype(np.float32), weight.astype(np.float32))


def _example(
    sources: Sequence[Source], targets: Sequence[str], rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, FloatArray]:
    home = sources[int(rng.integers(len(sources)))]
    start = int(rng.choice(home.starts))
    mixed = rng.random() < MIXED_SHARE
    reading_w = _cut(home.rest_w, start) * rng.uniform(0.6, 1.4) + _strange_w(rng)
    on, weight = np.zeros((len(targets), MINUTES)), np.ones((len(targets), MINUTES))
    for row, name in enumerate(targets):
        whole = name in home.targets_w
        if mixed or whole:
            watts = _other(sources, name, rng) if mixed else _cut(home.targets_w[name], start)
            on[row] = watts >= on_threshold_w(name)
            reading_w = reading_w + watts * rng.lognormal(0.0, GAIN_SPREAD)
        if not whole:
            hidden = ~home.calm[start : start + MINUTES]  # may be a use that this home does not meter
            weight[row] = np.where(hidden, on[row], 1.0)
    return np.maximum(reading_w + rng.normal(0.0, rng.uniform(0.0, 15.0), MINUTES), 0.0), on, weight


def _other(sources: Sequence[Source], name: str, rng: np.random.Generator) -> FloatArray:
    """Take an appliance from any home that meters it, hurried only where all it may reach is known."""
    owners = [source for source in sources if name in source.targets_w]
    owner = owners[int(rng.integers(len(owners)))]
    near = rng.random() < NEAR_A_USE_SHARE and len(owner.use_starts[name])
    start = int(rng.choice(owner.use_starts[name] if near else owner.starts))
    pace = min(rng.lognormal(0.0, PACE_SPREAD), 2.0 if start + MINUTES in owner.starts else 1.0)
    at = start + pace * np.arange(MINUTES)
    return np.asarray(np.interp(at, np.arange(len(owner.rest_w)), owner.targets_w[name]))


def _strange_w(rng: np.random.Generator) -> FloatArray:
    """Draw loads that none of the appliances is: heaters, irons, ovens, showers."""
    watts = np.zeros(MINUTES)
    for _ in range(rng.poisson(3.0)):
        start, length = int(rng.integers(MINUTES)), int(np.exp(rng.uniform(0.0, np.log(90.0))))
        level_w = np.exp(rng.uniform(np.log(60.0), np.log(9000.0)))
        if level_w > 300.0 and length < 10:
            continue  # such a load is a kettle or a microwave to any reader
        period = int(rng.integers(2, 30))
        pulsing = rng.random() < 0.4
        on = (np.arange(length) % period < max(period // 2, 1)) if pulsing else np.ones(length)
        watts[start : start + length] += (level_w * on)[: MINUTES - start]
    return watts


def _calm(rest_w: FloatArray) -> npt.NDArray[np.bool_]:
    above_w = rest_w - lowest(rest_w, WIDE_MINUTES)
    return np.asarray(-lowest(-above_w, CALM_MINUTES) < CALM_W)


def _cut(watts: FloatArray, start: int) -> FloatArray:
    return watts[start : start + MINUTES]


def _starts_with_a_use(watts: FloatArray, name: str, starts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    used = np.concatenate([[0], np.cumsum(watts >= on_threshold_w(name))])
    return starts[used[starts + MINUTES] > used[starts]]
