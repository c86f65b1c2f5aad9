"""Tables that the paper does not have and other commands recorded, each with a sentence on what it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from meterveil.bench.cards import Card
from meterveil.bench.report.compare import natural
from meterveil.bench.report.names import dataset_name, row_name
from meterveil.bench.report.reading import Results
from meterveil.bench.report.specs import REPRODUCED
from meterveil.bench.report.text import SPACE
from meterveil.plots import look
from meterveil.plots.html import Section

_SHOWN_ELSEWHERE = ("strength_", "crossing_", "adaptive_", "evaluation_")
_MANY = 1000.0
_NO_BOUND = "?"
_REWARD_AFTER = "reward_at_"


class Other(NamedTuple):
    """Say what a table is about and what its columns are called; one that is not named reads as it is."""

    heading: str
    words: str
    heads: Mapping[str, str]


_KINDS = {"risk": "over the day", "reward": "as paid", "training": "paid against the day"}
"""What alignment compares -> in the words of docs/alignment.md."""

_OTHERS: dict[str, Other] = {
    "alignment_": Other(
        "Does the probe point where attackers hurt?",
        "Inner product, cosine and gamma of the policy gradients of the probe's risk and of the attackers' "
        "risk, along training (condition A1); docs/alignment.md says what to make of it. A ? is a bound that "
        "the rollouts do not give.",
        {
            f"{kind}_{figure}": f"{look.readable(figure)}, {words}"
            for kind, words in _KINDS.items()
            for figure in ("inner_product", "cosine", "gamma")
        }
        | {"paid_mean": "paid a day, spreads of the load", "hours_mean": "risk over the day, spreads"},
    ),
    "behaviour": Other(
        "What batteries do with their day",
        "When the day's budget is spent, what is charged on balance, and how much of what a manager asks "
        "for is done; docs/learned-defence.md has the pictures.",
        {
            "spent_hour": "budget spent, hour of the day",
            "net_kwh": "charged on balance, kWh a day",
            "soc_end": "SoC at midnight",
            "charging_choices": "choices to charge, share",
            "charged": "charging done of that asked for, share",
            "discharged": "discharging done of that asked for, share",
            "empty_choices": "choices that move nothing, share",
        },
    ),
    "reproduction_time": Other(
        "What measuring all this takes",
        "Tasks of each sort, how many of them left a record, and processor time; one without a record counts "
        "as the mean of its like. Hours are those of two busy cores.",
        {
            "core_minutes": "processor time of all, minutes",
            "hours": "hours on two cores",
            "recorded": "tasks with a record",
            "cpu_seconds": "processor time of a task, s",
            "clock_seconds": "clock time of a task, s",
            "measured_core_minutes": "processor time on record, minutes",
        },
    ),
    "training_observations": Other(
        "What trainings were seen to do",
        "Rewards, replays and probes at several learning rates and lengths; docs/training.md explains them.",
        {
            "replays": "replays a day",
            "minutes": "length of a replay, minutes",
            "reward": "reward of a day",
            "hourly_error_w": "RMS battery power of an hour, W",
            "correlation": "correlation of error and battery power",
            "rmse_w": "RMSE on clean hours, W",
            "explained": "variance explained, share",
        },
    ),
}
"""Beginning of a table's name -> what is said of it."""


def other_sections(results: Results) -> Iterator[Section]:
    """Show whatever no other section shows."""
    known = {spec.name for spec in REPRODUCED}
    for (table, dataset), cards in results.tables.items():
        if table not in known and not table.startswith(_SHOWN_ELSEWHERE):
            known_as = _known_as(table)
            heading = f"{known_as.heading}, {dataset_name(dataset)}"
            yield Section(heading, known_as.words, other_rows(cards, known_as.heads))


def other_rows(cards: Sequence[Card], heads: Mapping[str, str]) -> list[list[str]]:
    """Write a row for each row of the cards; the bounds of an interval stand beside its figure."""
    found = {(card.row, card.column): card for card in cards}
    bounds = {f"{column}_{end}" for _, column in found for end in ("low", "high")}
    columns = list(dict.fromkeys(column for _, column in found if column not in bounds))
    rows = sorted({card.row for card in cards}, key=natural)
    head = ["", *(_head(column, heads) for column in columns)]
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


def _head(column: str, heads: Mapping[str, str]) -> str:
    """Name a column; how many decisions a reward came after is part of its name on a card."""
    decisions = column.removeprefix(_REWARD_AFTER)
    plain = look.readable(column) if decisions == column else f"reward after {decisions} decisions"
    return heads.get(column, plain)


def _known_as(table: str) -> Other:
    plain = Other(look.readable(table).capitalize(), "Recorded, and shown as it is.", {})
    return next((other for name, other in _OTHERS.items() if table.startswith(name)), plain)
