"""The veil shows what its choices and dice say, lands on its grid otherwise, and never tells more than it certifies."""

import math
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pytest
from worlds import LIBRARY, world

from meterveil.core.battery import Battery
from meterveil.core.certificate import Rules, hours_of, shown, spoken_hours
from meterveil.core.rollout import rollout
from meterveil.core.tariff import PriceSeries
from meterveil.data.simulation import Setup
from meterveil.data.synthetic import FIRST_DAY, household
from meterveil.defenders.defence import find_defence, knowing, protecting
from meterveil.defenders.veil.dice import ANY_HOUR, Dice
from meterveil.defenders.veil.heuristic import Heuristic
from meterveil.defenders.veil.planner import Planner
from meterveil.defenders.veil.policy import Logged, Veil, drawn, probabilities
from meterveil.defenders.veil.situation import Situation, record_of, shipped_record
from meterveil.errors import InputError

DAY = 1440
RULES = Rules((0, 420, 1020), (100.0, 200.0, 300.0, 400.0, 550.0, 750.0, 1000.0))
HUGE = Battery(capacity_kwh=1e4, charge_w=1e5, discharge_w=1e5, budget_kwh=np.inf, export_limit_w=np.inf)


@dataclass(frozen=True)
class Obstinate:
    """Decider that rates choices by a number that the load cannot change."""

    best: int = 2

    def scores(self, situation):
        return -np.abs(np.arange(situation.rules.choices) - self.best) * np.ones((len(situation.soc), 1))


class Frugal:
    """Decider that wants 300 W once the budget is short, and 400 W before."""

    def scores(self, situation):
        wanted = np.where(situation.budget_left_kwh < 3.0, 2, 3)
        return -np.abs(np.arange(situation.rules.choices) - wanted[:, None])


@dataclass(frozen=True)
class Nervous:
    """Decider that follows the state of charge, through the levels and open modes."""

    def scores(self, situation):
        share = (situation.soc - situation.battery.soc_min) / (situation.battery.soc_max - situation.battery.soc_min)
        wanted = (1.0 - share) * (situation.rules.choices - 1)
        return -np.abs(np.arange(situation.rules.choices) - wanted[:, None])


def play(veil, load_w, battery=None, begin=0, soc=0.5, seeds=None):
    scenario = world(load_w, begin)
    rngs = [np.random.default_rng(seed) for seed in (seeds or range(scenario.batch))]
    log = Logged(veil)
    trace = rollout(log, battery or Battery(), LIBRARY, scenario, rngs, soc)
    return trace, log.certificate(scenario, trace)


def loads(batch, seed=0, minutes=DAY):
    rng = np.random.default_rng(seed)
    return np.abs(rng.normal(300.0, 200.0, (batch, minutes))) + 2000.0 * (rng.random((batch, minutes)) < 0.02)


@pytest.mark.parametrize("rate", [0.0, 0.05])
def test_households_with_the_same_choices_and_dice_show_the_same_meter_to_the_last_digit(rate):
    veil = Veil(RULES, decider=Obstinate(), dice=Dice(rate), rescue_kwh=0.0)
    trace, found = play(veil, loads(6), HUGE, seeds=[7] * 6)
    assert found.missed.sum() == 0
    assert np.all(shown(trace.meter_w) == shown(trace.meter_w)[0])
    assert len(np.unique(shown(trace.meter_w)[0])) == (1 if rate == 0.0 else 4)
    assert np.abs(trace.meter_w - shown(trace.meter_w)).max() < 1e-9


def test_one_other_minute_of_load_changes_nothing_while_the_battery_follows():
    load_w = np.repeat(loads(1), 2, axis=0)
    load_w[1, 700] += 1500.0
    trace, found = play(Veil(RULES), load_w, seeds=[3, 3])
    assert found.missed.sum() == 0
    assert np.array_equal(shown(trace.meter_w)[0, :1020], shown(trace.meter_w)[1, :1020])
    assert trace.soc[0, 700] != trace.soc[1, 700]


def test_the_timetable_of_decoys_knows_neither_load_nor_battery():
    veil, scenario = Veil(RULES, decider=Nervous(), dice=Dice(0.05)), world(loads(3))
    scenario.load_w[1] *= 5.0
    scenario.load_w[2, 300:900] = np.nan
    battery = Battery(capacity_kwh=np.array([8.0, 0.5, 8.0]), budget_kwh=np.array([8.0, 1.0, 0.0]))
    log = Logged(veil)
    rollout(log, battery, LIBRARY, scenario, [np.random.default_rng(1) for _ in range(3)])
    decoy_w = np.stack([decoy_w for _, decoy_w, _, _ in log.log], axis=1)
    assert np.unique(decoy_w).tolist() == [0.0, 900.0, 1500.0, 2500.0]
    assert np.all(decoy_w == decoy_w[0])


