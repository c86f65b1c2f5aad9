"""The controller on the simulated house: it holds the meter, keeps every limit and hands the battery back."""

import math
from datetime import UTC, datetime

import numpy as np
import pytest
from homes import TARGET_W, Level, World, as_stored, fails, frozen, not_a_number

from meterveil.core.battery import Battery
from meterveil.live import health
from meterveil.live.follower import FollowerSettings
from meterveil.live.health import HealthSettings
from meterveil.live.simulated import Plant


@pytest.mark.parametrize("own_loop", [False, True])
def test_minute_means_of_the_meter_are_the_target_whatever_the_household_does(own_loop):
    world = World(plant=Plant(own_loop=own_loop))
    world.run(1800)
    held = np.array([minute.meter_w for minute in world.minutes[4:]])
    loads = np.array([minute.load_w for minute in world.minutes[4:]])
    assert np.ptp(loads) > 2000
    assert np.abs(held - TARGET_W).max() < 100
    assert world.named == ["control"]


def test_shadow_mode_decides_and_records_but_commands_nothing():
    world = World(live=False)
    status = world.run(300)
    assert (world.meter.commanded, world.house.remote) == ([], False)
    assert "hold the meter at 500 W" in status.why
    assert len(world.minutes) == 5
    assert not world.controller.set_mode("live")
    assert world.named == ["mode_refused"]
    assert "armed" in world.events[0].text


def test_pause_hands_the_battery_back_and_live_takes_it_again():
    world = World()
    assert world.run(60).in_control
    world.controller.set_mode("paused")
    assert world.meter.commanded[-1] is None
    assert not world.run(60).in_control
    assert not world.house.remote
    world.controller.set_mode("live")
    assert world.run(3).in_control


METER_FAULTS = {
    health.METER_FAILED: fails,
    health.METER_ABSURD: not_a_number,
    health.METER_STALE: lambda reading: reading._replace(at_s=reading.at_s - 60),
    health.GRID_LOST: lambda reading: reading._replace(power_w=0.0, frequency_hz=52.3),
}
BATTERY_FAULTS = {
    health.BATTERY_FAILED: fails,
    health.BATTERY_ABSURD: lambda reading: reading._replace(soc=5.0),
    health.BATTERY_STALE: lambda reading: reading._replace(at_s=reading.at_s - 60),
}


@pytest.mark.parametrize("name", [*METER_FAULTS, *BATTERY_FAULTS])
def test_a_bad_reading_is_named_releases_the_battery_and_control_is_back_two_ticks_after(name):
    world = World()
    assert world.run(60).in_control
    if name in METER_FAULTS:
        world.meter.meter_fault = METER_FAULTS[name]
    else:
        world.meter.battery_fault = BATTERY_FAULTS[name]
    status = world.run(1)
    assert (status.fault, status.in_control) == (name, False)
    assert world.meter.commanded[-1] is None
    assert world.named == ["control", name, "released"]
    world.meter.meter_fault = world.meter.battery_fault = None
    assert world.run(2).in_control


@pytest.mark.parametrize(("power_w", "name"), [(700.0, health.METER_FROZEN), (0.0, health.GRID_LOST)])
def test_a_meter_that_repeats_a_value_away_from_the_target_is_frozen(power_w, name):
    world = World()
    world.run(60)
    world.meter.meter_fault = frozen(world.house.read_meter()._replace(power_w=power_w))
    world.run(90)
    assert name in world.named
    assert not world.house.remote


def test_a_meter_that_is_held_exactly_at_its_target_is_not_called_frozen():
    world = World(plant=Plant(own_loop=True, noise_w=0.0), load_w=np.full(600, 400.0))
    world.run(600)
    assert world.named == ["control"]


def test_a_second_writer_is_named_and_we_step_back():
    world = World(load_w=np.full(7200, 300.0))
    world.run(60)
    world.meter.battery_fault = lambda reading: reading._replace(setpoint_w=-2000.0)
    status = world.run(40)
    assert health.SECOND_WRITER in world.named
    assert (status.in_control, status.fault) == (False, health.SECOND_WRITER)
    world.meter.battery_fault = None
    assert not world.run(500).in_control
    assert world.run(120).in_control


