"""Library of appliance signatures: found in data, filtered, ranked, chosen (appendix E.2), saved and read.

Of the uses that last 5 to 35 minutes at a median of 300 to 2,500 W, the most varied ones are taken: at most
two of each appliance and house, ten in all (D15). The file is JSON with a SHA-256 (docs/formats.md).
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from meterveil.core.arrays import runs
from meterveil.core.decoys import Library
from meterveil.data import outputs, synthetic
from meterveil.data.files import read_text
from meterveil.data.household import FloatArray, Household, kind
from meterveil.data.load import find_kind, houses, load
from meterveil.data.protocols import LIBRARY_DAYS, ON_THRESHOLD_W, UKDALE_EVALUATION_DAYS, on_threshold_w
from meterveil.data.splits import Days, consecutive_pieces
from meterveil.errors import InputError

APPLIANCES = ("kettle", "toaster", "microwave", "dishwasher", "washing_machine", "washer_dryer")
"""Intermittent high-power appliances; a fridge runs all day and shows nothing about people."""

SIZE = 10

SUB_LIBRARIES: dict[str, int] = {"main": SIZE, "nine": 9, "seven": 7, "five": 5, "three": 3}
"""Name -> signatures in it: the rows of the paper's table on library size."""

HEATING_W = dict.fromkeys(("washing_machine", "washer_dryer"), synthetic.MEDIAN_RANGE_W[0])
"""Thresholds of washers: only their heating suits the library; whole programmes are too long and too weak."""

PARTLY_ON_W = min(ON_THRESHOLD_W.values())
"""A minute beside an event is partial, not standby, from the lowest power that counts as on (D10)."""
_LONGEST = 1440
"""Most minutes of a signature."""


@dataclass(frozen=True)
class Signature:
    """One use of an appliance and, where known, its place and time."""

    name: str
    watts: tuple[float, ...]
    """Mean power of each minute."""
    house: int | None = None
    day: date | None = None
    start: str = ""
    """Local time of the first minute, HH:MM."""

    @property
    def median_w(self) -> float:
        return float(np.median(self.watts))

    @property
    def std_w(self) -> float:
        return float(np.std(self.watts))

    @property
    def energy_kwh(self) -> float:
        """Energy that a whole replay moves."""
        return sum(self.watts) / 60_000


@dataclass(frozen=True)
class Collection:
    """Signatures of a library with their origin; best rank first if chosen here."""

    source: str
    signatures: tuple[Signature, ...]

    def library(self) -> Library:
        """Return the library that the battery replays; results record its `digest()`."""
        return Library.of([(signature.name, signature.watts) for signature in self.signatures], self.source)

    @classmethod
    def of_library(cls, library: Library) -> Collection:
        """Wrap a library without origins."""
        pairs = library.signatures()
        return cls(library.source, tuple(Signature(name, tuple(watts.tolist())) for name, watts in pairs))


def find_events(watts: FloatArray, threshold_w: float) -> list[tuple[int, int]]:
    """Return first and last+1 minute of each run at or above the threshold, widened by its partial minutes.

    A run next to an unknown minute, or at the edge of the record, is left out: its end is unknown.
    """
    starts, ends = runs(watts >= threshold_w)
    framed = np.concatenate([[np.nan], watts, [np.nan]])
    before_w, after_w = framed[starts], framed[ends + 1]
    whole = np.isfinite(before_w) & np.isfinite(after_w)
    starts, ends = starts - (before_w >= PARTLY_ON_W), ends + (after_w >= PARTLY_ON_W)
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


def ranked(signatures: Iterable[Signature]) -> list[Signature]:
    """Order by standard deviation, then median power, both descending."""
    return sorted(signatures, key=lambda signature: (-signature.std_w, -signature.median_w))


def choose(uses: Iterable[Signature], size: int = SIZE) -> tuple[Signature, ...]:
    """Choose the best signatures that pass the filter, at most two of each appliance and house (D15)."""
    taken: Counter[tuple[str, int | None]] = Counter()
    chosen: list[Signature] = []
    for use in ranked(use for use in uses if synthetic.suits_library(np.array(use.watts))):
        if taken[use.name, use.house] < synthetic.PER_APPLIANCE and len(chosen) < size:
            taken[use.name, use.house] += 1
            chosen.append(use)
    return tuple(chosen)


def own_uses(days_w: Sequence[FloatArray], above_w: float = 1000.0, longest: int = 60) -> Library:
    """Learn signatures from a household's own meter, without sub-meters: what rises so far above the day's median."""
    uses: list[tuple[str, FloatArray]] = []
    for watts in days_w:
        for start, end in find_events(watts - np.nanmedian(watts), above_w):
            rise_w = watts[start:end] - min(watts[start - 1], watts[min(end, len(watts) - 1)])
            if start > 0 and end - start <= longest and rise_w[0] >= 1.0:
                uses.append((f"own use {len(uses) + 1}", np.maximum(np.round(rise_w), 0.0)))
    if not uses:
        raise InputError(f"no use of {above_w:g} W or more is in these {len(days_w)} days; give more days or a library")
    return Library.of(uses, "uses of the household's own meter")


def composites(library: Library, count: int, rng: np.random.Generator) -> Library:
    """Add signatures of two appliances that overlap, such as a kettle while the oven runs."""
    singles = library.signatures()
    made = []
    for _ in range(count):
        (first, first_w), (second, second_w) = (singles[number] for number in rng.integers(len(singles), size=2))
        offset = int(rng.integers(len(first_w)))
        watts = np.zeros(min(max(len(first_w), offset + len(second_w)), _LONGEST))
        watts[: len(first_w)] += first_w
        watts[offset : offset + len(second_w)] += second_w[: len(watts) - offset]
        made.append((f"{first} and {second}", watts))
    return Library.of([*singles, *made], f"{library.source}, with composites")


