"""Experiments as data: the defences that are measured, and the tables of the paper and beyond it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from meterveil.bench.results import ThreatModel
from meterveil.data.household import Aggregate
from meterveil.data.protocols import FURTHER_HOUSES, REDD_EVALUATION_DAYS, UKDALE_EVALUATION_DAYS, EvaluationDay
from meterveil.defenders.training_settings import Settings, manager_settings, settings_for

SYNTHETIC = "synthetic"
BOTH = ("ukdale", "redd")
DATASETS = (*BOTH, "refit", SYNTHETIC)
THREATS: tuple[ThreatModel, ...] = ("fixed", "adaptive")
FIXED: tuple[ThreatModel, ...] = ("fixed",)
ADAPTIVE: tuple[ThreatModel, ...] = ("adaptive",)
PAPER, HELD_OUT = "paper", "held_out"
"""Days: the paper's test day, and all held-out days of its house (D16)."""

RATIONED, RANDOM_EQUAL = "rationed", "random_equal"

AS_PUBLISHED_LOAD: Mapping[str, Aggregate] = {"ukdale": "active", "redd": "mains"}
"""Data set -> source of the load that fits the paper's tables (docs/fidelity.md)."""

Changes = tuple[tuple[str, float], ...]
"""Fields of the battery that differ from the paper's, with their values."""


@dataclass(frozen=True)
class DefenceSpec:
    """Recipe of a defence: a rule, a training, or a rule that builds on a training."""

    rule: str = ""
    """Name of a defence that is not trained, `rationed`, or empty for the trained policy itself."""
    training: Settings | None = None
    """With `random_equal`, the training whose throughput it moves (D8)."""
    signatures: str = "main"
    """Name of a part of the signature library; `main` is all of it."""
    acts_masked: bool = False
    """Let a manager that was trained without a mask choose only among idling and actions that move energy."""


OURS = manager_settings("fast")
AS_PUBLISHED = replace(OURS, weight=0.0125, choice="greedy")
"""Settings whose battery comes nearest to the paper's tables, chosen without any privacy figure (docs/fidelity.md)."""
LAMBDAS = (0.0, 0.02, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0)
"""Weights of privacy, closer together at the lower end, where the trade-off turns."""

_PROBES = ("lstm", "cnn", "identity")
_SIZES = {9: "nine", 7: "seven", 5: "five", 3: "three"}

_FIRST = ("none", "flat_decoys", "flat", "random_equal", "ours", "veil")
_LATER = (
    *("random", "rule_based", "best_effort", "nill", "stepping_ls1", "stepping_ls2", "stepping_lc", "stepping_rc"),
    *("ddql_flat", "ddql_mi", "ours_adaptive"),
)
"""Defences that informed attackers read, in the order in which they are measured."""

DEFENCES: dict[str, DefenceSpec] = {
    **{name: DefenceSpec(name) for name in (*_FIRST, *_LATER)},
    **{name: DefenceSpec(training=settings_for(name)) for name in ("ddql_flat", "ddql_mi")},
    "random_equal": DefenceSpec(RANDOM_EQUAL, OURS),
    "ours": DefenceSpec(training=OURS),
    "as_published": DefenceSpec(training=AS_PUBLISHED, acts_masked=True),
    "ours_rationed": DefenceSpec(RATIONED, OURS),
    "ours_patient": DefenceSpec(training=manager_settings("patient")),
    "ours_adaptive": DefenceSpec(training=manager_settings("adaptive")),
    "ours_paper_settings": DefenceSpec(training=manager_settings("paper")),
    **{f"ours_{probe}": DefenceSpec(training=replace(OURS, probe=probe)) for probe in _PROBES},
    **{f"ours_{n}_signatures": DefenceSpec(training=OURS, signatures=part) for n, part in _SIZES.items()},
    **{f"ours_lambda_{w:g}": DefenceSpec(training=replace(OURS, weight=w)) for w in LAMBDAS[:-1]},
}
"""Label in the results -> how the defence is made."""


@dataclass(frozen=True)
class Row:
    """Row of a table, under the paper's label where the paper has it."""

    label: str
    defence: str
    battery: Changes = ()
    days: str | EvaluationDay = PAPER
    against: str = ""
    """Defence to subtract: the row then shows the difference of each figure."""
    threats: tuple[ThreatModel, ...] = THREATS
    """Threat models that are measured unless others are named."""
    home: tuple[str, int] | None = None
    """Data set and house; None for the paper's house of any data set."""
    as_published: bool = False
    """Take the load as the paper did, as far as its tables tell (docs/fidelity.md)."""

    def is_on(self, dataset: str) -> bool:
        """Tell whether a data set has the house of this row."""
        return dataset == self.home[0] if self.home else dataset in (*BOTH, SYNTHETIC)


