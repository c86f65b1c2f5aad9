import numpy as np
import pytest

from meterveil.core.battery import Battery
from meterveil.core.decoys import Library
from meterveil.core.rollout import rollout
from meterveil.core.scenario import Scenario
from meterveil.defenders import DEFENDERS, version_of
from meterveil.defenders.flat import Flat
from meterveil.defenders.none import NoDefence
from meterveil.defenders.random import RandomDecoys
from meterveil.defenders.training_settings import METHODS
from meterveil.errors import InputError

LIBRARY = Library.of([("kettle", [1500.0, 2500.0]), ("toaster", [900.0])], "test")


def world(load_w):
    load_w = np.atleast_2d(load_w)
    clock = np.tile(np.arange(load_w.shape[1]), (len(load_w), 1))
    return Scenario(
        load_w, clock % 1440, clock // 1440, np.full(clock.shape, 0.2), np.full(len(load_w), len(clock[0]))
    )


def play(policy, load_w, **settings):
    scenario = world(load_w)
    rngs = [np.random.default_rng(row) for row in range(scenario.batch)]
    return rollout(policy, Battery(**settings), LIBRARY, scenario, rngs)


def test_no_defence_leaves_the_meter_alone():
    trace = play(NoDefence(), np.linspace(0.0, 3000.0, 300))
    np.testing.assert_array_equal(trace.meter_w, trace.load_w)


def test_random_decoys_come_about_as_often_as_asked():
    trace = play(RandomDecoys(rate=0.05), np.full((200, 1440), 5000.0), budget_kwh=np.inf, capacity_kwh=1e4)
    starts = (trace.power_w[:, 1:] != 0.0) & (trace.power_w[:, :-1] == 0.0)
    free = (trace.power_w == 0.0).sum()
    assert 0.04 < starts.sum() / free < 0.06


def test_random_decoys_charge_and_discharge_alike():
    trace = play(RandomDecoys(), np.full((200, 1440), 5000.0), budget_kwh=np.inf, capacity_kwh=1e4)
    shown = set(np.unique(trace.power_w))
    assert shown == {0.0, 1500.0, 2500.0, 900.0, -1500.0, -2500.0, -900.0}


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


@pytest.mark.parametrize("name", [*DEFENDERS, *METHODS, "rationed", "random_equal:7.5"])
def test_every_defence_and_method_has_a_version(name: str) -> None:
    assert version_of(name) == 1


def test_the_version_of_an_unknown_defence_is_refused() -> None:
    with pytest.raises(InputError, match="flta"):
        version_of("flta")
