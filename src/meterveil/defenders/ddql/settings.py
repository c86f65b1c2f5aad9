"""How the DDQL defences learn: settings by name, and the battery powers that they choose from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import Literal

import numpy as np

from meterveil.core.arrays import FloatArray
from meterveil.core.battery import Battery
from meterveil.errors import InputError

VERSION = 1
"""Raise it when a change alters what a training learns."""


@dataclass(frozen=True)
class Settings:
    """Fix how a DDQL defence learns; the defaults are the published ones, spread over many days at once."""

    epochs: int = 12
    """Each lets `slots` days pass side by side: 768 days, published are 600 to 800."""
    slots: int = 64
    block_minutes: int = 120
    """Minutes of each day between two rounds of updates."""
    updates: int = 64
    """In each round: one for every 120 minutes of every day, as published."""
    minibatch: int = 128
    learning_rate: float = 2.5e-4
    optimiser: Literal["rmsprop", "adam"] = "rmsprop"
    anneal: bool = False
    """Let the learning rate fall to zero with the last epoch."""
    gamma: float = 1.0
    """Discount of a minute."""
    target_every: int = 62
    """Updates until the target network follows: 7,500 minutes as published."""
    buffer: int = 150_000
    hidden: int = 64
    step_w: float = 50.0
    """Distance of two battery powers."""
    explore_share: float = 0.1
    """Share of the epochs over which the chance of a random action falls to `explore_least`."""
    explore_least: float = 0.05
    near_share: float = 0.0
    """Share of the random actions that are taken near the best one instead of anywhere."""
    restart_share: float = 0.0
    """Share of the batteries that find themselves in another state at the beginning of a block.

    A random power spends a day's budget within hours; else, evenings are only met with nothing left."""
    h_hidden: int = 44
    h_layers: int = 2
    h_learning_rate: float = 1e-3
    h_passes: int = 1
    """How often the H-network reads the days of an epoch (DDQL-MI)."""

    def __post_init__(self) -> None:
        counts = (
            "epochs",
            "slots",
            "block_minutes",
            "updates",
            "minibatch",
            "target_every",
            "buffer",
            "h_passes",
        )
        for name in counts:
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}; give at least 1")
        if not 0.0 <= self.gamma <= 1.0:
            raise InputError(f"gamma is {self.gamma:g}; allowed is 0 to 1")
        if not (self.learning_rate > 0.0 and self.step_w > 0.0):
            raise InputError(
                f"the learning rate is {self.learning_rate:g}, the step {self.step_w:g} W; give more than 0"
            )

    def within(self, budget_days: float) -> Settings:
        """Spend so many simulated days; fewer side by side are updated from less often."""
        if budget_days <= 0:
            raise InputError(f"a budget of {budget_days:g} days is none; give more than 0")
        slots = min(self.slots, ceil(budget_days))
        updates = ceil(self.updates * slots / self.slots)
        return replace(self, slots=slots, epochs=ceil(budget_days / slots), updates=updates)


PRESETS: dict[str, Settings] = {
    "paper": Settings(),
    "fast": Settings(
        epochs=10,
        slots=128,
        updates=100,
        minibatch=512,
        learning_rate=1e-3,
        optimiser="adam",
        anneal=True,
        gamma=0.95,
        target_every=120,
        buffer=300_000,
        explore_share=0.3,
        near_share=0.5,
        restart_share=0.5,
        h_learning_rate=3e-3,
        h_passes=2,
    ),
}
"""`paper` is what is published of DDQL; `fast` was chosen on validation days (docs/defences.md)."""


def preset(name: str) -> Settings:
    """Look settings up."""
    if name not in PRESETS:
        raise InputError(f"there is no preset {name!r}; known are {', '.join(PRESETS)}")
    return PRESETS[name]


def powers_w(battery: Battery, step_w: float) -> FloatArray:
    """List the powers to choose from, strongest discharge first; zero is one of them."""
    lowest, highest = (int(np.max(limit) // step_w) for limit in (battery.discharge_w, battery.charge_w))
    if lowest + highest == 0:
        raise InputError(
            f"this battery can do nothing in steps of {step_w:g} W: it charges with "
            f"{np.max(battery.charge_w):g} W and discharges with {np.max(battery.discharge_w):g} W; give it "
            "power, or smaller steps"
        )
    return np.arange(-lowest, highest + 1, dtype=np.float64) * step_w