@dataclass(frozen=True)
class Table:
    """Table of the paper or beyond it, with the data sets and threat models that it has by default."""

    title: str
    text: str
    rows: tuple[Row, ...]
    columns: tuple[str, ...] = ()
    """Metrics that the report shows; empty for a table that it shows otherwise."""
    datasets: tuple[str, ...] = ("ukdale",)
    threats: tuple[ThreatModel, ...] = FIXED
    is_ablation: bool = False


def _power(kilowatts: float) -> Changes:
    return (("charge_w", 1000.0 * kilowatts), ("discharge_w", 1000.0 * kilowatts))


def _evaluated(days: Sequence[EvaluationDay]) -> tuple[Row, ...]:
    return tuple(Row(f"{day.day} house {day.house}", "ours", days=day) for day in days)


_CAPACITIES: dict[int, Changes] = {kwh: (("capacity_kwh", float(kwh)),) for kwh in (2, 4, 12)}

_COMPARED = (
    Row("none", "none"),
    Row("random", "random", threats=FIXED),
    Row("random_equal", "random_equal"),
    Row("rule_based", "rule_based", threats=FIXED),
    Row("ddql_flat", "ddql_flat", threats=FIXED),
    Row("ddql_mi", "ddql_mi", threats=FIXED),
    Row("flat", "flat"),
    Row("flat_decoys", "flat_decoys"),
    Row("ours", "ours"),
    Row("ours_paper_settings", "ours_paper_settings", threats=FIXED),
    Row("veil", "veil", threats=ADAPTIVE),
)


def _read_by_informed(names: Sequence[str], days: str = HELD_OUT, home: tuple[str, int] | None = None) -> list[Row]:
    return [Row(name, name, days=days, home=home, threats=ADAPTIVE) for name in names]


_INFORMED_ROWS = (
    *_read_by_informed(_FIRST),
    *_read_by_informed(_FIRST, PAPER),
    *(
        Row("ours minus random_equal", "ours", days=days, against=RANDOM_EQUAL, threats=ADAPTIVE)
        for days in (HELD_OUT, PAPER)
    ),
    *(row for home in FURTHER_HOUSES for row in _read_by_informed(_FIRST, home=home)),
    *_read_by_informed(_LATER),
    *_read_by_informed(_LATER, PAPER),
    *(row for home in FURTHER_HOUSES for row in _read_by_informed(_LATER, home=home)),
)

_CHANGES = ("rmse_increase_percent", "f1_reduction_percent")
_COUNTS = ("rmse_significant", "f1_significant")
_COSTS = ("energy_cost", "degradation_cost", "total_cost", "soc_neutral_cost", "throughput_kwh", "soc_end")
_OTHER_DAYS = (
    *("rmse_raw_w", "rmse_masked_w", "rmse_increase_percent"),
    *("f1_raw", "f1_masked", "f1_reduction_percent"),
)

