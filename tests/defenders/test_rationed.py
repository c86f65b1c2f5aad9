"""A ration of the day's budget: what is spent never runs ahead of the clock by more than one command."""

import numpy as np
from worlds import play

from meterveil.core.executor import add_power, replay_signature
from meterveil.defenders.baselines import Rationed

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