def build(households: Mapping[int, Household], days: Mapping[int, Days] = LIBRARY_DAYS) -> Collection:
    """Build the library from UK-DALE houses, by number, and these days of each."""
    unknown = [str(house) for house in households if not days.get(house)]
    if unknown:
        raise InputError(f"no days are set for house {', '.join(unknown)}; name days to take signatures from")
    for row in UKDALE_EVALUATION_DAYS:
        if row.day in days.get(row.house, ()):
            raise InputError(f"{row.day} of house {row.house} is an evaluation day; take other days")
    uses = [use for house, home in households.items() for use in candidates(home, house, days[house])]
    chosen = choose(uses)
    if not chosen:
        low_w, high_w = synthetic.MEDIAN_RANGE_W
        raise InputError(
            f"none of {len(uses)} uses of {', '.join(APPLIANCES)} lasts {synthetic.SHORTEST_MIN} to "
            f"{synthetic.LONGEST_MIN} minutes at a median of {low_w:g} to {high_w:g} W; "
            "give data in which these appliances are metered, in watts"
        )
    parts = [f"house {house}, {days[house][0]} to {days[house][-1]}" for house in households]
    return Collection(f"UK-DALE {' and '.join(parts)}", chosen)


def sub_library(library: Library, name: str) -> Library:
    """Return the named smaller library: the first 9, 7, 5 or 3 by rank, so that each holds the next.

    The paper does not say which signatures its smaller libraries keep; a shorter greedy choice keeps these.
    """
    if name not in SUB_LIBRARIES:
        raise InputError(f"there is no sub-library {name!r}; there are {', '.join(SUB_LIBRARIES)}")
    size = SUB_LIBRARIES[name]
    if size > library.size:
        raise InputError(f"{name} takes {size} signatures, {library.source} has {library.size}; go smaller")
    best = ranked(Collection.of_library(library).signatures)[:size]
    return Collection(library.source, tuple(best)).library()


_ORIGIN = ("house", "day", "start")
_HASH = "sha256"


def read_houses(data: Path) -> dict[int, Household]:
    """Read the houses of the library; `data` is UK-DALE, or a folder with `ukdale` in it."""
    source = data / "ukdale" if (data / "ukdale").is_dir() else data
    source_kind, appliances = find_kind(source), houses(source)
    if source_kind not in ("ukdale", "nilmtk"):
        raise InputError(f"{source} is read as {source_kind}; signatures are built from UK-DALE, give its folder")
    missing = [str(house) for house in LIBRARY_DAYS if house not in appliances]
    if missing:
        raise InputError(
            f"{source} has no house {' or '.join(missing)}; "
            f"signatures are built from houses {' and '.join(map(str, LIBRARY_DAYS))} of UK-DALE, give both"
        )
    read_in = {}
    for house in LIBRARY_DAYS:
        known = appliances[house]  # empty where the source does not list its appliances
        wanted = [name for name in known if kind(name) in APPLIANCES]
        if known and not wanted:
            raise InputError(
                f"{source}, house {house} meters {', '.join(known)}; none of them is {', '.join(APPLIANCES)}"
            )
        read_in[house] = load(source, house, appliances=wanted or None)
    return read_in


def save(collection: Collection, path: Path) -> Path:
    """Write the library to a file."""
    document = json.loads(collection.library().to_json())
    for row, signature in zip(document["signatures"], collection.signatures, strict=True):
        day = signature.day and signature.day.isoformat()
        origin = {"house": signature.house, "day": day, "start": signature.start or None}
        row.update({key: value for key, value in origin.items() if value is not None})
    document[_HASH] = _hash_of(document)
    return outputs.write_text(path, json.dumps(document, indent=1) + "\n")


def read(path: Path | None = None) -> Collection:
    """Read a library with its origins, or return the synthetic one that ships."""
    if path is None:
        return Collection.of_library(synthetic.decoy_library())
    text = read_text(path)
    try:
        library = Library.from_json(text)
        document = json.loads(text)
        _check_unaltered(document)
        plain = Collection.of_library(library).signatures
        return Collection(library.source, tuple(map(_with_origin, plain, document["signatures"])))
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def library(path: Path | None = None) -> Library:
    """Read the library that the battery replays, or return the synthetic one that ships."""
    return read(path).library()


def _with_origin(signature: Signature, row: Mapping[str, Any]) -> Signature:
    house, day, start = (row.get(key) for key in _ORIGIN)
    try:
        return replace(
            signature,
            house=None if house is None else int(house),
            day=None if day is None else date.fromisoformat(day),
            start=str(start or ""),
        )
    except (TypeError, ValueError, OverflowError) as error:
        origin = f"{signature.name} comes from house {house!r}, day {day!r}"
        raise InputError(f"{origin}; write them as 1 and 2013-03-19") from error


def _check_unaltered(document: Mapping[str, Any]) -> None:
    """Compare the content with its hash; a library written by hand has neither hash nor origin."""
    states_origin = any(key in row for row in document["signatures"] for key in _ORIGIN)
    if _HASH not in document and not states_origin:
        return
    content = {key: value for key, value in document.items() if key != _HASH}
    if document.get(_HASH) != _hash_of(content):
        raise InputError(
            f"its content does not match its {_HASH}, so it was altered after it was built; build it again "
            f"with meterveil signatures build, or remove {_HASH}, {', '.join(_ORIGIN)} to make it your own"
        )


def _hash_of(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