def test_a_minute_that_cannot_be_followed_lands_on_the_grid():
    load_w = np.full((1, 120), 300.0)
    load_w[0, 60:63] = [5100.0, 4400.0, 8012.0]
    trace, found = played(2, load_w, replace(RULES, spike_minutes=()))
    assert shown(trace.meter_w)[0, 59:64].tolist() == [300.0, 1500.0, 500.0, 4500.0, 300.0]
    assert (found.missed[0, 0], found.off_grid[0, 0]) == (3, 0)


def test_without_a_reading_on_the_grid_in_reach_the_meter_is_left_alone_and_counted():
    trace, found = play(
        Veil(RULES, decider=Obstinate(), rescue_kwh=0.0), np.full((1, 60), 710.0), Battery(budget_kwh=0.0)
    )
    np.testing.assert_array_equal(trace.meter_w, trace.load_w)
    assert found.off_grid[0, 0] == 60


def test_export_of_the_sun_is_stored_and_shows_the_level():
    load_w = np.full((1, 60), -2000.0)
    trace, found = play(Veil(RULES, decider=Obstinate(), rescue_kwh=0.0), load_w)
    assert np.all(shown(trace.meter_w) == 300.0)
    assert found.missed.sum() == 0


def test_export_beyond_the_charging_power_lands_on_a_grid_below_zero():
    sunny_w = np.full((1, 30), -6100.0)
    known = Veil(RULES).fitted([np.full(DAY, -3000.0)], np.full(48, 0.2), Battery())
    assert known.rules.grid_bottom_w == -15_500.0
    assert Veil(RULES).fitted([np.full(DAY, 300.0)], np.full(48, 0.2), Battery()).rules.grid_bottom_w == 0.0
    for battery in (Battery(), Battery(export_limit_w=np.inf)):
        trace, found = play(replace(known, decider=Obstinate(), rescue_kwh=0.0), sunny_w, battery)
        assert np.all(shown(trace.meter_w) == -2500.0)
        assert (found.missed[0, 0], found.off_grid[0, 0]) == (30, 0)


def test_the_battery_exports_nothing_of_its_own_without_leave():
    load_w = np.full((1, 60), -300.0)
    load_w[0, 30:] = 40.0
    trace, _ = played(0, load_w, battery=Battery(soc_max=0.5001, capacity_kwh=0.5))
    assert trace.meter_w.min() >= -300.0 - 1e-9
    assert np.all(trace.meter_w[0, 30:] >= 0.0)


def test_minutes_without_a_reading_idle_the_battery_and_count_as_told():
    load_w = loads(1)
    load_w[0, 300:360] = np.nan
    trace, found = played(2, load_w, battery=HUGE)
    np.testing.assert_array_equal(trace.power_w[0, 300:360], 0.0)
    assert (found.missed[0, 0], found.off_grid[0, 0]) == (60, 60)


def test_without_a_budget_the_meter_shows_the_load_and_every_minute_counts():
    trace, found = play(Veil(RULES), loads(1), Battery(budget_kwh=0.0))
    np.testing.assert_array_equal(trace.meter_w, trace.load_w)
    assert found.missed[0, 0] >= DAY - 10
    assert found.bits[0, 0] > 15 * DAY


def test_a_day_without_its_midnight_is_certified_with_all_its_choices():
    """Havana skips the first hour: the first level of the day counts, although no decision time passed."""
    clock = np.arange(60, DAY)[None]
    scenario = replace(world(np.full((1, DAY - 60), 300.0)), minute_of_day=clock)
    log = Logged(Veil(RULES, Obstinate(), rescue_kwh=0.0))
    trace = rollout(log, Battery(), LIBRARY, scenario, [np.random.default_rng(0)])
    found = log.certificate(scenario, trace)
    assert found.bits[0, 0] == pytest.approx(3 * math.log2(7) + math.log2(16 / 15))


