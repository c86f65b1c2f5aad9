"""Our figures of whole defences, joined with the paper's table by table, with a verdict for each."""

from __future__ import annotations

from typing import Any

import pandas as pd

from meterveil.attackers.protocol import AGGREGATE
from meterveil.attackers.registry import PAPER_SIX
from meterveil.bench import reported
from meterveil.bench.report.verdicts import MARKS, is_count, judge, reason
from meterveil.bench.reproduce.cells import SEEDS, cell_rows, choose
from meterveil.bench.reproduce.experiments import BOTH, TABLES
from meterveil.bench.results import ThreatModel, where

ADAPTIVE = (
    *("rmse_increase_percent", "f1_reduction_percent", "rmse_significant", "f1_significant"),
    *("strongest_f1", "strongest_f1_leak", "event_f1", "information_bits"),
    *("throughput_kwh", "soc_end", "soc_neutral_cost"),
)
"""Columns of a table under adaptive attackers."""

SHOWN = {name: table for name, table in TABLES.items() if table.columns}
"""Tables that are compared with the paper's."""

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


def datasets_of(table: str, whole: pd.DataFrame) -> list[str]:
    """Name the data sets of a table: its own, and others on which it was measured."""
    names = TABLES[table].datasets
    others = [name for name in whole["dataset"].unique() if name not in BOTH and len(names) > 1]
    return [*names, *(name for name in others if _measured(table, name, whole))]


def compare(table: str, dataset: str, whole: pd.DataFrame, threat: ThreatModel = "fixed") -> pd.DataFrame:
    """Join the rows of a table with our summaries and, for fixed attackers, with the paper's figures."""
    columns = TABLES[table].columns if threat == "fixed" else ADAPTIVE
    ours = whole[(whole["dataset"] == dataset) & whole["threat"].isin(["", threat])].drop(columns="threat")
    cells = _wanted(table, dataset, columns).merge(ours, on=[*CELL, "metric"], how="left")
    printed = reported.figures(table)
    if threat != "fixed":
        met = cells.loc[(cells["metric"] == "strongest_f1") & cells["value"].notna(), "label"]
        cells, printed = cells[cells["label"].isin(met)], printed.iloc[:0]
    cells = cells.merge(printed, on=["dataset", "label", "metric"], how="left")
    cells["note"] = cells["note"].where(cells["value"].isna()).groupby(cells["label"]).transform("first")
    cells = cells[cells["paper"].notna() | cells["value"].notna()]
    return cells.assign(table=table, **_judged(table, cells)).reset_index(drop=True)


def compare_all(whole: pd.DataFrame, figures: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Compare every table of the page; attacker tables are `attacker_ukdale` and `attacker_redd`."""
    fixed = {name: pd.concat([compare(name, dataset, whole) for dataset in datasets_of(name, whole)]) for name in SHOWN}
    return fixed | {f"attacker_{dataset}": compare_cases(dataset, figures) for dataset in BOTH}


def compare_adaptive(whole: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """List the figures under adaptive attackers, for the tables in which they read several rows."""
    found: dict[str, pd.DataFrame] = {}
    met = whole[(whole["threat"] == "adaptive") & whole["value"].notna()]
    for name in SHOWN:
        datasets = [dataset for dataset in datasets_of(name, met) if _measured(name, dataset, met)]
        parts = [compare(name, dataset, whole, "adaptive") for dataset in datasets]
        parts = [part for part in parts if part["label"].nunique() > 1]
        found |= {name: pd.concat(parts)} if parts else {}
    return found


def compare_cases(dataset: str, figures: pd.DataFrame) -> pd.DataFrame:
    """Join the change of every attacker and appliance with ours; spreads over seeds widen the tolerance."""
    printed = reported.cases(dataset).rename(columns={"target": "appliance", "delta": "paper"})
    cell = dict(cell_rows("overall_transfer", dataset))["ours"]
    ours = where(figures, **cell, threat="fixed").drop(columns="dataset")
    cells = printed.merge(ours, on=["attacker", "appliance", "metric"], how="left").assign(dataset=dataset)
    allowed = cells["delta_std"] + cells["spread"].fillna(0.0)
    pairs = zip(records(cells), allowed, strict=True)
    verdicts = [judge(row["metric"], row["paper"], row["change"], slack) for row, slack in pairs]
    reasons = cells["note"].fillna("not run yet").where(cells["change"].isna(), "")
    return cells.assign(verdict=verdicts, reason=reasons.map(_not_measured))


def tally(tables: dict[str, pd.DataFrame]) -> dict[str, int]:
    """Count the verdicts on the paper's figures; a second reading of the same figures does not count again."""
    once = [cells for name, cells in tables.items() if name != reported.AS_PUBLISHED]
    verdicts = pd.concat([cells.loc[cells["paper"].notna(), "verdict"] for cells in once])
    counts = verdicts.value_counts()
    return {name: int(counts[name]) for name in MARKS if name in counts}


def command(table: str, dataset: str, threat: ThreatModel = "fixed") -> str:
    """Write the command that measures a table, without options that are its defaults."""
    known = TABLES[table]
    parts = ["meterveil reproduce --table", table]
    parts += [] if known.datasets == (dataset,) else ["--dataset", dataset]
    parts += [] if known.threats == (threat,) else ["--threat", threat]
    return " ".join(parts)


def missing(whole: pd.DataFrame) -> pd.DataFrame:
    """List the rows without a figure over all seeds: table, dataset, threat, rows and command."""
    head = whole[(whole["metric"] == "rmse_increase_percent")]
    complete = head[head["value"].isna() | (head["seeds"] >= head["threat"].map(SEEDS))]
    known = set(complete[[*CELL, "threat"]].itertuples(index=False, name=None))
    entries = [
        (entry.table, entry.cell.dataset, entry.cell.threat, entry.row)
        for entry in choose()
        if (*entry.cell.columns.values(), entry.cell.threat) not in known
    ]
    frame = pd.DataFrame(entries, columns=["table", "dataset", "threat", "rows"])
    grouped = frame.groupby(["table", "dataset", "threat"], sort=False)["rows"].agg("; ".join).reset_index()
    commands = [command(row["table"], row["dataset"], row["threat"]) for row in records(grouped)]
    return grouped.assign(command=commands)


def _wanted(table: str, dataset: str, columns: tuple[str, ...]) -> pd.DataFrame:
    rows = [
        {"label": label, **cell, "metric": metric} for label, cell in cell_rows(table, dataset) for metric in columns
    ]
    return pd.DataFrame(rows)


def _measured(table: str, dataset: str, whole: pd.DataFrame) -> bool:
    cells = _wanted(table, dataset, ("rmse_increase_percent",))  # empty without a row on this data set
    return bool(len(cells)) and bool(len(cells.merge(whole, on=[*CELL, "metric"])))


def _judged(table: str, cells: pd.DataFrame) -> dict[str, Any]:
    verdicts, reasons = [], []
    for row in records(cells):
        share = is_count(row["metric"])
        paper = row["paper"] / row["paper_cases"] if share else row["paper"]
        ours = row["value"] / row["cases"] if share and row["cases"] else row["value"]
        verdict = judge(row["metric"], paper, ours)
        note = row["note"] if isinstance(row["note"], str) else "not run yet"
        why = _not_measured(note) if verdict == "not measured" else ""
        verdicts.append(verdict)
        reasons.append(why or reason(table, row["defence"], row["metric"], verdict))
    return {"verdict": verdicts, "reason": reasons}


def _not_measured(note: str) -> str:
    text = note.removeprefix("not measured: ")
    return text[:1].upper() + text[1:]


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
