from datetime import date

import numpy as np
import pytest
from worlds import play, world

from meterveil.core.battery import Battery
from meterveil.core.rollout import rollout
from meterveil.core.tariff import PAPER_TARIFF
from meterveil.data import settings
from meterveil.data.load import load
from meterveil.data.protocols import REDD_HOUSE2, UKDALE_HOUSE1
from meterveil.data.simulation import episodes, span
from meterveil.defenders import defender
from meterveil.defenders.random import RandomEqual
from meterveil.errors import InputError


def moved_kwh(trace, scenario):
    """Energy of each civil day of each row, one after another."""
    rows = zip(np.abs(trace.power_w), scenario.day[:, scenario.lead :], strict=True)
    return np.concatenate([np.bincount(day - day[0], power_w) / 60_000 for power_w, day in rows])


@pytest.mark.parametrize("target_kwh", [0.5, 2.0, 6.1])
def test_every_day_moves_about_what_was_asked(target_kwh):
    load_w = np.abs(np.random.default_rng(0).normal(400.0, 200.0, (8, 2 * 1440)))
    kwh = moved_kwh(play(RandomEqual(target_kwh), load_w), world(load_w))
    np.testing.assert_allclose(kwh, target_kwh, rtol=0.05)


@pytest.mark.parametrize("target_kwh", [-1.0, np.inf, np.nan])
def test_a_target_that_is_no_amount_of_energy_is_refused(target_kwh):
    with pytest.raises(InputError, match="give a finite number of 0 or more"):
        RandomEqual(target_kwh)


def test_decoys_are_spread_over_the_day():
    trace = play(RandomEqual(4.0), np.full((64, 1440), 400.0))
    by_quarter = np.abs(trace.power_w).reshape(64, 4, 360).sum(axis=(0, 2))
    np.testing.assert_allclose(by_quarter / by_quarter.sum(), 0.25, atol=0.03)


def test_charge_and_discharge_balance_although_discharge_is_clipped_to_a_small_load():
    trace = play(RandomEqual(4.0), np.full((16, 2 * 1440), 250.0))
    assert trace.soc[:, -1].mean() == pytest.approx(0.5, abs=0.05)
    assert trace.power_w.min() >= -250.0


def test_a_battery_that_is_full_only_discharges_and_one_that_is_empty_only_charges():
    load_w = np.full((32, 60), 2600.0)
    full, empty = (play(RandomEqual(), load_w, soc=soc, begin=1380) for soc in (0.9, 0.1))
    first = np.argmax(full.power_w != 0.0, axis=1)
    assert np.all(full.power_w[np.arange(32), first] < 0.0)
    first = np.argmax(empty.power_w != 0.0, axis=1)
    assert np.all(empty.power_w[np.arange(32), first] > 0.0)


def test_no_decoy_is_started_that_would_overshoot_the_target():
    # both signatures move more than 0.01 kWh beside a large load: toaster 0.015, kettle 0.067
    trace = play(RandomEqual(0.01), np.full((8, 1440), 3000.0))
    np.testing.assert_array_equal(trace.power_w, 0.0)
    toasters = play(RandomEqual(0.02), np.full((8, 1440), 3000.0))
    np.testing.assert_allclose(np.abs(toasters.power_w).sum(axis=1), 900.0)


def test_where_nothing_can_be_discharged_all_of_it_is_charged():
    trace = play(RandomEqual(1.0), np.zeros((8, 1440)))
    assert trace.power_w.min() == 0.0
    np.testing.assert_allclose(trace.power_w.sum(axis=1) / 60_000, 1.0, rtol=0.05)


@pytest.mark.slow
def test_real_days_move_the_target_within_five_percent_and_end_away_from_the_limits(real_data):
    library, policy = settings.library(), RandomEqual()
    redd = load(real_data / "redd" / "low_freq", 2, appliances=[])
    ukdale = load(real_data / "ukdale", 1, appliances=[])
    scenarios = [
        episodes(redd, REDD_HOUSE2.training, PAPER_TARIFF),
        episodes(ukdale, UKDALE_HOUSE1.training, PAPER_TARIFF),
        span(ukdale, date(2013, 4, 1), date(2013, 4, 8), PAPER_TARIFF),
    ]
    for scenario in scenarios:
        rngs = [np.random.default_rng(row) for row in range(scenario.batch)]
        trace = rollout(policy, Battery(), library, scenario, rngs)
        np.testing.assert_allclose(moved_kwh(trace, scenario), 6.1, rtol=0.05)
        assert trace.soc[:, -1].min() > 0.2
        assert trace.soc[:, -1].max() < 0.85


def test_the_sparse_random_defence_moves_what_the_paper_reports(real_data):
    # wear of 0.029 a day at 0.075 per kWh
    household = load(real_data / "ukdale", 1, appliances=[])
    scenario = episodes(household, UKDALE_HOUSE1.training, PAPER_TARIFF)
    scenario = scenario.rows(list(range(scenario.batch)) * 300)
    rngs = [np.random.default_rng(row) for row in range(scenario.batch)]
    trace = rollout(defender("random"), Battery(), settings.library(), scenario, rngs)
    assert moved_kwh(trace, scenario).mean() == pytest.approx(0.029 / 0.075, abs=0.03)
