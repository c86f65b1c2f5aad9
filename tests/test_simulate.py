"""A simulation says what the battery did, what it was asked, and what that comes to."""

import json
from datetime import date

import numpy as np
import pandas as pd
import pytest

from command_line import printed, refused
from command_line import run as run_command
from meterveil.bench.simulation import day_with_history, first_day, household_for, simulate
from meterveil.bench.simulation_page import caption, figure_rows
from meterveil.core.battery import Battery
from meterveil.core.decoys import Library
from meterveil.core.tariff import flat
from meterveil.data.household import Household
from meterveil.data.simulation import Setup, figures
from meterveil.errors import InputError

LIBRARY = Library.of([("kettle", [2000.0, 2500.0, 400.0]), ("lamp", [60.0] * 8)], source="by hand")
DAY = date(2024, 4, 15)


def household(days=3, load_w=300.0, start="2024-04-15"):
    begin, end = pd.Timestamp(start, tz="Europe/London"), pd.Timestamp(start, tz="Europe/London")
    minutes = pd.date_range(begin, end + pd.DateOffset(days=days), freq="min", inclusive="left", unit="s")
    return Household("here", minutes, np.full(len(minutes), load_w))


@pytest.fixture(scope="module")
def run():
    return simulate(household(), "random", DAY, 3, Setup(LIBRARY, seed=3))


def test_the_meter_shows_load_plus_battery_and_the_charge_is_carried_over_midnight(run):
    assert np.array_equal(run.meter_w, run.load_w + run.battery_w)
    days = [run.day(day) for day in run.days()]
    assert [len(day.minutes) for day in days] == [1440] * 3
    assert days[0].soc_start == 0.5
    assert [day.soc_start for day in days[1:]] == [day.soc[-1] for day in days[:-1]]


def test_the_same_seed_gives_the_same_run_and_another_one_does_not(run):
    again = simulate(household(), "random", DAY, 3, Setup(LIBRARY, seed=3))
    other = simulate(household(), "random", DAY, 3, Setup(LIBRARY, seed=4))
    assert np.array_equal(run.battery_w, again.battery_w)
    assert not np.array_equal(run.battery_w, other.battery_w)


def test_a_decoy_is_named_in_every_minute_that_replays_it(run):
    power_w, names = run.battery_w, run.decoy_names()
    assert np.all(power_w[run.decoy == LIBRARY.size] == 0)
    assert names[power_w != 0].notna().all()
    lamp = run.decoy == 1
    assert set(np.abs(power_w[lamp & ~run.clipped])) == {60.0}
    assert set(np.abs(run.asked_w[run.decoy == 0])) == {2000.0, 2500.0, 400.0}


def test_minutes_in_which_the_load_was_too_small_to_hide_behind_count_as_clipped(run):
    discharging = run.asked_w < -300.0
    assert discharging.any()
    assert np.all(run.clipped[discharging])
    assert not np.any(run.clipped & (run.asked_w == 0))


def test_figures_agree_with_sums_by_hand():
    battery = Battery(budget_kwh=2.0)
    run = simulate(household(1), "random", DAY, 1, Setup(LIBRARY, battery, flat(0.2), 1))
    moved_kwh = np.abs(run.battery_w).sum() / 60_000
    stored_kwh = run.battery_w.sum() / 60_000
    row = figures(run)
    assert row.throughput_kwh == pytest.approx(moved_kwh)
    assert row.soc_end == pytest.approx(0.5 + stored_kwh / 8)
    assert row.energy_cost == pytest.approx(0.2 * stored_kwh)
    assert row.degradation_cost == pytest.approx(0.075 * moved_kwh)
    assert row.total_cost == pytest.approx(row.energy_cost + row.degradation_cost)
    assert row.soc_neutral_cost == pytest.approx(row.degradation_cost)
    assert row.rms_w == pytest.approx(np.sqrt((run.battery_w**2).mean()))
    assert run.budget_left_kwh()[-1] == pytest.approx(2.0 - moved_kwh)


