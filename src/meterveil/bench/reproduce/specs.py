"""The experiments as data: which rows a table has, and what is measured for each.

A *cell* is one row of one table on one data set under one threat model: the smallest thing that is measured
and kept. Whatever can change a cell's number is written here or follows from the data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from meterveil.bench.cards import ThreatModel
from meterveil.data.protocols import REDD_EVALUATION_DAYS, UKDALE_EVALUATION_DAYS, EvaluationDay

SYNTHETIC = "synthetic"
MANAGER = "manager"
THREATS: tuple[ThreatModel, ...] = ("fixed", "adaptive")
FIXED: tuple[ThreatModel, ...] = ("fixed",)

SEEDS: Mapping[ThreatModel, int] = {"fixed": 5, "adaptive": 3}
"""Threat model -> trainings of each defence; a network that adapts to one policy learns for six minutes."""


@dataclass(frozen=True)
class Training:
    """Say how a defence is trained; the defaults are the main result's."""

    method: str = MANAGER
    """`manager`, `ddql_flat` or `ddql_mi`."""
    preset: str = "fast"
    probe: str = "transformer"
    signatures: str = "main"
    """Name of a sub-library."""
    weight: float = 1.0
    """Lambda: 1 is privacy alone."""
    budget_days: float | None = None
    """Days to simulate; None for the preset's."""
    probe_epochs: int = 5


@dataclass(frozen=True)
class EqualTo:
    """Chance at the throughput that a training came to on its own training days (D8)."""

    training: Training


@dataclass(frozen=True)
class RationOf:
    """A training whose manager gets the day's budget bit by bit, as the day passes."""

    training: Training


Defence = str | Training | EqualTo | RationOf
"""A defence by name, or one that is learned, or that follows from one."""

DaysOf = Literal["paper", "many"] | EvaluationDay
"""The paper's test day, all held-out days (D16), or one of the days of the paper's further tables."""

Changes = tuple[tuple[str, float], ...]
"""Fields of the battery that differ from the paper's."""


@dataclass(frozen=True)
class Row:
    """Name a row of a table and what is measured for it."""

    label: str
    defence: Defence
    battery: Changes = ()
    days: DaysOf = "paper"
    against: Defence | None = None
    """Another defence on the same days: measured is then how much more the first has of each figure."""
    threats: tuple[ThreatModel, ...] = field(default=THREATS, repr=False)
    """Whom it meets unless one asks; repr, which keys hash, leaves it out: no figure depends on it."""

    @property
    def defences(self) -> list[tuple[str, Defence]]:
        """Name what has to be measured: one defence by the row's label, two by what they are."""
        if self.against is None:
            return [(self.label, self.defence)]
        return [(_name(defence), defence) for defence in (self.defence, self.against)]


@dataclass(frozen=True)
class Table:
    """Describe a table: its rows, and the data sets and threat models that it has by default."""

    words: str
    rows: tuple[Row, ...]
    datasets: tuple[str, ...] = ("ukdale",)
    threats: tuple[ThreatModel, ...] = FIXED


@dataclass(frozen=True)
class Cell:
    """Name one row of one table on one data set under one threat model."""

    table: str
    row: Row
    dataset: str
    threat: ThreatModel
    attackers: tuple[str, ...]
    seeds: int
    copies: int = 12
    """Masked copies of the training days that an adaptive attacker learns from."""

    @property
    def title(self) -> str:
        """Name it for people."""
        return f"{self.table}, {self.row.label}, {self.dataset}, {self.threat}"


OURS = Training()
PATIENT = Training(preset="patient")
BOTH = ("ukdale", "redd")
DATASETS = (*BOTH, SYNTHETIC)

_DEFENCES = (
    Row("none", "none"),
    Row("random", "random", threats=FIXED),
    Row("random_equal", EqualTo(OURS)),
    Row("rule_based", "rule_based", threats=FIXED),
    Row("ddql_flat", Training("ddql_flat"), threats=FIXED),
    Row("ddql_mi", Training("ddql_mi"), threats=FIXED),
    Row("flat", "flat"),
    Row("flat_decoys", "flat_decoys"),
    Row("ours", OURS),
    Row("ours (paper's settings)", Training(preset="paper"), threats=FIXED),
)