TABLES: dict[str, Table] = {
    "overall_transfer": Table(
        "Main result",
        "Our learned defence against six attackers that it never saw, on the paper's test day.",
        (Row("ours", "ours"),),
        (
            *("rmse_increase_percent", "mae_increase_percent", "sae_increase_percent"),
            *("f1_reduction_percent", "rmse_significant", "mae_significant", "sae_significant"),
            "f1_significant",
        ),
        BOTH,
    ),
    "baseline_comparison": Table(
        "Comparison with other defences",
        "All defences on the same day with the same fixed attackers. The random baseline with equal "
        "throughput replays random signatures and moves as much energy as ours (D8). The SoC-neutral cost "
        "buys back the charge that is missing at midnight (D7).",
        _COMPARED,
        (*_CHANGES, *_COUNTS, *_COSTS, "training_hours"),
        BOTH,
        THREATS,
    ),
    "as_published": Table(
        "As published, as far as its tables tell",
        "A manager whose battery comes nearest to what the paper prints of its own: cost in the reward, the likeliest "
        "action that moves energy, and on UK-DALE an estimate of active power as the load (docs/fidelity.md).",
        (Row("as_published", "as_published", as_published=True),),
        (
            *("rmse_increase_percent", "mae_increase_percent", "sae_increase_percent", "f1_reduction_percent"),
            *("rmse_significant", "mae_significant", "sae_significant", "f1_significant", *_COSTS),
        ),
        BOTH,
        THREATS,
    ),
    "heldout_day_generalization": Table(
        "Other days and houses of UK-DALE",
        "The policy of house 1, not trained again.",
        _evaluated(UKDALE_EVALUATION_DAYS),
        _OTHER_DAYS,
    ),
    "heldout_day_generalization_redd": Table(
        "Other days and houses of REDD",
        "The policy of house 2, not trained again.",
        _evaluated(REDD_EVALUATION_DAYS),
        _OTHER_DAYS,
        ("redd",),
    ),
    "many_days": Table(
        "All held-out days",
        "Every held-out day of the same house with good data, SoC carried over midnight (D16). Brackets are "
        "95 % intervals over days.",
        tuple(replace(row, days=HELD_OUT) for row in _COMPARED),
        (*_CHANGES, *_COSTS),
        BOTH,
        THREATS,
    ),
    "gap_to_random_equal": Table(
        "Ours minus the random baseline with equal throughput",
        "Paired differences on the same days.",
        (
            Row("one day", "ours", against="random_equal"),
            Row("many days", "ours", days=HELD_OUT, against="random_equal"),
        ),
        datasets=BOTH,
        threats=THREATS,
    ),
    "informed_attackers": Table(
        "Informed attackers",
        "Every defence on every house, read by an attacker that knows it (D17). In houses beyond the paper's, "
        "ours is the policy of UK-DALE house 1.",
        _INFORMED_ROWS,
        datasets=(*BOTH, "refit"),
        threats=ADAPTIVE,
    ),
    "probe_ablation": Table(
        "Probe",
        "The network that stands in for unknown attackers in training. Identity, which only measures how far "
        "the meter was moved, is not in the paper.",
        (Row("transformer", "ours"), *(Row(probe, f"ours_{probe}") for probe in _PROBES)),
        (*_CHANGES, *_COUNTS),
        is_ablation=True,
    ),
    "signature_size_ablation": Table(
        "Number of signatures",
        "The policy replays fewer of the ten signatures.",
        (Row("10", "ours"), *(Row(f"{size}", f"ours_{size}_signatures") for size in _SIZES)),
        (*_CHANGES, *_COUNTS),
        is_ablation=True,
    ),
    "battery_sensitivity": Table(
        "Battery",
        "Capacity, power and daily throughput, one changed at a time. Rationed rows release the daily budget "
        "evenly over the day. A small battery is full sooner and must discharge before it charges again, so "
        "its budget lasts longer.",
        (
            Row("main", "ours"),
            *(Row(f"capacity {kwh} kWh", "ours", changes) for kwh, changes in _CAPACITIES.items()),
            *(Row(f"power {kw} kW", "ours", _power(kw)) for kw in (1, 2, 6)),
            *(Row(f"throughput {kwh} kWh", "ours", (("budget_kwh", float(kwh)),)) for kwh in (2, 4, 6)),
            Row("rationed, main", "ours_rationed"),
            *(Row(f"rationed, capacity {kwh} kWh", "ours_rationed", changes) for kwh, changes in _CAPACITIES.items()),
        ),
        (*_CHANGES, *_COUNTS, "aggregate_delta_rmse_w"),
        is_ablation=True,
    ),
    "lambda_sweep": Table(
        "Privacy against cost",
        "Lambda weighs privacy (1) against cost (0) in the reward. The paper has a picture, no figures.",
        (*(Row(f"lambda {w:g}", f"ours_lambda_{w:g}") for w in LAMBDAS[:-1]), Row("lambda 1", "ours")),
        (*_CHANGES, *_COSTS),
        is_ablation=True,
    ),
    "remedies": Table(
        "Remedies for an early empty budget",
        "Patient looks further ahead; rationed releases the daily budget evenly over the day.",
        tuple(
            Row(f"{label}, {words}", defence, days=days)
            for days, words in ((PAPER, "one day"), (HELD_OUT, "many days"))
            for label, defence in (("ours", "ours"), ("patient", "ours_patient"), ("rationed", "ours_rationed"))
        ),
        (*_CHANGES, *_COSTS),
        BOTH,
        is_ablation=True,
    ),
}
"""Name -> table; the paper's tables have the names of the files in `bench/reported`."""
