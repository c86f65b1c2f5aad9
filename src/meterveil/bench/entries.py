"""What an entry of the leaderboard must show: both threat models, its costs, chance at equal throughput."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from meterveil.bench.cards import ThreatModel

HEADLINE = (
    "rmse_increase_percent",
    "f1_reduction_percent",
    "strongest_f1",
    "strongest_f1_raw",
    "prior_f1",
    "f1_leak",
)
BATTERY = (
    "throughput_kwh",
    "soc_end",
    "energy_cost",
    "degradation_cost",
    "total_cost",
    "soc_neutral_cost",
)
EQUAL = "random_equal"
AT_MOST_LESS = 0.1
"""Share by which chance may move less than the defence that it is compared with (D8)."""

_RANKED = ("baseline_comparison", "many_days", "evaluation_")
"""How tables begin whose defences stand on the leaderboard."""
_OF_ATTACKERS = ("strength_", "crossing_", "adaptive_")
"""How tables begin that measure attackers, not defences."""
_OF_NEITHER = ("alignment_", "behaviour", "reproduction_time", "training_observations")
"""How tables begin that measure something else, such as gradients: their settings are their own."""

_Table = Mapping[tuple[str, str], float | None]
"""Row and column -> measured, in one table of one data set."""


def needed_settings(table: str, threat: ThreatModel) -> dict[str, str]:
    """Name the settings that a card of a table must have, and what each says."""
    if table.startswith(_OF_NEITHER):
        return {}
    needed = {"training": "the days that were learned from", "test": "the days that were read"}
    if not table.startswith(_OF_ATTACKERS):
        needed["defence"] = "what defended"
        if threat != "clean":
            needed["attackers"] = "who attacked"
    return needed


def incomplete(documents: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Name each entry that does not show all that it must, and what is missing."""
    tables: dict[tuple[str, str], dict[tuple[str, str], float | None]] = {}
    labels: dict[tuple[str, str], dict[str, None]] = {}
    for card in documents:
        if card["table"].startswith(_RANKED) and "defence" in card["settings"]:
            place = (card["table"], card["dataset"])
            explained = card["measured"] is not None or card["note"]
            tables.setdefault(place, {})
            labels.setdefault(place, {})[str(card["settings"]["defence"])] = None
            if explained:
                tables[place][card["row"], card["column"]] = card["measured"]
    for place, table in tables.items():
        for label in labels[place]:
            missing = [*_missing(table, label), *_missing_chance(table, label, list(labels[place]))]
            yield from ((" / ".join((*place, label)), what) for what in missing)


def _missing(table: _Table, label: str) -> Iterator[str]:
    rows = {
        f"headline, {label}, fixed": (HEADLINE, "attackers that never saw the defence (D11)"),
        f"headline, {label}, adaptive": (HEADLINE, "attackers that adapt to it (D11)"),
        f"battery, {label}": (BATTERY, "what it asks of the battery (D7)"),
    }
    for row, (columns, meaning) in rows.items():
        lacking = [column for column in columns if (row, column) not in table]
        if lacking == list(columns):
            yield f"row {row!r} is missing: {meaning}; measure it with meterveil evaluate"
        elif lacking:
            yield f"row {row!r} has no figure, and no note on why, in {', '.join(lacking)}"


def _missing_chance(table: _Table, label: str, labels: Sequence[str]) -> Iterator[str]:
    """Ask for decoys by chance that move as much: more energy alone hurts attackers as well (D8).

    Chance that moves more is the harder rival, so it will do.
    """
    moved_kwh = table.get((f"battery, {label}", "throughput_kwh"))
    if not moved_kwh or label.startswith(EQUAL):
        return
    chance = [table.get((f"battery, {one}", "throughput_kwh")) for one in labels if one.startswith(EQUAL)]
    if not any(kwh and kwh >= moved_kwh * (1.0 - AT_MOST_LESS) for kwh in chance):
        yield (
            f"{label} moves {moved_kwh:.2f} kWh a day, and no chance that moves as much is beside it (D8); "
            f"measure {EQUAL}:{moved_kwh:.2f} along"
        )