def _name(defence: Defence) -> str:
    if isinstance(defence, str):
        return defence
    if isinstance(defence, Training):
        return "ours" if defence.method == MANAGER else defence.method
    return "random_equal" if isinstance(defence, EqualTo) else "rationed"


def _power(kilowatts: float) -> Changes:
    return (("charge_w", 1000.0 * kilowatts), ("discharge_w", 1000.0 * kilowatts))


def _evaluated(days: Sequence[EvaluationDay]) -> tuple[Row, ...]:
    return tuple(Row(f"{day.day} house {day.house}", OURS, days=day) for day in days)


LAMBDAS = (0.0, 0.02, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0)
"""Closer at the lower end, where the trade-off turns."""

TABLES: dict[str, Table] = {
    "overall_transfer": Table("the main result on both data sets", (Row("ours", OURS),), BOTH),
    "baseline_comparison": Table("other defences, and chance at equal throughput", _DEFENCES, BOTH, THREATS),
    "probe_ablation": Table(
        "which probe teaches",
        tuple(Row(probe, Training(probe=probe)) for probe in ("transformer", "lstm", "cnn", "identity")),
    ),
    "signature_size_ablation": Table(
        "how many signatures there are to replay",
        (
            Row("10", OURS),
            Row("9", Training(signatures="nine")),
            Row("7", Training(signatures="seven")),
            Row("5", Training(signatures="five")),
            Row("3", Training(signatures="three")),
        ),
    ),
    "battery_sensitivity": Table(
        "capacity, power and daily throughput of the battery",
        (
            Row("main", OURS),
            *(Row(f"capacity {kwh} kWh", OURS, (("capacity_kwh", float(kwh)),)) for kwh in (2, 4, 12)),
            *(Row(f"power {kw} kW", OURS, _power(kw)) for kw in (1, 2, 6)),
            *(Row(f"throughput {kwh} kWh", OURS, (("budget_kwh", float(kwh)),)) for kwh in (2, 4, 6)),
            Row("rationed, main", RationOf(OURS)),
            *(
                Row(f"rationed, capacity {kwh} kWh", RationOf(OURS), (("capacity_kwh", float(kwh)),))
                for kwh in (2, 4, 12)
            ),
        ),
    ),
    "lambda_sweep": Table(
        "privacy against cost",
        tuple(Row(f"lambda {weight:g}", Training(weight=weight)) for weight in LAMBDAS),
    ),
    "heldout_day_generalization": Table(
        "other days and houses of UK-DALE, not trained again", _evaluated(UKDALE_EVALUATION_DAYS)
    ),
    "heldout_day_generalization_redd": Table(
        "other days and houses of REDD, not trained again", _evaluated(REDD_EVALUATION_DAYS), ("redd",)
    ),
    "gap_to_chance": Table(
        "ours minus chance at equal throughput, the gap itself tested",
        (
            Row("one day", OURS, against=EqualTo(OURS)),
            Row("many days", OURS, days="many", against=EqualTo(OURS)),
        ),
        BOTH,
        THREATS,
    ),
    "remedies": Table(
        "what was tried against a budget that is spent before the evening",
        (
            Row("ours, one day", OURS),
            Row("patient, one day", PATIENT),
            Row("rationed, one day", RationOf(OURS)),
            Row("ours, many days", OURS, days="many"),
            Row("patient, many days", PATIENT, days="many"),
            Row("rationed, many days", RationOf(OURS), days="many"),
        ),
        BOTH,
    ),
    "many_days": Table(
        "all held-out days of the same house, SoC carried over midnight",
        tuple(replace(row, days="many") for row in _DEFENCES),
        BOTH,
        THREATS,
    ),
}
"""Name -> table; the names of the paper's tables are those of `bench/reported`."""
