"""Which cells are asked for, and how much is spent on each."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
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
        if isinstance(defence, EqualTo | RationOf):
            return replace(defence, training=self._cut(defence.training))
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

    A table that is asked for by name may be measured on any data set, unless its rows name days of one, and
    under any threat model; a row that is asked for by name and with a threat model is measured under it.
    """
    tables = [_whole_name(name) for name in tables]
    _check(datasets, DATASETS, "data set")
    _check(threats, THREATS, "threat model")
    chosen = {name: TABLES[name] for name in TABLES if not tables or name in tables}
    _check(rows, dict.fromkeys(row.label for table in chosen.values() for row in table.rows), "row")
    wanted = [(table, row) for table in chosen for row in chosen[table].rows if not rows or row.label in rows]
    found = [
        _cell(name, row, dataset, threat, effort)
        for name, row in wanted
        for dataset in _datasets(TABLES[name], datasets, by_name=bool(tables))
        for threat in _threats(TABLES[name], threats, by_name=bool(tables))
        if threat in row.threats or (rows and threats)
    ]
    if not found:
        raise InputError(_nothing(tables, datasets, threats))
    return found


def _nothing(tables: Sequence[str], datasets: Sequence[str], threats: Sequence[str]) -> str:
    """Say why no cell is what was asked for."""
    where = f" on {' and '.join(datasets)}" if datasets else ""
    whom = f" under {' and '.join(threats)} attackers" if threats else ""
    if not tables:
        return f"by default no such row is measured{where}{whom}; name its table with --table, or see --list"
    return (
        f"{' and '.join(tables)} cannot be measured{where}{whom}: the rows name days of another data set; "
        "choose another table or leave --dataset out"
    )


def _whole_name(text: str) -> str:
    """Find the table of this name, or the one whose name alone begins so."""
    begun = [name for name in TABLES if name.startswith(text)]
    if text in TABLES or len(begun) != 1:
        _check([text], TABLES, "table")
        return text
    return begun[0]


def _cell(name: str, row: Row, dataset: str, threat: ThreatModel, effort: Effort) -> Cell:
    attackers, seeds = effort.attackers or DEFAULT_ATTACKERS, effort.seeds or SEEDS[threat]
    return Cell(name, effort.of(row), dataset, threat, attackers[threat], seeds, effort.copies)


def _threats(table: Table, asked: Sequence[ThreatModel], by_name: bool) -> tuple[ThreatModel, ...]:
    if not asked:
        return table.threats
    return tuple(threat for threat in asked if by_name or threat in table.threats)


def _datasets(table: Table, asked: Sequence[str], by_name: bool) -> tuple[str, ...]:
    if not asked:
        return table.datasets
    names_days = any(isinstance(row.days, EvaluationDay) for row in table.rows)
    further = () if names_days else DATASETS if by_name else (SYNTHETIC,)
    return tuple(name for name in asked if name in (*table.datasets, *further))


def _check(names: Sequence[str], known: Collection[str], what: str) -> None:
    unknown = next((name for name in names if name not in known), None)
    if unknown is not None:
        raise InputError(f"there is no {what} {unknown!r}; known are {'; '.join(known)}")
