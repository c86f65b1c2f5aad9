"""What a controller tells: minutes and the sums they are made of, events, and its present state."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from meterveil.core.tariff import DEGRADATION_PER_KWH
from meterveil.live.limits import KWH_PER_WS

KNOWN_SHARE = 0.5
"""Least part of a minute that must be known for its mean load to count; of the first minute, what is left of it."""

SHADOW, LIVE, PAUSED = "shadow", "live", "paused"
MODES = (SHADOW, LIVE, PAUSED)


class MinuteRecord(NamedTuple):
    """One finished minute, as it is stored."""

    utc_minute: int
    day: str  # local civil day
    load_w: float
    meter_w: float  # mean of what the meter showed
    battery_w: float
    target_w: float  # what the meter was held at; NaN where it was not
    level_w: float  # what the defence planned to show, without its decoy, whether it could or not; NaN for no plan
    soc: float
    known_s: float  # seconds of the minute with good readings
    control_s: float  # seconds of the minute in control
    cost: float  # of the battery's energy and wear
    why: str
    decoy_w: float  # what the defence planned to show on top of the level


@dataclass
class MinuteSums:
    """Sums over the running minute."""

    utc_minute: int
    begun_s: float  # monotonic
    known_s: float = 0.0
    control_s: float = 0.0
    load_ws: float = 0.0
    meter_ws: float = 0.0
    battery_ws: float = 0.0
    moved_ws: float = 0.0

    def add(self, passed_s: float, load_w: float, meter_w: float, battery_w: float, in_control: bool) -> None:
        """Add some seconds with good readings."""
        self.known_s += passed_s
        self.load_ws += load_w * passed_s
        self.meter_ws += meter_w * passed_s
        self.battery_ws += battery_w * passed_s
        if in_control:
            self.control_s += passed_s
            self.moved_ws += abs(battery_w) * passed_s

    def known_load_w(self, now_s: float) -> float:
        """Return the mean load; NaN where too little of the minute is known."""
        enough = self.known_s >= KNOWN_SHARE * min(now_s - self.begun_s, 60.0)
        return self.load_ws / self.known_s if self.known_s and enough else math.nan

    def record(
        self, day: str, price: float, soc: float, why: str, target_w: float, level_w: float, decoy_w: float
    ) -> MinuteRecord:
        """Turn the sums into the minute that is stored; only minutes with control cost something."""
        sums = (self.load_ws, self.meter_ws, self.battery_ws)
        load_w, meter_w, battery_w = (total / self.known_s if self.known_s else math.nan for total in sums)
        energy_kwh, moved_kwh = self.battery_ws * KWH_PER_WS, self.moved_ws * KWH_PER_WS
        cost = energy_kwh * price + moved_kwh * DEGRADATION_PER_KWH if self.control_s else 0.0
        return MinuteRecord(
            self.utc_minute, day, load_w, meter_w, battery_w, target_w, level_w, soc, self.known_s, self.control_s,
            cost, why, decoy_w,
        )  # fmt: skip


class Event(NamedTuple):
    """Something that a household or a bug report needs to know."""

    utc_s: float
    name: str
    text: str


@dataclass
class Status:
    """State of a home for people: dashboard, Home Assistant, bug reports."""

    mode: str = SHADOW
    in_control: bool = False
    fault: str = ""
    why: str = "starting"
    decoy: str = ""
    meter_w: float = math.nan
    battery_w: float = math.nan
    load_w: float = math.nan
    soc: float = math.nan
    target_w: float = math.nan
    command_w: float = math.nan
    moved_kwh: float = 0.0
    budget_kwh: float = math.inf
    writes: int = 0
    utc_s: float = 0.0
