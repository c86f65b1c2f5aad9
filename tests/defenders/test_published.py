"""Best effort, NILL, stepping and the rule-based baseline on loads written down minute by minute."""

import numpy as np
import pytest
from worlds import play

from meterveil.defenders.best_effort import BestEffort
from meterveil.defenders.nill import Nill
from meterveil.defenders.rule_based import RuleBased
from meterveil.defenders.stepping import LazyCharging, LazyStepping, RandomCharging

FULL = 0.9 - 1e-9
NAN = np.nan
LOAD_W = [700.0, 900.0, 1010.0, 1010.0, 300.0]
STEPPING = {"ls1": LazyStepping(), "ls2": LazyStepping(coin=True), "lc": LazyCharging(), "rc": RandomCharging()}

METER_W = {
    "best effort keeps the first reading": (BestEffort(), 0.5, [300, 2300, 2300, 50, 0, 700], [300] * 6),
    # 0.01 of 8 kWh above the minimum is 80 Wh: 4,800 W for one minute, so 2,000 + 2,000 + 800 W
    "an empty battery gives what it has, and that reading is kept": (
        BestEffort(),
        0.11,
        [300, 2300, 2300, 2300, 2300, 1000],
        [300, 300, 300, 1500, 2300, 2300],
    ),
    "a full battery lets the reading fall": (BestEffort(), 0.9, [1000, 400, 400, 900], [1000, 400, 400, 400]),
    "the first load is the level of NILL": (Nill(), 0.5, [400, 2400, 100], [400, 400, 400]),
    # 0.5 A at 230 V are 115 W
    "a high recovery holds half an ampere less": (Nill(), FULL, [1000, 400, 400, 500], [1000, 285, 285, 285]),
    "at 120 V steps are smaller": (Nill(volts=120.0), 0.9, [1000, 400], [1000, 340]),
    "a high recovery never holds less than 0 W": (Nill(), FULL, [1000, 60, 60], [1000, 0, 0]),
    # 115 W for a minute made room for 115 W: 85 W more than the load still fit, 185 W do not
    "a full battery lets a recovery stay": (Nill(), 0.9, [1000, 400, 200], [1000, 285, 285]),
    "a full battery moves a recovery down": (Nill(), 0.9, [1000, 400, 100], [1000, 285, 0]),
    # 5 A above 285 W are 1,435 W; the level then moves half of the way to the mean load of the recovery
    "a rise by five amperes ends a high recovery": (
        Nill(),
        FULL,
        [1000, 400, 600, 1434, 1436],
        [1000, 285, 285, 285, (1000 + np.mean([400, 600, 1434])) / 2],
    ),
    # 700 is lowered to 500; 1,010 is 510 away, and a battery below half takes the multiple above
    "LS1 keeps its level until the load is a step away": (LazyStepping(), 0.45, LOAD_W, [500, 500, 1500, 1500, 500]),
    "LS1 discharges above half": (LazyStepping(), 0.6, LOAD_W, [500, 500, 1000, 1000, 0]),
    **{f"empty, {name} charges": (policy, 0.1, [700], [1000]) for name, policy in STEPPING.items()},
    **{f"full, {name} discharges": (policy, 0.9, [700], [500]) for name, policy in STEPPING.items()},
    **{f"{name} leaves a multiple alone": (policy, 0.5, [500] * 5, [500] * 5) for name, policy in STEPPING.items()},
}

POWER_W = {
    "a change beyond the inverter is followed by the rest": (BestEffort(), 0.5, [300, 5000, 300], [0, -4000, 700]),
    "a gap keeps the reading": (BestEffort(), 0.5, [300, NAN, NAN, 800], [0, 0, 0, -500]),
    "a gap keeps the level": (LazyStepping(), 0.45, [700, NAN, 900], [-200, 0, -400]),
    # 2,000 W lie nearer to the kettle's 2,500 than to the toaster's 900; 800 W nearer to the toaster
    "a step is answered by the nearest signature": (
        RuleBased(),
        0.4,
        [300, 2300, 2300, 2300, 1500, 1500],
        [0, 1500, 2500, 0, 900, 0],
    ),
    "above half it discharges, within the load": (RuleBased(), 0.6, [300, 2300, 2300, 2300], [0, -1500, -2300, 0]),
    "a running decoy is not interrupted": (RuleBased(), 0.4, [300, 2300, 300, 300, 300], [0, 1500, 2500, 0, 0]),
    "after a gap the last known load counts": (RuleBased(), 0.4, [300, NAN, 310, NAN, 1300], [0, 0, 0, 0, 900]),
    "a slow ramp is no step": (RuleBased(), 0.5, 100.0 + 199.0 * np.arange(20), [0] * 20),
}


