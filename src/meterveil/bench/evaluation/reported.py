"""What the paper prints of a defence that was measured: its own days, attackers and methods only."""

from __future__ import annotations

from functools import cache

import pandas as pd

from meterveil.bench.evaluation.measure import Result
from meterveil.bench.evaluation.scores import Case
from meterveil.bench.reported import TABLES
from meterveil.bench.reported import cases as printed_cases
from meterveil.bench.reported.claimed import claimed
from meterveil.defenders.defence import MANAGER

_LABELS = {MANAGER: "ours"}
"""Method -> label of its row in the paper's comparison, where that is another."""

_BY_ITSELF = "evaluation_"
"""Beginning of the tables of defences that were measured by themselves; a row has its defence's name."""

_CASES_OF = {"overall_transfer": "ours", "baseline_comparison": "ours"}
"""Table of ours -> label of the row whose cases the paper prints one by one."""


def claims(table: str, dataset: str, label: str) -> dict[str, float]:
    """Look up what is printed of a row, by column; nothing where the paper has no such row."""
    rows = claimed(table).items()
    return {column: value for (*row, column), value in rows if row == [dataset, label]}


def papers_headline(result: Result) -> dict[str, float]:
    """Look up what is printed of this defence as a whole, by column.

    A table and a row that are named as the paper's are looked up by these names; a defence that was measured
    by itself on the paper's day, by its method. In a table that the paper does not have, such as that of
    lambdas, the same method is another defence.
    """
    trial, one = result.spec.trial, result.contender
    dataset = trial.test.dataset
    if trial.table in TABLES:
        return claims(trial.table, dataset, one.name)
    if not trial.reported or not trial.table.startswith(_BY_ITSELF):
        return {}
    label = _LABELS.get(one.method, one.method)
    found = claims("baseline_comparison", dataset, label)
    return found | (claims("overall_transfer", dataset, label) if one.method == MANAGER else {})


def papers_case(result: Result, case: Case) -> dict[str, float]:
    """Look up what is printed of a case, by column; the paper has such a table of its own defence only."""
    trial, one = result.spec.trial, result.contender
    by_itself = trial.table.startswith(_BY_ITSELF) and one.method == MANAGER
    if not trial.reported or not (by_itself or _CASES_OF.get(trial.table) == one.name):
        return {}
    return printed_case(trial.test.dataset, case.attacker, case.target, case.metric)


def printed_case(dataset: str, attacker: str, target: str, metric: str) -> dict[str, float]:
    """Look up what is printed of an attacker and a target: `masked`, `delta` and `p_value`."""
    return _cases(dataset).get((attacker, target, metric), {})


@cache
def _cases(dataset: str) -> dict[tuple[str, str, str], dict[str, float]]:
    columns = ["masked", "delta", "p_value"]
    table = printed_cases(dataset).set_index(["attacker", "target", "metric"])[columns]
    return {key: _numbers(row) for key, row in table.iterrows()}  # type: ignore[misc]


def _numbers(row: pd.Series[float]) -> dict[str, float]:
    return {str(name): float(value) for name, value in row.dropna().items()}
