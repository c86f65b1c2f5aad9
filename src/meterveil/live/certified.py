"""Certificates of a live day: what the readings of a named reader tell at most, from what the meter showed (D18).

A real battery is some watts off the plan in every minute, so a reader of minutes in whole watts learns much. Most
meters send coarser readings; `core.reader_certificate` counts what those tell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

import numpy as np

from meterveil.core.certificate import Rules
from meterveil.core.reader_certificate import Day, Reader, reader_bits
from meterveil.core.rollout import Policy
from meterveil.live.records import MinuteRecord

WHOLE_S = 58.0
"""A minute with fewer seconds of good readings counts as unknown."""

READERS = (
    Reader("half hours in 10 Wh", 30, 20.0),
    Reader("half hours in 1 Wh", 30, 2.0),
    Reader("quarter hours in 1 Wh", 15, 4.0),
    Reader("minutes in 10 W", 1, 10.0),
    Reader("minutes in 1 W", 1, 1.0),
)
"""Usual readers, the coarsest first: suppliers in Britain, in Germany, in-home displays."""


def day_so_far(rules: Rules, minutes: Sequence[MinuteRecord], timezone: str) -> Day:
    """Lay the stored minutes of one civil day on its clock, from midnight to the last of them.

    A minute that was not recorded is unknown; a level is valid until another one is recorded.
    """
    zone = ZoneInfo(timezone)
    midnight = datetime.fromisoformat(minutes[-1].day).replace(tzinfo=zone)
    first = int(midnight.timestamp()) // 60
    count = minutes[-1].utc_minute - first + 1
    meter_w, level_w, decoy_w = (np.full(count, math.nan) for _ in range(3))
    for minute in minutes:
        at = minute.utc_minute - first
        if not 0 <= at < count:  # a clock that was set back
            continue
        known = minute.known_s >= WHOLE_S and minute.meter_w is not None
        meter_w[at] = minute.meter_w if known else math.nan
        level_w[at], decoy_w[at] = (math.nan if value is None else value for value in (minute.level_w, minute.decoy_w))
    local = [datetime.fromtimestamp(60 * (first + at), zone) for at in range(count)]
    clock = np.array([moment.hour * 60 + moment.minute for moment in local])
    choice = rules.scheduled(clock)
    choice[0] = True  # a day is described alone
    return Day(meter_w, level_w, np.nan_to_num(decoy_w), choice)


def certificates(policy: Policy, minutes: Sequence[MinuteRecord], timezone: str) -> dict[str, float]:
    """Return the bits of one civil day for every usual reader, by name; nothing for a defence without a plan."""
    rules = getattr(policy, "rules", None)
    if not isinstance(rules, Rules) or not minutes:
        return {}
    day = day_so_far(rules, minutes, timezone)
    return {reader.name: reader_bits(rules, day, reader) for reader in READERS}