def test_a_small_battery_hides_what_it_can_and_its_certificate_counts_the_rest():
    home = household(np.random.default_rng(1), 5, FIRST_DAY)
    record = record_of(home.aggregate_w[: 4 * DAY].reshape(4, DAY), RULES)
    kwh, watts, budget_kwh = np.array([[1.0, 1000.0, 1.0], [2.0, 1000.0, 2.0], [8.0, 4000.0, 8.0]]).T
    batteries = Battery(capacity_kwh=kwh, charge_w=watts, discharge_w=watts, budget_kwh=budget_kwh)
    load_w = np.repeat(home.aggregate_w[None, 4 * DAY :], 3, axis=0)
    trace, found = play(Veil(RULES, record=record), load_w, batteries, seeds=[0] * 3)
    assert np.all(np.abs(trace.power_w).max(axis=1) <= watts)
    assert np.all(np.abs(trace.power_w).sum(axis=1) / 60_000 <= budget_kwh + 1e-9)
    missed, bits = found.missed[:, 0], found.bits[:, 0]
    assert DAY > missed[0] > missed[1] > missed[2]
    assert bits[0] > bits[1] > bits[2]
    assert np.all(bits >= 5 * missed)


def test_a_battery_that_runs_out_is_rescued_by_another_level():
    load_w = np.full((1, 600), 900.0)
    rescued, without = (
        play(Veil(RULES, decider=Nervous(), rescue_kwh=kwh), load_w, begin=420, soc=0.9)[1] for kwh in (0.3, 0.0)
    )
    assert rescued.rescues[0, 0] > 0
    assert without.rescues[0, 0] == 0
    assert rescued.missed[0, 0] < without.missed[0, 0]
    assert rescued.bits[0, 0] < without.bits[0, 0]


def played(best, load_w, rules=RULES, **settings):
    return play(Veil(rules, decider=Obstinate(best), rescue_kwh=0.0), load_w, **settings)


def test_a_block_on_the_grid_takes_little_energy_and_five_bits_a_minute():
    rules = replace(RULES, open_modes=("grid", "rest"))
    load_w = loads(1)
    trace, found = played(7, load_w, rules)
    assert np.all(shown(trace.meter_w) % 500.0 == 0.0)
    assert np.abs(trace.power_w).mean() < 150.0
    assert (found.missed[0, 0], found.off_grid[0, 0], found.rescues[0, 0]) == (DAY, 0, 0)
    assert found.bits[0, 0] == pytest.approx(3 * math.log2(9) + 5 + math.log2(4) + 2 * math.log2(1440) + 5 * DAY)
    assert abs(trace.soc[0, -1] - 0.5) < 0.2


def test_a_block_of_rest_shows_the_load_and_counts_every_minute():
    load_w = loads(1)
    trace, found = played(8, load_w, replace(RULES, open_modes=("grid", "rest")))
    np.testing.assert_array_equal(trace.meter_w, trace.load_w)
    assert found.missed[0, 0] == DAY
    assert found.bits[0, 0] > 16 * found.off_grid[0, 0] > 16 * 0.9 * DAY


def test_a_decider_that_rates_levels_only_leaves_no_block_open():
    load_w = loads(2)
    plain, offered = (play(Veil(replace(RULES, open_modes=modes)), load_w)[0] for modes in ((), ("grid", "rest")))
    np.testing.assert_array_equal(plain.meter_w, offered.meter_w)


def test_outside_the_protected_hours_the_battery_rests_and_no_choice_is_told():
    rules = replace(RULES, protect=hours_of("evenings"))
    load_w = loads(2)
    trace, found = play(Veil(rules), load_w, Battery(budget_kwh=3.0))
    evening = (np.arange(DAY) >= 1020) & (np.arange(DAY) < 1380)
    np.testing.assert_array_equal(trace.power_w[:, ~evening], 0.0)
    assert np.all(found.protected_missed == 0)
    np.testing.assert_allclose(found.protected_bits, math.log2(7) + math.log2(16 / 15))
    np.testing.assert_allclose(found.bound_bits, found.protected_bits)
    assert np.all(found.missed == DAY - 360)
    assert np.all(found.bits > 16 * 0.9 * (DAY - 360))
    np.testing.assert_array_equal(found.protected_minutes, 360)


def test_a_small_budget_follows_more_of_the_evening_if_it_is_saved_for_it():
    home = household(np.random.default_rng(1), 7, FIRST_DAY)
    load_w, battery = home.aggregate_w[None, -DAY:], Battery(capacity_kwh=4.0, budget_kwh=2.0)
    record = record_of(home.aggregate_w[:-DAY].reshape(6, DAY), RULES)
    traces = [
        play(Veil(replace(RULES, protect=hours), record=record), load_w, battery)[0]
        for hours in ((), hours_of("17:00-23:00"))
    ]
    idle = [np.sum(np.round(trace.power_w[0, 1020:1380]) == 0.0) for trace in traces]
    assert idle[1] < 0.5 * idle[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("evening", "'evening' are no hours; write evenings, nights, away"),
        ("17:00-17:00", "no part of a day"),
        ("17:00-25:00", "no part of a day"),
        ("17:10-23:00", "whole half hours"),
        ("22:00-02:00", "clock change"),
    ],
)
def test_hours_that_cannot_be_protected_are_refused(text, message):
    with pytest.raises(InputError, match=message):
        hours_of(text)


