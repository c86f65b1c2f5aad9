"""What rows and data sets are called on paper."""

from __future__ import annotations

from meterveil.plots.look import readable

DATASETS: dict[str, str] = {"ukdale": "UK-DALE", "redd": "REDD", "refit": "REFIT", "synthetic": "synthetic"}
"""Data set -> how it is written."""

CHANCE = "random_equal"
_ROWS = {
    "none": "no defence",
    "random": "random replay",
    CHANCE: "chance at equal kWh",
    "rule_based": "rule-based",
    "ddql_flat": "DDQL-flat",
    "ddql_mi": "DDQL-MI",
    "flat_decoys": "flat with decoys",
    "ours (paper's settings)": "ours, paper's settings",
    "main": "main battery",
    "rationed, main": "rationed, main battery",
    "lstm": "LSTM",
    "cnn": "CNN",
}
"""Label of a row -> how it is written, where that is not the label itself."""


_ORDER = ("none", "random", CHANCE, "rule_based", "ddql_flat", "ddql_mi", "flat", "flat_decoys", "ours")
"""Defences as the paper lists them, those beyond it beside their kind."""


def row_order(label: str) -> int:
    """Say where a defence stands in a table; whatever is no such defence comes last, as it came."""
    return _ORDER.index(label) if label in _ORDER else len(_ORDER)


def row_name(label: str) -> str:
    """Write the label of a row for people."""
    name, colon, kwh = label.partition(":")
    if name == CHANCE and colon:
        return f"chance at {kwh} kWh"
    return _ROWS.get(label, readable(label))


def dataset_name(dataset: str) -> str:
    """Write the name of a data set, or of several; an unknown one stays as it is."""
    parts = dataset.split("_")
    return " and ".join(DATASETS[part] for part in parts) if DATASETS.keys() >= set(parts) else dataset
