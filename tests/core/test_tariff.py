import numpy as np
import pytest

from meterveil.core.battery import Battery
from meterveil.core.tariff import PAPER_TARIFF, Bands, PriceSeries, day_cost, degradation_cost, energy_cost, flat
from meterveil.errors import InputError

DAY = np.arange(1440)


def price(tariff, minutes=DAY, utc=DAY):
    return tariff.price(np.asarray(minutes), np.asarray(utc))


def test_the_papers_night_ends_at_seven():
    assert price(PAPER_TARIFF, [0, 419, 420, 1439]).tolist() == [0.1317, 0.1317, 0.3075, 0.3075]


def test_a_band_may_run_over_midnight():
    night = Bands(starts=(6 * 60, 23 * 60), prices=(0.3, 0.1))
    assert price(night, [0, 359, 360, 1379, 1380]).tolist() == [0.1, 0.1, 0.3, 0.3, 0.1]


def test_any_number_of_bands_is_allowed():
    half_hours = Bands(starts=tuple(range(0, 1440, 30)), prices=tuple(range(48)))
    assert price(half_hours, [0, 29, 30, 1439]).tolist() == [0, 0, 1, 47]
    assert set(price(flat(0.25))) == {0.25}


def test_a_half_hourly_series_is_looked_up_by_time_not_by_hour():
    agile = PriceSeries(np.array([1000, 1030]), np.array([0.2, -0.05]))
    assert price(agile, [0] * 4, [1000, 1029, 1030, 1059]).tolist() == [0.2, 0.2, -0.05, -0.05]


@pytest.mark.parametrize("minute", [999, 1060])
def test_a_price_outside_the_series_is_not_guessed(minute):
    agile = PriceSeries(np.array([1000, 1030]), np.array([0.2, -0.05]))
    with pytest.raises(InputError, match="does not cover"):
        price(agile, [0], [minute])


@pytest.mark.parametrize(
    ("starts", "prices", "message"),
    [
        ((), (), "at least one band"),
        ((0, 60), (0.1,), "one price for each band"),
        ((60, 0), (0.1, 0.2), "increasing minutes"),
        ((0, 1440), (0.1, 0.2), "increasing minutes"),
        ((0,), (float("nan"),), "finite numbers"),
    ],
)
def test_impossible_bands_are_refused(starts, prices, message):
    with pytest.raises(InputError, match=message):
        Bands(starts, prices)


def test_a_series_out_of_order_is_refused():
    with pytest.raises(InputError, match="increasing times"):
        PriceSeries(np.array([30, 0]), np.array([0.1, 0.2]))


def test_energy_costs_follow_the_papers_equation():
    battery = Battery(charge_efficiency=0.9, discharge_efficiency=0.8)
    cost = energy_cost(battery, np.array([0.3, 0.3, 0.3]), np.array([6000.0, -6000.0, 0.0]))
    assert cost == pytest.approx([0.3 * 0.1 / 0.9, -0.3 * 0.1 * 0.8, 0.0])


def test_the_papers_degradation_cost_is_six_kilowatt_hours_moved():
    power_w = np.full((1, 60), 6100.0)
    assert degradation_cost(power_w).sum() == pytest.approx(0.46, abs=0.003)


def test_draining_the_battery_looks_profitable_until_it_is_refilled():
    prices = np.full((1, 60), 0.3075)
    prices[0, 0] = 0.1317
    power_w = np.full((1, 60), -3200.0)  # 3.2 kWh out: from 50 % to 10 % of 8 kWh
    cost = day_cost(Battery(), prices, power_w, np.array([0.5]), np.array([0.1]))
    assert cost.energy[0] == pytest.approx(-(59 * 0.3075 + 0.1317) / 60 * 3.2)
    assert cost.total[0] < 0.0
    assert cost.soc_neutral[0] == pytest.approx(cost.total[0] + 3.2 * 0.1317)


def test_a_surplus_at_the_end_counts_back():
    power_w = np.full((1, 60), 1000.0)
    cost = day_cost(Battery(), np.full((1, 60), 0.2), power_w, np.array([0.5]), np.array([0.625]))
    assert cost.soc_neutral[0] == pytest.approx(cost.degradation[0])
