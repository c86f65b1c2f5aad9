"""Certificates of a live day: for each reader's own readings, from what the meter showed, never too small."""

import math
from itertools import product

import numpy as np
import pytest
from homes import World, day_load

from meterveil.core.certificate import Rules
from meterveil.core.reader_certificate import Day, Reader, reader_bits
from meterveil.defenders.veil.policy import Veil
from meterveil.live.certified import READERS, certificates, day_so_far
from meterveil.live.records import MinuteRecord

RULES = Rules()
FIRST = 28_401_120  # 2024-01-01 00:00 UTC
CHOICE = math.log2(len(Rules().menu_w))
CHOICES = 3 * CHOICE
HALF_HOUR, MINUTE = Reader("half hours", 30, 2.0), Reader("minutes", 1, 10.0)


def minute(at, meter_w=300.0, level_w=300.0, decoy_w=0.0, known_s=60.0):
    return MinuteRecord(
        FIRST + at, "2024-01-01", 500.0, meter_w, 0.0, meter_w, level_w, 0.5, known_s, 60.0, 0.0, "", decoy_w
    )


def bits(minutes, reader=HALF_HOUR):
    return reader_bits(RULES, day_so_far(RULES, minutes, "UTC"), reader)


def test_a_day_that_is_right_in_every_reading_tells_its_choices_only():
    wobble = [minute(at, 300.0 + 4.0 * (-1) ** at) for at in range(1440)]
    for reader in (HALF_HOUR, MINUTE):
        assert bits(wobble, reader) == pytest.approx(CHOICES + math.log2(16 / 15))
    assert bits(wobble, READERS[-1]) > 1440


def test_a_reading_beside_the_plan_tells_where_it_is_and_how_far():
    day = [minute(at, 300.0 if at != 700 else 360.0) for at in range(1440)]  # half hour 23: 302 W, one step
    assert bits(day) == pytest.approx(CHOICES + 5.0 + 2.0 + 2 * math.log2(48) + 1.0)
    assert bits(day, MINUTE) == pytest.approx(CHOICES + 5.0 + 2.0 + 2 * math.log2(1440) + 7.0)  # the sixth step up


def test_a_minute_held_on_the_grid_is_missed_although_it_was_held():
    day = [
        minute(at)._replace(meter_w=1500.0, target_w=1500.0) if 600 <= at < 610 else minute(at) for at in range(1440)
    ]
    assert bits(day, MINUTE) == pytest.approx(CHOICES + 5.0 + 2.0 + 2 * math.log2(1440) + 10 * 5.0)


@pytest.mark.parametrize("lack", ["absent", "short", "no reading"])
def test_what_nobody_saw_counts_as_any_reading(lack):
    gone = range(690, 720)
    changes = {"short": {"known_s": 40.0}, "no reading": {"meter_w": None}}.get(lack)
    day = [
        minute(at)._replace(**(changes or {})) if at in gone else minute(at)
        for at in range(1440)
        if not (lack == "absent" and at in gone)
    ]
    assert bits(day) == pytest.approx(CHOICES + 5.0 + 2.0 + 2 * math.log2(48) + 16.0)


def test_hours_before_the_guard_began_count_too():
    assert bits([minute(at) for at in range(720, 1440)]) > 24 * 16.0


def test_a_level_that_changes_between_choices_is_a_rescue():
    day = [minute(at, *(2 * [300.0 if at < 500 else 550.0])) for at in range(1440)]
    assert bits(day) == pytest.approx(CHOICES + 5.0 + 2.0 + math.log2(1440) + CHOICE)


def test_decoys_are_part_of_the_plan():
    day = [minute(at, 2300.0 if at in (800, 801) else 300.0, 300.0, 2000.0 * (at in (800, 801))) for at in range(1440)]
    assert bits(day, MINUTE) == pytest.approx(CHOICES + math.log2(16 / 15))


def test_the_running_interval_is_not_a_reading_yet():
    day = [minute(at, 300.0 if at < 600 else 900.0) for at in range(620)]
    assert bits(day) == pytest.approx(2 * CHOICE + math.log2(16 / 15))


def test_all_descriptions_of_a_short_day_fit_into_a_prefix_code():
    """Kraft's sum over every series of readings that three intervals can show is at most one."""
    rules, reader = Rules((0,), (0.0, 1.0), grid_w=4.0, grid_top_w=8.0), Reader("tiny", 480, 1.0)
    total = 0.0
    for level_w, *shown in product((0.0, 1.0), *[range(-3, 5)] * 3):
        meter_w = np.repeat(np.asarray(shown, dtype=float), 480)
        day = Day(meter_w, np.full(1440, level_w), np.zeros(1440), np.arange(1440) == 0)
        total += 2.0 ** -reader_bits(rules, day, reader)
    assert 0.01 < total <= 1.0


def test_the_controller_records_the_plan_of_a_veil_that_cannot_follow():
    heavy_w = np.full(7200, 9000.0)
    world = World(policy=Veil(), load_w=heavy_w)
    world.run(600)
    assert {row.level_w for row in world.minutes} <= set(RULES.menu_w)
    assert all(row.meter_w > 4000 for row in world.minutes[2:])
    assert certificates(Veil(), world.minutes, "Europe/London")["minutes in 10 W"] > 5 * 5.0


def test_the_inner_loop_keeps_quarter_hours_right_to_the_watt_hour():
    world = World(policy=Veil(), load_w=day_load())
    world.run(2 * 3600)
    meter_w, plan_w = np.array([(row.meter_w, row.level_w + row.decoy_w) for row in world.minutes[15:105]]).T
    error_wh = np.abs((meter_w - plan_w).reshape(-1, 15).mean(axis=1)) / 4
    assert np.median(error_wh) < 0.1
    assert error_wh.max() < 2.0


def test_a_defence_without_a_plan_has_no_certificate():
    world = World()
    world.run(180)
    assert certificates(world.home.policy, world.minutes, "UTC") == {}
