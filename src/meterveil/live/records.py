"""What a controller tells: finished minutes, events, and its present state."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

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
