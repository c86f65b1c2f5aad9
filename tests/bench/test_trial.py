"""Which days attackers learn from, and which they read."""

import dataclasses

import numpy as np
import pytest

from meterveil.bench.trial import (
    CROSSINGS,
    attack_trial,
    check_days,
    crossing_trials,
    evaluation_day_trial,
    evaluation_days,
    longer_training,
    own_house,
    own_trial,
    protocol_trial,
    synthetic_trial,
)
from meterveil.data.load import load
from meterveil.data.protocols import REDD_EVALUATION_DAYS, REDD_HOUSE2, UKDALE_HOUSE1
from meterveil.data.splits import day_coverage, only_days
from meterveil.errors import InputError

ALL_CROSSINGS = [trial for trials in CROSSINGS.values() for trial in trials]


def crossing_name(trial):
    return f"{trial.training_label} to {trial.test.dataset} {trial.test.house}"


@pytest.fixture(scope="module")
def home():
    return load("synthetic", days=6)


@pytest.fixture(scope="module")
def house(real_data):
    records = {}

    def read(dataset, number):
        if (dataset, number) not in records:
            records[dataset, number] = load(real_data / dataset, number)
        return records[dataset, number]

    return read


def test_attackers_learn_from_the_first_days_of_a_household_and_read_the_later_ones(home):
    trial, one_day = synthetic_trial(home, "many"), synthetic_trial(home, "paper")
    assert (trial.training[0].days, trial.test.days) == (tuple(home.days()[:4]), tuple(home.days()[4:]))
    assert (trial.days, trial.training_label, trial.aggregate) == ("held_out", "4 days", "mains")
    assert (one_day.days, one_day.test.days) == ("paper", tuple(home.days()[4:5]))
    assert one_day.fitted == trial.fitted  # so that both share their fits


def test_the_record_of_the_training_days_holds_no_other_day(home):
    first, second, third = home.days()[:3]
    learned = only_days(home, (first, third))
    assert learned.days() == [first, second, third]
    assert np.isnan(learned.day(second).aggregate_w).all()
    np.testing.assert_array_equal(learned.day(third).aggregate_w, home.day(third).aggregate_w)


def test_what_cannot_be_split_is_refused(home):
    with pytest.raises(InputError, match="2011-04-19 is a training day and a test day"):
        own_house(REDD_HOUSE2, REDD_HOUSE2.training, REDD_HOUSE2.training[:1], ("fridge",))
    with pytest.raises(InputError, match="no test day of redd house 2"):
        own_house(REDD_HOUSE2, REDD_HOUSE2.training, (), ("fridge",))
    with pytest.raises(InputError, match="no days 'all'; known are paper and many"):
        check_days("all")
    short = dataclasses.replace(
        home, minutes=home.minutes[60:1200], aggregate_w=home.aggregate_w[60:1200], appliances_w={}
    )
    with pytest.raises(InputError, match="records 0 whole days; an evaluation needs at least 4"):
        synthetic_trial(short, "paper")


def test_the_days_of_redd_have_the_labels_of_the_recorded_results(house):
    home = house("redd", 2)
    assert protocol_trial(REDD_HOUSE2, home, "paper").days == "paper"
    many = protocol_trial(REDD_HOUSE2, home, "many")
    assert (many.test.days, many.days) == (REDD_HOUSE2.test, "held_out")
    assert attack_trial(REDD_HOUSE2, home, held_out=True) == many
    other_day = next(row for row in REDD_EVALUATION_DAYS if str(row.day) == "2011-04-30")
    assert evaluation_day_trial(other_day, home).days == "2011-04-30"
    with pytest.raises(InputError, match="has 10 training days, not 40; give at most 10"):
        longer_training(REDD_HOUSE2, home, 40)
    with pytest.raises(InputError, match="held-out days only"):
        attack_trial(REDD_HOUSE2, home, reserve_days=5)


def test_forty_days_of_ukdale_leave_out_the_days_that_the_paper_evaluates(house):
    home = house("ukdale", 1)
    trial = attack_trial(UKDALE_HOUSE1, home, 40, held_out=True)
    days = trial.training[0].days
    assert days[:10] == UKDALE_HOUSE1.training
    assert len(set(days)) == 40
    assert not {str(day) for day in days} & {"2013-03-18", "2013-01-18", "2013-03-30", "2013-07-15"}
    assert (trial.days, trial.training_label) == ("2013-01-18..2013-07-31", "40 days")
    assert attack_trial(UKDALE_HOUSE1, home, 10, True, reserve_days=40).test == trial.test


def test_another_house_is_learned_from_its_nearest_days(house):
    row = next(row for row in REDD_EVALUATION_DAYS if row.house == 1)
    trial = evaluation_day_trial(row, house("redd", 1))
    assert len(trial.training[0].days) == 10
    assert row.day not in trial.training[0].days
    assert trial.days == str(row.day)
    assert set(trial.targets) <= {"fridge", "microwave", "dishwasher"}


@pytest.mark.parametrize("trial", ALL_CROSSINGS, ids=crossing_name)
def test_a_crossing_reads_another_house_and_learns_from_no_evaluation_day(trial):
    assert trial.test.key not in {part.key for part in trial.training}
    assert len(trial.test.days) >= 7
    for part in trial.training:
        assert not set(part.days) & evaluation_days(*part.key)
        assert len(part.days) >= 8


@pytest.mark.parametrize("trial", ALL_CROSSINGS, ids=crossing_name)
def test_the_days_of_a_crossing_are_complete(trial, house):
    for part in (*trial.training, trial.test):
        if part.days != UKDALE_HOUSE1.training:
            coverage = day_coverage(house(*part.key).select(trial.targets))
            assert min(coverage[day] for day in part.days) >= 0.95, part.key


def test_crossings_from_ukdale_house_1_share_the_fits_of_its_own_trial():
    paper = UKDALE_HOUSE1
    own = own_house(paper, paper.training, paper.test, paper.targets[:1], also_learned=paper.many_day_targets)
    for trial in crossing_trials("ukdale"):
        assert (trial.learned, trial.training) == (own.learned, own.training)
    assert [crossing_name(trial) for trial in crossing_trials("redd")] == ["redd 1 and 3 to redd 2"]
    with pytest.raises(InputError, match="no crossing 'refit'; there are redd, ukdale"):
        crossing_trials("refit")


def test_of_ones_own_house_the_known_appliances_come_first_and_a_patchy_one_costs_no_days():
    home = load("synthetic", days=10)
    patchy = np.where(np.arange(len(home.minutes)) % 1440 < 600, 100.0, np.nan)
    hardly = np.where(np.arange(len(home.minutes)) % 5 == 0, 100.0, np.nan)
    others = {f"other_{n}": np.full(len(home.minutes), 90.0) for n in range(6)}
    own = {"kettle": home.appliances_w["kettle"], "hardly": hardly, **others}
    trial = own_trial(dataclasses.replace(home, appliances_w=own))
    assert trial.targets[0] == "kettle"
    assert len(trial.targets) == 6
    assert "hardly" not in trial.targets
    assert (len(trial.training[0].days), len(trial.test.days)) == (7, 3)
    with pytest.raises(InputError, match="has 0 whole days on which the meter and kettle, patchy know 80%"):
        own_trial(dataclasses.replace(home, appliances_w={"kettle": home.appliances_w["kettle"], "patchy": patchy}))
