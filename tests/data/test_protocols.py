from datetime import date

import numpy as np
import pandas as pd
import pytest

from meterveil.data.household import Household
from meterveil.data.load import load
from meterveil.data.protocols import (
    LIBRARY_DAYS,
    ON_THRESHOLD_W,
    OTHER_ON_W,
    PROTOCOLS,
    REDD_EVALUATION_DAYS,
    REDD_HOUSE2,
    UKDALE_EVALUATION_DAYS,
    UKDALE_HOUSE1,
    on_threshold_w,
    protocol,
)
from meterveil.data.splits import day_coverage
from meterveil.errors import InputError


def test_ten_days_teach_and_no_test_day_is_among_them():
    for chosen in PROTOCOLS.values():
        assert len(chosen.training) == 10
        assert not set(chosen.training) & set(chosen.test)
        assert len(chosen.paper_names) == len(chosen.targets)
    assert (UKDALE_HOUSE1.training[0], UKDALE_HOUSE1.training[-1]) == (date(2013, 3, 19), date(2013, 3, 28))
    assert (REDD_HOUSE2.training[0], REDD_HOUSE2.training[-1]) == (date(2011, 4, 19), date(2011, 4, 28))


def test_the_weekday_of_each_evaluation_day_is_the_one_that_the_paper_prints():
    for row in (*UKDALE_EVALUATION_DAYS, *REDD_EVALUATION_DAYS):
        assert row.day.strftime("%A") in row.label


def test_no_signature_is_taken_from_an_evaluation_day():
    for house, days in LIBRARY_DAYS.items():
        evaluated = {row.day for row in UKDALE_EVALUATION_DAYS if row.house == house}
        assert not evaluated & set(days)


def test_every_target_has_a_power_from_which_it_is_on():
    for chosen in PROTOCOLS.values():
        assert all(on_threshold_w(name) > 0 for name in (*chosen.targets, *chosen.many_day_targets))
    assert on_threshold_w("kitchen_outlets_2") == ON_THRESHOLD_W["kitchen_outlets"] == 50.0
    assert on_threshold_w("Fridge-freezer") == 50.0
    assert on_threshold_w("oven") == OTHER_ON_W


def test_an_unknown_protocol_lists_the_known_ones():
    assert protocol("redd") is REDD_HOUSE2
    with pytest.raises(InputError, match="there is no protocol 'eco'; there are ukdale, redd"):
        protocol("eco")


def test_a_target_that_stood_still_or_was_not_metered_is_not_present():
    minutes = pd.date_range("2013-03-18", periods=1440, freq="min", tz="Europe/London")
    kettle, microwave = np.zeros(1440), np.full(1440, 150.0)
    kettle[600] = 1000.0
    home = Household("home", minutes, np.full(1440, 300.0), {"microwave": microwave, "kettle": kettle})
    assert UKDALE_HOUSE1.present_targets(home, date(2013, 3, 18)) == ("kettle",)


@pytest.fixture(scope="module")
def ukdale(real_data) -> Household:
    return load(real_data / "ukdale", 1, appliances=["fridge", "kettle", "microwave", "dishwasher"])


@pytest.fixture(scope="module")
def redd(real_data) -> Household:
    return load(real_data / "redd", 2, appliances=REDD_HOUSE2.targets)


def test_the_last_two_of_ten_days_validate(ukdale, redd):
    for chosen, household in ((UKDALE_HOUSE1, ukdale), (REDD_HOUSE2, redd)):
        assert chosen.split(household) == (chosen.training[:8], chosen.training[8:])


def test_the_days_of_uk_dale_are_in_the_real_data(ukdale):
    coverage = day_coverage(ukdale)
    assert coverage[date(2013, 3, 18)] == 1.0
    poorest = min(UKDALE_HOUSE1.training, key=coverage.__getitem__)
    assert (poorest, coverage[poorest]) == (date(2013, 3, 21), pytest.approx(0.842, abs=0.001))
    assert UKDALE_HOUSE1.present_targets(ukdale, date(2013, 3, 18)) == ("fridge", "kettle", "microwave")


def test_the_days_of_redd_are_in_the_real_data(redd):
    coverage = day_coverage(redd)
    assert [coverage[day] for day in REDD_HOUSE2.test] == [1.0, 1.0]
    assert min(coverage[day] for day in REDD_HOUSE2.training) == pytest.approx(0.920, abs=0.001)
    assert REDD_HOUSE2.present_targets(redd, date(2011, 4, 29)) == REDD_HOUSE2.targets


def test_uk_dale_has_many_held_out_days_and_redd_two(ukdale, redd):
    held_out = UKDALE_HOUSE1.held_out(ukdale)
    assert len(held_out) == 126
    assert not set(held_out) & set(UKDALE_HOUSE1.training)
    with pytest.raises(InputError, match="REDD house_2 has 2 held-out days"):
        REDD_HOUSE2.held_out(redd)
    assert REDD_HOUSE2.held_out(redd, min_days=2) == REDD_HOUSE2.test


def test_the_evaluation_days_that_the_real_data_hold_are_whole(real_data):
    houses: dict[tuple[str, int], Household] = {}
    for row in (*UKDALE_EVALUATION_DAYS, *REDD_EVALUATION_DAYS):
        if (row.dataset, row.house) == ("ukdale", 4):
            continue
        key = (row.dataset, row.house)
        houses.setdefault(key, load(real_data / row.dataset, row.house))
        assert houses[key].day(row.day).coverage()["aggregate"] == 1.0, row
