"""Cells: what is measured and recorded at once, and which of them the tables need.

A cell is one defence on some days of one house under one threat model. Tables name cells; a cell that several tables
show is measured and recorded once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from meterveil.attackers.registry import INFORMED, PAPER_SIX
from meterveil.bench.reproduce.experiments import (
    AS_PUBLISHED_LOAD,
    DATASETS,
    DEFENCES,
    PAPER,
    SYNTHETIC,
    TABLES,
    THREATS,
    Changes,
    DefenceSpec,
    Row,
    Table,
)
from meterveil.bench.results import ThreatModel, battery_label
from meterveil.core.battery import Battery
from meterveil.data.household import Aggregate
from meterveil.data.protocols import PROTOCOLS, EvaluationDay
from meterveil.defenders.training_settings import DdqlSettings, ManagerSettings
from meterveil.errors import InputError, unknown

SEEDS: Mapping[ThreatModel, int] = {"fixed": 5, "adaptive": 3}
"""Threat model -> trainings of each defence; adaptive attackers are fitted for each, which takes long."""

ATTACKERS: Mapping[ThreatModel, tuple[str, ...]] = {"fixed": PAPER_SIX, "adaptive": INFORMED}
"""Threat model -> attackers, as in every evaluation."""

SHORT_DAYS = 10.0
"""Simulated days of a short training."""


@dataclass(frozen=True)
class Cell:
    """Defence on some days of a house under one threat model, with the effort that is spent on it."""

    dataset: str
    house: int
    days: str
    """`paper`, `held_out` or an ISO date."""
    defence: str
    battery: Changes
    threat: ThreatModel
    attackers: tuple[str, ...]
    seeds: int
    copies: int = 12
    """Masked copies of the training days that an adaptive attacker learns from."""
    against: str = ""
    is_short: bool = False
    """Short trainings, to see that everything runs."""
    aggregate: Aggregate = "mains"
    """Source of the load (D2)."""

    @property
    def title(self) -> str:
        parts = (self.label, f"{self.dataset} house {self.house}", self.days, self.threat)
        return ", ".join(parts if not self.battery else (*parts, f"battery {self.battery_label}"))

    @property
    def label(self) -> str:
        return f"{self.defence} minus {self.against}" if self.against else self.defence

    @property
    def battery_label(self) -> str:
        return battery_label(Battery(**dict(self.battery)))

    @property
    def columns(self) -> dict[str, Any]:
        """Select the cell's figures in the results, those of all threat models; see `results.where`."""
        return {
            "dataset": self.dataset,
            "house": self.house,
            "days": self.days,
            "aggregate": self.aggregate,
            "defence": self.label,
            "battery": self.battery_label,
        }

    def spec(self, defence: str) -> DefenceSpec:
        """Look a defence up, with its training settings for this cell."""
        spec, days = DEFENCES[defence], SHORT_DAYS if self.is_short else None
        training = spec.training
        if isinstance(training, ManagerSettings):
            if days:
                training = replace(training, budget_days=days, probe_epochs=1)
            # A battery of less power cuts signatures off, as the paper's must have done.
            training = replace(training, clip_signatures="charge_w" in dict(self.battery))
        elif isinstance(training, DdqlSettings) and days:
            training = training.within(days)
        return replace(spec, training=training)


@dataclass(frozen=True)
class Effort:
    """Amount of computation that is spent on each cell."""

    seeds: int | None = None
    """Trainings of each defence; None for the number that the threat model has."""
    attackers: Mapping[ThreatModel, tuple[str, ...]] = field(default_factory=lambda: ATTACKERS)
    copies: int = 12
    is_short: bool = False


FULL = Effort()
QUICK = Effort(2, dict.fromkeys(THREATS, ("co", "fhmm")), copies=2, is_short=True)
"""Minutes instead of hours, to see that everything runs. One seed would give no significance."""


class Entry(NamedTuple):
    """Place of a cell in a table."""

    table: str
    row: str
    cell: Cell


def cell_of(row: Row, dataset: str, threat: ThreatModel, effort: Effort = FULL) -> Cell:
    """Return the cell that a row shows for a data set and a threat model."""
    house, days = PROTOCOLS[dataset].house if dataset in PROTOCOLS else 1, row.days
    if row.home:
        house = row.home[1]
    if isinstance(days, EvaluationDay):
        is_papers = (days.house, days.day) == (house, PROTOCOLS[dataset].test[0])
        house, days = days.house, PAPER if is_papers else str(days.day)
    return Cell(
        dataset,
        house,
        days,
        row.defence,
        row.battery,
        threat,
        effort.attackers[threat],
        effort.seeds or SEEDS[threat],
        effort.copies,
        row.against,
        effort.is_short,
        AS_PUBLISHED_LOAD.get(dataset, "mains") if row.as_published else "mains",
    )


def cell_rows(table: str, dataset: str) -> list[tuple[str, dict[str, Any]]]:
    """List the rows of a table with the conditions that select their figures in the results.

    Add `threat`, `attacker`, `metric` and so on: `results.where(figures, **conditions, threat="fixed")`.
    """
    rows = [row for row in TABLES[table].rows if row.is_on(dataset)]
    return [(row.label, cell_of(row, dataset, "fixed").columns) for row in rows]


def choose(
    tables: Sequence[str] = (),
    datasets: Sequence[str] = (),
    threats: Sequence[ThreatModel] = (),
    effort: Effort = FULL,
    rows: Sequence[str] = (),
) -> list[Entry]:
    """List the cells of these tables, or of all tables.

    A named table may be measured on any data set, unless its rows name days of one, and under any threat
    model. A named row is measured under each named threat model.
    """
    tables = [_whole_name(name) for name in tables]
    _check(datasets, DATASETS, "data set")
    _check(threats, THREATS, "threat model")
    chosen = {name: table for name, table in TABLES.items() if not tables or name in tables}
    _check(rows, dict.fromkeys(row.label for table in chosen.values() for row in table.rows), "row")
    entries = [
        Entry(name, row.label, cell_of(row, dataset, threat, effort))
        for name, table in chosen.items()
        for row in table.rows
        if not rows or row.label in rows
        for dataset in _datasets(table, datasets, by_name=bool(tables))
        if row.is_on(dataset)
        for threat in _threats(table, threats, by_name=bool(tables))
        if threat in row.threats or (rows and threats)
    ]
    if not entries:
        chosen_names = " and ".join((*tables, *rows, *datasets, *threats))
        raise InputError(
            f"there is no cell for {chosen_names}; name the table as well, and data sets that have its days"
        )
    return entries


def _whole_name(text: str) -> str:
    """Complete the name of a table from its beginning, where only one table begins so."""
    matches = [name for name in TABLES if name.startswith(text)]
    name = matches[0] if len(matches) == 1 else text
    _check([name], TABLES, "table")
    return name


def _threats(table: Table, named: Sequence[ThreatModel], by_name: bool) -> tuple[ThreatModel, ...]:
    if not named:
        return table.threats
    return tuple(threat for threat in named if by_name or threat in table.threats)


def _datasets(table: Table, named: Sequence[str], by_name: bool) -> tuple[str, ...]:
    if not named:
        return table.datasets
    names_days = any(isinstance(row.days, EvaluationDay) for row in table.rows)
    further = () if names_days else DATASETS if by_name else (SYNTHETIC,)
    return tuple(name for name in named if name in (*table.datasets, *further))


def _check(names: Sequence[str], known: Collection[str], what: str) -> None:
    for name in names:
        if name not in known:
            raise unknown(what, name, known)
