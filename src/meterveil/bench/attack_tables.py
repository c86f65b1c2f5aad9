"""Queries on recorded attacks: tables of attacker strength and of adaptive curves; nothing is fitted here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from meterveil.attackers.protocol import AGGREGATE
from meterveil.attackers.registry import ATTACKERS, FLOORS
from meterveil.bench.metrics import UNDERTRAINED, UNDERTRAINED_NOTE, leak
from meterveil.bench.reported import cases as papers_cases
from meterveil.bench.results import Run, where
from meterveil.bench.trial import CROSSINGS
from meterveil.data.protocols import PROTOCOLS
from meterveil.plots.look import readable

DATASETS = {"redd": "REDD", "ukdale": "UK-DALE", "refit": "REFIT"}
"""Data set -> its name for readers."""

TRIAL = ["dataset", "house", "days", "aggregate", "training"]
"""Columns that name a trial."""

PRIOR = "prior"
"""Attacker that guesses from routine and never sees the meter."""

BASELINES = ("mean", "off")
"""Predictors that never see the meter; every attacker has to beat both."""


CURVE = "adaptive curve"
"""Subject of the runs that are points of a curve."""

STEPS = {"copies": "masked copies of the training days", "epochs": "most epochs of training"}
"""What a curve can run along -> its name for readers."""

_HEADS = {"rmse": "RMSE W", "f1": "F1", "f1_head": "on/off F1", "event_f1": "event F1"}


class CurveTable(NamedTuple):
    """Figures of an adaptive curve."""

    steps: str  # what the curve runs along: `copies` or `epochs`
    points: pd.DataFrame  # with the columns copies and epochs
    clean: pd.DataFrame  # the same attackers and guessing from routine, without a defence


def strength_tables(table: pd.DataFrame, dataset: str) -> list[pd.DataFrame]:
    """Cut recorded figures into trials: those of a data set, and crossings from its houses."""
    crossings = {trial.training_label for trial in CROSSINGS.get(dataset, ())}
    clean = where(table, threat="clean")
    chosen = clean[(clean["dataset"] == dataset) | clean["training"].isin(crossings)]
    return [part for _, part in chosen.groupby(TRIAL, sort=False)]


def curve_tables(table: pd.DataFrame, runs: Mapping[str, Run], dataset: str = "") -> list[CurveTable]:
    """Cut figures into adaptive curves, along copies and along epochs."""
    settings = {key: run.settings for key, run in runs.items() if run.settings.get("subject") == CURVE}
    if not settings:
        return []
    described = pd.DataFrame.from_dict(settings, orient="index").reindex(columns=[*STEPS, "learned_from"])
    points = table[table["run"].isin(settings)].join(described, on="run")
    if dataset:
        points = where(points, dataset=dataset)
    curves = []
    for key, part in points.groupby([*TRIAL[:-1], "learned_from"], sort=False):
        clean = where(table, threat="clean", **dict(zip(TRIAL, key, strict=True)))
        for _, of_defence in part.groupby("defence", sort=False):
            timed = of_defence["epochs"].notna()
            for steps, chosen in (("copies", of_defence[~timed]), ("epochs", of_defence[timed])):
                if len(chosen):
                    readers = where(clean, attacker=[*chosen["attacker"].unique(), PRIOR])
                    curves.append(CurveTable(steps, chosen, readers))
    return curves


def heading(table: pd.DataFrame) -> str:
    """Name the house, the days and what the attackers learned from, of the figures of one trial."""
    first = table.iloc[0]
    house = f"{DATASETS.get(first['dataset'], first['dataset'])} house {first['house']}"
    learned_from = first.get("learned_from") or first["training"]
    parts = [house, _days(table), f"attackers trained on {learned_from}"]
    if first["defence"] != "none":
        parts.append(f"with {readable(first['defence'])}")
    if first["aggregate"] == "submeters":
        parts.append("load summed from sub-meters")
    return ", ".join(parts)


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


def curve_rows(curve: CurveTable) -> list[list[str]]:
    """Write a table with one row per attacker and point, mean over appliances, with the leak of F1."""
    metrics = ("rmse", "f1", "f1_head")
    scores: dict[tuple[str, str], dict[str, float]] = {}
    for metric in metrics:
        for name, value in mean_over_appliances(curve.clean, metric).items():
            scores.setdefault((name, "no defence"), {})[metric] = value
        for step, part in curve.points.groupby(curve.steps):
            for name, value in mean_over_appliances(part, metric).items():
                scores.setdefault((name, f"{step:.0f} {curve.steps}"), {})[metric] = value
    best = {key: max(mine.get("f1", 0.0), mine.get("f1_head", 0.0)) for key, mine in scores.items()}
    prior = best.get((PRIOR, "no defence"), np.nan)
    rows = [["attacker, mean over appliances", *(_HEADS[metric] for metric in metrics), "leak %"]]
    for (name, words), mine in sorted(scores.items(), key=lambda item: _rank(item[0][0])):
        clean = best.get((name, "no defence"), np.nan)
        percent = 100 * float(leak("f1", prior, clean, best[name, words]))
        told = UNDERTRAINED if round(np.nan_to_num(percent)) < 0 else number_text(percent, "percent")
        cells = [number_text(mine.get(metric, np.nan), metric) for metric in metrics]
        rows.append([f"{name}, {words}", *cells, told])
    return rows


def notes_of(rows: Sequence[Sequence[str]]) -> list[str]:
    """Explain `undertrained` where a table has it."""
    return [UNDERTRAINED_NOTE] * any(UNDERTRAINED in row for row in rows)


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
    """Name the day that was read, or the number of days."""
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
    digits = {"rmse": 1, "percent": 0}.get(metric, 2)
    return "" if np.isnan(value) else f"{value:.{digits}f}"
