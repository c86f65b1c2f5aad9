"""Page and tables of recorded attacks; nothing is fitted or scored here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from meterveil.attackers.protocol import AGGREGATE
from meterveil.attackers.registry import ATTACKERS, FLOORS
from meterveil.bench.reported import cases as papers_cases
from meterveil.bench.results import where
from meterveil.bench.trial import CROSSINGS
from meterveil.data import outputs
from meterveil.data.household import SOURCE_NOTES
from meterveil.data.protocols import PROTOCOLS
from meterveil.plots.attack import METRICS, strength_figure
from meterveil.plots.html import Section, page

FILES = ("attack.html",)

DATASETS = {"redd": "REDD", "ukdale": "UK-DALE", "refit": "REFIT"}
"""Data set -> its name for readers."""

TRIAL = ["dataset", "house", "days", "aggregate", "training"]
"""Columns that name a trial."""

BASELINES = ("mean", "off")
"""Predictors that never see the meter; every attacker has to beat both."""

_HEADS = {"rmse": "RMSE W", "f1": "F1", "f1_head": "on/off F1", "event_f1": "event F1"}
_BASELINE_WORDS = (
    "Attackers that do not beat both baselines, “mean” and “always off”, on an appliance. F1 is the better "
    "one of those from power and from the on/off head."
)


def write_attack(attacks: Sequence[pd.DataFrame], folder: Path, days: Sequence[go.Figure] = ()) -> Path:
    """Write the page of attacks, with a picture of a day for each if given."""
    outputs.folder(folder, FILES)
    sections: list[Section] = []
    for number, table in enumerate(attacks):
        sections += _strength_sections(table)
        if days:
            sections.append(Section("One day", "", (), days[number]))
    words = "Attackers estimate appliances from the meter, without a defence."
    return outputs.write_text(folder / FILES[0], page("What attackers read", sections, words))


def strength_chart(table: pd.DataFrame) -> go.Figure:
    """Draw the strength of the attackers beside the paper's and the baselines."""
    printed = with_papers(table)
    ours = {metric: mean_over_appliances(table, metric) for metric in METRICS}
    papers = {metric: mean_over_appliances(printed, metric, "paper") for metric in METRICS}
    return strength_figure(ours, papers, FLOORS, f"{heading(table)}: mean over appliances")


def _strength_sections(table: pd.DataFrame) -> list[Section]:
    rows = shortfall_rows(table)
    words = _BASELINE_WORDS if len(rows) > 1 else "Every attacker beats both baselines on every appliance."
    has_baselines = set(BASELINES) & set(table["attacker"])
    return [
        Section(heading(table), "", (), strength_chart(table)),
        *[Section("No better than the baselines", words, rows if len(rows) > 1 else ())] * bool(has_baselines),
    ]


def strength_tables(table: pd.DataFrame, dataset: str) -> list[pd.DataFrame]:
    """Cut recorded figures into trials: those of a data set, and crossings from its houses."""
    crossings = {trial.training_label for trial in CROSSINGS.get(dataset, ())}
    clean = where(table, threat="clean")
    chosen = clean[(clean["dataset"] == dataset) | clean["training"].isin(crossings)]
    return [part for _, part in chosen.groupby(TRIAL, sort=False)]


def heading(table: pd.DataFrame) -> str:
    """Name the house, the days and what the attackers learned from, of the figures of one trial."""
    first = table.iloc[0]
    house = f"{DATASETS.get(first['dataset'], first['dataset'])} house {first['house']}"
    learned = f"attackers trained on {first['training']}"
    return f"{house}, {_days(table)}, {learned}{SOURCE_NOTES.get(first['aggregate'], '')}"


def strength_rows(table: pd.DataFrame) -> list[list[str]]:
    """Write a table with one row per attacker and target, ours beside the paper's."""
    printed = with_papers(table)
    keys = zip(*(printed[name] for name in ("attacker", "appliance", "metric")), strict=True)
    known = dict(zip(keys, zip(printed["value"], printed["paper"], strict=True), strict=True))
    pairs = dict.fromkeys((name, target) for name, target, _ in known)
    rows = [["attacker, target", *(part for words in _HEADS.values() for part in (words, "paper"))]]
    for name, target in sorted(pairs, key=lambda pair: _rank(pair[0])):
        values = [(metric, known.get((name, target, metric), (np.nan, np.nan))) for metric in _HEADS]
        cells = [number_text(value, metric) for metric, both in values for value in both]
        rows.append([f"{name} {target}", *cells])
    told = [column for column in zip(*rows, strict=True) if any(column[1:])]
    return [list(row) for row in zip(*told, strict=True)]


