"""Uses that the shipped model finds in a meter without a battery, and with it.

`python -m meterveil.audit.before_after` reads both from JSON (`load_w`, `meter_w`, null for unknown), for the guard.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from meterveil.audit.model import SHAPES, Model, Reading, agreeing, load_model
from meterveil.core.arrays import FloatArray
from meterveil.plots.look import readable

TITLE = "What a reader finds without the battery (before) and with it (after)"
CAUTION = (
    "This reader ships with meterveil and has never seen a defence. A reader who knows the defence can find "
    "more: docs/threat-model.md has the figures."
)
EXPLANATION = (
    "Uses of appliances that the reader calls likely or almost certain. The last column counts "
    "the uses of before that are also found after, at the same time. Uses that are only found after are mistakes of "
    f"the reader. {CAUTION}"
)


class Found(NamedTuple):
    """Uses of one appliance that the reader is sure of: without the battery, with it, and in both."""

    before: int
    after: int
    still: int


def compare(model: Model, load_w: FloatArray, meter_w: FloatArray) -> dict[str, Found]:
    """Read the same minutes without and with the battery; return what was found of each appliance."""
    before, after = model.read(load_w), model.read(meter_w)
    found = {}
    for name in SHAPES:
        first, second = _sure_runs(before, name), _sure_runs(after, name)
        still = int(agreeing(first, second, len(load_w)).sum())
        found[name] = Found(len(first), len(second), still)
    return found


def found_rows(found: Mapping[str, Found], load_w: FloatArray) -> list[list[str]]:
    """Tabulate the appliances of which at least one use was found, the head first."""
    days = max(float(np.sum(~np.isnan(load_w))) / 1440.0, 1e-9)
    rows = [["uses a day", "before", "after", "still found"]]
    for name, (before, after, still) in found.items():
        if before or after:
            share = f"{still} of {before}" if before else ""
            rows.append([readable(name), f"{before / days:.1f}", f"{after / days:.1f}", share])
    return rows


def _sure_runs(reading: Reading, name: str) -> list[tuple[int, int]]:
    return [(use.start, use.end) for use in reading.uses if use.appliance == name and use.is_sure]


def main() -> None:
    """Compare the minutes of standard input; print the appliances of which a use was found."""
    given = json.load(sys.stdin)
    load_w, meter_w = (np.array(given[name], dtype=np.float64) for name in ("load_w", "meter_w"))
    compared = compare(load_model(), load_w, meter_w)
    sys.stdout.write(json.dumps([[readable(name), *uses] for name, uses in compared.items() if any(uses)]))


if __name__ == "__main__":
    main()
