"""Ten signatures of the make-up of the paper's library (appendix E.2), drawn from the appliance models."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from meterveil.core.decoys import Library
from meterveil.data.household import FloatArray
from meterveil.data.synthetic.machines import Dishwasher, Kettle, Microwave, Toaster, WashingMachine
from meterveil.data.synthetic.segments import MINUTE_S, Segments, chain, levels, minute_means

SHORTEST_MIN, LONGEST_MIN = 5, 35
MEDIAN_RANGE_W = (300.0, 2500.0)
TYPICAL_LONGEST_MIN, TYPICAL_LOWEST_W = 10, 1500.0
PER_APPLIANCE = 2
SHIPPED_SEED = 0


def decoy_library() -> Library:
    """Return the library that ships with the package: always the same ten signatures."""
    return Library.of(decoy_signatures(np.random.default_rng(SHIPPED_SEED)), source="synthetic")


def decoy_signatures(rng: np.random.Generator) -> list[tuple[str, FloatArray]]:
    """Draw ten (appliance, watts per minute) pairs: two units each of five appliances, one use per unit.

    A use that the paper's filter would refuse (5 to 35 minutes, median 300 to 2,500 W) is drawn again, and so
    is a library of which most are not 5 to 10 minutes long or not between 1,500 and 2,500 W.
    """
    while True:
        drawn = [
            (name, _signature(rng, draw)) for name, draw in _LONG_USES.items() for _ in range(PER_APPLIANCE)
        ]
        short = np.mean([watts.size <= TYPICAL_LONGEST_MIN for _, watts in drawn])
        strong = np.mean([np.median(watts) >= TYPICAL_LOWEST_W for _, watts in drawn])
        if min(short, strong) > 0.5:
            return drawn


def _signature(rng: np.random.Generator, draw: Callable[[np.random.Generator], Segments]) -> FloatArray:
    while True:
        use = draw(rng).delayed(rng.uniform(0, MINUTE_S))
        watts = np.round(minute_means(use, int(np.ceil(use.end_s / MINUTE_S))), 1)
        low_w, high_w = MEDIAN_RANGE_W
        if SHORTEST_MIN <= watts.size <= LONGEST_MIN and low_w <= np.median(watts) <= high_w:
            return watts


def _long_boil(rng: np.random.Generator) -> Segments:
    """Fill the kettle to the brim, or boil twice in a row: an ordinary boil is too short for the library."""
    kettle = Kettle.draw(rng)
    if rng.random() < 0.5:
        return kettle.boil(rng, 270.0)
    pause = levels([rng.uniform(5, 25)], [0.0])
    return chain([kettle.boil(rng, 160.0), pause, kettle.boil(rng, 160.0)])


def _two_rounds(rng: np.random.Generator) -> Segments:
    toaster = Toaster.draw(rng)
    return chain([toaster.round(rng), levels([rng.uniform(5, 25)], [0.0]), toaster.round(rng)])


def _long_heat(rng: np.random.Generator) -> Segments:
    return Microwave.draw(rng).heat(rng, 360.0)


def _washing(rng: np.random.Generator) -> Segments:
    return WashingMachine.draw(rng).heating(rng)


def _dishwashing(rng: np.random.Generator) -> Segments:
    dishwasher = Dishwasher.draw(rng)
    return dishwasher.heating(rng, MINUTE_S * min(dishwasher.heats_min))


_LONG_USES: dict[str, Callable[[np.random.Generator], Segments]] = {
    "kettle": _long_boil,
    "toaster": _two_rounds,
    "microwave": _long_heat,
    "washing_machine": _washing,
    "dishwasher": _dishwashing,
}
