"""Tables that the paper does not have and other commands recorded, each with a sentence on what it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from meterveil.bench.cards import Card
from meterveil.bench.report.compare import natural
from meterveil.bench.report.names import dataset_name, row_name
from meterveil.bench.report.reading import Results
from meterveil.bench.report.specs import GAP, SPECS
from meterveil.bench.report.text import SPACE
from meterveil.plots.look import readable
from meterveil.plots.page import Section

_SHOWN_ELSEWHERE = ("strength_", "crossing_", "adaptive_", "evaluation_")
_MANY = 1000.0
_NO_BOUND = "?"
_WORDS = {
    "alignment_": (
        "Does the probe point where attackers hurt?",
        "Inner product, cosine and gamma of the policy gradients of the probe's risk and of the attackers' "
        "risk, along training (condition A1); docs/alignment.md says what to make of it. A ? is a bound that "
        "the rollouts do not give.",
    ),
    "behaviour": (
        "What batteries do with their day",
        "When the day's budget is spent, what is charged on balance, and how much of what a manager asks "
        "for is done; docs/learned-defence.md has the pictures.",
    ),
    "reproduction_time": (
        "What measuring all this takes",
        "Tasks of each sort, how many of them left a record, and processor time; one without a record counts "
        "as the mean of its like. Hours are those of two busy cores.",
    ),
    "training_observations": (
        "What trainings were seen to do",
        "Rewards, replays and probes at several learning rates and lengths; docs/training.md explains them.",
    ),
}
"""Beginning of a table's name -> heading and sentence."""


def other_sections(results: Results) -> Iterator[Section]:
    """Show whatever no other section shows."""
    known = {spec.name for spec in (*SPECS, GAP)}
    for (table, dataset), cards in results.tables.items():
        if table not in known and not table.startswith(_SHOWN_ELSEWHERE):
            heading, words = _words(table)
            yield Section(f"{heading}, {dataset_name(dataset)}", words, other_rows(cards))


def other_rows(cards: Sequence[Card]) -> list[list[str]]:
    """Write a row for each row of the cards; the bounds of an interval stand beside its figure."""
    found = {(card.row, card.column): card for card in cards}
    bounds = {f"{column}_{end}" for _, column in found for end in ("low", "high")}
    columns = list(dict.fromkeys(column for _, column in found if column not in bounds))
    rows = sorted({card.row for card in cards}, key=natural)
    head = ["", *(readable(column) for column in columns)]
    names = {row: row_name(row.removeprefix("headline, ")) for row in rows}
    return [head, *([names[row], *(_cell(found, row, one) for one in columns)] for row in rows)]


def _cell(found: dict[tuple[str, str], Card], row: str, column: str) -> str:
    values = [
        card.measured if (card := found.get((row, f"{column}{end}"))) else None
        for end in ("", "_low", "_high")
    ]
    value, low, high = map(_number, values)
    if not value or (row, f"{column}_low") not in found:
        return value
    return f"{value}{SPACE}({low or _NO_BOUND}..{high or _NO_BOUND})"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.3g}" if abs(value) < _MANY else f"{value:.0f}"


def _words(table: str) -> tuple[str, str]:
    found = (words for name, words in _WORDS.items() if table.startswith(name))
    return next(found, (readable(table).capitalize(), "Recorded, and shown as it is."))
