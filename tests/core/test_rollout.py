"""One minute at a time is the same as a whole scenario at once."""

import numpy as np

from meterveil.core.battery import INITIAL_SOC, Battery
from meterveil.core.decoys import Library
from meterveil.core.rollout import Minute, advance, begin, rollout
from meterveil.core.scenario import Scenario
from meterveil.defenders import defender

LIBRARY = Library.of([("kettle", [2000.0, 1500.0]), ("oven", [900.0] * 20)], "test")


def test_a_controller_that_calls_advance_gets_the_trace_of_rollout():
    rng, minutes = np.random.default_rng(3), 2 * 1440
    clock = np.arange(minutes)
    load_w = rng.uniform(0.0, 3000.0, minutes)
    load_w[100:110] = np.nan
    day, price = clock // 1440, np.where(clock % 1440 < 420, 0.1, 0.3)
    scenario = Scenario(load_w[None], clock[None] % 1440, day[None], price[None], np.array([minutes]))
    policy, battery = defender("random_equal"), Battery(budget_kwh=2.0)
    trace = rollout(policy, battery, LIBRARY, scenario, [np.random.default_rng(7)])

    dice, control, powers_w, socs = np.random.default_rng(7), begin(policy, LIBRARY, 1), [], []
    for t in clock:
        now = [np.array([value]) for value in (load_w[t], t % 1440, price[t], t == 1440)]
        control, power_w = advance(policy, battery, LIBRARY, control, Minute(*now, dice.random((1, 2))))
        powers_w.append(power_w[0])
        socs.append(control.state.soc[0])

    assert trace.soc_start == INITIAL_SOC
    assert np.any(trace.power_w)
    np.testing.assert_array_equal(trace.power_w[0], powers_w)
    np.testing.assert_array_equal(trace.soc[0], socs)
