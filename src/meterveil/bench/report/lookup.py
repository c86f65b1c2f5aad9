"""Finds figures in the cards of one table and data set, by defence, threat model and column."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from meterveil.attackers.protocol import AGGREGATE
from meterveil.attackers.registry import PAPER_SIX
from meterveil.bench.cards import Card, ThreatModel
from meterveil.bench.report.columns import is_count

HEADLINE, BATTERY, METER = "headline", "battery", "meter"
_HOUR_S = 3600.0
_MEANS: dict[str, tuple[str, bool]] = {
    "rmse_raw_w": ("rmse", False),
    "rmse_masked_w": ("rmse", True),
    "f1_raw": ("f1", False),
    "f1_masked": ("f1", True),
}
"""Column of the paper's tables of other days -> metric, and whether behind the defence."""


class Found(NamedTuple):
    """A figure as measured, with all that says how far to trust it."""

    value: float
    spread: float | None = None
    low: float | None = None  # of the confidence interval over days
    high: float | None = None
    of: int | None = None  # cases that were counted
    seeds: int = 1
    n_days: int = 1
    note: str = ""
    p: float | None = None  # that chance alone makes such a difference, where one was tested


class CaseKey(NamedTuple):
    """Name what is read by whom."""

    attacker: str
    target: str
    metric: str


class Place(NamedTuple):
    """Say what the row of a card is about: `headline, flat, fixed` or `co fridge, flat, adaptive`."""

    what: str
    label: str
    threat: ThreatModel


def place_of(card: Card) -> Place:
    """Take the row of a card apart."""
    row = card.row.removesuffix(f", {card.threat_model}")
    what, comma, label = row.partition(", ")
    return Place(what, label, card.threat_model) if comma else Place("", row, card.threat_model)