@pytest.mark.parametrize(("policy", "soc", "load_w", "meter_w"), METER_W.values(), ids=METER_W)
def test_the_meter_shows(policy, soc, load_w, meter_w):
    np.testing.assert_allclose(play(policy, load_w, soc=soc).meter_w[0], meter_w, atol=0.01)


@pytest.mark.parametrize(("policy", "soc", "load_w", "power_w"), POWER_W.values(), ids=POWER_W)
def test_the_battery_does(policy, soc, load_w, power_w):
    np.testing.assert_allclose(play(policy, load_w, soc=soc).power_w[0], power_w)


@pytest.mark.parametrize(
    ("soc", "first_w", "load_w", "level_w", "minutes", "reached"),
    [
        # 0.4 of 8 kWh at 115 W
        pytest.param(0.9, 1000.0, 300.0, 185.0, 3200.0 / 115.0 * 60.0, 0.5, id="high, to half of the range"),
        # 0.8 of the range of 6.4 kWh at 300 W
        pytest.param(0.1, 100.0, 200.0, 500.0, 0.8 * 6400.0 / 300.0 * 60.0, 0.74, id="low, to four fifths"),
    ],
)
def test_a_recovery_of_nill_ends_at_its_share_and_moves_the_level(soc, first_w, load_w, level_w, minutes, reached):
    trace = play(Nill(), np.r_[first_w, np.full(2000, load_w)], soc=soc, budget_kwh=np.inf)
    recovering = np.isclose(trace.meter_w[0], level_w)
    assert recovering.sum() == pytest.approx(minutes, abs=1.0)
    last = np.flatnonzero(recovering)[-1]
    assert trace.soc[0, last] == pytest.approx(reached, abs=1e-3)
    assert trace.meter_w[0, last + 1] == pytest.approx((first_w + load_w) / 2)


def test_a_gap_changes_nothing_but_the_minutes_that_it_takes():
    with_gap = play(Nill(), [1000.0, 400.0, NAN, 600.0, 1500.0], soc=FULL)
    without = play(Nill(), [1000.0, 400.0, 600.0, 1500.0], soc=FULL)
    np.testing.assert_allclose(np.delete(with_gap.meter_w[0], 2), without.meter_w[0])


@pytest.mark.parametrize("name", STEPPING)
def test_the_meter_shows_multiples_of_the_step_and_the_battery_no_more_than_one(name):
    load_w = np.abs(np.random.default_rng(0).normal(600.0, 500.0, (8, 600)))
    trace = play(STEPPING[name], load_w, budget_kwh=np.inf, capacity_kwh=100.0)
    np.testing.assert_allclose(trace.meter_w % 500.0, 0.0, atol=1e-9)
    assert np.abs(trace.power_w).max() <= 500.0 + 1e-9


def test_ls2_draws_its_next_level():
    trace = play(LazyStepping(coin=True), np.tile([700.0, 1010.0], (400, 1)))
    assert set(np.round(trace.meter_w[:, 1])) == {1000.0, 1500.0}
    assert 0.4 < np.mean(trace.meter_w[:, 1] > 1250.0) < 0.6


def test_lc_discharges_until_empty_and_then_charges_until_full():
    # one minute of 200 W is left in the battery; then 300 W go in
    trace = play(LazyCharging(), np.full(2000, 700.0), soc=0.1 + 0.2 / 60 / 8 + 1e-9, budget_kwh=np.inf)
    np.testing.assert_allclose(trace.meter_w[0, :3], [500.0, 1000.0, 1000.0])
    turn = int(np.argmax(trace.meter_w[0, 1:] < 750.0)) + 1
    assert turn == pytest.approx(6400.0 / 300.0 * 60.0, abs=2.0)  # 0.8 of 8 kWh at 300 W
    np.testing.assert_allclose(trace.meter_w[0, turn:], 500.0)


@pytest.mark.parametrize(("soc", "share"), [(0.3, 0.25), (0.5, 0.5), (0.7, 0.75)])
def test_rc_charges_as_often_as_the_usable_range_is_empty(soc, share):
    trace = play(RandomCharging(), np.full((2000, 1), 700.0), soc=soc)
    assert np.mean(trace.meter_w > 750.0) == pytest.approx(1.0 - share, abs=0.04)
