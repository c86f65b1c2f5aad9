"""Training examples of the audit model: appliances of one home on the background of another, rescaled.

Two homes are few. A network that sees them unchanged learns their base load and their combinations of
appliances. Mixed and rescaled examples teach it the shapes of the appliances instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from meterveil.audit.model import WIDE_MINUTES, features, lowest
from meterveil.core.arrays import BoolArray, FloatArray, IntArray
from meterveil.data.household import Household
from meterveil.data.protocols import on_threshold_w

MINUTES = 1440
"""Length of an example."""
MIXED_SHARE = 0.6
"""Share of examples whose appliances come from another home or day than their background."""
NEAR_A_USE_SHARE = 0.6
"""Share of the appliances of a mixed example that come from a stretch with a use in it."""
CALM_W, CALM_MINUTES = 300.0, 91
"""A background below this power for this long around a minute contains no washing machine."""
PACE_SPREAD, GAIN_SPREAD = 0.15, 0.2
"""Log-normal spreads of the duration and of the power of an appliance in another home."""


class Source(NamedTuple):
    """Home to draw from, (minute,); zero where unknown."""

    rest_w: FloatArray
    """The meter without the target appliances."""
    targets_w: dict[str, FloatArray]
    """Only the targets that this home meters."""
    starts: IntArray
    """Minutes at which an example without a gap may begin."""
    use_starts: dict[str, IntArray]
    """Those from which the example contains a use."""
    calm: BoolArray
    """(minute,) whether the background is too small to contain an unmetered heating appliance."""


class Batch(NamedTuple):
    """Examples as float32; a label counts only where its weight is one."""

    seen: np.ndarray  # (batch, channel, minute)
    on: np.ndarray  # (batch, appliance, minute)
    weight: np.ndarray  # (batch, appliance, minute)


def source_of(household: Household, targets: Sequence[str]) -> Source:
    """Split a home into its background and its appliances."""
    metered = {
        name: household.appliances_w[name]
        for name in targets
        if name in household.appliances_w and np.mean(~np.isnan(household.appliances_w[name])) > 0.5
    }
    total_w = np.sum(list(metered.values()), axis=0)
    known = ~np.isnan(household.aggregate_w + total_w)
    starts = np.flatnonzero(np.convolve(known, np.ones(MINUTES), mode="valid") == MINUTES)
    targets_w = {name: np.nan_to_num(watts) for name, watts in metered.items()}
    uses = {name: _starts_with_a_use(watts, name, starts) for name, watts in targets_w.items()}
    rest_w = np.maximum(np.nan_to_num(household.aggregate_w - total_w), 0.0)
    return Source(rest_w, targets_w, starts, uses, _calm(rest_w))


def draw(sources: Sequence[Source], targets: Sequence[str], count: int, rng: np.random.Generator) -> Batch:
    """Draw examples: some are measured homes, more are mixed ones."""
    drawn = [_example(sources, targets, rng) for _ in range(count)]
    reading_w, on, weight = (np.stack(part) for part in zip(*drawn, strict=True))
    return Batch(features(reading_w), on.astype(np.float32), weight.astype(np.float32))


def _example(
    sources: Sequence[Source], targets: Sequence[str], rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, FloatArray]:
    home = sources[int(rng.integers(len(sources)))]
    start = int(rng.choice(home.starts))
    mixed = rng.random() < MIXED_SHARE
    reading_w = _cut(home.rest_w, start) * rng.uniform(0.6, 1.4) + _other_loads_w(rng)
    on, weight = np.zeros((len(targets), MINUTES)), np.ones((len(targets), MINUTES))
    for row, name in enumerate(targets):
        metered = name in home.targets_w
        if mixed or metered:
            watts = _borrowed_w(sources, name, rng) if mixed else _cut(home.targets_w[name], start)
            on[row] = watts >= on_threshold_w(name)
            reading_w = reading_w + watts * rng.lognormal(0.0, GAIN_SPREAD)
        if not metered:
            maybe_used = ~home.calm[start : start + MINUTES]  # the background may contain an unmetered use
            weight[row] = np.where(maybe_used, on[row], 1.0)
    return np.maximum(reading_w + rng.normal(0.0, rng.uniform(0.0, 15.0), MINUTES), 0.0), on, weight


def _borrowed_w(sources: Sequence[Source], name: str, rng: np.random.Generator) -> FloatArray:
    """Take an appliance from any home that meters it; speed it up only where the next day is known."""
    owners = [source for source in sources if name in source.targets_w]
    owner = owners[int(rng.integers(len(owners)))]
    near = rng.random() < NEAR_A_USE_SHARE and len(owner.use_starts[name])
    start = int(rng.choice(owner.use_starts[name] if near else owner.starts))
    pace = min(rng.lognormal(0.0, PACE_SPREAD), 2.0 if start + MINUTES in owner.starts else 1.0)
    at = start + pace * np.arange(MINUTES)
    return np.asarray(np.interp(at, np.arange(len(owner.rest_w)), owner.targets_w[name]))


def _other_loads_w(rng: np.random.Generator) -> FloatArray:
    """Draw loads that are none of the targets: heaters, irons, ovens, showers."""
    watts = np.zeros(MINUTES)
    for _ in range(rng.poisson(3.0)):
        start, length = int(rng.integers(MINUTES)), int(np.exp(rng.uniform(0.0, np.log(90.0))))
        level_w = np.exp(rng.uniform(np.log(60.0), np.log(9000.0)))
        if level_w > 300.0 and length < 10:
            continue  # cannot be told from a kettle or a microwave
        period = int(rng.integers(2, 30))
        pulsing = rng.random() < 0.4
        on = (np.arange(length) % period < max(period // 2, 1)) if pulsing else np.ones(length)
        watts[start : start + length] += (level_w * on)[: MINUTES - start]
    return watts


def _calm(rest_w: FloatArray) -> BoolArray:
    above_w = rest_w - lowest(rest_w, WIDE_MINUTES)
    return np.asarray(-lowest(-above_w, CALM_MINUTES) < CALM_W)


def _cut(watts: FloatArray, start: int) -> FloatArray:
    return watts[start : start + MINUTES]


def _starts_with_a_use(watts: FloatArray, name: str, starts: IntArray) -> IntArray:
    used = np.concatenate([[0], np.cumsum(watts >= on_threshold_w(name))])
    return np.asarray(starts[used[starts + MINUTES] > used[starts]])
