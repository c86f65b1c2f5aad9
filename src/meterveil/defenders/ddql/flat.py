"""DDQL-flat (Shateri et al., "Privacy-cost management in smart meters using deep RL", ISGT Europe 2020).

Every minute the meter is to show what the household draws on average; what is missed, in kW, is the penalty.
The level is the mean of the training days; the distance is not squared, lest one kettle outweigh an hour.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meterveil.core.arrays import FloatArray
from meterveil.core.scenario import Scenario
from meterveil.defenders.runs import Arrays


@dataclass(frozen=True)
class FlatSignal:
    """Pay for a meter near a level; there is nothing to learn in that."""

    level_w: float

    @classmethod
    def of(cls, scenario: Scenario) -> FlatSignal:
        """Take the mean of the days that are learned from for the level."""
        return cls(float(np.nanmean(scenario.load_w[:, scenario.lead :])))

    def begin(self, batch: int) -> None:
        """Remember nothing of another day."""

    def score(self, load_w: FloatArray, meter_w: FloatArray) -> FloatArray:
        """Return minus the distance from the level in kW; arrays are (minute, batch)."""
        del load_w
        return -np.abs(meter_w - self.level_w) / 1000.0

    def learn(self, load_w: FloatArray, meter_w: FloatArray) -> float:
        """Learn nothing; the loss is none."""
        del load_w, meter_w
        return 0.0

    def arrays(self) -> Arrays:
        """Have no state."""
        return {}

    def restore(self, arrays: Arrays) -> None:
        """Have no state."""
