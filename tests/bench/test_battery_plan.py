"""A plan says what batteries of many sizes hide and cost on one meter, and which is the smallest that is enough."""

import json
from dataclasses import replace
from datetime import date

import numpy as np
import pandas as pd
import pytest

from command_line import printed, refused, run
from meterveil.bench.battery_plan import ENOUGH, Figures, Size, compressed_bits, plan, sizes, span_of
from meterveil.bench.battery_plan_page import answers, doubts, rows, short_rows, write_plan
from meterveil.bench.simulation import simulate
from meterveil.core.battery import Battery
from meterveil.core.certificate import Rules
from meterveil.data.household import Household
from meterveil.data.load import load
from meterveil.data.simulation import Setup, figures
from meterveil.data.synthetic import decoy_library
from meterveil.defenders.veil.policy import Veil
from meterveil.errors import InputError

OTHERS = [Size(1.0, 1.0, 2.0), Size(8.0, 4.0, 16.0)]
SETUP = Setup(decoy_library(), Battery(capacity_kwh=4.0, discharge_w=3000.0))


@pytest.fixture(scope="module")
def home():
    return load("synthetic", days=5)


@pytest.fixture(scope="module")
def planned(home):
    return plan(home, SETUP, days=2, others=OTHERS)


def test_each_battery_of_the_batch_does_what_it_does_alone(home, planned):
    alone = simulate(home, "veil", planned.days[0], 2, SETUP)
    np.testing.assert_array_equal(planned.meter_w, alone.meter_w)
    assert planned.yours.size == (4.0, 4.0, 8.0)
    assert planned.yours.cost == pytest.approx(figures(alone).soc_neutral_cost / 2)
    assert planned.yours.moved_kwh == pytest.approx(figures(alone).throughput_kwh / 2)


def test_other_batteries_do_what_the_command_of_the_plan_simulates(home, planned):
    for size in OTHERS:
        battery = Battery(size[0], 1000.0 * size[1], 1000.0 * size[1], budget_kwh=size[2])
        alone = simulate(home, "veil", planned.days[0], 2, replace(SETUP, battery=battery))
        [row] = [row for row in planned.table if row.size == size]
        assert row.cost == pytest.approx(figures(alone).soc_neutral_cost / 2)


def test_a_larger_battery_hides_more_and_the_smallest_that_is_enough_is_named(planned):
    small, yours, large = planned.table
    assert (small.size, yours.size, large.size) == (OTHERS[0], planned.yours.size, OTHERS[1])
    assert small.followed < large.followed
    assert small.bits > large.bits
    assert planned.enough == next((row for row in planned.table if row.followed >= ENOUGH), None)
    assert planned.undefended_bits > 1000 > large.bits


def test_the_latest_days_are_simulated_and_earlier_ones_are_history(home, planned):
    assert planned.days == tuple(home.days()[-2:])
    assert planned.history == tuple(home.days()[:3])
    assert span_of(load("synthetic", days=60), None, None) == (date(2024, 5, 15), 30)
    assert span_of(home, None, None) == (home.days()[1], 4)


def test_a_record_of_one_day_starts_from_the_week_that_ships_and_says_so(home):
    short = home.between(home.days()[0], home.days()[1])
    result = plan(short, SETUP, others=OTHERS[:1])
    assert (result.history, len(result.days)) == ((), 1)
    assert "a usual week that ships with meterveil" in doubts(result)[0]


def test_gaps_count_neither_as_missed_nor_as_followed_days(home):
    watts = home.aggregate_w.copy()
    watts[3 * 1440 + 300 : 3 * 1440 + 900] = np.nan
    watts[4 * 1440 + 300 : 4 * 1440 + 330] = np.nan
    result = plan(replace(home, aggregate_w=watts), SETUP, days=2, others=OTHERS[1:])
    assert result.counted == 1
    assert result.table[-1].missed_minutes < 30
    assert any("bridged" in note for note in doubts(result))


