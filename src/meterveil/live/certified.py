"""Certificate of a live day, computed from what the meter really showed (D18)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

import numpy as np

from meterveil.core.certificate import Rules, certificate
from meterveil.core.rollout import Policy
from meterveil.live.records import MinuteRecord


def certificate_of(policy: Policy, minutes: Sequence[MinuteRecord], timezone: str) -> float | None:
    """Return the bits that one civil day's minutes tell at most; None for a defence without a certificate.

    A minute without a reading, or with another mean than level plus decoy to the watt, counts as missed. So a real
    battery, which is some watts off, earns a far larger figure than a simulated one.
    """
    rules = getattr(policy, "rules", None)
    if not isinstance(rules, Rules) or not minutes:
        return None
    zone = ZoneInfo(timezone)
    local = [datetime.fromtimestamp(60 * minute.utc_minute, zone) for minute in minutes]
    meter_w, target_w, level_w = (
        np.array([[math.nan if value is None else value for value in column]], dtype=np.float64)
        for column in zip(*((m.meter_w, m.target_w, m.level_w) for m in minutes), strict=True)
    )
    decoy_w = np.nan_to_num(target_w - level_w)
    clock = np.array([[moment.hour * 60 + moment.minute for moment in local]])
    found = certificate(rules, meter_w, level_w, decoy_w, clock, np.zeros_like(clock))
    return float(found.bits[0, 0])
