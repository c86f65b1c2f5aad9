"""What the reproduction's specs ask for and the results do not hold, and the command that measures it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from meterveil.bench.cards import Card, ThreatModel
from meterveil.bench.report.lookup import HEADLINE, place_of
from meterveil.bench.report.names import dataset_name, row_name
from meterveil.bench.report.reading import Results
from meterveil.bench.report.specs import REPRODUCED
from meterveil.bench.reproduce.specs import SEEDS, TABLES
from meterveil.plots.html import Section

_WORDS = "Rows of the tables that these results do not hold over all their seeds, and what measures them."


class Missing(NamedTuple):
    """Name the rows of a table that were not measured on a data set under a threat model."""

    table: str
    dataset: str
    threat: ThreatModel
    rows: tuple[str, ...]
    is_all: bool

    @property
    def words(self) -> str:
        """Name the rows for people."""
        return "all" if self.is_all else "; ".join(map(row_name, self.rows))

    @property
    def command(self) -> str:
        """Write what measures them."""
        return command(self.table, self.dataset, self.threat)


def missing(results: Results) -> Iterator[Missing]:
    """List what is not recorded over all its seeds, in the order of the report.

    What could not be measured has a card that says so, and is not missing.
    """
    for name in (spec.name for spec in REPRODUCED):
        table = TABLES[name]
        for dataset in table.datasets:
            for threat in table.threats:
                recorded = _recorded(results.of(name, dataset), threat)
                asked = [row.label for row in table.rows if threat in row.threats]
                rows = tuple(label for label in asked if label not in recorded)
                if rows:
                    yield Missing(name, dataset, threat, rows, len(rows) == len(asked))


def missing_lines(results: Results) -> list[str]:
    """Write a line for each command that is still to run: the rows that it is needed for, then itself."""
    return [f"not run yet, {one.words}: {one.command}" for one in missing(results)]


def missing_sections(results: Results) -> Iterator[Section]:
    """Show what is missing; nothing where all is there."""
    titles = {spec.name: spec.title for spec in REPRODUCED}
    rows = [["table", "data set", "attackers", "rows"]]
    for one in missing(results):
        what = f"{titles[one.table]}\n{one.command}"
        rows.append([what, dataset_name(one.dataset), one.threat, one.words])
    if len(rows) > 1:
        yield Section("Not run yet", _WORDS, rows, is_stacked=True)


def command(table: str, dataset: str, threat: ThreatModel) -> str:
    """Write what measures a table on a data set under a threat model; what is its default is left out."""
    known = TABLES[table]
    parts = ["meterveil reproduce --table", table]
    parts += [] if known.datasets == (dataset,) else ["--dataset", dataset]
    parts += [] if known.threats == (threat,) else ["--threat", threat]
    return " ".join(parts)


def _recorded(cards: Sequence[Card], threat: ThreatModel) -> set[str]:
    """Name the rows with an excuse, or a figure over all seeds: without dice a defence has as many."""
    return {
        place.label
        for place, card in ((place_of(card), card) for card in cards)
        if (place.what, place.threat) == (HEADLINE, threat)
        if card.measured is None or len(card.seeds) >= SEEDS[threat]
    }
