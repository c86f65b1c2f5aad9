"""Signatures of real appliance uses: found, filtered, ranked and chosen (appendix E.2) from D15's sources.

An event is a run of minutes in which an appliance is on, together with the partial minutes at its edges.
Of those that last 5 to 35 minutes at a median of 300 to 2,500 W, the most varied ones (standard deviation,
then median power) make the library: at most two of each appliance and house, ten in all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date

import numpy as np

from meterveil.core.decoys import Library
from meterveil.data.household import FloatArray, Household
from meterveil.data.names import kind
from meterveil.data.protocols import LIBRARY_DAYS, ON_THRESHOLD_W, UKDALE_EVALUATION_DAYS, on_threshold_w
from meterveil.data.splits import Days, consecutive_pieces
from meterveil.data.synthetic.decoys import LONGEST_MIN, MEDIAN_RANGE_W, PER_APPLIANCE, SHORTEST_MIN
from meterveil.errors import InputError

APPLIANCES = ("kettle", "toaster", "microwave", "dishwasher", "washing_machine", "washer_dryer")
"""Intermittent high-power appliances; a fridge runs all day and is no sign of anybody's doing."""

SIZE = 10

SUB_LIBRARIES: dict[str, int] = {"main": SIZE, "nine": 9, "seven": 7, "five": 5, "three": 3}
"""Name -> signatures in it: the rows of the paper's table on library size."""

HEATING_W: dict[str, float] = dict.fromkeys(("washing_machine", "washer_dryer"), MEDIAN_RANGE_W[0])
"""A washer is on for a whole programme, mostly turning its drum at 100 W; only its heating can be replayed.

By its threshold of D10 (20 W) every programme is too long and too weak for the library, though both the paper
and D15 name washers among its sources. So its events are cut at the lowest median that the filter lets pass.
"""

PARTLY_ON_W = min(ON_THRESHOLD_W.values())
"""A minute beside an event is partial, not standby, from the lowest power that counts as on (D10)."""


@dataclass(frozen=True)
class Signature:
    """Hold one appliance use and, where it is known, where and when it was recorded."""

    name: str
    watts: tuple[float, ...]
    """Mean power of each minute."""
    house: int | None = None
    day: date | None = None
    start: str = ""
    """Local time of the first minute, HH:MM."""

    @property
    def median_w(self) -> float:
        """Median over the minutes."""
        return float(np.median(self.watts))

    @property
    def std_w(self) -> float:
        """Standard deviation over the minutes."""
        return float(np.std(self.watts))

    @property
    def energy_kwh(self) -> float:
        """Energy that a whole replay moves."""
        return sum(self.watts) / 60_000


@dataclass(frozen=True)
class Collection:
    """Hold the signatures of a library with their origin, best rank first where they were chosen here."""

    source: str
    signatures: tuple[Signature, ...]

    def library(self) -> Library:
        """Return what the battery replays; its `digest()` is what results record."""
        return Library.of([(one.name, one.watts) for one in self.signatures], self.source)

    @classmethod
    def of_library(cls, library: Library) -> Collection:
        """Take over a library of which nothing more is known."""
        pairs = library.signatures()
        return cls(library.source, tuple(Signature(name, tuple(watts.tolist())) for name, watts in pairs))


def find_events(watts: FloatArray, threshold_w: float) -> list[tuple[int, int]]:
    """Return first and last+1 minute of each run at or above the threshold, widened by its partial minutes.

    A run beside an unknown minute, or at the record's edge, is left out: nobody knows where it ends.
    """
    on = np.concatenate([[False], watts >= threshold_w, [False]])
    runs = np.flatnonzero(np.diff(on)).reshape(-1, 2)
    framed = np.concatenate([[np.nan], watts, [np.nan]])
    before_w, after_w = framed[runs[:, 0]], framed[runs[:, 1] + 1]
    whole = np.isfinite(before_w) & np.isfinite(after_w)
    starts = runs[:, 0] - (before_w >= PARTLY_ON_W)
    ends = runs[:, 1] + (after_w >= PARTLY_ON_W)
    return [(int(start), int(end)) for start, end in zip(starts[whole], ends[whole], strict=True)]