def test_hours_to_protect_are_named_or_given_as_ranges():
    assert hours_of("evenings, 6:30-08:00") == ((1020, 1380), (390, 480))
    assert hours_of(spoken_hours(hours_of("nights,away"))) == ((1380, 420), (480, 1020))
    rules = replace(RULES, protect=hours_of("nights"))
    assert rules.choice_minutes == (0, 1380)
    assert rules.protected(np.array([0, 419, 420, 1379, 1380])).tolist() == [True, True, False, False, True]
    with pytest.raises(InputError, match="flat has no hours to protect"):
        protecting(find_defence("flat"), "nights")
    assert protecting(find_defence("veil:3"), "nights").policies[0].rules == replace(Rules(), protect=((1380, 420),))


def shower(watts, minutes, at=60, base_w=300.0):
    load_w = np.full((1, 180), base_w)
    load_w[0, at : at + minutes] = watts
    return load_w


def test_a_load_beyond_the_power_limit_becomes_a_spike_of_public_height_and_length():
    trace, found = played(2, shower(np.linspace(7000.0, 7900.0, 7), 7), RULES)
    meter_w = shown(trace.meter_w)[0]
    assert np.all(meter_w[60:70] == 4000.0)  # seven minutes are shown as ten
    assert np.all(np.delete(meter_w, np.s_[60:70]) == 300.0)
    assert (found.spikes[0, 0], found.missed[0, 0]) == (1, 0)
    assert found.bits[0, 0] == pytest.approx(math.log2(7) + 5 + 2 + math.log2(1440) + math.log2(8))


def test_showers_of_one_length_class_show_the_same_meter():
    veil = Veil(RULES, decider=Obstinate(), rescue_kwh=0.0)
    loads_w = np.concatenate([shower(7000.0, 6), shower(7900.0, 10), shower(4400.0, 9)])
    trace, _ = play(veil, loads_w)
    assert np.all(shown(trace.meter_w) == shown(trace.meter_w)[0])


def test_a_longer_load_is_a_longer_spike_and_beyond_the_longest_one_another():
    _, found = played(2, shower(5000.0, 25), RULES)
    assert (found.spikes[0, 0], found.missed[0, 0]) == (1, 0)
    trace, found = played(2, shower(5000.0, 33), RULES)
    assert (found.spikes[0, 0], found.missed[0, 0]) == (2, 0)
    assert np.sum(shown(trace.meter_w) == 4000.0) == 33


def test_a_load_beyond_twice_the_power_lands_on_the_grid_as_before():
    trace, found = played(2, shower(8700.0, 4), RULES)
    assert np.all(shown(trace.meter_w)[0, 60:64] == 5000.0)
    assert (found.spikes[0, 0], found.missed[0, 0], found.stretches[0, 0]) == (0, 4, 1)


def test_a_spike_that_the_battery_cannot_keep_up_is_counted_as_missed():
    trace, found = played(2, shower(7900.0, 9), RULES, battery=Battery(capacity_kwh=0.5), soc=0.9)
    readings = shown(trace.meter_w)[0]
    assert found.spikes[0, 0] == 1
    assert found.missed[0, 0] >= 9 - np.sum(readings[60:69] == 4000.0) > 0
    assert found.bits[0, 0] > 5 * found.missed[0, 0]


def test_spikes_of_the_dice_know_nothing_of_the_load_and_hide_it():
    veil = Veil(RULES, Obstinate(), rescue_kwh=0.0, dice=Dice(spike_rate=0.01, spikes=((np.inf, 10),)))
    quiet = np.full((1, 300), 200.0)
    strong = replace(HUGE, charge_w=4000.0, discharge_w=4000.0)
    first = shown(play(veil, quiet, strong)[0].meter_w)[0]
    starts = np.flatnonzero(np.diff((first == 4000.0).astype(int)) == 1) + 1
    assert len(starts) > 1
    busy = quiet.copy()
    busy[0, starts[0] : starts[0] + 10] = 7000.0
    trace, found = play(veil, busy, strong)
    np.testing.assert_array_equal(shown(trace.meter_w)[0], first)
    assert (found.spikes[0, 0], found.missed[0, 0]) == (0, 0)


