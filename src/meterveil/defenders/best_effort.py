"""Kalogridis et al., "Privacy for smart meters" (SmartGridComm 2010): keep the meter where it is.

Published rule: the battery compensates every change of the load, so that the reading stays constant. Where it
is full or empty it does what it can, and the reading that results is held from there on.
Changed here: a spent daily budget counts as an empty battery, and a gap in the record keeps the last known
reading. One-minute data need no change.
"""

from dataclasses import dataclass

import numpy as np

from meterveil.core.arrays import FloatArray
from meterveil.core.executor import Command, hold_meter
from meterveil.core.rollout import View

VERSION = 1  # raise it when a change alters what this defence does


@dataclass(frozen=True)
class BestEffort:
    """Policy that holds the meter at its last reading."""

    def initial(self, batch: int) -> FloatArray:
        return np.full(batch, np.nan)

    def decide(self, view: View, memory: FloatArray) -> tuple[Command, FloatArray]:
        """Hold the last reading; before the first one, the load itself."""
        last_w = np.where(np.isnan(view.meter_w), memory, view.meter_w)
        return hold_meter(view.library, np.where(np.isnan(last_w), view.load_w, last_w)), last_w