@dataclass(frozen=True)
class Recorded:
    """Hold the cards of one table on one data set."""

    cards: Sequence[Card]

    @cached_property
    def _by_place(self) -> dict[tuple[Place, str], Card]:
        return {(place_of(card), card.column): card for card in self.cards}

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Name the defences, or the rows, that were measured as a whole or could not be."""
        wholes = (HEADLINE, BATTERY)
        missing = [card for card in self.cards if card.measured is None and place_of(card).what == ""]
        named = [place_of(card).label for card in self.cards if place_of(card).what in wholes]
        return tuple(dict.fromkeys([*named, *(card.row for card in missing)]))

    @property
    def _summaries(self) -> dict[str, Callable[[str, ThreatModel], Found | None]]:
        return {
            "aggregate_delta_rmse_w": self._aggregate,
            "event_f1": self._events,
            "information_bits": self._information,
        }

    def find(self, label: str, column: str, threat: ThreatModel = "fixed") -> Found | None:
        """Return a figure of a defence as a whole: its headline, its battery, or a mean over its cases."""
        if column in _MEANS:
            return self._mean(label, threat, *_MEANS[column])
        if column in self._summaries:
            return self._summaries[column](label, threat)
        if column == "training_hours":
            seconds = self._card(Place(BATTERY, label, "clean"), "training_seconds")
            return seconds and seconds._replace(value=seconds.value / _HOUR_S, spread=None)
        headline = Place(HEADLINE, label, threat)
        found = self._card(headline, column) or self._card(Place(BATTERY, label, "clean"), column)
        if found and is_count(column):
            cases = self._card(headline, column.replace("significant", "cases"))
            return found._replace(of=round(cases.value)) if cases else None
        return found

    def cases(self, label: str, threat: ThreatModel = "fixed") -> dict[CaseKey, Found]:
        """Return what every attacker reads of every target behind a defence."""
        return {CaseKey(*key): found for key, found in self._cases(label, threat)}

    def gap(self, column: str, threat: ThreatModel) -> Found | None:
        """Return a tested difference between two defences with its p, over the most days that it has."""
        tested = [found for place, found in self.gaps(column).items() if place.threat == threat]
        return max(tested, key=lambda one: one.n_days, default=None)

    def gaps(self, column: str) -> dict[Place, Found]:
        """Return every tested difference of a column with its p."""
        tested: dict[Place, Found] = {}
        for place in [place for place, name in self._by_place if name == column]:
            found, p = self._card(place, column), self._by_place.get((place, f"{column}_p"))
            tested |= {place: found._replace(p=p.measured if p else None)} if found else {}
        return tested

    def attackers(self, threat: ThreatModel) -> tuple[str, ...]:
        """Name those whose figures the headlines of a threat model are, each once."""
        said = [card.settings.get("attackers", ()) for card in self._headlines if card.threat_model == threat]
        return tuple(dict.fromkeys(name for names in said for name in names))

    def days(self) -> set[str]:
        """Describe the days that the headlines are of: figures of other days do not compare."""
        named = ("house", "test", "aggregate")
        return {
            json.dumps([*(card.settings.get(name) for name in named), card.n_days])
            for card in self._headlines
        }

    @cached_property
    def _headlines(self) -> tuple[Card, ...]:
        return tuple(card for card in self.cards if place_of(card).what == HEADLINE)

    def excuse(self, label: str) -> str:
        """Say why a row could not be measured, in the words of its cards; "" where there is no such card."""
        notes = [card.note for card in self.cards if card.measured is None and _is_about(card, label)]
        return next((note for note in notes if note), "")

    def case_excuse(self, label: str, attacker: str, target: str) -> str:
        """Say why a case could not be measured; "" where there is no card that says so."""
        place = Place(f"{attacker} {target}", label, "fixed")
        notes = [
            card.note
            for (where, _), card in self._by_place.items()
            if where == place and card.measured is None
        ]
        return next((note for note in notes if note), "")

    def _card(self, place: Place, column: str) -> Found | None:
        card = self._by_place.get((place, column))
        if card is None or card.measured is None:
            return None
        low, high = (self._by_place.get((place, f"{column}_{end}")) for end in ("low", "high"))
        bounds = (low.measured, high.measured) if low and high else (None, None)
        is_over_days = low is not None and place.what == BATTERY  # as the interval, which says more
        spread = None if is_over_days else card.spread
        return Found(card.measured, spread, *bounds, None, len(card.seeds), card.n_days, card.note)

    def _cases(self, label: str, threat: ThreatModel) -> Iterator[tuple[tuple[str, str, str], Found]]:
        for place, column in self._by_place:
            attacker, space, target = place.what.partition(" ")
            if space and (place.label, place.threat) == (label, threat):
                found = self._card(place, column)
                if found:
                    yield (attacker, target, column), found

    def _mean(self, label: str, threat: ThreatModel, metric: str, masked: bool) -> Found | None:
        cases = self.cases(label, threat)
        read = {
            key: found
            for key, found in cases.items()
            if key.metric == metric and key.target != AGGREGATE and key.attacker in PAPER_SIX
        }
        if not read:
            return None
        deltas = {key: cases.get(key._replace(metric=f"{metric}_delta")) for key in read}
        values = [
            found.value if masked else found.value - delta.value
            for key, found in read.items()
            if (delta := deltas[key]) is not None
        ]
        return _summed_up(values, list(read.values()))

    def _events(self, label: str, threat: ThreatModel) -> Found | None:
        """Return the F1 of uses found, mean over appliances, by the attacker that finds most."""
        by_attacker: dict[str, list[Found]] = {}
        for key, found in self.cases(label, threat).items():
            if key.metric == "event_f1":
                by_attacker.setdefault(key.attacker, []).append(found)
        means = [_summed_up([one.value for one in several], several) for several in by_attacker.values()]
        return max((one for one in means if one), key=lambda one: one.value, default=None)

    def _information(self, label: str, threat: ThreatModel) -> Found | None:
        """Return what a minute of the meter tells of an appliance, mean over appliances, whoever reads."""
        known = [
            found
            for place, column in self._by_place
            if place.label == label and place.what.startswith(f"{METER} ") and column == "information_bits"
            if (found := self._card(place, column))
        ]
        return _summed_up([found.value for found in known], known)

    def _aggregate(self, label: str, threat: ThreatModel) -> Found | None:
        cases = self.cases(label, threat)
        chosen = [cases.get(CaseKey(name, AGGREGATE, "rmse_delta")) for name in PAPER_SIX]
        known = [found for found in chosen if found]
        return _summed_up([found.value for found in known], known)


def _summed_up(values: Sequence[float], found: Sequence[Found]) -> Found | None:
    mean = _mean(values)
    return None if mean is None else Found(mean, seeds=found[0].seeds, n_days=found[0].n_days)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _is_about(card: Card, label: str) -> bool:
    """Tell whether a card speaks of a row as the paper has it: read by fixed attackers, or by none."""
    place = place_of(card)
    return place.label == label and place.what in ("", HEADLINE, BATTERY) and place.threat != "adaptive"
