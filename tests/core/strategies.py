"""Batches of random cases: an example holds CASES households, each with a battery of its own.

Hypothesis draws the seeds and NumPy the numbers: an array that hypothesis fills repeats itself.
"""

import numpy as np
from hypothesis import strategies as st

from meterveil.core.battery import Battery, BatteryState
from meterveil.core.decoys import Library

CASES = 128
EXAMPLES = 85
assert CASES * EXAMPLES >= 10_000

seeds = st.integers(0, 2**32 - 1)


@st.composite
def column(draw, low, high, *extra):
    """(CASES,) floats in a range; a quarter of them are its ends or the extra values."""
    rng = np.random.default_rng(draw(seeds))
    special = rng.choice([low, high, *extra], CASES)
    return np.where(rng.random(CASES) < 0.25, special, rng.uniform(low, high, CASES))


@st.composite
def batteries(draw):
    soc_min = draw(column(0.0, 0.45, 0.1))
    return Battery(
        capacity_kwh=draw(column(0.5, 20.0, 8.0)),
        charge_w=draw(column(0.0, 6000.0, 4000.0)),
        discharge_w=draw(column(0.0, 6000.0, 4000.0)),
        charge_efficiency=draw(column(0.7, 1.0)),
        discharge_efficiency=draw(column(0.7, 1.0)),
        soc_min=soc_min,
        soc_max=soc_min + draw(column(0.05, 0.5)),
        budget_kwh=draw(column(0.0, 10.0, np.inf, 1e-6, 0.01)),
        export_limit_w=draw(column(0.0, 3000.0, np.inf, 0.1)),
        import_limit_w=draw(column(100.0, 9000.0, np.inf)),
    )


@st.composite
def states(draw, battery, outside=False):
    if outside:
        soc = draw(column(0.0, 1.0))
    else:
        soc = battery.soc_min + draw(column(0.0, 1.0)) * (battery.soc_max - battery.soc_min)
        soc = np.clip(soc, battery.soc_min, battery.soc_max)
    finite = np.where(np.isinf(battery.budget_kwh), 5.0, battery.budget_kwh)
    return BatteryState(soc, draw(column(0.0, 1.0)) * finite)


loads = column(-2000.0, 12000.0, 0.0, np.nan, 0.1, 230.7)
requests = column(-8000.0, 8000.0, 0.0, 1e-7)


@st.composite
def libraries(draw):
    rng = np.random.default_rng(draw(seeds))
    count = draw(st.integers(1, 10))
    signatures = [(f"a{k}", rng.uniform(1.0, 3500.0, rng.integers(1, 36))) for k in range(count)]
    return Library.of(signatures, "random")