def candidates(household: Household, house: int, days: Days) -> Iterator[Signature]:
    """Yield every event of the high-power appliances that lies wholly in these days."""
    for piece in consecutive_pieces(household, days):
        for name, watts in piece.appliances_w.items():
            if kind(name) not in APPLIANCES:
                continue
            threshold_w = HEATING_W.get(kind(name), on_threshold_w(name))
            for start, end in find_events(watts, threshold_w):
                use_w = tuple(np.round(watts[start:end], 3).tolist())
                begin = piece.minutes[start]
                yield Signature(kind(name), use_w, house, begin.date(), f"{begin:%H:%M}")


def is_replayable(signature: Signature) -> bool:
    """Apply the paper's filter: neither short nor long, neither weak nor beyond a home battery."""
    low_w, high_w = MEDIAN_RANGE_W
    return SHORTEST_MIN <= len(signature.watts) <= LONGEST_MIN and low_w <= signature.median_w <= high_w


def ranked(signatures: Iterable[Signature]) -> list[Signature]:
    """Order by standard deviation, then by median power, both falling; equals stay in their order."""
    return sorted(signatures, key=lambda one: (-one.std_w, -one.median_w))


def choose(found: Iterable[Signature], size: int = SIZE) -> tuple[Signature, ...]:
    """Take the best of what passes the filter, at most two of each appliance and house (D15)."""
    taken: Counter[tuple[str, int | None]] = Counter()
    chosen: list[Signature] = []
    for one in ranked(filter(is_replayable, found)):
        if taken[one.name, one.house] < PER_APPLIANCE and len(chosen) < size:
            taken[one.name, one.house] += 1
            chosen.append(one)
    return tuple(chosen)


def build(households: Mapping[int, Household], days: Mapping[int, Days] = LIBRARY_DAYS) -> Collection:
    """Build the library from UK-DALE houses, by number, and the days of each that it may use."""
    _check_days(households, days)
    found = [one for house, home in households.items() for one in candidates(home, house, days[house])]
    chosen = choose(found)
    if not chosen:
        raise InputError(
            f"none of {len(found)} uses of {', '.join(APPLIANCES)} lasts {SHORTEST_MIN} to {LONGEST_MIN} "
            f"minutes at a median of {MEDIAN_RANGE_W[0]:g} to {MEDIAN_RANGE_W[1]:g} W; "
            "give data in which these appliances are metered, in watts"
        )
    parts = [f"house {house}, {days[house][0]} to {days[house][-1]}" for house in households]
    return Collection(f"UK-DALE {' and '.join(parts)}", chosen)


def sub_library(library: Library, name: str) -> Library:
    """Return the named smaller library: the first 9, 7, 5 or 3 by rank, so that each holds the next.

    The paper does not say which signatures its smaller libraries keep. Dropping the lowest ranks is what its
    greedy choice would have ended with, had it stopped sooner.
    """
    if name not in SUB_LIBRARIES:
        raise InputError(f"there is no sub-library {name!r}; there are {', '.join(SUB_LIBRARIES)}")
    size = SUB_LIBRARIES[name]
    if size > library.size:
        raise InputError(
            f"{name} takes {size} signatures and {library.source} has {library.size}; go smaller"
        )
    whole = Collection.of_library(library)
    return Collection(library.source, tuple(ranked(whole.signatures)[:size])).library()


def _check_days(houses: Iterable[int], days: Mapping[int, Days]) -> None:
    unknown = [str(house) for house in houses if not days.get(house)]
    if unknown:
        raise InputError(f"no days are set for house {', '.join(unknown)}; name days to take signatures from")
    for row in UKDALE_EVALUATION_DAYS:
        if row.day in days.get(row.house, ()):
            raise InputError(
                f"{row.day} of house {row.house} is an evaluation day; take signatures from other days"
            )