def test_a_battery_that_discharges_though_it_was_told_to_charge_has_a_second_writer():
    world = World(load_w=np.full(7200, 300.0))
    world.run(60)
    world.meter.battery_fault = lambda reading: reading._replace(power_w=-1500.0, setpoint_w=None)
    world.meter.meter_fault = lambda reading: reading._replace(power_w=-1200.0 + reading.at_s % 7)
    world.run(60)
    assert health.SECOND_WRITER in world.named


def test_a_battery_that_ignores_commands_is_named():
    world = World(load_w=np.full(7200, 2000.0))
    world.run(5)
    world.meter.battery_fault = lambda reading: reading._replace(power_w=0.0, setpoint_w=None)
    world.meter.meter_fault = lambda reading: reading._replace(power_w=2000.0 + reading.at_s % 5)
    world.run(120)
    assert health.IGNORES_COMMANDS in world.named


def test_a_failed_command_is_named_and_the_device_times_out_by_itself():
    world = World()
    world.run(60)
    world.meter.command_fault = fails
    world.run(120)
    assert health.COMMAND_FAILED in world.named
    assert not world.house.remote


def test_a_killed_controller_leaves_the_battery_in_its_own_mode():
    world = World()
    assert world.run(60).in_control
    world.clock.move(65)
    world.house.read_battery()
    assert not world.house.remote


def test_a_standing_command_is_repeated_at_half_of_the_device_timeout():
    world = World(load_w=np.full(7200, 500.0), plant=Plant(noise_w=0.0), device_timeout_s=60.0)
    world.run(600)
    assert world.house.remote
    assert 19 <= len(world.meter.commanded) <= 25


def test_a_controller_that_slept_longer_than_the_timeout_knows_that_the_battery_was_released():
    world = World()
    world.run(60)
    world.clock.move(200)
    world.run(1)
    assert "released" in world.named
    assert world.run(2).in_control


def test_soc_outside_the_range_is_only_ever_driven_back_into_it():
    low = World(policy=Level(0.0), soc=0.05, load_w=np.full(7200, 2000.0))
    low.run(120)
    assert all(power_w >= 0 for power_w in low.meter.commanded)
    high = World(policy=Level(4000.0), soc=0.95)
    high.run(120)
    assert all(power_w <= 0 for power_w in high.meter.commanded)


def test_an_empty_battery_rests_until_its_soc_is_well_inside_the_range_again():
    world = World(policy=Level(0.0), soc=0.101, load_w=np.full(14400, 3000.0))
    world.run(900)
    floor = world.house.soc
    assert 0.095 < floor <= 0.1005
    settled = world.meter.commanded[-20:]
    assert set(settled) == {0.0}


def test_the_daily_budget_holds_and_comes_back_on_the_next_civil_day():
    late = datetime(2024, 4, 14, 22, 30, tzinfo=UTC).timestamp()  # 23:30 in London
    world = World(battery=Battery(budget_kwh=0.5), policy=Level(3000.0), load_w=np.full(7200, 300.0), utc_s=late)
    status = world.run(1700)
    assert 0.49 < status.moved_kwh <= 0.5
    assert status.command_w == 0.0
    assert world.run(300).moved_kwh < 0.2
    assert sum(abs(power_w) for _, power_w in world.seconds) / 3.6e6 < 0.5 + 0.2 + 0.01


@pytest.mark.parametrize("change", [datetime(2024, 3, 31, tzinfo=UTC), datetime(2024, 10, 27, tzinfo=UTC)])
def test_the_budget_of_a_day_with_a_clock_change_is_given_once(change):
    world = World(
        battery=Battery(budget_kwh=0.1, capacity_kwh=100), policy=Level(1000.0), load_w=np.full(60, 300.0),
        utc_s=change.timestamp(),
    )  # fmt: skip
    world.run(2 * 3600, step_s=4.0)
    day_kwh = world.controller.ledger.moved_kwh
    assert len(day_kwh) == 1
    assert 0.09 < max(day_kwh.values()) <= 0.1


def test_a_clock_that_jumps_is_named_and_gives_no_second_budget():
    world = World(battery=Battery(budget_kwh=0.2), policy=Level(3000.0), load_w=np.full(7200, 300.0))
    world.run(600)
    world.clock.utc_s += 86_400
    world.run(120)
    world.clock.utc_s -= 86_400
    world.run(600)
    assert world.named.count("clock_jumped") == 2
    assert max(world.controller.ledger.moved_kwh.values()) <= 0.2 + 0.005  # what was on its way at the jump