def test_the_caption_of_a_day_is_computed_from_its_minutes():
    uneven = household(1)
    uneven.aggregate_w[600:603] = 2900.0
    assert "did nothing" in caption(simulate(uneven, "none", DAY, 1, Setup(LIBRARY)))
    setup = Setup(LIBRARY, Battery(budget_kwh=0.1, discharge_w=500.0))
    run = simulate(uneven, "flat", DAY, 1, setup)
    words = caption(run)
    changed = int(np.sum(np.abs(run.battery_w) > 50))
    assert f"in {changed:,} of 1,440 minutes" in words
    assert f"load peaks at 2.9 kW, the meter at {run.meter_w.max() / 1000:.1f} kW" in words
    assert f"In {figures(run).missed_minutes:,} minutes" in words
    assert "was used up at" in words


def test_a_cost_that_rounds_to_nothing_has_no_sign(run):
    row = figures(run)._replace(energy_cost=-0.001, total_cost=-0.01)
    (_, cells) = figure_rows({"here": row})
    assert (cells[4], cells[6]) == ("0.00", "-0.01")


def test_the_budget_starts_anew_every_day(run):
    left = run.budget_left_kwh()
    used = [figures(run.day(day)).throughput_kwh for day in run.days()]
    assert left[[1439, 2879, 4319]] == pytest.approx([8 - kwh for kwh in used])


def test_the_battery_rests_where_the_meter_is_silent():
    silent = household(1)
    silent.aggregate_w[600:700] = np.nan
    run = simulate(silent, "flat", DAY, 1, Setup(LIBRARY))
    assert np.all(run.battery_w[600:700] == 0)
    assert np.all(np.isnan(run.asked_w[600:700]))
    assert not np.any(run.clipped[600:700])
    assert figures(run).known == pytest.approx(1340 / 1440)
    assert run.table().load_w.isna().sum() == 100


def test_days_of_which_little_is_known_are_counted():
    patchy = household()
    assert simulate(patchy, "none", DAY, 3, Setup(LIBRARY)).doubts() == ()
    patchy.aggregate_w[:145] = patchy.aggregate_w[1440:2000] = np.nan
    (doubt,) = simulate(patchy, "none", DAY, 3, Setup(LIBRARY)).doubts()
    assert doubt.startswith("of 3 days, 2 are known for less than 90% of their minutes")


def test_a_day_of_23_hours_is_a_day():
    run = simulate(household(3, start="2024-03-30"), "flat", date(2024, 3, 30), 3, Setup(LIBRARY))
    assert [len(run.day(day).minutes) for day in run.days()] == [1440, 1380, 1440]


def test_each_day_is_told_when_it_is_done():
    done = []
    simulate(household(), "none", DAY, 3, Setup(LIBRARY), lambda: done.append(1))
    assert len(done) == 3


@pytest.mark.parametrize(
    ("start", "days"), [(date(2024, 4, 14), 1), (date(2024, 4, 18), 1), (DAY, 4), (DAY, 3_000_000), (DAY, 10**30)]
)
def test_days_outside_the_record_are_refused_with_its_span(start, days):
    with pytest.raises(InputError, match="whole days run from 2024-04-15 to 2024-04-17"):
        simulate(household(), "none", start, days, Setup(LIBRARY))


@pytest.mark.parametrize("days", [0, -3])
def test_fewer_than_one_day_are_refused(days):
    with pytest.raises(InputError, match=f"days={days} is too few"):
        simulate(household(), "none", DAY, days, Setup(LIBRARY))


def test_the_first_day_is_the_first_well_known_one():
    patchy = household()
    patchy.aggregate_w[:200] = np.nan
    assert first_day(patchy) == date(2024, 4, 16)
    patchy.aggregate_w[1440::2] = np.nan
    assert first_day(patchy) == date(2024, 4, 15)


def test_by_default_a_day_with_a_fortnight_of_history_is_simulated_or_else_the_latest():
    assert day_with_history(household(20), 1) == date(2024, 4, 29)
    assert day_with_history(household(20), 7) == date(2024, 4, 28)
    assert day_with_history(household(3), 1) == date(2024, 4, 17)
    assert day_with_history(household(3), 5) == date(2024, 4, 15)
    patchy = household(20)
    patchy.aggregate_w[14 * 1440 : 15 * 1440] = np.nan
    assert day_with_history(patchy, 1) == date(2024, 4, 30)


def test_a_record_without_a_whole_day_has_no_first_day():
    here = household(1)
    short = Household("short", here.minutes[1:], here.aggregate_w[1:])
    with pytest.raises(InputError, match="records no civil day from midnight to midnight"):
        first_day(short)


