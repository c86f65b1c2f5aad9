import numpy as np
import pytest

from meterveil.core.battery import Battery, BatteryState, batteries_of, budget_left_kwh, start_day, step
from meterveil.errors import InputError


def one(request_w, load_w, soc=0.5, moved_kwh=0.0, **settings):
    state = BatteryState(np.array([soc]), np.array([moved_kwh]))
    after, delivery = step(Battery(**settings), state, np.array([request_w]), np.array([load_w]))
    return after.soc[0], after.moved_kwh[0], delivery.power_w[0], bool(delivery.ended[0])


def test_a_kilowatt_for_a_minute_moves_a_sixtieth_of_a_kilowatt_hour():
    soc, moved_kwh, power_w, ended = one(1000.0, 300.0)
    assert power_w == 1000.0
    assert soc == pytest.approx(0.5 + 1 / 60 / 8)
    assert moved_kwh == pytest.approx(1 / 60)
    assert not ended


def test_charging_loses_energy_on_the_way_in_and_discharging_on_the_way_out():
    assert one(1200.0, 0.0, charge_efficiency=0.9)[0] == pytest.approx(0.5 + 0.9 * 0.02 / 8)
    assert one(-1200.0, 2000.0, discharge_efficiency=0.8)[0] == pytest.approx(0.5 - 0.02 / 0.8 / 8)


def test_power_beyond_the_inverter_is_clipped_and_the_replay_goes_on():
    assert one(9000.0, 0.0)[2:] == (4000.0, False)
    assert one(-9000.0, 20000.0)[2:] == (-4000.0, False)


def test_discharge_is_clipped_to_the_load_so_that_the_meter_never_runs_backwards():
    assert one(-2000.0, 230.7)[2:] == (-230.7, False)
    assert one(-2000.0, 230.7, export_limit_w=500.0)[2] == pytest.approx(-730.7)


def test_charging_stops_short_of_the_main_fuse():
    assert one(3000.0, 5000.0, import_limit_w=6000.0)[2:] == (1000.0, False)


def test_a_load_above_the_main_fuse_is_not_answered_with_discharge():
    assert one(3000.0, 7000.0, import_limit_w=6000.0)[2] == 0.0


def test_solar_export_beyond_the_limit_is_not_answered_with_charge():
    assert one(-1000.0, -800.0)[2] == 0.0


def test_the_last_of_the_range_is_delivered_and_ends_the_replay():
    soc, _, power_w, ended = one(3000.0, 0.0, soc=0.899)
    assert power_w == pytest.approx(0.001 * 8 * 60_000)
    assert soc == pytest.approx(0.9)
    assert ended


def test_the_last_of_the_budget_is_delivered_and_ends_the_replay():
    _, moved_kwh, power_w, ended = one(3000.0, 0.0, moved_kwh=7.99)
    assert power_w == pytest.approx(600.0)
    assert moved_kwh == pytest.approx(8.0)
    assert ended


def test_what_rounding_leaves_of_an_exhausted_range_is_not_delivered():
    soc, moved_kwh, *_ = one(3000.0, 0.0, soc=0.899)
    assert one(3000.0, 0.0, soc=soc, moved_kwh=moved_kwh)[2:] == (0.0, True)


def test_some_households_of_a_batch_keep_their_own_batteries():
    battery = Battery(capacity_kwh=np.array([2.0, 4.0, 8.0]), charge_w=1500.0)
    chosen = batteries_of(battery, np.array([2, 0]), 3)
    assert chosen.capacity_kwh.tolist() == [8.0, 2.0]
    assert chosen.charge_w.tolist() == [1500.0, 1500.0]
    assert battery.charge_w == 1500.0


def test_a_new_day_restores_the_budget_of_its_households_alone():
    state = BatteryState(np.full(2, 0.5), np.array([3.0, 5.0]))
    assert start_day(state, np.array([False, True])).moved_kwh.tolist() == [3.0, 0.0]
    assert start_day(state, np.zeros(2, dtype=bool)).moved_kwh.tolist() == [3.0, 5.0]
    assert state.moved_kwh.tolist() == [3.0, 5.0]


def test_no_budget_means_no_limit_when_it_is_infinite():
    assert one(3000.0, 0.0, budget_kwh=np.inf, moved_kwh=500.0)[2] == 3000.0
    left = budget_left_kwh(Battery(budget_kwh=np.inf), BatteryState(np.array([0.5]), np.array([3.0])))
    assert np.isinf(left[0])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"capacity_kwh": 0.0}, "capacity_kwh is 0.0; allowed is 0.001 to"),
        ({"capacity_kwh": float("nan")}, "capacity_kwh is nan"),
        ({"charge_w": -1.0}, "charge_w is -1.0; allowed is 0 to"),
        ({"charge_efficiency": 1.2}, "charge_efficiency is 1.2; allowed is 0.001 to 1"),
        ({"soc_min": 0.9, "soc_max": 0.1}, "soc_min 0.9 is not below soc_max 0.1"),
        ({"export_limit_w": -5.0}, "export_limit_w is -5.0"),
        ({"budget_kwh": np.array([1.0, -1.0])}, "budget_kwh is"),
    ],
)
def test_an_impossible_battery_is_refused(settings, message):
    with pytest.raises(InputError, match=message):
        Battery(**settings)
