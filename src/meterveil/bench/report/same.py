"""Whether two folders of results hold the same figures: what a reproduction on another machine is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from meterveil.bench.cards import Card
from meterveil.bench.report.reading import Results

_TIMES = ("training_seconds",)
_TIMED_TABLES = ("reproduction_time",)
"""What no two runs agree on: how long they took."""

_Name = tuple[str, str, str, str, str]


class Compared(NamedTuple):
    """Count the figures of a table on a data set, and name those that differ."""

    table: str
    dataset: str
    same: int
    different: tuple[str, ...]
    """Each in words: its row, its column and both values."""
    only_here: int
    only_there: int


def compare(here: Results, there: Results) -> list[Compared]:
    """Compare figures and their deviations digit by digit; tables that only one side has are left out."""
    ours, theirs = _figures(here), _figures(there)
    shared = {name[:2] for name in ours} & {name[:2] for name in theirs}
    return [_compared(table, ours, theirs) for table in sorted(shared)]


def one_sided(here: Results, there: Results) -> list[tuple[str, str]]:
    """Name the tables and data sets that only one of the folders has."""
    return sorted({name[:2] for name in _figures(here)} ^ {name[:2] for name in _figures(there)})


def rows_of(compared: Sequence[Compared]) -> list[list[str]]:
    """Write a row for each table and data set."""
    head = ["table", "data set", "same", "different", "only here", "only there"]
    return [head, *([one.table, one.dataset, *map(str, _counts(one))] for one in compared)]


def _counts(one: Compared) -> tuple[int, int, int, int]:
    return one.same, len(one.different), one.only_here, one.only_there


def _figures(results: Results) -> dict[_Name, Card]:
    return {
        (card.table, card.dataset, card.row, card.column, card.threat_model): card
        for card in results.cards
        if card.column not in _TIMES and card.table not in _TIMED_TABLES
    }


def _compared(table: tuple[str, str], ours: dict[_Name, Card], theirs: dict[_Name, Card]) -> Compared:
    here, there = ({name for name in cards if name[:2] == table} for cards in (ours, theirs))
    differing = [name for name in sorted(here & there) if _values(ours[name]) != _values(theirs[name])]
    words = tuple(_words(ours[name], theirs[name]) for name in differing)
    return Compared(*table, len(here & there) - len(words), words, len(here - there), len(there - here))


def _values(card: Card) -> tuple[float | None, float | None]:
    return card.measured, card.spread


def _words(ours: Card, theirs: Card) -> str:
    here, there = (
        " ± ".join(str(value) for value in _values(card) if value is not None) for card in (ours, theirs)
    )
    return f"{ours.row}, {ours.column}: {here} here, {there} there"