def test_the_synthetic_household_is_drawn_as_long_as_asked():
    assert len(household_for("synthetic", None, None, 1).days()) == 14
    assert len(household_for("synthetic", None, date(2024, 4, 20), 20).days()) == 25


def test_a_folder_without_a_training_is_no_defence(tmp_path):
    assert "holds no training (run.json of" in refused("simulate", "--defence", tmp_path, "--out", tmp_path)
    words = refused("simulate", "--defence", tmp_path / "none", "--out", tmp_path)
    assert "the folders that meterveil train" in words


def test_a_house_must_be_chosen_where_there_are_several(real_data):
    with pytest.raises(InputError, match="several houses"):
        household_for(str(real_data / "ukdale"), None, None, 1)


def test_a_real_day_is_simulated_on_the_aggregate_alone(real_data):
    house = household_for(str(real_data / "ukdale"), 1, None, 1)
    assert dict(house.appliances_w) == {}
    run = simulate(house, "random", date(2013, 3, 18), 1, Setup(LIBRARY))
    assert figures(run).known > 0.99
    assert np.nanmin(run.meter_w) >= 0


def test_a_run_over_a_skipped_midnight_is_cut_into_its_days():
    index = pd.date_range("2023-03-11", periods=1440 + 1380 + 1440, freq="min", tz="America/Havana")
    home = Household("havana", index, np.full(len(index), 300.0))
    run = simulate(home, "random", date(2023, 3, 11), 3, Setup(LIBRARY))
    assert [len(run.day(day).minutes) for day in run.days()] == [1440, 1380, 1440]


def test_a_run_says_where_its_load_comes_from():
    mains, summed = (
        simulate(household_for("synthetic", None, None, 1, source), "none", DAY, 1, Setup(LIBRARY))
        for source in ("mains", "submeters")
    )
    assert (mains.aggregate, summed.aggregate) == ("mains (W)", "submeters (W)")
    assert np.all(summed.load_w != mains.load_w)
    assert "aggregate is the sum of the sub-meters" in summed.notes


def test_the_default_defence_certifies_each_day_and_its_figures_say_so():
    run = simulate(household(), "veil", DAY, 3, Setup(LIBRARY))
    assert run.certificate.bits.shape == (1, 3)
    table = figure_rows({str(day): figures(run.day(day)) for day in run.days()})
    assert [row[-1] for row in table] == ["bits", *(f"{bits:,.1f}" for bits in run.certificate.bits[0])]
    assert run.notes[0] == "bits are counted for each day; the row `all` has the median"
    assert "tell at most" in caption(run.day(DAY))
    assert figure_rows({"random": figures(simulate(household(), "random", DAY, 1, Setup(LIBRARY)))})[1][-1] == "-"


def test_a_veil_without_a_day_of_history_says_that_it_starts_from_the_week_that_ships():
    first, later = (simulate(household(), "veil", day, 1, Setup(LIBRARY)) for day in (DAY, date(2024, 4, 16)))
    assert "starts from a usual week that ships" in first.notes[-1]
    assert later.notes == ("bits are counted for this day alone; other days may tell more",)


def test_hours_to_protect_are_an_option_and_the_notes_say_what_they_add(tmp_path):
    words = printed(run_command("simulate", "--protect", "evenings", "--out", tmp_path))
    assert "protects 17:00-23:00 and rests in the other hours" in words
    assert "add to them" in words
    total = json.loads((tmp_path / "summary.json").read_text())["total"]
    assert total["protected_bits"] < 1000.0 < total["certified_bits"]
    assert f"{total['protected_bits']:,.1f}" in words
    assert "The readings of the protected hours tell at most" in (tmp_path / "day.html").read_text()
    assert "flat has no hours to protect" in refused("simulate", "--defence", "flat", "--protect", "nights")
    assert "'noon' are no hours" in refused("simulate", "--protect", "noon")


@pytest.mark.parametrize("verb", [("data", "show"), ("plan",), ("audit",), ("simulate",), ("train",)])
def test_every_verb_that_reads_a_house_takes_the_load_from_any_source(verb):
    assert "no --aggregate 'roof'; known are mains, submeters, active" in refused(
        *verb, "synthetic", "--aggregate", "roof"
    )
    both = "meter and sub-meters both read W, so there is no active power to estimate"
    assert both in refused(*verb, "synthetic", "--aggregate", "active")
