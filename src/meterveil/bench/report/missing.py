"""What the reproduction's specs ask for and the results do not hold, and the command that measures it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from meterveil.bench.cards import ThreatModel
from meterveil.bench.report.lookup import HEADLINE, place_of
from meterveil.bench.report.names import dataset_name, row_name
from meterveil.bench.report.reading import Results
from meterveil.bench.report.specs import GAP, SPECS
from meterveil.bench.reproduce.specs import TABLES
from meterveil.plots.page import Section

_WORDS = "Rows of the tables that these results do not hold, and what measures them."


class Missing(NamedTuple):
    """Name the rows of a table that were not measured on a data set under a threat model."""

    table: str
    dataset: str
    threat: ThreatModel
    rows: tuple[str, ...]
    is_all: bool


def missing(results: Results) -> Iterator[Missing]:
    """List what is not recorded, in the order of the report; what could not be measured has a card."""
    for name in (spec.name for spec in (*SPECS, GAP)):
        table = TABLES[name]
        for dataset in table.datasets:
            recorded = _recorded(results, name, dataset)
            for threat in table.threats:
                asked = [row.label for row in table.rows if threat in row.threats]
                rows = tuple(label for label in asked if (label, threat) not in recorded)
                if rows:
                    yield Missing(name, dataset, threat, rows, len(rows) == len(asked))


def missing_lines(results: Results) -> list[str]:
    """Write a line for each command that is still to run, with the rows that it is needed for."""
    return [
        command(one.table, one.dataset, one.threat) + f" ({'all' if one.is_all else '; '.join(one.rows)})"
        for one in missing(results)
    ]


def missing_sections(results: Results) -> Iterator[Section]:
    """Show what is missing; nothing where all is there."""
    titles = {spec.name: spec.title for spec in (*SPECS, GAP)}
    rows = [["table", "data set", "attackers", "rows"]]
    for one in missing(results):
        labels = "all" if one.is_all else "; ".join(map(row_name, one.rows))
        asked = command(one.table, one.dataset, one.threat)
        rows.append([f"{titles[one.table]}\n{asked}", dataset_name(one.dataset), one.threat, labels])
    if len(rows) > 1:
        yield Section("Not run yet", _WORDS, rows, is_stacked=True)


def command(table: str, dataset: str, threat: ThreatModel) -> str:
    """Write what measures a table on a data set under a threat model; what is its default is left out."""
    known = TABLES[table]
    parts = ["meterveil reproduce --table", table]
    parts += [] if known.datasets == (dataset,) else ["--dataset", dataset]
    parts += [] if known.threats == (threat,) else ["--threat", threat]
    return " ".join(parts)


def _recorded(results: Results, table: str, dataset: str) -> set[tuple[str, ThreatModel]]:
    places = map(place_of, results.of(table, dataset))
    return {(place.label, place.threat) for place in places if place.what == HEADLINE}