def test_solar_export_is_planned_for(home):
    sunny = replace(home, aggregate_w=home.aggregate_w - 2500.0 * (np.arange(5 * 1440) % 1440 // 120 == 6))
    result = plan(sunny, SETUP, days=1, others=OTHERS[1:])
    assert np.isfinite([row.bits for row in result.table]).all()
    assert result.table[-1].followed > 0.8


def test_of_protected_hours_only_their_bits_and_minutes_count(home, planned):
    evenings = plan(home, SETUP, days=2, others=OTHERS, veil=Veil(Rules(protect=((1020, 1380),))))
    assert all(row.followed > 0.9 for row in evenings.table[1:])
    assert evenings.yours.bits < planned.yours.bits
    assert evenings.yours.missed_minutes < 36
    assert evenings.undefended_bits < 0.5 * planned.undefended_bits
    assert rows(evenings, [])[1][3] == "360"
    assert "only 17:00-23:00 is protected" in doubts(evenings)[0]
    assert "bits from 17:00-23:00 on a usual day" in answers(evenings)[1]


def test_protected_hours_without_a_reading_are_refused_by_plan_and_simulate(home):
    an_hour = Veil(Rules(protect=((1020, 1080),)))
    gap = replace(home, aggregate_w=np.where(home.minutes.hour == 17, np.nan, home.aggregate_w))
    with pytest.raises(InputError, match="no reading in the protected hours"):
        plan(gap, SETUP, days=2, others=OTHERS, veil=an_hour)
    with pytest.raises(InputError, match="no reading in the protected hours"):
        simulate(gap, "veil", gap.days()[-1], 1, SETUP, policy=an_hour)


def test_no_battery_of_the_market_is_wildly_powerful_for_its_size():
    listed = sizes((8.0, 16.0))
    assert len(listed) == 62
    assert max(size.power_kw / size.capacity_kwh for size in listed) == 2.0


def test_a_constant_meter_tells_next_to_nothing_and_a_noisy_one_thousands_of_bits():
    rng = np.random.default_rng(0)
    assert compressed_bits(np.full(7 * 1440, 300.0)) < 200
    assert compressed_bits(rng.uniform(0, 1024, 7 * 1440)) > 10 * 1440


def test_the_answers_say_so_where_no_battery_is_enough_and_where_one_saves(planned):
    none = replace(planned, table=tuple(row._replace(followed=0.9) for row in planned.table))
    assert any(line.startswith("No battery of the chart is enough") for line in answers(none))
    saving = replace(planned, yours=planned.yours._replace(cost=-0.1))
    assert "Your battery saves 36 a year, wear included, its price not included." in answers(saving)
    assert len(short_rows(planned)) in (3, 4)


def test_a_page_a_table_and_a_summary_are_written_and_foreign_tables_are_kept(planned, tmp_path):
    page = write_plan(planned, "meterveil simulate <x>", tmp_path / "new")
    write_plan(planned, "meterveil simulate <x>", tmp_path / "new")
    assert page.stat().st_size < 1.5e6
    assert "meterveil simulate &lt;x&gt;" in page.read_text()
    table = pd.read_csv(page.with_name("plan.csv"))
    assert table["bits"].to_numpy() == pytest.approx([row.bits for row in planned.table], rel=1e-5)
    document = json.loads(page.with_name("plan.json").read_text())
    assert set(Figures._fields) - {"size"} <= set(document["yours"])
    (tmp_path / "plan.csv").write_text("mine")
    assert "plan.csv" in refused("plan", "--out", tmp_path)


def test_the_command_prints_the_answers_and_a_command_to_copy(tmp_path, monkeypatch):
    monkeypatch.setattr("meterveil.bench.battery_plan.CAPACITIES_KWH", (8.0,))
    result = run("plan", "--start", "2024-04-18", "--days", 1, "--capacity-kwh", 6, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    words = printed(result)
    assert "yours: 6 kWh, 4 kW, 8 kWh a day" in words
    assert "settings: meterveil simulate synthetic --defence veil --capacity-kwh" in words
    assert (tmp_path / "out" / "plan.html").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--budget-kwh", 0], "budget_kwh is 0 a day"),
        (["--capacity-kwh", -1], "--capacity-kwh is -1; allowed is"),
        (["--power-kw", "nan"], "--power-kw is nan"),
        (["--days", 0], "--days 0 is too few"),
        (["--start", "2024-01-01"], "its whole days run from 2024-04-15"),
        (["--start", "soon"], "--start 'soon' is not a day"),
        (["--tariff", "cheap"], "there is no tariff 'cheap'"),
    ],
)
def test_options_that_cannot_be_meant_are_refused_in_one_line(options, words, tmp_path):
    assert words in refused("plan", *options, "--out", tmp_path)


def test_a_record_without_readings_or_without_a_whole_day_is_refused_in_one_line(home, tmp_path):
    path = tmp_path / "meter.csv"
    pd.DataFrame({"time": home.minutes[:600], "power": home.aggregate_w[:600]}).to_csv(path, index=False)
    assert "records no civil day" in refused("plan", path, "--out", tmp_path / "out")
    silent = Household("silent", home.minutes, np.where(np.arange(7200) < 600, home.aggregate_w, np.nan))
    with pytest.raises(ValueError, match=r"no day from .* on is known for 90%"):
        plan(silent, SETUP)
