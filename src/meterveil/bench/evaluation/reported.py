"""What the paper prints of a defence that was measured: its own day, attackers and methods only."""

from __future__ import annotations

from functools import cache

import pandas as pd

from meterveil.bench.evaluation.defences import MANAGER
from meterveil.bench.evaluation.measure import Result
from meterveil.bench.evaluation.scores import Case
from meterveil.bench.reported import cases as printed_cases
from meterveil.bench.reported import table as printed_table

_METHODS = {
    MANAGER: "Ours",
    "none": "No defense",
    "random": "Random baseline",
    "rule_based": "Rule-based baseline",
    "ddql_flat": "DDQL-flat",
    "ddql_mi": "DDQL-MI",
}
"""Method -> what the paper's comparison calls it."""

_DATASETS = {"redd": "REDD", "ukdale": "UK-DALE"}


def papers_headline(result: Result) -> dict[str, float]:
    """Look up what is printed of this defence as a whole, by column; nothing for another day."""
    trial = result.spec.trial
    found: dict[str, float] = {}
    if not trial.reported:
        return found
    if trial.test.dataset == "ukdale":
        method = _METHODS.get(result.contender.method)
        found |= _row(printed_table("baseline_comparison"), "method", method)
    if result.contender.method == MANAGER:
        found |= _row(printed_table("overall_transfer"), "dataset", _DATASETS[trial.test.dataset])
    return found


def papers_case(result: Result, case: Case) -> dict[str, float]:
    """Look up what is printed of a case, by column; the paper has such a table of its own defence only."""
    trial = result.spec.trial
    if not trial.reported or result.contender.method != MANAGER:
        return {}
    return _cases(trial.test.dataset).get((case.attacker, case.target, case.metric), {})


def _row(table: pd.DataFrame, key: str, name: str | None) -> dict[str, float]:
    chosen = table[table[key] == name].drop(columns=key)
    return {} if chosen.empty else _numbers(chosen.iloc[0])


@cache
def _cases(dataset: str) -> dict[tuple[str, str, str], dict[str, float]]:
    columns = ["masked", "delta", "p_value"]
    table = printed_cases(dataset).set_index(["attacker", "target", "metric"])[columns]
    return {key: _numbers(row) for key, row in table.iterrows()}  # type: ignore[misc]


def _numbers(row: pd.Series[float]) -> dict[str, float]:
    return {str(name): float(value) for name, value in row.dropna().items()}