def test_the_cap_on_register_writes_leaves_room_for_the_release():
    world = World(most_writes=20)
    world.run(1800)
    assert health.WRITES_EXHAUSTED in world.named
    assert len(world.meter.commanded) <= 20
    assert world.meter.commanded[-1] is None


def test_commands_never_ask_for_more_than_the_limits():
    world = World(battery=Battery(charge_w=800, discharge_w=600, import_limit_w=900), policy=Level(1500.0))
    world.run(1800)
    powers = [power_w for power_w in world.meter.commanded if power_w is not None]
    assert min(powers) >= -600
    assert max(powers) <= 800
    assert max(minute.meter_w for minute in world.minutes if minute.load_w < 400) < 920


def test_an_unknown_load_idles():
    world = World()
    world.run(120)
    world.meter.meter_fault = fails
    world.run(65)
    world.meter.meter_fault = None
    status = world.run(3)
    assert status.why == "idle: the load of the last minute is not known"
    assert status.command_w == 0.0


def test_a_defence_that_raises_idles_and_is_named():
    class Broken(Level):
        def decide(self, view, memory):
            raise RuntimeError("no idea")

    world = World(policy=Broken())
    status = world.run(120)
    assert health.POLICY_FAILED in world.named
    assert status.command_w == 0.0


def test_memory_survives_a_restart_and_a_foreign_one_is_ignored():
    world = World()
    world.run(300)
    world.controller.set_budget(3.0)
    kept = as_stored(world.controller.memory())
    memory, ledger = world.controller.outer.control.memory, world.controller.ledger
    world.start()
    world.controller.restore(kept)
    assert world.controller.outer.control.memory == memory
    assert world.controller.ledger == ledger
    assert world.controller.status.budget_kwh == 3.0
    world.start()
    world.controller.restore({**kept, "control": [1, 2]})
    assert world.controller.outer.control.memory == [0.0]


def test_a_budget_above_the_settings_is_refused():
    world = World()
    assert not world.controller.set_budget(99.0)
    assert not world.controller.set_budget(math.nan)
    assert world.named == ["budget_refused", "budget_refused"]


def test_days_without_protection_raise_an_alert_once_a_day():
    world = World(health=HealthSettings())
    world.meter.meter_fault = fails
    world.run(3.5 * 86_400, step_s=300.0)
    assert world.named.count("idle_for_days") == 2


def test_what_a_killed_process_may_have_moved_counts_against_the_budget():
    world = World()
    world.run(65)
    kept = world.controller.memory()
    world.clock.move(30.0)
    world.start()
    world.controller.restore(as_stored(kept))
    (day_kwh,) = world.controller.ledger.moved_kwh.values()
    (before_kwh,) = kept["ledger"]["moved_kwh"].values()
    assert day_kwh - before_kwh == pytest.approx(4.0 * 30 / 3600)
    world.start()
    world.controller.restore({**kept, "held_utc_s": None})
    assert list(world.controller.ledger.moved_kwh.values()) == [before_kwh]


def test_a_second_writer_of_the_grid_setpoint_is_named():
    world = World(plant=Plant(own_loop=True), load_w=np.full(7200, 300.0))
    world.run(60)
    world.meter.battery_fault = lambda reading: reading._replace(setpoint_w=-1500.0)
    world.run(40)
    assert health.SECOND_WRITER in world.named
    assert not world.house.remote


def test_energy_of_seconds_without_good_readings_counts_against_the_budget():
    world = World(load_w=np.full(7200, 2500.0))
    world.run(60)
    before_kwh = sum(world.controller.ledger.moved_kwh.values())
    world.meter.meter_fault = fails
    world.run(1)
    counted_kwh = sum(world.controller.ledger.moved_kwh.values()) - before_kwh
    assert counted_kwh == pytest.approx(2000.0 / 3.6e6, rel=0.05)


def test_the_ledger_never_knows_less_than_the_battery_moved_for_us():
    world = World(load_w=np.full(7200, 2500.0))
    moved_kwh = 0.0
    record = world.house.on_second

    def watch(load_w, power_w):
        nonlocal moved_kwh
        moved_kwh += abs(power_w) / 3.6e6 * world.house.remote
        record(load_w, power_w)

    world.house.on_second = watch
    for fault in (fails, not_a_number, None, fails, None):
        world.meter.meter_fault = fault
        world.run(20)
        kept = as_stored(world.controller.memory())
        world.run(7)
        world.start()  # killed
        world.controller.restore(kept)
        world.run(20)
    assert sum(world.controller.ledger.moved_kwh.values()) >= moved_kwh


