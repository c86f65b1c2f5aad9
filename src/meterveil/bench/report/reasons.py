"""Why figures come out otherwise than in the paper: one sentence each."""

from __future__ import annotations

_DRAINED = (
    "the paper's negative cost is mostly a battery drained by midnight, ours ends the day nearly full; the "
    "neutral cost counts neither; docs/evaluation.md"
)

REASONS: dict[str, str] = {
    "energy_cost": _DRAINED,
    "total_cost": _DRAINED,
    "training_hours": "here on two cores without a GPU; docs/training.md",
    "aggregate_delta_rmse_w": "the paper's own table of attackers gives 383.5 where this one prints 413.9",
}
"""Column -> why ours may differ from the paper's."""
