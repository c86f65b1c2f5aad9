"""The study of the veil."""

import numpy as np

from experiments import study
from experiments.veil import BUDGETS_KWH, HEADS, LEARNED, VARIANTS, figures, write_page
from meterveil.core.battery import Battery
from meterveil.data import synthetic
from meterveil.data.simulation import Setup
from meterveil.defenders.veil.policy import Veil


def test_a_smaller_budget_follows_less():
    home = synthetic.household(np.random.default_rng(0), days=3).select([])
    days = (home.days()[0], home.days()[2])
    followed = []
    for budget_kwh in BUDGETS_KWH:
        setup = Setup(synthetic.decoy_library(), Battery(budget_kwh=budget_kwh))
        rows = list(figures(Veil(), setup, home, days))
        values = {row["metric"]: row["value"] for row in rows}
        followed.append(values["followed_percent"])
        assert values["throughput_kwh"] <= budget_kwh
        assert ({row["n_days"] for row in rows}, len(rows)) == ({2}, 9)
    assert followed[0] > followed[1] > followed[2] > 0.0


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


def test_every_variant_is_a_veil_with_a_known_tariff():
    assert all(isinstance(veil, Veil) for veil, _ in VARIANTS.values())
    assert set(LEARNED) <= set(VARIANTS)
