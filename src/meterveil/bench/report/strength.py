"""What the attackers read out of a bare meter, and how they adapt: tables that other commands recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from meterveil.attackers.registry import FLOORS
from meterveil.bench.attack_page import along, curve_chart, strength_chart
from meterveil.bench.cards import Card
from meterveil.bench.floors import F1_COLUMNS, mean_over_appliances
from meterveil.bench.headings import heading
from meterveil.bench.report.names import DATASETS, row_name
from meterveil.bench.report.reading import Results
from meterveil.plots.attack import LABELS, label
from meterveil.plots.html import Section

PAPER_DAY = "strength_10_training_paper_day"
_RAW = (
    "What each attacker reads without any defence, mean over appliances: a defence against weak attackers "
    "proves nothing. The paper's figures are means over the same appliances."
)
_ELSEWHERE = (
    "The same attackers over many held-out days, after more days of training, and in houses that they never "
    "saw (crossing). F1 is the better one of those from power and from the on/off head."
)
_ADAPTING = (
    "What attackers read behind a defence after learning from its own masked days. Where a curve still "
    "rises, the defence is not yet measured."
)
_WIDE_PX = 900
"""Three panels side by side need this much; on a phone they scroll in their own box."""

_STEPS = {
    "copies": ("learning from more copies", _ADAPTING),
    "epochs": ("training for longer", "The same, after more epochs on as many copies."),
}
"""What a curve runs along -> in words, and what it shows."""


def strength_sections(results: Results) -> Iterator[Section]:
    """Show how strong the attackers are: the paper's day, other days and houses, and adapted ones."""
    for (table, dataset), cards in results.tables.items():
        if table == PAPER_DAY:
            title = f"Attackers on the bare meter, {DATASETS[dataset]}"
            chart = strength_chart(cards).update_layout(width=_WIDE_PX)
            yield Section(title, _RAW, strength_rows(cards), chart)
    others = {key: cards for key, cards in results.tables.items() if _is_elsewhere(key[0])}
    if others:
        yield Section("Attackers on other days and in other houses", _ELSEWHERE, elsewhere_rows(others))
    for (table, dataset), cards in results.tables.items():
        if table.startswith("adaptive_"):
            yield from _curves(DATASETS[dataset], cards)


def strength_rows(cards: Sequence[Card]) -> list[list[str]]:
    """Write a row for each attacker: mean over appliances, the paper's beside ours."""
    metrics = {"rmse": ("RMSE, W", 1), "mae": ("MAE, W", 1), "sae": ("SAE", 2), "f1": ("F1", 2)}
    ours = {metric: mean_over_appliances(cards, metric) for metric in metrics}
    papers = {metric: mean_over_appliances(cards, metric, reported=True) for metric in metrics}
    rows = [["attacker", *(part for words, _ in metrics.values() for part in (f"{words}, paper", "ours"))]]
    for name in _in_order(ours["rmse"]):
        row = [label(name)]
        for metric, (_, digits) in metrics.items():
            row += [_number(values[metric].get(name), digits) for values in (papers, ours)]
        rows.append(row)
    return rows


def elsewhere_rows(tables: dict[tuple[str, str], tuple[Card, ...]]) -> list[list[str]]:
    """Write a row for each table and data set: F1 of every attacker, mean over appliances."""
    scores = {key: _best_f1(cards) for key, cards in tables.items()}
    names = _in_order({name: 0.0 for found in scores.values() for name in found})
    rows = [["F1", *(label(name) for name in names)]]
    for (table, dataset), found in scores.items():
        rows.append([heading(tables[table, dataset]), *(_number(found.get(name), 2) for name in names)])
    return rows


def _is_elsewhere(table: str) -> bool:
    return table.startswith(("strength_", "crossing_")) and table != PAPER_DAY


def _best_f1(cards: Sequence[Card]) -> dict[str, float]:
    found: dict[str, float] = {}
    for column in F1_COLUMNS:
        for name, value in mean_over_appliances(cards, column).items():
            found[name] = max(value, found.get(name, value))
    return found


def _curves(dataset: str, cards: Sequence[Card]) -> Iterator[Section]:
    for steps, curve in along(cards).items():
        title, words = _STEPS[steps]
        headline = f"Adapting to {row_name(cards[0].settings['defence'])} on {dataset}, {title}"
        chart = curve_chart(curve, steps).update_layout(width=_WIDE_PX)
        yield Section(headline, words, (), chart)


def _in_order(scores: dict[str, float]) -> list[str]:
    places = {name: place for place, name in enumerate(LABELS)}
    return sorted(scores, key=lambda name: (name in FLOORS, places.get(name, len(places))))


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"
