"""Figures of a defence as a whole, one row for each cell, threat model and metric, from the tidy table."""

from __future__ import annotations

from typing import Any

import pandas as pd

from meterveil.attackers.protocol import AGGREGATE
from meterveil.attackers.registry import PAPER_SIX

CELL = ["dataset", "house", "days", "aggregate", "defence", "battery"]
KEY = [*CELL, "threat"]
SUMMARIES = ("", "all", "strongest", "prior", "meter")
"""Labels in the column `attacker` that name no attacker."""

_HOUR_S = 3600.0


def summaries(figures: pd.DataFrame) -> pd.DataFrame:
    """Gather headlines, battery figures and means over cases; `cases` is what a count was counted in.

    Figures of the strongest attacker and of the habit prior are named `strongest_f1`, `prior_f1` and so on.
    """
    played = figures[figures["threat"] != "clean"]
    whole = played[played["appliance"].isin(["", "all"])]
    is_named = whole["attacker"].isin(["strongest", "prior"])
    whole = whole.assign(metric=whole["metric"].where(~is_named, whole["attacker"] + "_" + whole["metric"]))
    over_days = (whole["attacker"] == "") & whole["low"].notna()  # the interval says more than the spread
    whole = whole.assign(spread=whole["spread"].mask(over_days))
    cases = whole[whole["metric"].str.endswith("_cases")]
    counted = cases["metric"].str.replace("_cases", "_significant")
    counts = cases[KEY].assign(metric=counted, cases=cases["value"])
    found = whole.drop(cases.index).merge(counts, on=[*KEY, "metric"], how="left")
    return pd.concat([found, *_derived(played, whole)], ignore_index=True)


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table."""
    return table.to_dict("records")  # type: ignore[return-value]


def real_attackers(figures: pd.DataFrame) -> pd.DataFrame:
    """Select the measured cases of attackers and appliances or the aggregate."""
    return figures[~figures["attacker"].isin(SUMMARIES) & figures["value"].notna()]


def _derived(played: pd.DataFrame, whole: pd.DataFrame) -> list[pd.DataFrame]:
    """Compute the columns that are means over cases, for the cells that have a headline."""
    cases = real_attackers(played).merge(whole[KEY].drop_duplicates(), on=KEY)
    six = cases[cases["attacker"].isin(PAPER_SIX)].dropna(subset="change")
    target = six[six["appliance"] != AGGREGATE].assign(raw=lambda part: part["value"] - part["change"])
    by_attacker = _mean(cases[cases["metric"] == "event_f1"], "event_f1", [*KEY, "attacker"])
    strongest = by_attacker.sort_values("value").drop_duplicates(KEY, keep="last")
    means = [
        _mean(target[target["metric"] == metric], f"{metric}_{words}", KEY, column)
        for metric, unit in (("rmse", "_w"), ("f1", ""))
        for words, column in ((f"raw{unit}", "raw"), (f"masked{unit}", "value"))
    ]
    watts = six[(six["appliance"] == AGGREGATE) & (six["metric"] == "rmse")]
    means.append(_mean(watts, "aggregate_delta_rmse_w", KEY, "change"))
    means.append(_mean(played[played["attacker"] == "meter"], "information_bits", KEY))
    seconds = whole[whole["metric"] == "training_seconds"]
    hours = seconds.assign(metric="training_hours", value=seconds["value"] / _HOUR_S, spread=float("nan"))
    return [strongest, *means, hours]


def _mean(part: pd.DataFrame, metric: str, keys: list[str], column: str = "value") -> pd.DataFrame:
    grouped = part.groupby(keys, as_index=False)
    means = grouped.agg(value=(column, "mean"), seeds=("seeds", "first"), n_days=("n_days", "first"))
    return means.assign(metric=metric, note="")
