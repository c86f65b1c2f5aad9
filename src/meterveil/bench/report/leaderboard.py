"""Defences ranked by the F1 of the strongest attacker that adapts to them (D11, D17)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from meterveil.bench import results
from meterveil.bench.metrics import MOST_BELOW_PRIOR, UNDERTRAINED, leak
from meterveil.bench.report.comparison import real_attackers, summaries
from meterveil.bench.reproduce.experiments import HELD_OUT, PAPER, TABLES
from meterveil.data.protocols import FURTHER_HOUSES

CONDITIONS = ["dataset", "house", "days", "aggregate", "battery"]
"""Columns that the defences of one leaderboard share."""

NOT_MET = "fixed attackers only"
"""Status of a defence that no adaptive attacker has read."""

_COMPARED = {row.defence for row in TABLES["baseline_comparison"].rows}


@dataclass(frozen=True)
class Board:
    """Defences that were measured under the same conditions."""

    dataset: str
    house: int
    days: str
    n_days: int
    entries: pd.DataFrame
    """Defences, the best first: `defence`, `rank` (or empty), `status`, F1 as `adaptive` and `fixed`."""
    figures: pd.DataFrame
    """Summaries of all entries."""
    undefended_f1: float
    prior_f1: float
    attackers: Mapping[str, tuple[str, ...]]
    """Threat model -> attackers."""
    submitted: str = ""
    """Who measured all of it, where our measurements do not compare."""

    @property
    def name(self) -> str:
        """Name of the board in file names."""
        house = str(self.house) if (self.dataset, self.house) in FURTHER_HOUSES else ""
        parts = ["leaderboard", self.dataset, house, self.days, self.submitted]
        return "_".join(part for part in parts if part).replace("..", "_to_")


def boards(
    figures: pd.DataFrame, whole: pd.DataFrame, submitted: Mapping[str, pd.DataFrame] | None = None
) -> list[Board]:
    """Rank our defences on the paper's day and on all held-out days, with submitted ones beside them.

    `whole` are the summaries of `figures`. A submitted defence joins our board where at least our attackers
    read the same days. Otherwise it has its own board, since fewer attackers would give it a better rank.
    """
    chosen = _compared(whole)
    summed = dict(list(whole.merge(chosen).groupby(CONDITIONS)))
    groups = {("", *key): (part, summed[key]) for key, part in figures.merge(chosen).groupby(CONDITIONS)}
    for name, table in (submitted or {}).items():
        for key, part in table[table["battery"] != ""].groupby(CONDITIONS):
            ours = groups.get(("", *key))
            if ours is not None and _comparable(ours[0], part):
                new = _marked(part[~part["defence"].isin(ours[0]["defence"])], name)
                pairs = zip(ours, (new, summaries(new)), strict=True)
                groups["", *key] = tuple(pd.concat(pair) for pair in pairs)  # type: ignore[assignment]
            else:
                marked = _marked(part, name)
                groups[name, *key] = (marked, summaries(marked))
    ranked = [_board(str(key[0]), *pair) for key, pair in groups.items()]
    return [board for board in ranked if len(board.entries) > 1]


def read_submitted(folder: Path) -> dict[str, pd.DataFrame]:
    """Read the figures that `meterveil submit` copied into a folder of results, by name."""
    return {path.name: results.read(path) for path in sorted((folder / results.SUBMITTED).glob("*/"))}


def _compared(whole: pd.DataFrame) -> pd.DataFrame:
    """Choose the paper's comparison and every other defence that adaptive attackers have read."""
    headline = whole[whole["metric"].eq("strongest_f1_undefended") & whole["days"].isin([PAPER, HELD_OUT])]
    chosen = headline[headline["defence"].isin(_COMPARED) | (headline["threat"] == "adaptive")]
    found = chosen[[*CONDITIONS, "defence"]].drop_duplicates()
    return found[found.groupby(CONDITIONS)["defence"].transform("nunique") > 1]


def _marked(part: pd.DataFrame, name: str) -> pd.DataFrame:
    return part.assign(defence=part["defence"] + f" (submitted: {name})")


def _comparable(ours: pd.DataFrame, theirs: pd.DataFrame) -> bool:
    read = attackers_of(theirs)
    same_days = ours["n_days"].max() == theirs["n_days"].max()
    return bool(same_days) and all(
        set(names) <= set(read.get(threat, ())) for threat, names in attackers_of(ours).items()
    )


def attackers_of(part: pd.DataFrame) -> dict[str, tuple[str, ...]]:
    """Name the attackers of each threat model."""
    cases = real_attackers(part)
    names = cases[cases["threat"] != ""].groupby("threat")["attacker"].unique()
    return {str(threat): tuple(several) for threat, several in names.items()}


def _board(submitted: str, part: pd.DataFrame, whole: pd.DataFrame) -> Board:
    read = whole[whole["metric"] == "strongest_f1"]
    wide = read.pivot_table(index="defence", columns="threat", values="value")
    entries = wide.reindex(columns=["adaptive", "fixed"]).reset_index()
    of_defence = whole.assign(is_defended=whole["defence"] != "none")  # a later row may have a fit of its own
    levels = of_defence.sort_values(["threat", "is_defended"], kind="stable").groupby("metric")["value"].first()
    first = part.iloc[0]
    prior_f1, undefended_f1 = (
        float(levels.get(name, float("nan"))) for name in ("prior_f1", "strongest_f1_undefended")
    )
    entries["leak"] = leak("f1", prior_f1, undefended_f1, entries["adaptive"])
    return Board(
        first["dataset"],
        int(first["house"]),
        first["days"],
        int(part["n_days"].max()),
        _ranked(entries, prior_f1),
        whole,
        undefended_f1,
        prior_f1,
        attackers_of(part),
        submitted,
    )


def _ranked(entries: pd.DataFrame, prior_f1: float) -> pd.DataFrame:
    """Rank by the adaptive F1; those without a rank come last.

    An attacker below the prior is undertrained. A little below, it counts as the prior and ranks after others that
    read no more than the prior; far below, it has no rank.
    """
    is_below = (entries["leak"].round(2) < 0) | (entries["leak"].isna() & (entries["adaptive"] < prior_f1))
    status = pd.Series("", entries.index).mask(is_below, UNDERTRAINED)
    status = status.mask(entries["adaptive"].isna(), NOT_MET)
    is_far_below = (status == UNDERTRAINED) & ~(entries["adaptive"] >= prior_f1 - MOST_BELOW_PRIOR)
    place = is_far_below.astype(int).mask(status == NOT_MET, 2)
    counted = entries["adaptive"].mask(is_below | (entries["leak"].round(2) <= 0), prior_f1)
    entries = entries.assign(status=status, place=place, counted=counted)
    entries = entries.sort_values(["place", "counted", "status", "fixed"]).reset_index(drop=True)
    ranks = pd.Series(entries.index + 1).astype(str).where(entries["place"] == 0, "")
    return entries.assign(rank=ranks).drop(columns=["place", "counted"])
