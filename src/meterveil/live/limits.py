"""Clamps on every command: battery limits with hysteresis, budget of the civil day, register writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from zoneinfo import ZoneInfo

import numpy as np

from meterveil.core import battery as bt
from meterveil.core.battery import Battery, BatteryState

HYSTERESIS = 0.02
"""A full or empty battery rests until its SoC is so far inside the range again."""

RESERVED_WRITES = 2
"""Writes of a day that are kept for releasing the battery."""

KWH_PER_WS = 1.0 / 3.6e6


@dataclass
class Ledger:
    """What was used up on each local civil day; a clock that jumps back finds the day as it left it."""

    timezone: str
    moved_kwh: dict[date, float] = field(default_factory=dict)
    writes: dict[date, int] = field(default_factory=dict)

    def local(self, utc_s: float) -> datetime:
        """Return local civil time."""
        return datetime.fromtimestamp(utc_s, ZoneInfo(self.timezone))

    def move(self, day: date, power_w: float, seconds: float) -> None:
        """Count energy that the battery moved, in or out."""
        self.moved_kwh[day] = self.moved_kwh.get(day, 0.0) + abs(power_w) * seconds * KWH_PER_WS

    def write(self, day: date) -> None:
        """Count a command that reached the device."""
        self.writes[day] = self.writes.get(day, 0) + 1

    def forget(self, before: date) -> None:
        """Drop days that no clock jump reaches."""
        self.moved_kwh = {day: kwh for day, kwh in self.moved_kwh.items() if day >= before}
        self.writes = {day: count for day, count in self.writes.items() if day >= before}

    def document(self) -> dict[str, dict[str, float]]:
        """Return the content as JSON values."""
        return {
            "moved_kwh": {day.isoformat(): kwh for day, kwh in self.moved_kwh.items()},
            "writes": {day.isoformat(): count for day, count in self.writes.items()},
        }

    def restore(self, document: Mapping[str, Mapping[str, float]]) -> None:
        """Read what `document` returned, after a restart."""
        self.moved_kwh = {date.fromisoformat(day): kwh for day, kwh in document.get("moved_kwh", {}).items()}
        self.writes = {date.fromisoformat(day): int(n) for day, n in document.get("writes", {}).items()}


class Hysteresis:
    """Memory of a full or an empty battery, so that it does not chatter at its limit."""

    def __init__(self) -> None:
        self.full = False
        self.empty = False

    def clamp(self, battery: Battery, soc: float, request_w: float) -> float:
        """Refuse to charge a full battery or to discharge an empty one until the SoC is well inside the range."""
        low, high = float(battery.soc_min), float(battery.soc_max)
        self.full = soc >= high or (self.full and soc > high - HYSTERESIS)
        self.empty = soc <= low or (self.empty and soc < low + HYSTERESIS)
        if self.full:
            request_w = min(request_w, 0.0)
        return max(request_w, 0.0) if self.empty else request_w


def clamp(battery: Battery, soc: float, moved_kwh: float, request_w: float, load_w: float) -> float:
    """Return what `core.battery` delivers of a request: the same limits as in every simulation."""
    state = BatteryState(np.array([soc]), np.array([moved_kwh]))
    _, delivery = bt.step(battery, state, np.array([request_w]), np.array([load_w]))
    return float(delivery.power_w[0])
