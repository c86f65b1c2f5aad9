"""How the manager learns: settings by name. `paper` is the paper's, to the letter (appendix E.4)."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from meterveil.errors import InputError

VERSION = 1
"""Raise it when a change alters what a training learns."""

DAY_MINUTES = 1440


@dataclass(frozen=True)
class Preset:
    """Fix everything about learning but the household, the probe, lambda and the seed."""

    budget_days: float = 300.0
    """Simulated days of 1,440 minutes (D6): learning ends with the first update after them."""
    learning_rate: float = 2e-5
    anneal: bool = False
    """Let the learning rate fall to zero, in proportion to what is left of the budget."""
    gamma: float = 0.99
    discount: Literal["decision", "minute"] = "decision"
    """What passes between two powers of gamma (D6)."""
    gae_lambda: float = 0.95
    horizon: int = 4096
    """Decisions of all slots together between two updates."""
    epochs: int = 4
    minibatch: int = 2048
    clip: float = 0.1
    entropy: float = 0.01
    target_kl: float | None = 0.01
    loss: str = "mse"
    """What the reward makes of a probe's error, by name; the paper does not say."""
    reward_scale: float = 1.0
    """The learner sees rewards times this; it changes the value function's task, not the best policy."""
    masked: bool = False
    """Choose among the actions that would move energy only, and idling (feasibility masking)."""
    slots: int = 64
    """Households that are simulated side by side; each begins its first day at another hour."""

    def __post_init__(self) -> None:
        if self.horizon % self.slots:
            raise InputError(
                f"a horizon of {self.horizon} decisions does not divide into {self.slots} slots; "
                "give a multiple"
            )
        if self.budget_days <= 0:
            raise InputError(f"a budget of {self.budget_days:g} days is none; give more than 0")

    @property
    def budget_minutes(self) -> int:
        """Simulated minutes after which learning ends."""
        return round(self.budget_days * DAY_MINUTES)


_FAST = Preset(
    learning_rate=1e-3,
    anneal=True,
    horizon=2048,
    epochs=10,
    minibatch=256,
    clip=0.2,
    entropy=0.005,
    target_kl=0.03,
    loss="rmse",
    reward_scale=0.1,
)

PRESETS: dict[str, Preset] = {
    "paper": Preset(),
    "fast": _FAST,
    "patient": replace(_FAST, gamma=1.0, gae_lambda=0.99),
}
"""`fast` was chosen on the validation days of the training span; docs/training.md says how.

`patient` counts the evening as much as the morning: does a budget last longer, and does that hide more?
"""


def preset(name: str) -> Preset:
    """Look a preset up."""
    if name not in PRESETS:
        raise InputError(f"there is no preset {name!r}; known are {', '.join(PRESETS)}")
    return PRESETS[name]


def from_json(values: dict[str, Any]) -> Preset:
    """Build the preset that a run wrote down."""
    known = {field.name for field in fields(Preset)}
    if set(values) != known:
        odd = sorted(set(values) ^ known)
        raise InputError(f"the settings of a run differ from this version's in {', '.join(odd)}; train anew")
    return Preset(**values)
