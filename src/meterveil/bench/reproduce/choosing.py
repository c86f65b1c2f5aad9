"""Which cells are asked for, and how much is spent on each."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from meterveil.bench.cards import ThreatModel
from meterveil.bench.evaluation.readers import DEFAULT_ATTACKERS
from meterveil.bench.reproduce.specs import (
    DATASETS,
    SEEDS,
    SYNTHETIC,
    TABLES,
    THREATS,
    Cell,
    Defence,
    EqualTo,
    RationOf,
    Row,
    Table,
    Training,
)
from meterveil.data.protocols import EvaluationDay
from meterveil.errors import InputError


@dataclass(frozen=True)
class Effort:
    """Say how much is spent on every cell."""

    seeds: int | None = None
    """Trainings of each defence; None for what the threat model has."""
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
        if isinstance(defence, RationOf):
            return RationOf(self._cut(defence.training))
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

    A table that is asked for by name may be measured on any data set, unless its rows name days of one; a
    row that is asked for by name may meet any attackers.
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
        for cell in _cells(name, dataset, threats or table.threats, effort, by_name=bool(rows))
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


def _cells(
    name: str, dataset: str, threats: Sequence[ThreatModel], effort: Effort, by_name: bool
) -> Iterator[Cell]:
    attackers = effort.attackers or DEFAULT_ATTACKERS
    for row in map(effort.of, TABLES[name].rows):
        for threat in threats:
            if not by_name and threat not in row.threats:
                continue
            seeds = effort.seeds or SEEDS[threat]
            yield Cell(name, row, dataset, threat, attackers[threat], seeds, effort.copies)


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
