"""The paper's tables under the names of ours: what it claims for a row and a column."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache

import pandas as pd

from meterveil.bench.reported import table as printed_table

Key = tuple[str, str, str]
"""Data set, label of a row, column."""

_METHODS = {
    "No defense": "none",
    "Random baseline": "random",
    "Rule-based baseline": "rule_based",
    "DDQL-flat": "ddql_flat",
    "DDQL-MI": "ddql_mi",
    "Ours": "ours",
}
_DATASETS = {"UK-DALE": "ukdale", "REDD": "redd"}
_PROBES = {"Seq2Seq": "transformer", "LSTM": "lstm", "CNN": "cnn"}


@cache
def claimed(table: str) -> Mapping[Key, float]:
    """Return every figure that the paper prints in a table; nothing where it prints none."""
    if table not in _LABELS:
        return {}
    found: dict[Key, float] = {}
    for row in printed_table(table).to_dict("records"):
        dataset, label = _LABELS[table]({str(name): value for name, value in row.items()})
        found |= {(dataset, label, column): value for column, value in _numbers(row)}
    return found


def labels(table: str, dataset: str) -> tuple[str, ...]:
    """Name the rows that the paper prints of a data set, in its order."""
    return tuple(dict.fromkeys(label for where, label, _ in claimed(table) if where == dataset))


def _numbers(row: Mapping[object, object]) -> Iterator[tuple[str, float]]:
    for column, value in row.items():
        if isinstance(value, (int, float)) and not pd.isna(value):
            yield str(column), float(value)


def _battery(row: Mapping[str, object]) -> tuple[str, str]:
    label = {
        "Main setting": "main",
        "Battery capacity": f"capacity {row['capacity_kwh']} kWh",
        "Power limit": f"power {row['power_kw']} kW",
        "Throughput budget": f"throughput {row['throughput_kwh']} kWh",
    }[str(row["factor"])]
    return "ukdale", label


def _day(dataset: str) -> Callable[[Mapping[str, object]], tuple[str, str]]:
    return lambda row: (dataset, f"{row['day']} house {row['house']}")


_LABELS: Mapping[str, Callable[[Mapping[str, object]], tuple[str, str]]] = {
    "overall_transfer": lambda row: (_DATASETS[str(row["dataset"])], "ours"),
    "baseline_comparison": lambda row: ("ukdale", _METHODS[str(row["method"])]),
    "probe_ablation": lambda row: ("ukdale", _PROBES[str(row["probe"])]),
    "signature_size_ablation": lambda row: ("ukdale", str(row["signatures"])),
    "battery_sensitivity": _battery,
    "heldout_day_generalization": _day("ukdale"),
    "heldout_day_generalization_redd": _day("redd"),
}
"""Table -> what tells the data set and the label of a row."""
