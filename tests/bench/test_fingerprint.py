"""The physical figures of the paper, and the arithmetic on them."""

from dataclasses import replace

import numpy as np
import pytest

from meterveil.bench import fingerprint
from meterveil.bench.fingerprint import Reading, flows, load_bounds, misses, printed, score
from meterveil.errors import InputError


def test_wear_and_energy_cost_leave_one_way_to_spend_the_day():
    moved = fingerprint.moved_kwh(0.460)
    assert moved == pytest.approx(6.133, abs=1e-3)
    bounds = flows(-1.224, moved)
    # by hand: x kWh net when cheap, y when dear, 0.1317 x + 0.3075 y = -1.224, |x| + |y| <= 6.133, x + y >= -3.2
    assert bounds.cheap == pytest.approx((1.365, 1.507), abs=2e-3)
    assert bounds.dear == pytest.approx((-4.626, -4.565), abs=2e-3)
    assert bounds.net == pytest.approx((-3.2, -3.118), abs=2e-3)
    assert bounds.discharged.low == pytest.approx(4.565, abs=2e-3)


def test_a_cost_that_no_day_has_is_refused():
    with pytest.raises(InputError, match="no day has this energy cost"):
        flows(-3.0, 6.0)


def test_the_papers_day_is_nearly_the_cheapest_that_the_battery_allows():
    # by hand: 2.4 kWh charged when cheap and 5.6 discharged when dear spend the budget and empty the battery
    assert fingerprint.cheapest_total() == pytest.approx(2.4 * 0.1317 - 5.6 * 0.3075 + 8 * 0.075)
    assert -0.764 / fingerprint.cheapest_total() == pytest.approx(0.95, abs=0.01)


def test_attackers_that_read_the_load_bound_it():
    ukdale, redd = load_bounds("ukdale"), load_bounds("redd")
    assert ukdale.high == pytest.approx(194.98 / 0.84, rel=0.01)  # CO, masked
    assert ukdale.low == pytest.approx(4.565 / 24 * 1000, rel=0.001)  # what was discharged in the dear hours
    assert redd.low == pytest.approx(301.77 / 1.60, rel=0.001)  # ELECTRIcity, masked
    assert redd.low < 223 < redd.high  # the mains of our data, unlike the 133 W of all sub-meters


def test_the_tables_bound_the_mean_of_each_appliance():
    redd = fingerprint.highest_means("redd")
    assert redd["fridge"] == pytest.approx(85.05 / 0.96, rel=0.01)
    assert redd["kitchen_outlets_2"] == pytest.approx(20.34 / 1.91, rel=0.01)
    assert fingerprint.highest_means("ukdale")["aggregate"] == load_bounds("ukdale").high


def test_a_simulated_day_is_read_off_its_battery_power():
    power_w, load_w = np.zeros(1440), np.full(1440, 250.0)
    power_w[:60], power_w[600:840] = 1500.0, -250.0
    price = np.where(np.arange(1440) < 420, 0.1317, 0.3075)
    reading = fingerprint.simulated(power_w, load_w, price)
    assert reading.throughput_kwh == pytest.approx(2.5)
    assert reading.mae_w == pytest.approx(2500 / 24)
    assert reading.sae == pytest.approx(500 / 6000)
    assert reading.energy_cost == pytest.approx(1.5 * 0.1317 - 0.3075)
    assert reading.rmse_w == pytest.approx(np.sqrt((60 * 1500.0**2 + 240 * 250.0**2) / 1440))


def test_the_paper_itself_has_a_score_of_zero_and_no_privacy_figure_counts():
    papers = {name: printed(name) for name in ("ukdale", "redd")}
    assert score(papers) == 0.0
    assert set(misses("ukdale", papers["ukdale"])) == {"mae_w", "rmse_w", "sae", "throughput_kwh", "energy_cost"}
    assert set(misses("redd", papers["redd"])) == {"mae_w", "rmse_w", "sae"}


def test_a_day_is_scored_by_the_papers_own_noise():
    paper = printed("ukdale")
    off = replace(paper, sae=paper.sae + 2 * 0.08, load_w=358.5)
    missed = misses("ukdale", off)
    assert missed["sae"] == pytest.approx(2.0)
    assert missed["load_w"] == pytest.approx((358.5 - load_bounds("ukdale").high) / (0.1 * load_bounds("ukdale").high))
    assert score({"ukdale": off}) == pytest.approx(np.sqrt((4.0 + missed["load_w"] ** 2) / 6))
    assert misses("ukdale", replace(paper, load_w=200.0))["load_w"] == 0.0
    assert Reading(1.0, 1.0, 0.1).terms["mae_w"] == 1.0
