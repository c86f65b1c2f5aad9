"""Readings of meter and battery brought to the same time: the household's load is their difference."""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from meterveil.live.follower import FollowerSettings, FollowerState, power_path
from meterveil.live.ports import BatteryReading, MeterReading

KEPT_S = 30.0
"""How far back battery readings are kept, to find the one at the time of a meter reading."""


class Alignment:
    """Newest readings of one home."""

    def __init__(self, settings: FollowerSettings) -> None:
        self.load_w = math.nan
        self.battery_w = math.nan  # at the time of the newest meter reading
        self._settings = settings
        self._meter: MeterReading | None = None
        self._paired_s = math.nan
        self._batteries: deque[tuple[float, float]] = deque()  # (time, power)

    def in_order(self, meter: MeterReading, fresh_s: float) -> tuple[MeterReading, bool]:
        """Return the newest reading so far, and whether this one came after it; a stale one is returned as it is."""
        if self._meter is not None and fresh_s <= meter.at_s < self._meter.at_s:
            return self._meter, False
        self._meter = meter
        return meter, True

    def pair(self, meter: MeterReading, battery: BatteryReading, state: FollowerState) -> None:
        """Find the load: a new meter reading minus the battery's power at that time; between readings it stands.

        A battery whose reading is late is believed to follow the commands that it was given since.
        """
        seen = self._batteries
        if not seen or battery.at_s > seen[-1][0]:
            seen.append((battery.at_s, battery.power_w))
        while seen[0][0] < battery.at_s - KEPT_S:
            seen.popleft()
        if meter.at_s == self._paired_s:
            return
        self._paired_s = meter.at_s
        last_s, last_w = seen[-1]
        if meter.at_s <= last_s:
            at_s, power_w = zip(*seen, strict=True)
            self.battery_w = float(np.interp(meter.at_s, at_s, power_w))
        else:
            self.battery_w = [last_w, *power_path(self._settings, state, last_w, last_s, meter.at_s)][-1]
        self.load_w = meter.power_w - self.battery_w
