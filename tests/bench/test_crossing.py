"""Learned from some houses, attackers read another."""

import pytest
from meterveil.bench.crossing import COMPLETE, CROSSINGS, crossings
from meterveil.bench.strength import evaluation_days, measure, own_house

from meterveil.data.load import load
from meterveil.data.protocols import UKDALE_HOUSE1
from meterveil.data.splits import day_coverage
from meterveil.errors import InputError

ALL = [crossing for several in CROSSINGS.values() for crossing in several]


@pytest.fixture(scope="module")
def house(real_data):
    records = {}

    def read(part):
        if part.key not in records:
            records[part.key] = load(real_data / part.dataset, part.house)
        return records[part.key]

    return read


@pytest.mark.parametrize("crossing", ALL, ids=lambda crossing: crossing.name)
def test_no_house_is_read_that_taught_and_no_evaluation_day_teaches(crossing):
    assert crossing.test.key not in {part.key for part in crossing.training}
    for part in crossing.training:
        assert not set(part.days) & evaluation_days(*part.key)
        assert len(part.days) >= 8
    assert len(crossing.test.days) >= 7


@pytest.mark.parametrize("crossing", ALL, ids=lambda crossing: crossing.name)
def test_the_days_of_a_crossing_are_complete(crossing, house):
    for part in (*crossing.training, crossing.test):
        if part.days == UKDALE_HOUSE1.training:
            continue
        coverage = day_coverage(house(part).select(crossing.targets))
        assert min(coverage[day] for day in part.days) >= COMPLETE, part.key


def test_an_attacker_reads_a_house_that_it_never_saw(house):
    crossing = crossings("ukdale")[0]
    houses = {part.key: house(part) for part in (*crossing.training, crossing.test)}
    made = measure(crossing.trial(), houses, ["co", "off"], workers=1)
    found = {(card.row, card.column): card for card in made}
    kettle = found["co kettle", "f1"]
    assert kettle.measured > 0.5 > found["off kettle", "f1"].measured
    assert (kettle.table, kettle.dataset, kettle.n_days) == ("crossing_ukdale_1_to_2", "ukdale", 14)
    assert kettle.settings["training"][0]["house"] == "ukdale 1"
    assert kettle.reported is None


def test_the_crossings_of_ukdale_house_1_learn_what_its_own_trial_learns():
    paper = UKDALE_HOUSE1
    own = own_house(paper, paper.training, paper.test, paper.targets[:1], also_learned=paper.many_day_targets)
    for crossing in crossings("ukdale"):
        trial = crossing.trial()
        assert trial.learned == own.learned
        assert trial.training == own.training


def test_an_unknown_crossing_is_refused_with_the_known_ones():
    with pytest.raises(InputError, match="no crossing 'refit'; there are redd, ukdale"):
        crossings("refit")
