"""The study of the veil sums up each budget of a batch."""

from dataclasses import replace

import numpy as np

from experiments import study
from experiments.veil import BUDGETS_KWH, HEADS, LEARNED, VARIANTS, ByBudget, figures, write_page
from meterveil.core.battery import Battery
from meterveil.core.certificate import Rules
from meterveil.data import synthetic
from meterveil.data.simulation import Setup
from meterveil.defenders.veil.policy import Veil
from meterveil.defenders.veil.situation import Situation


def test_every_budget_has_its_figures_and_a_smaller_one_follows_less():
    home = synthetic.household(np.random.default_rng(0), days=3).select([])
    days = (home.days()[0], home.days()[2])
    rows = list(figures(Veil(), Setup(synthetic.decoy_library()), home, days, "synthetic", "planner"))
    found = {(row["row"], row["metric"]): row["value"] for row in rows}
    followed = [found[f"planner, {kwh:g} kWh a day", "followed_percent"] for kwh in BUDGETS_KWH]
    assert followed[0] > followed[1] > followed[2] > 0.0
    assert found["planner, 2 kWh a day", "throughput_kwh"] <= 2.0
    assert {row["n_days"] for row in rows} == {2}
    assert len(rows) == 9 * len(BUDGETS_KWH)


def test_the_page_is_filled_from_the_recorded_figures(tmp_path):
    values = dict.fromkeys(HEADS, 1.0)
    rows = [
        {"dataset": "redd_2", "row": "planner, 8 kWh a day", "metric": m, "value": v, "n_days": 2}
        for m, v in values.items()
    ]
    study.record(tmp_path, "veil", "key", rows, {})
    page = tmp_path / "veil.md"
    marks = ("frontier", "variants", "choosing")
    page.write_text("".join(f"<!-- {mark} -->\nold\n<!-- end of {mark} -->\n" for mark in marks))
    write_page(tmp_path, page)
    assert page.read_text().count("| redd_2 (2) | planner, 8 kWh a day | 1.00 % |") == 2
    assert "old" not in page.read_text()


class Constant:
    def __init__(self, best):
        self.best = best

    def scores(self, situation):
        return np.tile(np.arange(9) == self.best, (len(situation.soc), 1)).astype(float)


def test_each_budget_has_its_own_manager():
    battery = Battery(**{name: np.full(3, value) for name, value in vars(Battery()).items()})
    battery = replace(battery, budget_kwh=np.array([4.0, 8.0, 4.0]))
    records, three, zero = np.zeros((1, 1, 48, 10)), np.zeros(3), np.zeros(3, int)
    situation = Situation(Rules(), battery, three, three, zero, records, zero, np.zeros(48))
    scores = ByBudget({8.0: Constant(2), 4.0: Constant(5)}).scores(situation)
    assert scores.argmax(axis=1).tolist() == [5, 2, 5]


def test_every_variant_is_a_veil_with_a_known_tariff():
    assert all(isinstance(veil, Veil) for veil, _ in VARIANTS.values())
    assert set(LEARNED) <= set(VARIANTS)
