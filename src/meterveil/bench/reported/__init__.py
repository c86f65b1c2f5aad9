"""The paper's tables, as printed: the claim that stands beside each measurement.

Each file is one table, named by its label in the paper; an empty field is a dash in print. Percentages are in
percent and counts of significant cases without their denominator, which is in `cases`.
"""

from __future__ import annotations

from importlib.resources import files

import pandas as pd

from meterveil.attackers.protocol import AGGREGATE
from meterveil.data.protocols import protocol
from meterveil.errors import InputError

TABLES: dict[str, str] = {
    "overall_transfer": "Overall black-box transfer performance",
    "attacker_ukdale": "Raw, masked, Delta and p of each attacker and appliance on UK-DALE",
    "attacker_redd": "Raw, masked, Delta and p of each attacker and appliance on REDD",
    "baseline_comparison": "Comparison with other defences on UK-DALE",
    "probe_ablation": "Effect of the privacy probe's architecture on UK-DALE",
    "signature_size_ablation": "Effect of the signature library's size on UK-DALE",
    "battery_sensitivity": "Battery configuration sensitivity on UK-DALE",
    "heldout_day_generalization": "Other days and houses of UK-DALE",
    "heldout_day_generalization_redd": "Other days and houses of REDD",
}
"""Name of a table -> what it holds."""

ATTACKERS: dict[str, str] = {
    "CO": "co",
    "FHMM": "fhmm",
    "DAE": "dae",
    "S2P": "seq2point",
    "ELECTRICITY": "electricity",
    "BERT4NILM": "bert4nilm",
}
"""What the paper's tables call an attacker -> what it is called here."""


def table(name: str) -> pd.DataFrame:
    """Read one of the paper's tables, in the paper's own words."""
    if name not in TABLES:
        raise InputError(f"the paper has no table {name!r}; it has {', '.join(TABLES)}")
    with files(__name__).joinpath(f"{name}.csv").open() as file:
        return pd.read_csv(file)


def cases(dataset: str) -> pd.DataFrame:
    """Read an attacker table under this package's names: one row for each attacker, target and metric.

    Deviations are printed over five seeds; those of UK-DALE divide by n and those of REDD by n - 1, as their
    p values show.
    """
    chosen = protocol(dataset)
    targets = {"Aggregate": AGGREGATE, **dict(zip(chosen.paper_names, chosen.targets, strict=True))}
    printed = table(f"attacker_{dataset}").rename(columns={"appliance": "target"})
    return printed.assign(attacker=printed.attacker.map(ATTACKERS), target=printed.target.map(targets))
