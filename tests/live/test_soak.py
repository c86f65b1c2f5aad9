"""A short soak: every fault of the benchmark once, and any order of faults that hypothesis finds."""

import math
import sys
from pathlib import Path

import pytest
from homes import Level, World, as_stored, day_load, fails, not_a_number
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from meterveil.core.battery import Battery

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from soak import FAULTS, MOST_TICKS_BACK, soak


@pytest.mark.slow
def test_every_fault_is_named_no_limit_is_exceeded_and_control_comes_back(tmp_path):
    run = soak(0.06, 60, tmp_path, day_load())
    assert run.injected >= len(FAULTS)
    assert (run.broken, run.unnamed) == ([], [])
    assert max(run.ticks_back) <= MOST_TICKS_BACK
    assert run.expected == run.stored_seconds()


LIMITS = Battery(charge_w=1500, discharge_w=1200, budget_kwh=0.3)
METER_FAULTS = (
    None,
    fails,
    not_a_number,
    lambda reading: reading._replace(power_w=1e9),
    lambda reading: reading._replace(at_s=reading.at_s - 100),
    lambda reading: reading._replace(power_w=0.0, voltage_v=3.0),
)
BATTERY_FAULTS = (
    None,
    fails,
    lambda reading: reading._replace(soc=math.nan),
    lambda reading: reading._replace(soc=2.0),
)


class AnyOrder(RuleBasedStateMachine):
    """Faults, modes, clock jumps and restarts in any order."""

    def __init__(self):
        super().__init__()
        self.world = World(battery=LIMITS, policy=Level(1200.0), load_w=day_load())

    @rule(seconds=st.integers(1, 90))
    def time_passes(self, seconds):
        self.world.run(seconds)

    @rule(fault=st.sampled_from(METER_FAULTS))
    def the_meter_changes(self, fault):
        self.world.meter.meter_fault = fault

    @rule(fault=st.sampled_from(BATTERY_FAULTS))
    def the_battery_changes(self, fault):
        self.world.meter.battery_fault = fault

    @rule(fails_now=st.booleans())
    def commands_change(self, fails_now):
        self.world.meter.command_fault = fails if fails_now else None

    @rule(mode=st.sampled_from(["live", "shadow", "paused", "chaos"]))
    def somebody_sets_the_mode(self, mode):
        self.world.controller.set_mode(mode)

    @rule(kwh=st.floats(allow_nan=True, allow_infinity=True))
    def somebody_sets_the_budget(self, kwh):
        self.world.controller.set_budget(kwh)

    @rule(seconds=st.sampled_from([-86_400, -3600, 3600]))
    def the_clock_jumps(self, seconds):
        self.world.clock.utc_s += seconds

    @rule(soc=st.floats(0.0, 1.0))
    def the_soc_drifts(self, soc):
        self.world.house.soc = soc

    @rule()
    def the_process_is_killed(self):
        kept = as_stored(self.world.controller.memory())
        self.world.start()
        self.world.controller.restore(kept)

    @invariant()
    def commands_keep_every_limit(self):
        for power_w in self.world.meter.commanded:
            assert power_w is None or -1200.0 <= power_w <= 1500.0

    @invariant()
    def the_budget_holds(self):
        assert max(self.world.controller.ledger.moved_kwh.values(), default=0.0) <= 0.3 + 0.006

    @invariant()
    def a_fault_or_another_mode_never_has_control(self):
        status = self.world.controller.status
        assert not (status.in_control and (status.fault or status.mode != "live"))

    @invariant()
    def every_minute_is_finite_or_unknown(self):
        for minute in self.world.minutes:
            assert 0.0 <= minute.known_s <= 61.0
            assert math.isfinite(minute.cost)


AnyOrder.TestCase.settings = settings(max_examples=12, stateful_step_count=20, deadline=None)
TestAnyOrder = AnyOrder.TestCase
