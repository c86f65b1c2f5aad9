"""The certificate counts choices, rescues and missed stretches, and never less than the meter can tell."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from meterveil.core import certificate as certificates
from meterveil.core.certificate import Rules, Spikes, certificate
from meterveil.errors import InputError

RULES = Rules((0, 420, 1020), (100.0, 200.0, 300.0, 400.0, 550.0, 750.0, 1000.0))
QUIET = 3 * math.log2(7) + math.log2(16 / 15)
EVENT = math.log2(4)


def certify(meter_w=300.0, level_w=300.0, decoy_w=0.0, rules=RULES, minutes=1440, begin=0):
    clock = (begin + np.arange(minutes))[None]
    parts = (np.broadcast_to(np.asarray(part, dtype=float), clock.shape) for part in (meter_w, level_w, decoy_w))
    return certificate(rules, *parts, clock % 1440, clock // 1440)


def with_minutes(where, value, base=300.0):
    day = np.full(1440, base)
    day[where] = value
    return day


def test_a_day_that_is_followed_tells_its_choices_and_that_nothing_happened():
    found = certify()
    assert found.bits[0] == pytest.approx([QUIET])
    assert found.bits[0] == found.bound_bits[0]
    assert (found.missed[0, 0], found.rescues[0, 0], found.minutes[0, 0]) == (0, 0, 1440)


def test_a_scheduled_change_of_level_costs_no_more_than_a_level_that_stays():
    level_w = np.where(np.arange(1440) < 420, 300.0, 1000.0)
    assert certify(level_w, level_w).bits[0] == pytest.approx([QUIET])


def test_a_rescue_tells_its_minute_and_its_level():
    level_w = np.where(np.arange(1440) < 500, 300.0, 1000.0)
    found = certify(level_w, level_w)
    rescue = 5.0 + EVENT + math.log2(1440) + math.log2(7)
    assert found.bits[0] == pytest.approx([QUIET - math.log2(16 / 15) + rescue])
    assert found.rescues[0, 0] == 1
    assert found.bound_bits[0] == pytest.approx([QUIET])


def test_a_missed_stretch_tells_its_start_its_length_and_its_readings():
    on_grid = certify(with_minutes(slice(600, 604), [500.0, 500.0, 1000.0, 0.0]))
    off_grid = certify(with_minutes(slice(600, 604), [501.0, -20.0, 1000.4, 14.0]))
    stretch = QUIET - math.log2(16 / 15) + EVENT + 2 * math.log2(1440)
    assert on_grid.bits[0] == pytest.approx([5.0 + stretch + 4 * 5.0])
    assert (on_grid.missed[0, 0], on_grid.off_grid[0, 0], on_grid.stretches[0, 0]) == (4, 0, 1)
    assert off_grid.bits[0] == pytest.approx([7.0 + stretch + 2 * (EVENT + 2 * math.log2(1440)) + 3 * 16.0 + 5.0])
    assert (off_grid.off_grid[0, 0], off_grid.stretches[0, 0]) == (3, 3)


def test_an_unknown_reading_counts_as_one_that_somebody_else_has():
    found = certify(with_minutes(slice(100, 103), np.nan))
    assert (found.missed[0, 0], found.off_grid[0, 0]) == (3, 3)
    assert found.bits[0, 0] > 3 * 16.0


def test_a_reading_beyond_every_fuse_costs_more():
    ordinary, large = (certify(with_minutes(100, watts)).bits[0, 0] for watts in (32_001.0, 50_001.0))
    assert large == pytest.approx(ordinary + 64.0)


def test_fractions_of_a_watt_and_decoys_of_the_log_are_no_miss():
    decoy_w = with_minutes(slice(200, 210), 2000.0, base=0.0)
    assert certify(300.0 + decoy_w + 0.3, 300.0, decoy_w).missed[0, 0] == 0


def test_a_day_that_begins_without_a_scheduled_choice_tells_its_first_level():
    found = certify(begin=18 * 60, minutes=1440)
    assert found.bits[0] == pytest.approx([QUIET - 2 * math.log2(7), QUIET])
    assert found.minutes[0].tolist() == [360, 1080]


def test_a_stretch_over_midnight_counts_on_both_days():
    found = certify(np.where(np.arange(2880) // 60 == 24, 500.0, 300.0) * 1.0, minutes=2880, begin=0)
    over = certify(np.where(abs(np.arange(2880) - 1440) < 10, 500.0, 300.0), minutes=2880)
    assert found.stretches[0].tolist() == [0, 1]
    assert over.stretches[0].tolist() == [1, 1]


def test_minutes_after_the_end_of_a_shorter_row_are_left_out():
    day = np.where(np.arange(1440) < 1380, 0, -1)[None]
    clock = np.arange(1440)[None]
    level_w, meter_w = np.full((1, 1440), 300.0), np.where(day < 0, np.nan, 300.0)
    found = certificate(RULES, meter_w, level_w, np.zeros((1, 1440)), clock, day)
    assert (found.minutes[0, 0], found.missed[0, 0]) == (1380, 0)


def test_a_level_that_the_menu_lacks_describes_no_reading():
    level_w = with_minutes(slice(600, 660), 333.0)
    found = certify(level_w, level_w)
    assert (found.missed[0, 0], found.off_grid[0, 0]) == (60, 60)
    assert found.rescues[0, 0] == 2


def test_protected_hours_are_certified_apart_from_the_open_ones():
    rules = replace(RULES, protect=((1020, 1380),))
    inside = (np.arange(1440) >= 1020) & (np.arange(1440) < 1380)
    level_w = np.where(inside, 300.0, np.nan)
    meter_w = np.where(inside, 300.0, 77.0)
    meter_w[1100:1103] = 78.0
    found = certify(meter_w, level_w, rules=rules)
    stretch = 5.0 + EVENT + 2 * math.log2(1440)
    assert found.protected_bits[0] == pytest.approx([math.log2(7) + stretch + 3 * 16.0])
    assert found.bits[0] == pytest.approx([math.log2(7) + 3 * stretch - 8.0 + (1080 + 3) * 16.0])
    assert (found.protected_missed[0, 0], found.missed[0, 0], found.rescues[0, 0]) == (3, 1083, 0)


def spiky_day(*runs):
    spike, meter_w = np.zeros(1440, dtype=int), np.full(1440, 300.0)
    for begin, length in runs:
        spike[begin : begin + length] = 1 + np.arange(length)
        meter_w[begin : begin + length] = 4000.0
    return spike, meter_w


@pytest.mark.parametrize(
    ("runs", "spikes", "missed"),
    [
        ([(600, 5)], 1, 0),
        ([(600, 5), (605, 10)], 2, 0),
        ([(600, 4)], 0, 4),  # no public length
        ([(600, 40)], 0, 40),
        ([(1437, 3)], 1, 0),
        ([(1436, 4)], 1, 0),  # cut by the end of the day
    ],
)
def test_only_spikes_of_public_length_are_described_by_their_start(runs, spikes, missed):
    spike, meter_w = spiky_day(*runs)
    level_w, zero, clock = np.full(1440, 300.0), np.zeros(1440), np.arange(1440)
    log = [part[None] for part in (meter_w, level_w, zero, clock, 0 * clock)]
    log.append(Spikes(spike[None], meter_w[None], 4000.0))
    found = certificate(RULES, *log)
    assert (found.spikes[0, 0], found.missed[0, 0]) == (spikes, missed)
    without = certificate(replace(RULES, spike_minutes=()), *log)
    assert without.missed[0, 0] == sum(length for _, length in runs)


def test_the_rest_of_a_spike_after_midnight_is_missed():
    clock = np.arange(2880)
    spike, meter_w = np.zeros(2880, dtype=int), np.full(2880, 300.0)
    spike[1435:1445], meter_w[1435:1445] = 1 + np.arange(10), 4000.0
    parts = (meter_w, np.full(2880, 300.0), np.zeros(2880), clock % 1440, clock // 1440)
    found = certificate(RULES, *(part[None] for part in parts), Spikes(spike[None], meter_w[None], 4000.0))
    assert found.spikes[0].tolist() == [1, 0]
    assert found.missed[0].tolist() == [0, 5]


@pytest.mark.parametrize(
    ("heights_w", "spikes", "missed"),
    [
        ((1000.0, 4000.0), 2, 0),
        ((1500.0, 4000.0), 1, 2),  # no public height
        ((1000.0, 1000.0), 0, 5),  # one spike of five minutes, which is no public length
    ],
)
def test_a_spike_has_one_public_height(heights_w, spikes, missed):
    rules = replace(RULES, spike_minutes=(2, 3), spike_w=(1000.0, 2000.0))
    spike, meter_w = np.zeros(1440, dtype=int), np.full(1440, 300.0)
    spike[600:605] = (1, 2, 3, 4, 5) if heights_w[0] == heights_w[1] else (1, 2, 1, 2, 3)
    meter_w[600:602], meter_w[602:605] = heights_w
    parts = (meter_w, np.full(1440, 300.0), np.zeros(1440), np.arange(1440), np.zeros(1440, dtype=int))
    found = certificate(rules, *(part[None] for part in parts), Spikes(spike[None], meter_w[None], 4000.0))
    assert (found.spikes[0, 0], found.missed[0, 0]) == (spikes, missed)
    if not missed:
        spike_bits = EVENT + math.log2(1440) + math.log2(2 * 3)
        assert found.bits[0, 0] == pytest.approx(3 * math.log2(7) + 4.0 + spikes * (1.0 + spike_bits))


def test_a_height_that_changes_within_a_spike_is_no_part_of_it():
    rules = replace(RULES, spike_minutes=(2, 3), spike_w=(1000.0, 2000.0))
    spike, meter_w = np.zeros((1, 1440), dtype=int), np.full((1, 1440), 300.0)
    spike[0, 600:603], meter_w[0, 600:603] = (1, 2, 3), (1000.0, 1000.0, 2000.0)
    clock = np.arange(1440)[None]
    certified = certificate(
        rules, meter_w, np.full((1, 1440), 300.0), np.zeros((1, 1440)), clock, 0 * clock, Spikes(spike, meter_w, 4000.0)
    )
    assert (certified.spikes[0, 0], certified.missed[0, 0]) == (1, 1)


@pytest.mark.parametrize("minutes_at_a_time", [1, 50_000])
def test_each_household_has_its_own_highest_spike(monkeypatch, minutes_at_a_time):
    monkeypatch.setattr(certificates, "_CACHED_MINUTES", minutes_at_a_time)
    spike, meter_w = np.zeros((3, 1440), dtype=int), np.full((3, 1440), 300.0)
    spike[:, 600], meter_w[:, 600] = 1, (4000.0, 3000.0, 3000.0)
    clock = np.tile(np.arange(1440), (3, 1))
    spikes = Spikes(spike, meter_w, np.array([[4000.0], [3000.0], [4000.0]]))
    certified = certificate(RULES, meter_w, np.full((3, 1440), 300.0), np.zeros((3, 1440)), clock, 0 * clock, spikes)
    assert certified.spikes[:, 0].tolist() == [1, 1, 0]
    assert certified.missed[:, 0].tolist() == [0, 0, 1]


def test_a_grid_below_zero_makes_each_of_its_readings_a_little_longer():
    solar = replace(RULES, grid_bottom_w=-15_500.0)
    meter_w = with_minutes(slice(600, 602), -2000.0)
    plain, wide = certify(meter_w), certify(meter_w, rules=solar)
    assert (plain.off_grid[0, 0], wide.off_grid[0, 0]) == (2, 0)
    assert plain.bits[0, 0] - wide.bits[0, 0] == pytest.approx(2 * (16 - math.log2(63)))


def test_private_choices_are_certified_by_the_smaller_bound():
    shy, bold = (certify(rules=replace(RULES, epsilon=epsilon)) for epsilon in (0.5, 20.0))
    assert shy.bits[0] == pytest.approx([3 * 0.5 * math.tanh(0.25) / math.log(2) + math.log2(16 / 15)])
    assert shy.epsilon[0] == pytest.approx([1.5])
    assert bold.bits[0] == pytest.approx([QUIET])
    assert certify(with_minutes(9, 500.0), rules=replace(RULES, epsilon=0.5)).epsilon[0, 0] == math.inf
    assert certify().epsilon[0, 0] == math.inf


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"decision_minutes": ()}, "give at least one"),
        ({"decision_minutes": (420, 0)}, "not increasing minutes"),
        ({"decision_minutes": (0, 1440)}, "not increasing minutes"),
        ({"decision_minutes": (0, 401)}, "whole half hours"),
        ({"decision_minutes": (0, 120)}, "clock change"),
        ({"menu_w": (300.0,)}, "two or more increasing"),
        ({"menu_w": (300.0, 100.0)}, "two or more increasing"),
        ({"menu_w": (-100.0, 100.0)}, "0 W or more"),
        ({"menu_w": (100.5, 200.0)}, "whole watts"),
        ({"menu_w": (100.0, float("nan"))}, "whole watts"),
        ({"grid_w": 0.0}, "1 W or more"),
        ({"grid_w": 500.5}, "whole watts"),
        ({"grid_bottom_w": 500.0}, "a bottom of 0 or less"),
        ({"spike_minutes": (5, 2)}, "not increasing minutes"),
        ({"spike_minutes": (0, 2)}, "not increasing minutes"),
        ({"spike_w": (2000.0, 1000.0)}, "not increasing whole watts"),
        ({"spike_w": (0.0,)}, "not increasing whole watts"),
        ({"open_modes": ("veil",)}, "not from grid, rest"),
        ({"open_modes": ("rest", "rest")}, "each once"),
        ({"protect": ((1020, 1020),)}, "no part of a day"),
        ({"epsilon": 0.0}, "above 0"),
        ({"epsilon": float("nan")}, "above 0"),
    ],
)
def test_rules_that_cannot_be_certified_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        Rules(**settings)


def every_day_of(minutes, rules, readings_w):
    """Return all meters of a tiny day with all logs that a veil could write about them, (row, minute) each.

    The last two parts are the minutes and the height of a spike.
    """
    spikes = [(np.zeros(minutes, dtype=int), np.zeros(minutes))]
    for begin, length, height_w in product(range(minutes), rules.spike_minutes, (*rules.spike_w, 3.0)):
        spike = np.zeros(minutes, dtype=int)
        spike[begin : begin + length] = 1 + np.arange(len(spike[begin : begin + length]))
        spikes.append((spike, np.where(spike, height_w, 0.0)))
    meters, levels = (list(product(values, repeat=minutes)) for values in (readings_w, rules.menu_w))
    index = np.indices((len(meters), len(levels), len(spikes))).reshape(3, -1)
    meter, level, spike = (np.array(part)[rows] for part, rows in zip((meters, levels, spikes), index, strict=True))
    return meter, level, spike[:, 0].astype(int), spike[:, 1]


@pytest.mark.parametrize(("lengths", "heights_w"), [((), ()), ((2, 3), ()), ((2, 3), (7.0,))])
def test_all_days_of_a_tiny_world_have_room_for_their_codes(monkeypatch, lengths, heights_w):
    """Kraft's inequality over every meter, in a world so small that an event without its code would break it."""
    minutes, readings_w = 4, (0.0, 1.0, 2.0, 3.0, 7.0)
    small = {"DAY_MINUTES": minutes, "READING_BITS": math.log2(len(readings_w)), "QUIET_BITS": 1.0, "EVENT_BITS": 1.0}
    for name, value in small.items():
        monkeypatch.setattr(certificates, name, value)
    rules = Rules((0,), (1.0, 2.0), grid_w=7.0, grid_top_w=7.0, spike_minutes=lengths, spike_w=heights_w)
    meter_w, level_w, spike, spike_w = every_day_of(minutes, rules, readings_w)
    clock = np.tile(np.arange(minutes), (len(meter_w), 1))
    spikes = Spikes(spike, spike_w, 3.0)
    bits = certificate(rules, meter_w, level_w, 0.0 * meter_w, clock, 0 * clock, spikes).bits[:, 0]
    _, meter = np.unique(meter_w, axis=0, return_inverse=True)
    least = np.full(meter.max() + 1, np.inf)
    np.minimum.at(least, meter.ravel(), bits)
    assert len(least) == len(readings_w) ** minutes
    assert 0.5 < np.sum(2.0**-least) <= 1.0
