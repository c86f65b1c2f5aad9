"""What a column is called, which direction protects, and how near to the paper counts as reproduced.

All tolerances of the report stand here and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal[
    "reproduced", "better", "worse", "differs", "not measurable here", "not run yet", "beyond the paper"
]
"""`differs` is for figures whose direction is neither good nor bad, such as what is read undefended."""

MARKS: dict[Verdict, str] = {
    "reproduced": "≈",
    "better": "▲",
    "worse": "▼",
    "differs": "≠",
    "not measurable here": "∅",
    "not run yet": "…",
    "beyond the paper": "",
}
"""Verdict -> the sign that stands before our figure."""

RELATIVE = 0.10
"""A figure within this share of the paper's is reproduced."""


@dataclass(frozen=True)
class Column:
    """Say how a figure is written and judged."""

    words: str
    digits: int
    better: Literal[1, -1, 0]
    """1 where more is better for the household, -1 where less is, 0 where it is neither."""
    absolute: float
    """A figure this near to the paper's is reproduced, however small the paper's is."""


def _points(words: str, better: Literal[1, -1, 0] = 1) -> Column:
    return Column(words, 1, better, 5.0)


def _money(words: str) -> Column:
    return Column(words, 3, -1, 0.05)


COLUMNS: dict[str, Column] = {
    "rmse_increase_percent": _points("RMSE Inc. %"),
    "mae_increase_percent": _points("MAE Inc. %"),
    "sae_increase_percent": _points("SAE Inc. %"),
    "f1_reduction_percent": _points("F1 Red. %"),
    "difference": _points("points"),
    "f1_difference": Column("F1", 3, -1, 0.05),
    "rmse_significant": Column("RMSE sig.", 0, 1, 0.10),
    "mae_significant": Column("MAE sig.", 0, 1, 0.10),
    "sae_significant": Column("SAE sig.", 0, 1, 0.10),
    "f1_significant": Column("F1 sig.", 0, 1, 0.10),
    "aggregate_delta_rmse_w": Column("aggregate ΔRMSE, W", 1, 1, 20.0),
    "rmse_raw_w": Column("RMSE raw, W", 1, 0, 5.0),
    "rmse_masked_w": Column("RMSE masked, W", 1, 1, 5.0),
    "f1_raw": Column("F1 raw", 2, 0, 0.05),
    "f1_masked": Column("F1 masked", 2, -1, 0.05),
    "energy_cost": _money("energy cost"),
    "degradation_cost": _money("wear"),
    "total_cost": _money("total cost"),
    "soc_neutral_cost": _money("neutral cost"),
    "training_hours": Column("training, h", 2, -1, 0.1),
    "throughput_kwh": Column("kWh a day", 2, 0, 0.2),
    "soc_end": Column("SoC at midnight", 2, 0, 0.05),
    "strongest_f1": Column("F1 of the strongest", 2, -1, 0.05),
    "f1_leak": Column("leak", 2, -1, 0.05),
    "event_f1": Column("events F1", 2, -1, 0.05),
    "information_bits": Column("bits", 3, -1, 0.01),
    "rmse_delta": Column("ΔRMSE, W", 1, 1, 5.0),
    "mae_delta": Column("ΔMAE, W", 1, 1, 2.0),
    "sae_delta": Column("ΔSAE", 2, 1, 0.1),
    "f1_delta": Column("ΔF1", 2, -1, 0.05),
}
"""Column of a card, or what is computed from several -> how it is written and judged."""


def is_count(column: str) -> bool:
    """Tell whether a column counts cases: counts compare as shares, since the data hold fewer cases (D12)."""
    return column.endswith("_significant")


def judge(column: str, paper: float | None, ours: float, allowance: float = 0.0) -> Verdict:
    """Hold our figure against the paper's; `allowance` is what seeds alone may move it."""
    if paper is None:
        return "beyond the paper"
    known = COLUMNS[column]
    lead = ours - paper
    if abs(lead) <= tolerance(column, paper, allowance) + 1e-9:  # a figure at the edge is within
        return "reproduced"
    if known.better == 0:
        return "differs"
    return "better" if lead * known.better > 0 else "worse"


def tolerance(column: str, paper: float, allowance: float = 0.0) -> float:
    """Say how far from the paper's figure is still reproduced."""
    return max(COLUMNS[column].absolute, RELATIVE * abs(paper), allowance)


def tolerance_rows() -> list[list[str]]:
    """Write the tolerances for people, the head of the table first."""
    better = {1: "more", -1: "less", 0: "neither"}
    rows = [["column", "better", "reproduced within"]]
    for name, column in COLUMNS.items():
        if name.endswith("difference"):
            continue
        unit = " of the share" if is_count(name) else ""
        rows.append([column.words, better[column.better], f"±{column.absolute:g}{unit} or 10 %"])
    return rows
