"""The planner of the veil beside the same plan in plain loops."""

from dataclasses import fields

import numpy as np
import pytest

from meterveil.core.battery import Battery
from meterveil.core.certificate import Rules
from meterveil.core.tariff import DEGRADATION_PER_KWH
from meterveil.defenders.veil.planner import Planner, _alike, rows_of
from meterveil.defenders.veil.situation import SLOTS, Situation, record_of, shipped_record


def a_situation(rules, slot, battery, soc, budget_left_kwh, decoy_w=0.0):
    rng = np.random.default_rng(slot)
    recent = shipped_record(rules)[:3] * rng.uniform(0.3, 2.5, (3, SLOTS, 1))
    columns = Battery(**{part.name: np.array([getattr(battery, part.name)]) for part in fields(Battery)})
    price = np.where(np.arange(SLOTS) < 14, 0.13, 0.31)
    left_kwh, clock, record = np.array([budget_left_kwh]), np.array([slot * 30]), np.array([0])
    return Situation(rules, columns, np.array([soc]), left_kwh, clock, recent[None], record, price, decoy_w)


class PlainPlan:
    """Oracle: costs of the planner for one household, a case at a time."""

    def __init__(self, planner, situation):
        self.planner, self.situation, self.rules = planner, situation, situation.rules
        battery = situation.battery
        self.charge, self.discharge = battery.charge_efficiency[0], battery.discharge_efficiency[0]
        self.low_kwh = battery.soc_min[0] * battery.capacity_kwh[0]
        self.room_kwh = battery.soc_max[0] * battery.capacity_kwh[0] - self.low_kwh
        self.full_kwh = min(battery.budget_kwh[0], 1000.0)
        self.veiled = self.rules.protected(np.arange(SLOTS) * 30)

    def block(self, begin, end, level, day, stored_kwh, left_kwh):
        """Return cost, energy stored at the end and budget left at the end of a block."""
        planner, recent, decoys_kwh = self.planner, self.situation.recent[0], self.situation.decoy_w / 2000.0
        cost, moved_kwh, gained_kwh, missed_hours = 0.0, 0.0, 0.0, 0.0
        all_kwh, reached_kwh = 0.0, [0.0]
        for slot in range(begin % SLOTS, (end - 1) % SLOTS + 1):
            if self.veiled[slot]:
                added_kwh = (self.rules.menu_w[level] - recent[day, slot, 0]) / 2000.0 + decoys_kwh
                moves_kwh = recent[day, slot, 1 + level] + decoys_kwh
                gain_kwh = (moves_kwh + added_kwh) / 2 * self.charge - (moves_kwh - added_kwh) / 2 / self.discharge
                moved_kwh += moves_kwh
                all_kwh += gain_kwh
                reached_kwh.append(all_kwh)
                if moved_kwh <= left_kwh:
                    gained_kwh += gain_kwh
                    cost += added_kwh * self.situation.price[slot] + moves_kwh * DEGRADATION_PER_KWH
                else:
                    missed_hours += 0.5
        left_kwh = max(left_kwh - moved_kwh, 0.0)
        cost += planner.hour_cost * (missed_hours + 0.5 * max(planner.reserve_kwh - left_kwh, 0.0))
        room_kwh = min(stored_kwh + min(reached_kwh), self.room_kwh - stored_kwh - max(reached_kwh))
        cost += planner.kwh_cost * max(-room_kwh, 0.0)
        cost += planner.rescue_cost * min(max(1.0 - room_kwh / planner.reserve_kwh, 0.0), 1.0)
        return cost, stored_kwh + gained_kwh, left_kwh

    def costs(self):
        """Return the cost of each first level."""
        planner, levels = self.planner, range(len(self.rules.menu_w))
        times = {minute // 30 for minute in self.rules.choice_minutes}
        now = int(self.situation.minute_of_day[0]) // 30
        stop = now + planner.days * SLOTS
        bounds = [now, *(slot for slot in range(now + 1, stop) if slot % SLOTS in times or slot % SLOTS == 0), stop]
        grid_kwh = np.linspace(0.0, self.room_kwh, planner.soc_steps + 1)
        budgets_kwh = np.linspace(0.0, self.full_kwh, planner.budget_steps + 1)
        last = -(self.situation.price.min() + DEGRADATION_PER_KWH) * grid_kwh
        after = {level: np.tile(last, (len(budgets_kwh), 1)) for level in levels}  # (budget, SoC)

        def worth(begin, end, level, stored_kwh, left_kwh):
            total = 0.0
            for day in range(self.situation.recent.shape[1]):
                cost, ends_kwh, ends_left_kwh = self.block(begin, end, level, day, stored_kwh, left_kwh)
                by_budget = [np.interp(ends_kwh, grid_kwh, row) for row in after[level]]
                total += cost + np.interp(ends_left_kwh, budgets_kwh, by_budget)
            return total / self.situation.recent.shape[1]

        for begin, end in zip(bounds[-2:0:-1], bounds[:1:-1], strict=True):
            budgets = [self.full_kwh] if begin % SLOTS == 0 else budgets_kwh
            before = {
                level: np.array([[worth(begin, end, level, stored, left) for stored in grid_kwh] for left in budgets])
                for level in levels
            }
            best = np.min(list(before.values()), axis=0)
            chosen = {level: best if begin % SLOTS in times else before[level] for level in levels}
            after = {level: np.broadcast_to(part, (len(budgets_kwh), len(grid_kwh))) for level, part in chosen.items()}
        stored_kwh = self.situation.soc[0] * self.situation.battery.capacity_kwh[0] - self.low_kwh
        left_kwh = self.situation.budget_left_kwh[0]
        return [worth(now, bounds[1], level, stored_kwh, left_kwh) for level in levels]


MENU_W = (100.0, 300.0, 1000.0)


@pytest.mark.parametrize(
    ("rules", "slot", "battery", "soc", "left_kwh", "decoy_w"),
    [
        (Rules(menu_w=MENU_W), 0, Battery(), 0.5, 8.0, 0.0),
        (Rules(menu_w=MENU_W), 34, Battery(capacity_kwh=2.0, budget_kwh=2.0), 0.85, 0.3, 0.0),
        (Rules(menu_w=MENU_W), 20, Battery(charge_efficiency=0.9, discharge_efficiency=0.95), 0.2, 3.3, 150.0),
        (Rules((7 * 60,), MENU_W), 14, Battery(budget_kwh=4.0), 0.4, 2.0, 0.0),
        (Rules(menu_w=MENU_W, protect=((17 * 60, 23 * 60),)), 34, Battery(budget_kwh=1.0), 0.4, 1.0, 0.0),
        (Rules(menu_w=MENU_W), 14, Battery(budget_kwh=0.0), 0.5, 0.0, 0.0),
    ],
)
def test_the_planner_agrees_with_plain_loops(rules, slot, battery, soc, left_kwh, decoy_w):
    planner = Planner(soc_steps=4, budget_steps=3)
    situation = a_situation(rules, slot, battery, soc, left_kwh, decoy_w)
    np.testing.assert_allclose(-planner.scores(situation)[0], PlainPlan(planner, situation).costs(), rtol=0, atol=1e-9)


def test_a_plan_without_a_limit_of_the_budget_equals_one_with_a_budget_that_is_never_reached():
    rules = Rules(menu_w=MENU_W)
    plans = [
        Planner().scores(a_situation(rules, 14, Battery(budget_kwh=kwh), 0.5, kwh, 0.0)) for kwh in (900.0, np.inf)
    ]
    np.testing.assert_allclose(plans[0], plans[1], atol=1e-9)


def test_batteries_that_differ_in_power_alone_share_a_plan_and_get_the_same_scores():
    rng = np.random.default_rng(0)
    record = record_of(rng.gamma(2.0, 200.0, (3, 1440)), Rules())
    names = ("capacity_kwh", "charge_w", "budget_kwh")
    sizes = [(8.0, 4000.0, 8.0), (4.0, 2000.0, 8.0), (8.0, 1000.0, 8.0), (8.0, 4000.0, 4.0), (4.0, 4000.0, 8.0)]
    columns = {name: np.full(5, value) for name, value in vars(Battery()).items()}
    columns |= dict(zip(names, np.array(sizes).T, strict=True))
    soc, left_kwh = rng.uniform(0.2, 0.8, 5), rng.uniform(1.0, 4.0, 5)
    clock, shared, price = np.full(5, 420), np.zeros(5, int), np.full(48, 0.2)
    situation = Situation(Rules(), Battery(**columns), soc, left_kwh, clock, record[None], shared, price)
    together = Planner().scores(situation)
    for row in range(5):
        np.testing.assert_array_equal(Planner().scores(rows_of(situation, np.array([row])))[0], together[row])
    assert _alike(situation)[1].tolist() == [0, 1, 0, 2, 1]
