"""Tables of attackers: without a defence, on other days and houses, with more training, and case by case."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from meterveil.attackers.protocol import AGGREGATE
from meterveil.attackers.registry import FLOORS
from meterveil.bench import reported
from meterveil.bench.report.cells import Rows, case_name, dataset_name, days_text, figure_text
from meterveil.bench.report.summaries import real_attackers, records
from meterveil.bench.report.verdicts import METRICS
from meterveil.bench.reproduce.experiments import PAPER, cell_rows
from meterveil.bench.results import where
from meterveil.plots.attack import LABELS
from meterveil.plots.attack import label as attacker_name

_F1 = ("f1", "f1_head")
"""F1 from power and from an on/off head; an attacker uses the better of the two."""


def strength_rows(figures: pd.DataFrame, dataset: str) -> Rows:
    """Write a row for each attacker without a defence on the paper's day: means over the same appliances."""
    clean = real_attackers(where(figures, dataset=dataset, days=PAPER, threat="clean", aggregate="mains"))
    clean = clean[clean["appliance"] != AGGREGATE]
    metrics = {name: METRICS[name] for name in ("rmse", "mae", "sae", "f1")}
    ours = clean.groupby(["attacker", "metric"])["value"].mean()
    printed = reported.cases(dataset)
    same = printed[printed["target"].isin(clean["appliance"])]
    papers = same.groupby(["attacker", "metric"])["raw"].mean()
    head = [part for metric in metrics.values() for part in (f"{metric.words}, paper", "ours")]
    rows = [["attacker", *head]]
    for name in _in_order(clean["attacker"]):
        cells = [
            figure_text({"value": means.get((name, metric), float("nan"))}, known.digits)
            for metric, known in metrics.items()
            for means in (papers, ours)
        ]
        rows.append([attacker_name(name), *cells])
    return rows if len(rows) > 1 else []


def other_rows(figures: pd.DataFrame) -> Rows:
    """Write the F1 of each attacker without a defence for all other days, houses and trainings."""
    clean = where(figures, threat="clean")
    others = clean[(clean["days"] != PAPER) | (clean["aggregate"] != "mains")]
    keys = ["dataset", "house", "days", "aggregate", "training"]
    return _f1_rows(others, keys, _trial_name)


def adapting_rows(figures: pd.DataFrame) -> Rows:
    """Write the F1 of attackers with a defence that was measured at several amounts of adaptive training."""
    cases = real_attackers(figures)
    trainings = cases[cases["threat"] == "adaptive"].groupby("defence")["training"].transform("nunique")
    several = set(cases.loc[trainings[trainings > 1].index, "defence"])
    keys = ["dataset", "defence", "threat", "training"]
    chosen = cases[cases["defence"].isin(several)]
    return _f1_rows(chosen, keys, lambda row: f"{dataset_name(row['dataset'])}, {row['training']}")


def adaptive_case_rows(figures: pd.DataFrame, dataset: str) -> Rows:
    """Write every adaptive attacker, appliance and metric on the paper's day, with ours and the baseline."""
    cells = dict(cell_rows("baseline_comparison", dataset))
    parts = {
        label: real_attackers(where(figures, **cells[label], threat="adaptive"))
        for label in ("ours", "random_equal")
    }
    key = ["attacker", "appliance", "metric"]
    both = parts["ours"].merge(parts["random_equal"], on=key, how="left", suffixes=("", "_random"))
    both = both[both["metric"].isin([*METRICS])]
    rows = [["case", "raw", "masked, ours", "Δ", "p", "masked, random baseline", "Δ", "p"]]
    for case in records(both):
        digits = METRICS[case["metric"]].digits
        row = [case_name(case), figure_text({"value": case["value"] - case["change"]}, digits)]
        for end in ("", "_random"):
            row.append(figure_text({"value": case[f"value{end}"], "spread": case[f"spread{end}"]}, digits))
            row.append(figure_text({"value": case[f"change{end}"]}, digits))
            row.append(figure_text({"value": case[f"p{end}"]}, 2))
        rows.append(row)
    return rows if len(rows) > 1 else []


def _f1_rows(figures: pd.DataFrame, keys: list[str], name_of: Callable[[dict[str, Any]], str]) -> Rows:
    cases = real_attackers(figures)
    cases = cases[cases["metric"].isin(_F1) & (cases["appliance"] != AGGREGATE)]
    means = cases.groupby([*keys, "attacker", "metric"], sort=False)["value"].mean()
    best = means.groupby([*keys, "attacker"], sort=False).max()
    names = _in_order(cases["attacker"])
    rows = [["F1", *map(attacker_name, names)]]
    for row in records(cases.groupby(keys, sort=False)["n_days"].max().reset_index()):
        scores = (best.get((*(row[key] for key in keys), name), float("nan")) for name in names)
        rows.append([name_of(row), *(figure_text({"value": score}, 2) for score in scores)])
    return rows if len(rows) > 1 else []


def _trial_name(row: dict[str, Any]) -> str:
    days, n_days = row["days"].replace("_", " "), days_text(row["n_days"])
    test = "the paper's day" if row["days"] == PAPER else f"{n_days} ({days})"
    mains = "" if row["aggregate"] == "mains" else ", sum of sub-meters"
    return f"{dataset_name(row['dataset'])} house {row['house']}, {test}{mains}, trained on {row['training']}"


def _in_order(attackers: pd.Series[str]) -> list[str]:
    """Sort attackers as the paper lists them, predictors that never look at the meter last."""
    places = {name: place for place, name in enumerate(LABELS)}
    return sorted(attackers.unique(), key=lambda name: (name in FLOORS, places.get(name, len(places))))
