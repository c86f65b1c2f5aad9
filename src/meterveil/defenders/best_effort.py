"""Kalogridis et al., "Privacy for smart meters" (SmartGridComm 2010): keep the meter where it is.

Published rule: the battery makes up for every change of the load, so that the reading stays what it was;
where it is full or empty it does what it still can, and the reading so reached is kept from there on.
Adjusted here: a daily budget that is spent ends the effort as an empty battery does, and over a gap in the
record the last known reading is kept. One-minute data need no change.
"""

from dataclasses import dataclass

import numpy as np

from meterveil.core.arrays import FloatArray
from meterveil.core.executor import Command, hold_meter
from meterveil.core.rollout import View

VERSION = 1
"""Raise it when a change alters what this defence does."""


@dataclass(frozen=True)
class BestEffort:
    """Hold the meter at its last reading."""

    def initial(self, batch: int) -> FloatArray:
        """Know no reading yet."""
        return np.full(batch, np.nan)

    def decide(self, view: View, memory: FloatArray) -> tuple[Command, FloatArray]:
        """Ask for the last reading again; before the first one, for the load itself."""
        last_w = np.where(np.isnan(view.meter_w), memory, view.meter_w)
        return hold_meter(view.library, np.where(np.isnan(last_w), view.load_w, last_w)), last_w
