"""Two folders of results compared figure by figure."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from meterveil.bench.report.cells import Rows
from meterveil.bench.results import IDENTITY

_NUMBERS = ["value", "change", "p", "spread", "low", "high"]
_TIMES = ("training_seconds",)
"""Metrics that differ from run to run."""

_GROUPS = ["dataset", "house", "days", "threat"]


@dataclass(frozen=True)
class Difference:
    """Counts by data set, house, days and threat, and the figures that differ."""

    counts: Rows
    different: pd.DataFrame
    """Identity columns, and the numbers of both sides with the endings `_here` and `_there`."""
    shared: int

    def lines(self, most: int = 20) -> list[str]:
        """Describe the first figures that differ."""
        names = [name for name in IDENTITY if name not in ("aggregate", "training")]
        return [
            f"{', '.join(str(row[name]) for name in names if row[name] != '')}: {row['value_here']:g} here, "
            f"{row['value_there']:g} there"
            for row in self.different.head(most).to_dict("records")
        ]


def diff(here: pd.DataFrame, there: pd.DataFrame) -> Difference:
    """Compare the figures of two tables digit by digit, all but times."""
    keys = list(IDENTITY)
    parts = [table[~table["metric"].isin(_TIMES)][[*keys, *_NUMBERS]] for table in (here, there)]
    both = parts[0].merge(parts[1], on=keys, how="outer", suffixes=("_here", "_there"), indicator=True)
    mine, theirs = (both[[f"{name}_{end}" for name in _NUMBERS]].to_numpy() for end in ("here", "there"))
    same = ((mine == theirs) | (pd.isna(mine) & pd.isna(theirs))).all(axis=1)
    is_shared = both["_merge"] == "both"
    states = {
        "same": is_shared & same,
        "different": is_shared & ~same,
        "only here": both["_merge"] == "left_only",
        "only there": both["_merge"] == "right_only",
    }
    table = both[_GROUPS].assign(**states).groupby(_GROUPS, as_index=False).sum()
    counts = [[*map(str, row)] for row in table.itertuples(index=False)]
    return Difference([[*_GROUPS, *states], *counts], both[states["different"]], int(is_shared.sum()))