def test_a_release_that_fails_goes_on_counting_until_the_device_releases_itself():
    world = World(load_w=np.full(7200, 2500.0), device_timeout_s=60.0)
    world.run(60)
    world.meter.meter_fault = world.meter.command_fault = fails
    world.run(1)
    before_kwh = sum(world.controller.ledger.moved_kwh.values())
    world.run(200)
    counted_kwh = sum(world.controller.ledger.moved_kwh.values()) - before_kwh
    assert 20 * 2000 / 3.6e6 < counted_kwh <= 60 * 2001 / 3.6e6


def test_a_sleep_counts_no_longer_than_the_device_follows():
    world = World(load_w=np.full(7200, 2500.0), device_timeout_s=60.0)
    world.run(60)
    before_kwh = sum(world.controller.ledger.moved_kwh.values())
    world.clock.move(3600)
    world.run(1)
    assert sum(world.controller.ledger.moved_kwh.values()) - before_kwh <= 61 * 2501 / 3.6e6


def test_a_meter_reading_that_arrives_late_is_left_out_and_named_once():
    world = World(load_w=np.full(7200, 300.0))
    world.run(60)
    load_w = world.controller.status.load_w
    world.meter.meter_fault = lambda reading: reading._replace(power_w=9000.0, at_s=reading.at_s - 3)
    status = world.run(2)
    assert (status.load_w, status.in_control) == (load_w, True)
    assert world.named == ["control", health.OUT_OF_ORDER]


@pytest.mark.parametrize(("soc", "name"), [(0.05, health.SOC_LOW), (0.97, health.SOC_HIGH)])
def test_a_charge_outside_its_range_is_named_when_it_begins(soc, name):
    world = World(soc=soc)
    world.run(120)
    assert world.named.count(name) == 1


def test_only_a_process_that_did_not_hand_the_battery_back_is_named_by_the_next_one():
    kept = []
    world = World()
    world.controller._on_minute = lambda minute: kept.append(as_stored(world.controller.memory()))
    world.run(95)
    killed = kept[-1]
    world.controller.close("test")
    stopped = kept[-1]
    for document, named in ((killed, [health.NOT_HANDED_BACK]), (stopped, [])):
        world.start()
        world.events.clear()
        world.controller.restore(document)
        assert world.named == named


def test_a_stopped_controller_records_what_there_is_of_its_last_minute():
    world = World()
    world.run(90)
    recorded_s = sum(minute.known_s for minute in world.minutes)
    world.controller.close("test")
    assert sum(minute.known_s for minute in world.minutes) - recorded_s == pytest.approx(30.0, abs=1.0)
    assert not world.house.remote


def test_an_inverter_that_was_released_does_not_return_to_its_last_command():
    world = World(load_w=np.full(7200, 300.0), policy=Level(3000.0))
    world.run(60)
    world.controller.set_mode("paused")
    world.run(60)
    world.seconds.clear()
    world.controller.set_mode("live")
    world.run(2)
    assert max(power_w for _, power_w in world.seconds) <= 0.0


@pytest.mark.parametrize("interval_s", [10.0, 60.0])
@pytest.mark.parametrize(("dead_time_s", "battery_late_s"), [(1.0, 0), (4.0, 0), (2.0, 6)])
def test_a_plant_that_is_not_what_the_settings_say_does_not_make_the_loop_hunt(interval_s, dead_time_s, battery_late_s):
    plant = Plant(dead_time_s=dead_time_s)
    world = World(plant=plant, follower=FollowerSettings(interval_s=interval_s))
    readings = []

    def late(reading):
        readings.append(reading)
        return readings[max(len(readings) - 1 - battery_late_s, 0)]

    world.meter.battery_fault = late
    world.run(1800)
    powers = np.array([power_w for _, power_w in world.seconds])
    assert np.ptp(powers[1100:1200]) < 200  # a minute after the kettle
    held = np.array([minute.meter_w for minute in world.minutes[4:]])
    assert np.abs(held - TARGET_W).max() < (20 if interval_s == 60.0 else 250)
    assert world.named == ["control"]


def test_a_reading_that_came_while_a_busy_computer_paused_the_tick_is_not_stale():
    world = World()
    world.run(60)
    world.meter.battery_fault = lambda reading: reading._replace(at_s=reading.at_s + 3)
    assert world.run(1).in_control
