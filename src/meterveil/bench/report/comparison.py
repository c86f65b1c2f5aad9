"""The paper's figures joined with ours, table by table, with a verdict and a reason for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from meterveil.bench import reported
from meterveil.bench.report.summaries import CELL, records
from meterveil.bench.report.verdicts import MARKS, is_count, judge, reason
from meterveil.bench.reproduce.experiments import SEEDS, TABLES, cell_rows, choose
from meterveil.bench.results import ThreatModel, where

BOTH = ("ukdale", "redd")
_CHANGES = ("rmse_increase_percent", "f1_reduction_percent", "rmse_significant", "f1_significant")
_COSTS = ("energy_cost", "degradation_cost", "total_cost", "soc_neutral_cost", "throughput_kwh", "soc_end")
_OTHER_DAYS = (
    *("rmse_raw_w", "rmse_masked_w", "rmse_increase_percent", "f1_raw", "f1_masked"),
    "f1_reduction_percent",
)
ADAPTIVE = (
    *_CHANGES,
    *("strongest_f1", "strongest_f1_leak", "event_f1", "information_bits"),
    *("throughput_kwh", "soc_end", "soc_neutral_cost"),
)
"""Columns of a table under adaptive attackers."""


@dataclass(frozen=True)
class Spec:
    """Heading, text and columns of a table on the page."""

    title: str
    text: str
    columns: tuple[str, ...]
    is_ablation: bool = False


SPECS: dict[str, Spec] = {
    "overall_transfer": Spec(
        "Main result",
        "Our learned defence against six attackers that it never saw, on the paper's test day.",
        (
            *("rmse_increase_percent", "mae_increase_percent", "sae_increase_percent"),
            *("f1_reduction_percent", "rmse_significant", "mae_significant", "sae_significant"),
            "f1_significant",
        ),
    ),
    "baseline_comparison": Spec(
        "Comparison with other defences",
        "All defences on the same day with the same fixed attackers. The random baseline with equal "
        "throughput replays random signatures and moves as much energy as ours (D8). The SoC-neutral cost "
        "buys back the charge that is missing at midnight (D7).",
        (*_CHANGES, *_COSTS, "training_hours"),
    ),
    "heldout_day_generalization": Spec(
        "Other days and houses of UK-DALE", "The policy of house 1, not trained again.", _OTHER_DAYS
    ),
    "heldout_day_generalization_redd": Spec(
        "Other days and houses of REDD", "The policy of house 2, not trained again.", _OTHER_DAYS
    ),
    "many_days": Spec(
        "All held-out days",
        "Every held-out day of the same house with good data, SoC carried over midnight (D16). Brackets are "
        "95 % intervals over days.",
        (*_CHANGES[:2], *_COSTS),
    ),
    "probe_ablation": Spec(
        "Probe",
        "The network that stands in for unknown attackers in training. Identity, which only measures how far "
        "the meter was moved, is not in the paper.",
        _CHANGES,
        is_ablation=True,
    ),
    "signature_size_ablation": Spec(
        "Number of signatures", "The policy replays fewer of the ten signatures.", _CHANGES, is_ablation=True
    ),
    "battery_sensitivity": Spec(
        "Battery",
        "Capacity, power and daily throughput, one changed at a time. Rationed rows release the daily budget "
        "evenly over the day. A small battery is full sooner and must discharge before it charges again, so "
        "its budget lasts longer.",
        (*_CHANGES, "aggregate_delta_rmse_w"),
        is_ablation=True,
    ),
    "lambda_sweep": Spec(
        "Privacy against cost",
        "Lambda weighs privacy (1) against cost (0) in the reward. The paper has a picture, no figures.",
        (*_CHANGES[:2], *_COSTS),
        is_ablation=True,
    ),
    "remedies": Spec(
        "Remedies for an early empty budget",
        "Patient looks further ahead; rationed releases the daily budget evenly over the day.",
        (*_CHANGES[:2], *_COSTS),
        is_ablation=True,
    ),
}
"""Table -> how it is shown, in the order of the page."""


def datasets_of(table: str, whole: pd.DataFrame) -> list[str]:
    """Name the data sets of a table: its own, and others on which it was measured."""
    names = TABLES[table].datasets
    others = [name for name in whole["dataset"].unique() if name not in BOTH and len(names) > 1]
    return [*names, *(name for name in others if _measured(table, name, whole))]


def compare(table: str, dataset: str, whole: pd.DataFrame, threat: ThreatModel = "fixed") -> pd.DataFrame:
    """Join the rows of a table with our summaries and, for fixed attackers, with the paper's figures."""
    columns = SPECS[table].columns if threat == "fixed" else ADAPTIVE
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
    fixed = {
        name: pd.concat([compare(name, dataset, whole) for dataset in datasets_of(name, whole)])
        for name in SPECS
    }
    return fixed | {f"attacker_{dataset}": compare_cases(dataset, figures) for dataset in BOTH}


def compare_adaptive(whole: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """List the figures under adaptive attackers, for the tables in which they read several rows."""
    found: dict[str, pd.DataFrame] = {}
    met = whole[(whole["threat"] == "adaptive") & whole["value"].notna()]
    for name in SPECS:
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
    """Count the verdicts on the paper's figures."""
    verdicts = pd.concat([cells.loc[cells["paper"].notna(), "verdict"] for cells in tables.values()])
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
        {"label": label, **cell, "metric": metric}
        for label, cell in cell_rows(table, dataset)
        for metric in columns
    ]
    return pd.DataFrame(rows)


def _measured(table: str, dataset: str, whole: pd.DataFrame) -> bool:
    cells = _wanted(table, dataset, ("rmse_increase_percent",))
    return bool(len(cells.merge(whole, on=[*CELL, "metric"])))


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
