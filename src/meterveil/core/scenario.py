"""Scenario: load, clock and price, which do not depend on the battery, one row per household.

A row may be a household's week, one of its days, or the same day with another battery. Rows may differ in
length (days of 23 and 25 hours); `minutes` is the length of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from meterveil.core.arrays import FloatArray, IntArray
from meterveil.errors import InputError


@dataclass(frozen=True)
class Scenario:
    """Arrays of (batch, lead + minute); column `lead` is the first minute in which the battery acts."""

    load_w: FloatArray
    """Household load without the battery; NaN where it is not known."""
    minute_of_day: IntArray
    """Local civil time, 0..1439."""
    day: IntArray
    """Number of the local civil day; the throughput budget starts anew where it changes."""
    price: FloatArray
    """Currency per kWh."""
    minutes: IntArray
    """(batch,) number of minutes in which the battery acts."""
    lead: int = 0
    """Minutes of load before the start, for windows that look back."""

    @property
    def batch(self) -> int:
        return len(self.load_w)

    @property
    def horizon(self) -> int:
        """Minutes of the longest row, without the lead."""
        return int(self.load_w.shape[1]) - self.lead

    def rows(self, index: Sequence[int] | IntArray | slice) -> Scenario:
        """Pick rows, in this order, repeated if named twice."""
        picked = {f.name: getattr(self, f.name)[index] for f in fields(self) if f.name != "lead"}
        return Scenario(**picked, lead=self.lead)

    def repeated(self, count: int) -> Scenario:
        """Repeat a single row without copying it."""
        parts = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "lead"}
        views = {name: np.broadcast_to(part, (count, *part.shape[1:])) for name, part in parts.items()}
        return Scenario(**views, lead=self.lead)


def stack(scenarios: Sequence[Scenario]) -> Scenario:
    """Stack scenarios as one batch; shorter rows are padded and end earlier.

    The padding repeats the last minute with an unknown load, so that the battery idles in it.
    """
    leads = {scenario.lead for scenario in scenarios}
    if len(leads) != 1:
        raise InputError(f"scenarios to stack have leads of {sorted(leads)} minutes; give them all the same")
    width = max(scenario.load_w.shape[1] for scenario in scenarios)

    def pad(name: str) -> FloatArray:
        parts = [getattr(scenario, name) for scenario in scenarios]
        return np.concatenate([np.pad(part, ((0, 0), (0, width - part.shape[1])), mode="edge") for part in parts])

    load_w = pad("load_w")
    minutes = np.concatenate([scenario.minutes for scenario in scenarios])
    lead = leads.pop()
    load_w[np.arange(width) >= lead + minutes[:, None]] = np.nan
    return Scenario(
        load_w, pad("minute_of_day").astype(np.int64), pad("day").astype(np.int64), pad("price"), minutes, lead
    )