def shortfall_rows(table: pd.DataFrame) -> list[list[str]]:
    """Write a table of the attackers that do not beat the baselines, the head first."""
    rows = [["attacker", "appliance", "metric", "attacker's", "baseline", "baseline's"]]
    for case in shortfalls(table):
        own, rival = (number_text(value, case.metric) for value in (case.value, case.baseline_value))
        appliance = case.appliance.replace("_", " ")
        rows.append([case.attacker, appliance, _HEADS[case.metric], own, case.baseline, rival])
    return rows


class Shortfall(NamedTuple):
    """Attacker that does not beat a baseline on an appliance that was used."""

    attacker: str
    appliance: str
    metric: str  # `rmse` or `f1`
    value: float
    baseline: str
    baseline_value: float


def shortfalls(table: pd.DataFrame) -> list[Shortfall]:
    """Find every case in which a trained attacker does not beat both baselines.

    The table holds the figures of one trial. An appliance counts where it was used, so that F1 is defined.
    """
    defined = table[table["value"].notna() & (table["appliance"] != AGGREGATE)]
    scores: dict[tuple[str, str], dict[str, float]] = {}
    for row in defined.itertuples():
        scores.setdefault((str(row.attacker), str(row.appliance)), {})[str(row.metric)] = float(row.value)  # type: ignore[arg-type]
    cases = []
    for (name, appliance), own in scores.items():
        rivals = {rival: scores[rival, appliance] for rival in BASELINES if (rival, appliance) in scores}
        if name in FLOORS or "f1" not in own or not rivals:
            continue
        best = min(rivals, key=lambda rival: rivals[rival]["rmse"])
        if own["rmse"] >= rivals[best]["rmse"]:
            cases.append(Shortfall(name, appliance, "rmse", own["rmse"], best, rivals[best]["rmse"]))
        best = max(rivals, key=lambda rival: _best_f1(rivals[rival]))
        if _best_f1(own) <= _best_f1(rivals[best]):
            cases.append(Shortfall(name, appliance, "f1", _best_f1(own), best, _best_f1(rivals[best])))
    return cases


def mean_over_appliances(table: pd.DataFrame, metric: str, column: str = "value") -> dict[str, float]:
    """Average a metric of every attacker over the appliances for which it is defined (D9, D12)."""
    chosen = table[(table["metric"] == metric) & (table["appliance"] != AGGREGATE) & table["value"].notna()]
    means = chosen.dropna(subset=column).groupby("attacker", sort=False)[column].mean()
    return {str(name): float(value) for name, value in means.items()}


def _days(table: pd.DataFrame) -> str:
    first, count = table.iloc[0], int(table["n_days"].max())
    if count > 1:
        return f"{count} {'held-out days' if first['days'] == 'held_out' else 'days'}"
    if first["days"] == "paper" and first["dataset"] in PROTOCOLS:
        return f"{PROTOCOLS[first['dataset']].test[0]:%d %B %Y}"
    return str(first["days"])


def with_papers(table: pd.DataFrame) -> pd.DataFrame:
    """Add the column `paper`: what it prints for the same day, training days, attacker and target."""
    first = table.iloc[0]
    protocol = PROTOCOLS.get(first["dataset"])
    if not protocol or first["days"] != "paper" or first["training"] != f"{len(protocol.training)} days":
        return table.assign(paper=np.nan)
    printed = papers_cases(first["dataset"]).rename(columns={"target": "appliance", "raw": "paper"})
    keys = ["attacker", "appliance", "metric"]
    return table.merge(printed[[*keys, "paper"]].drop_duplicates(keys), on=keys, how="left")


def _rank(name: str) -> int:
    return list(ATTACKERS).index(name) if name in ATTACKERS else len(ATTACKERS)


def _best_f1(scores: Mapping[str, float]) -> float:
    return max(scores[metric] for metric in ("f1", "f1_head") if metric in scores)


def number_text(value: float, metric: str) -> str:
    """Write a number with the digits that its metric needs; empty for NaN."""
    digits = 1 if metric == "rmse" else 2
    return "" if np.isnan(value) else f"{value:.{digits}f}"
