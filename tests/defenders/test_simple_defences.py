"""Random decoys, flat meters and rations; and the VERSION of every defence."""

import numpy as np
import pytest
from worlds import LIBRARY, play

from meterveil.core.executor import add_power, replay_signature
from meterveil.defenders import DEFENDERS, version_of
from meterveil.defenders.flat import Flat, FlatDecoys
from meterveil.defenders.none import NoDefence
from meterveil.defenders.random import RandomDecoys
from meterveil.defenders.rationed import Rationed
from meterveil.defenders.training_settings import METHODS
from meterveil.errors import InputError


@pytest.mark.parametrize("name", [*DEFENDERS, *METHODS, "rationed", "random_equal:7.5"])
def test_every_defence_and_method_has_a_version(name):
    assert version_of(name) == {"veil": 5, "veil_manager": "1, veil 5"}.get(name, 1)


def test_the_version_of_an_unknown_defence_is_refused():
    with pytest.raises(InputError, match="flta"):
        version_of("flta")


def test_no_defence_leaves_the_meter_alone():
    trace = play(NoDefence(), np.linspace(0.0, 3000.0, 300))
    np.testing.assert_array_equal(trace.meter_w, trace.load_w)


def test_random_decoys_start_with_their_rate_and_charge_and_discharge_alike():
    trace = play(RandomDecoys(rate=0.05), np.full((200, 1440), 5000.0), budget_kwh=np.inf, capacity_kwh=1e4)
    starts = (trace.power_w[:, 1:] != 0.0) & (trace.power_w[:, :-1] == 0.0)
    assert 0.04 < starts.sum() / (trace.power_w == 0.0).sum() < 0.06
    assert set(np.unique(trace.power_w)) == {0.0, 1500.0, 2500.0, 900.0, -1500.0, -2500.0, -900.0}


def test_a_flat_meter_hides_a_kettle_that_the_battery_can_carry():
    load_w = np.full(1440, 300.0)
    load_w[600:603] = 2500.0
    trace = play(Flat(), load_w)
    assert trace.load_w[0, 595:610].std() > 800.0
    assert trace.meter_w[0, 595:610].std() < 10.0


def test_a_flat_meter_brings_the_battery_back_to_its_middle():
    rng = np.random.default_rng(0)
    trace = play(Flat(), np.abs(rng.normal(350.0, 250.0, (16, 5 * 1440))), budget_kwh=np.inf)
    assert np.abs(trace.soc[:, -1] - 0.5).max() < 0.1


def test_a_flat_meter_is_not_misled_by_what_runs_in_its_first_minutes():
    load_w = np.full(1440, 300.0)
    load_w[:5] = 2300.0
    trace = play(Flat(), load_w)
    assert np.abs(trace.meter_w[0, 120:] - 300.0).max() < 200.0
    assert trace.soc.max() < 0.7


def test_without_decoys_it_is_flat():
    load_w = np.abs(np.random.default_rng(0).normal(400.0, 300.0, (4, 600)))
    decoys = play(FlatDecoys(rate=0.0, flat=Flat()), load_w)
    np.testing.assert_allclose(decoys.meter_w, play(Flat(), load_w).meter_w)


def test_the_level_is_lowered_by_what_decoys_draw_on_average():
    # (4,000 + 900) / 2 watt-minutes for a tenth of the decisions, which last 1.05 minutes on average
    assert LIBRARY.mean_w(0.1) == pytest.approx(0.1 * 2450.0 / 1.05)


def test_a_decoy_stands_on_the_level_and_hides_the_load_below_it():
    trace = play(FlatDecoys(rate=1.0), np.full((50, 2), 2000.0), discharge_w=1e9)
    level_w = 2000.0 - LIBRARY.mean_w(1.0)
    kettle = np.isclose(trace.power_w[:, 1] - trace.power_w[:, 0], 1000.0)
    assert kettle.any()
    np.testing.assert_allclose(trace.meter_w[kettle, 0], level_w + 1500.0)
    assert np.all(np.isclose(trace.meter_w[:, 0], level_w + 1500.0) | np.isclose(trace.meter_w[:, 0], level_w + 900.0))


def test_decoys_do_not_fill_the_battery():
    load_w = np.abs(np.random.default_rng(1).normal(400.0, 200.0, (16, 3 * 1440)))
    trace = play(FlatDecoys(), load_w, budget_kwh=np.inf)
    assert trace.soc[:, -1].mean() == pytest.approx(0.5, abs=0.03)
    assert np.abs(trace.soc - 0.5).max() < 0.2


def test_a_real_use_looks_like_none_and_a_decoy_like_one():
    load_w = np.full((32, 1440), 300.0)
    load_w[:, 700:703] = 2500.0
    trace = play(FlatDecoys(), load_w)
    rises = np.diff(trace.meter_w, axis=1) > 800.0
    assert rises[:, 690:705].sum() < 10
    assert rises.sum() > 5 * 32


KWH = 1 / 60000


class Charging:
    """Ask for 3 kW of charging in every minute."""

    def initial(self, batch):
        return None

    def decide(self, view, memory):
        return add_power(view.library, np.full(len(view.load_w), 3000.0)), memory


class Kettle:
    """Replay a kettle whenever asked."""

    def initial(self, batch):
        return None

    def decide(self, view, memory):
        return replay_signature(view.library, np.ones(len(view.load_w), dtype=np.int64)), memory


def test_without_a_ration_the_budget_is_gone_within_the_first_hours_and_with_one_it_lasts_the_day():
    day = np.full(1440, 500.0)
    spent = {
        name: np.cumsum(np.abs(play(policy, day, soc=0.1, capacity_kwh=20.0).power_w[0])) * KWH
        for name, policy in (("bare", Charging()), ("rationed", Rationed(Charging())))
    }
    assert spent["bare"][180] > 7.9
    by_the_clock = 8.0 * np.arange(1, 1441) / 1440
    assert np.all(spent["rationed"] <= by_the_clock + 3000.0 * KWH + 1e-9)
    np.testing.assert_allclose(spent["rationed"][-1], 8.0, atol=0.06)


def test_a_command_that_was_begun_is_carried_out_to_its_end():
    trace = play(Rationed(Kettle()), np.full(200, 100.0))
    on = trace.power_w[0] > 0
    starts = np.flatnonzero(on & ~np.append(False, on[:-1]))
    np.testing.assert_allclose(trace.power_w[0, starts], 1500.0)
    np.testing.assert_allclose(trace.power_w[0, starts + 1], 2500.0)
    assert 10 < len(starts) < 20


def test_every_household_has_a_ration_of_its_own_budget():
    loads = np.full((2, 600), 500.0)
    trace = play(Rationed(Charging()), loads, soc=0.1, budget_kwh=np.array([2.0, 6.0]))
    moved_kwh = np.abs(trace.power_w).sum(axis=1) * KWH
    np.testing.assert_allclose(moved_kwh, [2.0 * 600 / 1440, 6.0 * 600 / 1440], atol=0.06)
