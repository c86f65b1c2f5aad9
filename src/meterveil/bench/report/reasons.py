"""Why figures cannot be measured here, or come out otherwise than in the paper: one sentence each."""

from __future__ import annotations

MISSING: dict[tuple[str, str], str] = {
    ("ukdale", "toaster"): "the data at hand hold no toaster of UK-DALE in March 2013 (D12)",
    ("ukdale", "2013-03-30 house 4"): "the data at hand hold no house 4 of UK-DALE",
}
"""Data set and row, or appliance -> why it cannot be measured."""

_DRAINED = "the paper's negative cost is mostly a battery drained by midnight; see the neutral cost (D7)"

REASONS: dict[str, str] = {
    "energy_cost": _DRAINED,
    "total_cost": _DRAINED,
    "training_hours": "here on two cores without a GPU",
    "aggregate_delta_rmse_w": "the paper's own table of attackers gives 383.5 where this one prints 413.9",
}
"""Column -> why ours may differ from the paper's."""