def test_a_short_load_beyond_the_battery_shows_at_a_low_height_and_a_long_one_at_the_highest():
    low = replace(RULES, spike_w=(1000.0, 2000.0))
    for load_w, height_w in ((4500.0, 1000.0), (5500.0, 2000.0), (6500.0, 4000.0)):
        trace, found = played(2, shower(load_w, 2), low)
        assert np.all(shown(trace.meter_w)[0, 60:62] == height_w)
        assert (found.spikes[0, 0], found.missed[0, 0]) == (1, 0)
    trace, found = played(2, shower(4500.0, 5), low)
    assert shown(trace.meter_w)[0, 60:65].tolist() == [1000.0] * 3 + [4000.0] * 2
    assert (found.spikes[0, 0], found.missed[0, 0]) == (2, 0)


def spiky_days(spikes, minutes=1, days=10):
    days_w = np.full((days, DAY), 250.0)
    for day in range(spikes):
        days_w[day % days, 480 + 60 * (day // days) :][:minutes] = 4800.0
    return list(days_w)


def test_decoys_cover_the_spikes_of_earlier_days_where_they_take_little():
    fitted = {n: Veil(RULES).fitted(spiky_days(n), np.full(48, 0.2), Battery()) for n in (0, 4, 40)}
    rates = {n: veil.dice.spike_rate * DAY for n, veil in fitted.items()}
    assert rates[4] == pytest.approx(10.0 * 4.5 / 10)
    assert 0.0 < rates[0] < rates[4]
    assert fitted[4].dice.spikes == ((1000.0, 1),) * 4
    assert fitted[4].rules.spike_w == (1000.0, 2000.0)
    assert (rates[40], fitted[40].rules) == (0.0, RULES)
    small = Veil(RULES).fitted(spiky_days(4), np.full(48, 0.2), Battery(budget_kwh=1.0))
    assert (small.dice.spike_rate, small.rules) == (0.0, RULES)


def test_a_household_at_the_highest_level_is_covered_by_spikes_above_it():
    heavy = Veil(RULES).fitted([np.full(DAY, 1200.0)] * 10, np.full(48, 0.2), Battery())
    assert heavy.dice.spikes == ((2000.0, 1),)
    high = replace(RULES, menu_w=(2000.0, 3000.0))
    assert Veil(high).fitted([np.full(DAY, 2500.0)] * 10, np.full(48, 0.2), Battery()).rules == high


def test_decoys_for_many_spikes_within_an_hour_are_as_many_as_can_start():
    days_w = np.full((10, DAY), 250.0)
    days_w[:, 430:450:2] = 4800.0
    dice = Veil(RULES).fitted(list(days_w), np.full(48, 0.2), Battery(budget_kwh=np.inf)).dice
    assert 10.0 < dice.spike_rate * DAY < 100.0
    assert dice.spike_rate * max(dice.hours) / np.mean(dice.hours) == pytest.approx(1.0)


@pytest.mark.parametrize("decider", [Planner(), Heuristic()])
def test_a_household_with_decoy_spikes_acts_alike_beside_batteries_of_any_power(decider):
    power_w = np.array([600.0, 1500.0, 4000.0, 9000.0])
    battery = Battery(charge_w=power_w, discharge_w=power_w)
    dice = Dice(spike_rate=0.02, spikes=((1000.0, 1), (2000.0, 3), (np.inf, 5)))
    veil = Veil(RULES, decider, dice=dice)
    load_w = np.repeat(loads(1), 4, axis=0)
    together = play(veil, load_w, battery, seeds=[3] * 4)[0].meter_w
    for row, watts in enumerate(power_w):
        alone = play(veil, load_w[:1], Battery(charge_w=watts, discharge_w=watts), seeds=[3])[0].meter_w
        np.testing.assert_array_equal(together[row], alone[0])


def test_decoys_of_a_battery_with_little_power_never_lower_the_level():
    veil = Veil(RULES, Obstinate(5), rescue_kwh=0.0, dice=Dice(spike_rate=0.1, spikes=((1000.0, 2),)))
    weak = replace(HUGE, charge_w=600.0, discharge_w=600.0)
    trace, certified = play(veil, np.full((1, 200), 700.0), weak)
    assert np.all(shown(trace.meter_w) == 750.0)
    assert certified.missed[0, 0] == 0


def test_a_spike_of_the_load_equals_one_of_the_dice():
    """Two households, one with a kettle beyond the battery's power: the meters differ by one spike of public shape."""
    veil = replace(Veil(RULES, Obstinate(), rescue_kwh=0.0).fitted(spiky_days(4), np.full(48, 0.2), Battery()), cover=0)
    veil = replace(veil, dice=replace(veil.dice, spike_rate=0.01, hours=ANY_HOUR))
    quiet = np.full((1, 600), 250.0)
    busy = quiet.copy()
    busy[0, 300] = 4800.0
    strong = replace(HUGE, charge_w=4000.0, discharge_w=4000.0)
    first, second = (shown(play(veil, load_w, strong)[0].meter_w)[0] for load_w in (quiet, busy))
    spikes = np.flatnonzero(first == 1000.0)
    assert len(spikes) > 2
    assert set(np.flatnonzero(second == 1000.0)) == {*spikes, 300}
    assert np.all((first == 1000.0) | (first == first[0]))


def test_a_budget_that_runs_short_is_a_reason_to_choose_again():
    """After a heavy morning the level that takes least is chosen before the scheduled time."""
    record = record_of(np.full((4, DAY), 300.0), RULES)
    load_w = np.full((1, 900), 300.0)
    load_w[0, 60:150] = 3300.0
    veil = Veil(RULES, record=record, decider=Frugal(), rescue_kwh=0.0)
    battery = replace(HUGE, budget_kwh=5.0)
    _, found = play(veil, load_w, battery)
    assert found.rescues[0, 0] > 0
    assert play(replace(veil, quiet_margin=0.0), load_w, battery)[1].rescues[0, 0] == 0


@pytest.mark.parametrize(
    ("rate", "modes", "lengths", "heights_w"),
    [
        (0.0, (), (), ()),
        (0.3, (), (), ()),
        (0.0, ("rest",), (), ()),
        (0.3, ("grid", "rest"), (2, 3), ()),
        (0.0, (), (2, 3), ()),
        (0.0, (), (2, 3), (1500.0,)),
    ],
)
def test_no_code_of_a_tiny_world_is_too_short(rate, modes, lengths, heights_w):
    """Enumerate all loads of a tiny battery: the certificates satisfy Kraft, so no prior breaks the bound."""
    rules = Rules(menu_w=(0.0, 300.0, 900.0), grid_w=1000.0, grid_top_w=3000.0, open_modes=modes, spike_minutes=lengths)
    rules = replace(rules, spike_w=heights_w)
    veil = Veil(rules, Nervous(), record_of(np.zeros((1, DAY)), rules), rescue_minutes=1, dice=Dice(rate))
    veil = replace(veil, rescue_kwh=0.006)
    load_w = np.array(list(product((0.0, 310.0, 2620.0, 5330.0), repeat=6)))
    tiny = Battery(capacity_kwh=0.1, budget_kwh=0.12)
    trace, found = play(veil, load_w, tiny, begin=417, seeds=[5] * len(load_w))
    meters, number, count = np.unique(shown(trace.meter_w), axis=0, return_inverse=True, return_counts=True)
    bits = np.full(len(meters), np.inf)
    np.minimum.at(bits, number.ravel(), found.bits[:, 0])
    assert 200 < len(meters) <= len(load_w)
    assert found.rescues.max() > 0
    assert found.off_grid.max() > 0
    assert (found.spikes.max() > 0) == bool(lengths)
    assert np.sum(2.0**-bits) <= 1.0
    share = count / count.sum()
    information_bits = -np.sum(share * np.log2(share))
    assert information_bits <= found.bits.mean()
    for most_bits in np.quantile(bits, [0.0, 0.1, 0.5]):
        assert math.log2((bits <= most_bits).sum()) <= most_bits


def test_a_meter_that_shows_all_choices_tells_exactly_their_bits():
    """Steer a battery through every sequence of two choices: the bound is met up to the code of a quiet day."""
    rules = Rules((0, 420), (100.0, 300.0, 500.0))
    battery = Battery(capacity_kwh=1.0, soc_min=0.0, soc_max=1.0)
    shares = np.array([0.9, 0.5, 0.1])  # the charge of which each level is the choice
    first, second = (rows.ravel() for rows in np.indices((3, 3)))
    change_kwh = shares[second] - shares[first]
    load_w = np.repeat(np.array(rules.menu_w)[first, None], 480, axis=1)
    load_w[:, :420] -= change_kwh[:, None] * (1000.0 / 7.0)
    trace, found = play(Veil(rules, Nervous(), rescue_kwh=0.0), load_w, battery, soc=shares[first])
    assert found.missed.sum() == 0
    assert len(np.unique(shown(trace.meter_w), axis=0)) == 9
    information_bits = math.log2(9)
    assert information_bits <= found.bits.min() < information_bits + 0.1


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_no_history_changes_the_probability_of_a_private_choice_by_more_than_its_epsilon(epsilon):
    rng = np.random.default_rng(0)
    broken = [[np.nan, 1.0, 2.0, 3.0], [np.nan] * 4, [np.inf, 0.0, -np.inf, 1.0]]
    extreme = np.array([[1e9, -1e9, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [-1e-12, 1e-12, 0.0, 1.0], *broken])
    scores = np.concatenate([extreme, rng.normal(size=(200, 4)) * 10.0 ** rng.uniform(-6, 6, (200, 1))])
    chosen = probabilities(scores, epsilon)
    np.testing.assert_allclose(chosen.sum(axis=1), 1.0)
    assert (chosen.max(axis=0) / chosen.min(axis=0)).max() <= math.exp(epsilon) * (1 + 1e-12)
    kl = np.sum(chosen[:, None] * np.log(chosen[:, None] / chosen[None]), axis=2)
    assert kl.max() <= epsilon * math.tanh(epsilon / 2.0) + 1e-12


@pytest.mark.parametrize("decider", [Heuristic(), Planner()])
def test_extreme_histories_of_a_household_stay_within_epsilon_of_each_other(decider):
    loads_w = np.array([0.0, 1e5, -1e5, 300.0])
    days_w = np.repeat(np.repeat(loads_w[:, None, None], 2, axis=1), DAY, axis=2)
    days_w[3, :, ::2] = 9000.0
    records, record = record_of(days_w, RULES), np.repeat(np.arange(4), 4)
    soc, left_kwh = np.tile([0.1, 0.9, 0.1, 0.9], 4), np.tile([0.0, 0.0, 8.0, 8.0], 4)
    fields = {name: np.full(16, value) for name, value in vars(Battery()).items()}
    clock, price = np.full(16, 420), np.full(48, 0.2)
    scores = decider.scores(Situation(RULES, Battery(**fields), soc, left_kwh, clock, records, record, price))
    assert len(np.unique(scores.argmax(axis=1))) > 1
    chosen = probabilities(scores, 1.0)
    assert 1.5 < (chosen.max(axis=0) / chosen.min(axis=0)).max() <= math.e * (1 + 1e-12)


def test_draws_follow_their_probabilities():
    scores, rng = np.array([[0.0, 1.0, 3.0]]), np.random.default_rng(0)
    found = drawn(np.repeat(scores, 20_000, axis=0), 2.0, rng.random(20_000))
    np.testing.assert_allclose(np.bincount(found) / 20_000, probabilities(scores, 2.0)[0], atol=0.01)


def test_private_choices_differ_between_dice_and_are_certified_with_their_epsilon():
    veil = Veil(replace(RULES, epsilon=1.0), Obstinate(), rescue_kwh=0.0)
    trace, found = play(veil, loads(8), HUGE)
    assert len(np.unique(trace.meter_w.round()[:, 0])) > 2
    np.testing.assert_allclose(found.epsilon, 3.0)
    assert found.bits.max() < 2.2


def test_the_record_of_a_household_grows_with_it():
    veil = Veil(record=shipped_record(Rules()))
    memory = veil.initial(2)
    load_w = loads(2)
    scenario = world(load_w)
    kept = []

    class Keeps(Logged):
        def decide(self, view, memory):
            command, memory = super().decide(view, memory)
            kept.append(memory.diary)
            return command, memory

    rollout(Keeps(veil), Battery(), LIBRARY, scenario, [np.random.default_rng(n) for n in range(2)])
    np.testing.assert_allclose(kept[-1].recent[:, 0], record_of(load_w, Rules()))
    np.testing.assert_array_equal(kept[-1].recent[:, 1:], memory.diary.recent[:, 1:])
    assert kept[-1].today.tolist() == [1, 1]


def test_a_veil_is_fitted_to_the_days_of_a_household_and_without_any_keeps_the_shipped_ones():
    home = household(np.random.default_rng(3), 3, FIRST_DAY)
    setup = Setup(LIBRARY)
    days_w = home.aggregate_w.reshape(3, 48, 30)
    record = knowing(Veil(), [home], setup).record
    np.testing.assert_allclose(record[:3, ..., 0], days_w.mean(axis=2))
    np.testing.assert_array_equal(record[3:], record[np.arange(3, 14) % 3])
    assert knowing(Veil(), [], setup).record is None
    assert len(Veil().initial(1).diary.recent[0]) == 7


def test_the_week_that_ships_is_one_of_the_synthetic_household():
    home = household(np.random.default_rng(14), 7, FIRST_DAY)
    np.testing.assert_allclose(
        shipped_record(Rules())[..., 0].ravel(), home.aggregate_w.reshape(-1, 30).mean(axis=1), atol=1
    )


def test_gaps_of_the_history_are_filled_from_other_days():
    home = household(np.random.default_rng(3), 3, FIRST_DAY)
    gappy = replace(home, aggregate_w=np.where(np.arange(3 * DAY) % DAY < 40, np.nan, home.aggregate_w))
    record = knowing(Veil(), [gappy], Setup(LIBRARY)).record
    assert np.isfinite(record).all()
    np.testing.assert_allclose(record[:, 0, 0], np.nanmean(gappy.aggregate_w), rtol=0.05)


def test_decoys_a_day_are_part_of_the_name():
    assert find_defence("veil:10").policies[0].dice.rate == pytest.approx(10 / 1440)
    with pytest.raises(InputError, match="no number of decoys a day"):
        find_defence("veil:many")
    with pytest.raises(InputError, match="not from 0 to 1"):
        find_defence("veil:-3")


def test_the_usual_price_of_a_series_is_its_mean_by_time_of_day():
    series = PriceSeries(np.arange(96) * 30, np.concatenate([np.full(48, 0.1), np.linspace(0.1, 0.3, 48)]))
    price = knowing(Veil(), [], Setup(LIBRARY, tariff=series)).price
    assert price[0] == pytest.approx(0.1)
    assert price[-1] == pytest.approx(0.2)


def test_a_menu_that_an_idle_house_cannot_show_is_refused():
    with pytest.raises(InputError, match="begins at 100 W, above the charging power of 50 W"):
        knowing(Veil(RULES), [], Setup(LIBRARY, Battery(charge_w=50.0)))


def test_a_menu_above_the_import_limit_is_refused():
    with pytest.raises(InputError, match="above the import limit of 900 W"):
        knowing(Veil(), [], Setup(LIBRARY, Battery(import_limit_w=900.0)))


def quiet_day_costs(decider):
    rng = np.random.default_rng(1)
    home = household(rng, 9, FIRST_DAY)
    load_w = home.aggregate_w.reshape(9, DAY)
    veil = Veil(RULES, decider=decider, record=record_of(load_w[:6], RULES))
    trace, found = play(veil, load_w[6:].reshape(1, -1))
    price = np.where(np.arange(3 * DAY) % DAY < 420, 0.1317, 0.3075)
    paid = np.sum(price * trace.power_w[0] + 0.075 * np.abs(trace.power_w[0])) / 60_000
    return found, paid + (0.5 - trace.soc[0, -1]) * 8.0 * 0.1317


def test_the_planner_follows_most_minutes_and_costs_less_than_the_heuristic():
    planned, plan_cost = quiet_day_costs(Planner())
    simple, simple_cost = quiet_day_costs(Heuristic(shift_kwh=0.0))
    assert planned.missed.sum() < 0.01 * planned.minutes.sum()
    assert simple.missed.sum() < 0.01 * simple.minutes.sum()
    assert plan_cost < simple_cost


def test_large_loads_give_way_to_the_quiet_hours_when_the_budget_is_short():
    quiet_w = np.where(np.arange(DAY) % 60 < 30, 100.0, 500.0)
    load_w = quiet_w[None].copy()
    load_w[0, 600:660] = 2300.0
    rules = replace(RULES, decision_minutes=(0,))
    veil = Veil(rules, decider=Obstinate(), record=record_of(quiet_w[None], rules), rescue_kwh=0.0)
    short = Battery(budget_kwh=5.3)  # the quiet load needs 4.8 kWh to be held at 300 W
    trace, found = play(veil, load_w, short)
    without, unsaved = play(replace(veil, large_w=np.inf), load_w, short)
    assert shown(trace.meter_w)[0, 600:660].tolist() == [2500.0] * 60
    assert shown(trace.meter_w)[0, 660:].tolist() == [300.0] * 780
    assert found.missed[0, 0] == 60
    assert unsaved.missed[0, 0] > 60
    assert np.all(without.meter_w[0, 600:630] == 300.0)


def test_a_plan_keeps_the_budget_for_an_evening_that_usually_needs_it():
    evening_w = np.where(np.arange(DAY) < 1020, 300.0, 300.0 + 800.0 * (np.arange(DAY) % 120 >= 60))[None]
    rules = Rules((0, 420, 1020), (300.0, 700.0))
    record = record_of(evening_w, rules)
    for budget_kwh, level in ((8.0, 300.0), (2.9, 700.0)):  # 300 W moves 3.2 kWh in the evening, 700 W 2.8 kWh
        veil = Veil(rules, decider=Planner(hour_cost=5.0, reserve_kwh=0.0), record=record)
        trace, _ = play(veil, evening_w, Battery(budget_kwh=budget_kwh), soc=0.6)
        assert shown(trace.meter_w)[0, 1020] == level
