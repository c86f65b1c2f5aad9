"""Steps that measure: a cell becomes cards, or cards that say why it cannot be measured here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from meterveil.attackers.registry import PAPER_SIX
from meterveil.bench.cards import Card
from meterveil.bench.evaluation.cards import cards_of
from meterveil.bench.evaluation.compare import COLUMNS as GAPS
from meterveil.bench.evaluation.compare import difference, gap_cards
from meterveil.bench.evaluation.measure import Bare, Result, Spec, evaluate, measure_bare
from meterveil.bench.evaluation.reported import claims, printed_case
from meterveil.bench.evaluation.scores import PAPER_METRICS
from meterveil.bench.reproduce import kept
from meterveil.bench.reproduce.entrant import Entrant
from meterveil.bench.reproduce.place import Place, digest, fingerprint, versions
from meterveil.bench.reproduce.specs import Cell
from meterveil.bench.strength import Trial
from meterveil.data.household import Household
from meterveil.data.protocols import PROTOCOLS
from meterveil.fingerprint import code_hash

COMPUTES = (
    "meterveil.bench.evaluation.measure",
    "meterveil.bench.evaluation.cards",
    "meterveil.bench.evaluation.compare",
    "meterveil.defenders",
)
"""Modules whose code, with all that it imports, decides on a figure."""

_HEADLINES = ("rmse_increase_percent", "f1_reduction_percent")
_NO_FIGURES = ("house", "active_appliances")
"""Columns of the paper that describe a row."""


@dataclass(frozen=True)
class Measure:
    """Let a defence act on the test days and the attackers read; write the cell's cards."""

    cell: Cell
    trial: Trial
    entrants: tuple[Entrant, ...]
    """The defence; or two, of which the second is taken from the first."""

    @property
    def seconds(self) -> float:
        """Roughly what it takes: attackers read every day under every seed."""
        return 10.0 + 0.5 * len(self.trial.test.days) * self.cell.seeds * len(self.entrants)

    def key(self, place: Place, fits: tuple[str, ...]) -> str:
        """Hash all that can change a figure: what is asked, code, libraries, trainings, fits and data."""
        data = fingerprint(place, *self.trial.test.key, self.trial.targets)
        defences = [(one.runs, one.setup(place).library.digest(), *one.code) for one in self.entrants]
        asked = [repr(self.cell), defences, fits]
        days = [self.trial.training, self.trial.test, self.trial.targets, self.trial.learned, self.trial.seed]
        return digest("cell", asked, days, data, code_hash(*COMPUTES), versions("scipy"))

    def is_finished(self, place: Place, key: str) -> bool:
        """Look for the headline, which is put in place last, and for what is still to be swept away."""
        return kept.is_whole(place, self.cell, key) and not kept.left_behind(place, self.cell, key)

    def run(self, place: Place, key: str) -> None:
        """Measure, unless that is done, and remove what an earlier effort left of this cell."""
        if not kept.is_whole(place, self.cell, key):
            kept.write(place, self._measured(place, key))
        kept.sweep(place, self.cell, key)

    def _measured(self, place: Place, key: str) -> list[Card]:
        """Make the cards; everything that is slow was done by other tasks and comes from the cache."""
        trial = replace(self.trial, settings={**self.trial.settings, **self._settings(place), "cell": key})
        attackers = {self.cell.threat: self.cell.attackers}
        spec = Spec(trial, self.entrants[0].setup(place), attackers, self.cell.seeds, self.cell.copies)
        houses = {part.key: place.household(*part.key) for part in (*trial.training, trial.test)}
        bare = measure_bare(spec, houses, workers=1)
        found, *rivals = (self._evaluated(place, bare, one) for one in self.entrants)
        if rivals:
            return list(gap_cards(found, rivals[0], f"{kept.HEADLINE}, {self.cell.row.label}"))
        own = [card for card in cards_of(found) if self._is_own(card)]
        return [*own, *absent_cards(self.cell, trial, houses[trial.test.key])]

    def _evaluated(self, place: Place, bare: Bare, one: Entrant) -> Result:
        """Measure one of the defences, with the signatures that it plays."""
        spec = replace(bare.spec, setup=one.setup(place))
        return evaluate(replace(bare, spec=spec), one.contender(place), workers=1)

    def _settings(self, place: Place) -> dict[str, object]:
        """Return what a card must say of its defences beyond what the trainings say of themselves."""
        first, *rivals = self.entrants
        stated = first.settings(place)
        for rival in rivals:
            stated |= {**rival.settings(place), "against": rival.label}
        return stated

    def _is_own(self, card: Card) -> bool:
        """Leave what depends on no attacker to the cell of the fixed ones, so that no two cells write it."""
        return self.cell.threat == "fixed" or card.threat_model == "adaptive"


@dataclass(frozen=True)
class Excuse:
    """Write down that a cell cannot be measured with the data at hand, beside what the paper prints."""

    cell: Cell
    reason: str

    @property
    def seconds(self) -> float:
        """No time at all."""
        return 0.1

    def key(self) -> str:
        """Hash what is said."""
        return digest("excuse", repr(self.cell), self.reason)

    def is_finished(self, place: Place, key: str) -> bool:
        """Look for the cards, or for figures: they were measured where the data were at hand, and stay."""
        return kept.is_whole(place, self.cell, key) or kept.has_figures(place, self.cell)

    def run(self, place: Place, key: str) -> None:
        """Write a card without a figure for each that the paper prints."""
        is_printed = self.cell.threat == "fixed"
        printed = claims(self.cell.table, self.cell.dataset, self.cell.row.label) if is_printed else {}
        headlines = _HEADLINES if self.cell.row.against is None else map(difference, GAPS)
        columns = dict.fromkeys([*headlines, *(name for name in printed if name not in _NO_FIGURES)])
        blank = _blank(self.cell, kept.headline(self.cell), {"cell": key}, f"not measured: {self.reason}")
        kept.write(place, [replace(blank, column=column, reported=printed.get(column)) for column in columns])


def absent_cards(cell: Cell, trial: Trial, home: Household) -> Iterator[Card]:
    """Say of every case that the paper prints and the data lack that it is missing (D12)."""
    if (cell.table, cell.threat) != ("overall_transfer", "fixed") or cell.dataset not in PROTOCOLS:
        return
    day = trial.test.days[0]
    known_w = home.day(day).appliances_w
    for target in PROTOCOLS[cell.dataset].targets:
        if target not in trial.targets:
            metered = target in known_w and not np.isnan(known_w[target]).all()
            why = "stood still" if metered else "is not metered in the data at hand"
            note = f"not measured: the {target.replace('_', ' ')} {why} on {day}"
            yield from _absent_cases(cell, target, note, dict(trial.settings))


def _absent_cases(cell: Cell, target: str, note: str, settings: dict[str, object]) -> Iterator[Card]:
    for attacker in PAPER_SIX:
        blank = _blank(cell, f"{attacker} {target}, {cell.row.label}, {cell.threat}", settings, note)
        for metric in PAPER_METRICS:
            printed = printed_case(cell.dataset, attacker, target, metric)
            columns = {metric: "masked", f"{metric}_delta": "delta", f"{metric}_p": "p_value"}
            for column, name in columns.items():
                yield replace(blank, column=column, reported=printed.get(name))


def _blank(cell: Cell, row: str, settings: dict[str, object], note: str) -> Card:
    return Card(
        table=cell.table,
        row=row,
        column="",
        dataset=cell.dataset,
        measured=None,
        seeds=(),
        n_days=0,
        threat_model=cell.threat,
        settings=dict(settings),
        note=note,
    )
