"""The paper's tables as printed, to be joined with measured figures.

Each file is one table, named by its label in the paper; an empty field is a dash in print. Percentages are in
percent. Counts of significant cases have their denominator in the column `cases`.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import pandas as pd

from meterveil.attackers.protocol import AGGREGATE
from meterveil.data.protocols import protocol
from meterveil.errors import InputError

TABLES = (
    *("overall_transfer", "attacker_ukdale", "attacker_redd", "baseline_comparison", "probe_ablation"),
    *("signature_size_ablation", "battery_sensitivity"),
    *("heldout_day_generalization", "heldout_day_generalization_redd"),
)
"""Names of the tables."""

ATTACKERS: dict[str, str] = {
    "CO": "co",
    "FHMM": "fhmm",
    "DAE": "dae",
    "S2P": "seq2point",
    "ELECTRICITY": "electricity",
    "BERT4NILM": "bert4nilm",
}
"""Name of an attacker in the paper's tables -> its name here."""

AS_PUBLISHED = "as_published"
"""Table of the paper's main result and costs, under the label of our reading of it."""

_DATASETS = {"UK-DALE": "ukdale", "REDD": "redd"}
_LABELS = {
    "No defense": "none",
    "Random baseline": "random",
    "Rule-based baseline": "rule_based",
    "DDQL-flat": "ddql_flat",
    "DDQL-MI": "ddql_mi",
    "Ours": "ours",
    "Seq2Seq": "transformer",
    "LSTM": "lstm",
    "CNN": "cnn",
}
"""Name of a row in the paper's tables -> its label in `bench.reproduce.experiments`."""


def table(name: str) -> pd.DataFrame:
    """Read one of the paper's tables under the paper's names."""
    if name not in TABLES:
        raise InputError(f"the paper has no table {name!r}; it has {', '.join(TABLES)}")
    with files(__name__).joinpath(f"{name}.csv").open() as file:
        return pd.read_csv(file)


def cases(dataset: str) -> pd.DataFrame:
    """Read an attacker table under this package's names: one row for each attacker, target and metric.

    Standard deviations are over five seeds; those of UK-DALE divide by n and those of REDD by n - 1, as
    their p values show.
    """
    chosen = protocol(dataset)
    targets = {"Aggregate": AGGREGATE, **dict(zip(chosen.paper_names, chosen.targets, strict=True))}
    printed = table(f"attacker_{dataset}").rename(columns={"appliance": "target"})
    return printed.assign(attacker=printed.attacker.map(ATTACKERS), target=printed.target.map(targets))


@cache
def figures(name: str) -> pd.DataFrame:
    """Return a table in long form: dataset, row label, metric, the printed figure, and cases of a count."""
    columns = ["dataset", "label", "metric", "paper", "paper_cases"]
    if name == AS_PUBLISHED:
        costs = figures("baseline_comparison")
        costs = costs[(costs["label"] == "ours") & costs["metric"].str.endswith("_cost")]
        return pd.concat([figures("overall_transfer"), costs], ignore_index=True).assign(label=AS_PUBLISHED)
    if name not in TABLES or name.startswith("attacker_"):
        return pd.DataFrame(columns=columns)
    printed, only_dataset = table(name), "redd" if name.endswith("_redd") else "ukdale"
    printed = printed.assign(
        dataset=printed["dataset"].map(_DATASETS) if "dataset" in printed else only_dataset,
        label=_row_labels(name, printed),
        paper_cases=printed.get("cases"),
    )
    metrics = [column for column in printed if column not in (*columns, *_KEYS)]
    return printed.melt(columns[:2] + columns[4:], metrics, "metric", "paper").dropna(subset="paper")[columns]


_KEYS = (
    *("cases", "method", "probe", "signatures", "factor", "capacity_kwh", "power_kw", "throughput_kwh"),
    *("day", "house", "active_appliances"),
)


def _row_labels(name: str, printed: pd.DataFrame) -> pd.Series[str]:
    if name == "overall_transfer":
        return pd.Series("ours", index=printed.index)
    if name == "battery_sensitivity":
        return printed.apply(_battery_label, axis=1)
    if "day" in printed:
        return printed["day"] + " house " + printed["house"].astype(str)
    return printed.iloc[:, 0].astype(str).replace(_LABELS)


def _battery_label(row: pd.Series[str]) -> str:
    return {
        "Main setting": "main",
        "Battery capacity": f"capacity {row['capacity_kwh']} kWh",
        "Power limit": f"power {row['power_kw']} kW",
        "Throughput budget": f"throughput {row['throughput_kwh']} kWh",
    }[row["factor"]]
