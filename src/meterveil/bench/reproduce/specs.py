"""The experiments as data: which rows a table has, and what is measured for each.

A *cell* is one row of one table on one data set under one threat model: the smallest thing that is measured
and kept. Whatever can change a cell's number is written here or follows from the data.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from meterveil.bench.cards import ThreatModel
from meterveil.bench.evaluation.readers import DEFAULT_ATTACKERS
from meterveil.data.protocols import REDD_EVALUATION_DAYS, UKDALE_EVALUATION_DAYS, EvaluationDay
from meterveil.errors import InputError

SEEDS = 5
SYNTHETIC = "synthetic"
MANAGER = "manager"
THREATS: tuple[ThreatModel, ...] = ("fixed", "adaptive")


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


Defence = str | Training | EqualTo
"""A defence by name, or one that is learned."""

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
    threats: tuple[ThreatModel, ...] = ("fixed",)


@dataclass(frozen=True)
class Cell:
    """Name one row of one table on one data set under one threat model."""

    table: str
    row: Row
    dataset: str
    threat: ThreatModel
    attackers: tuple[str, ...]
    seeds: int = SEEDS
    copies: int = 12
    """Masked copies of the training days that an adaptive attacker learns from."""

    @property
    def title(self) -> str:
        """Name it for people."""
        return f"{self.table}, {self.row.label}, {self.dataset}, {self.threat}"


OURS = Training()
BOTH = ("ukdale", "redd")
DATASETS = (*BOTH, SYNTHETIC)

_DEFENCES = (
    Row("none", "none"),
    Row("random", "random"),
    Row("random_equal", EqualTo(OURS)),
    Row("rule_based", "rule_based"),
    Row("ddql_flat", Training("ddql_flat")),
    Row("ddql_mi", Training("ddql_mi")),
    Row("flat", "flat"),
    Row("flat_decoys", "flat_decoys"),
    Row("ours", OURS),
    Row("ours (paper's settings)", Training(preset="paper")),
)


def _name(defence: Defence) -> str:
    if isinstance(defence, EqualTo):
        return "random_equal"
    if isinstance(defence, Training):
        return "ours" if defence.method == MANAGER else defence.method
    return defence


def _power(kilowatts: float) -> Changes:
    return (("charge_w", 1000.0 * kilowatts), ("discharge_w", 1000.0 * kilowatts))


def _evaluated(days: Sequence[EvaluationDay]) -> tuple[Row, ...]:
    return tuple(Row(f"{day.day} house {day.house}", OURS, days=day) for day in days)


LAMBDAS = (0.0, 0.02, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0)
"""Closer at the lower end: a day's cost is about a pound, and the probe's harm outweighs it from 0.25 on."""

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
    "many_days": Table(
        "all held-out days of the same house, SoC carried over midnight",
        tuple(replace(row, days="many") for row in _DEFENCES),
        BOTH,
        THREATS,
    ),
}
"""Name -> table; the names of the paper's tables are those of `bench/reported`."""


@dataclass(frozen=True)
class Effort:
    """Say how much is spent on every cell."""

    seeds: int = SEEDS
    attackers: Mapping[ThreatModel, tuple[str, ...]] | None = None
    """Threat model -> attackers; None for those of every evaluation."""
    copies: int = 12
    budget_days: float | None = None
    probe_epochs: int = 5

    def of(self, row: Row) -> Row:
        """Cut a row's trainings to what may be spent on them."""
        against = None if row.against is None else self._shortened(row.against)
        return replace(row, defence=self._shortened(row.defence), against=against)

    def _shortened(self, defence: Defence) -> Defence:
        if isinstance(defence, EqualTo):
            return EqualTo(self._cut(defence.training))
        return self._cut(defence) if isinstance(defence, Training) else defence

    def _cut(self, training: Training) -> Training:
        return replace(training, budget_days=self.budget_days, probe_epochs=self.probe_epochs)


FULL = Effort()
_CLASSICAL = ("co", "fhmm")
QUICK = Effort(
    seeds=2,
    attackers={"fixed": _CLASSICAL, "adaptive": _CLASSICAL},
    copies=2,
    budget_days=10.0,
    probe_epochs=1,
)
"""Minutes instead of hours: whether everything runs, not what comes out. One seed gives no significance."""


def cells(
    tables: Sequence[str] = (),
    datasets: Sequence[str] = (),
    threats: Sequence[ThreatModel] = (),
    effort: Effort = FULL,
    rows: Sequence[str] = (),
) -> list[Cell]:
    """List the cells of these tables, or of all; what is not given is the tables' own choice.

    A table that is asked for by name may be measured on any data set, unless its rows name days of one.
    """
    tables = [_whole_name(name) for name in tables]
    _check(datasets, DATASETS, "data set")
    _check(threats, THREATS, "threat model")
    chosen = {name: TABLES[name] for name in TABLES if not tables or name in tables}
    _check(rows, dict.fromkeys(row.label for table in chosen.values() for row in table.rows), "row")
    found = [
        cell
        for name, table in chosen.items()
        for dataset in _datasets(table, datasets, by_name=bool(tables))
        for cell in _cells(name, dataset, threats or table.threats, effort)
        if not rows or cell.row.label in rows
    ]
    if not found:
        raise InputError(
            f"{' and '.join(chosen)} cannot be measured on {' and '.join(datasets)}: the rows name days of "
            "another data set; choose another table or leave --dataset out"
        )
    return found


def _whole_name(text: str) -> str:
    """Find the table of this name, or the one whose name alone begins so."""
    begun = [name for name in TABLES if name.startswith(text)]
    if text in TABLES or len(begun) != 1:
        _check([text], TABLES, "table")
        return text
    return begun[0]


def _cells(name: str, dataset: str, threats: Sequence[ThreatModel], effort: Effort) -> Iterator[Cell]:
    attackers = effort.attackers or DEFAULT_ATTACKERS
    for row in map(effort.of, TABLES[name].rows):
        for threat in threats:
            yield Cell(name, row, dataset, threat, attackers[threat], effort.seeds, effort.copies)


def _datasets(table: Table, asked: Sequence[str], by_name: bool) -> tuple[str, ...]:
    if not asked:
        return table.datasets
    names_days = any(isinstance(row.days, EvaluationDay) for row in table.rows)
    further = () if names_days else DATASETS if by_name else (SYNTHETIC,)
    return tuple(name for name in asked if name in (*table.datasets, *further))


def _check(names: Sequence[str], known: Collection[str], what: str) -> None:
    unknown = next((name for name in names if name not in known), None)
    if unknown is not None:
        raise InputError(f"there is no {what} {unknown!r}; known are {', '.join(known)}")
