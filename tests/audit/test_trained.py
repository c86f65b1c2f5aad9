"""With sub-meters, the first days teach and the last are scored."""

import dataclasses

import numpy as np
import pytest

from meterveil.audit import trained
from meterveil.audit.audit import audit
from meterveil.audit.report import audit_page
from meterveil.audit.scoring import score
from meterveil.audit.sentences import score_rows


@pytest.mark.parametrize("name", ["Kettle (W)", "kettle_w", "kettle", "Kettle_kW"])
def test_a_column_is_known_by_the_appliance_in_its_name(name):
    assert trained.appliance_of(name) == "kettle"


def test_only_sub_meters_that_are_known_and_used_are_asked_for(home):
    never = {**home.appliances_w, "toaster": np.zeros(len(home.minutes))}
    kept = trained.metered(dataclasses.replace(home, appliances_w=never))
    assert "toaster" not in kept.appliances_w
    assert "electronics" not in kept.appliances_w
    assert "kettle" in kept.appliances_w
    assert len(kept.appliances_w) <= trained.MOST_TARGETS


def test_two_columns_of_one_appliance_are_both_kept(home):
    kettle_w, fridge_w = home.appliances_w["kettle"], home.appliances_w["fridge"]
    columns = {"kettle": kettle_w, "Kettle (W)": kettle_w + fridge_w, "kettle_2": fridge_w + 1000.0}
    kept = trained.metered(dataclasses.replace(home, appliances_w=columns)).appliances_w
    assert set(kept) == {"kettle", "kettle_2", "kettle_3"}
    for name, column in zip(("kettle", "kettle_3", "kettle_2"), columns.values(), strict=True):
        np.testing.assert_array_equal(kept[name], column)


def test_the_second_of_a_kind_is_counted_as_the_first():
    washing_w = np.zeros(600)
    washing_w[100:120] = washing_w[140:160] = 500.0
    first, second = (
        score(name, washing_w, washing_w / 500.0) for name in ("washing_machine", "washing_machine_2")
    )
    assert first == second
    assert second.uses == 1


def test_the_last_days_are_kept_apart(home):
    training, test = trained.choose_days(home)
    assert max(training) < min(test)
    assert (len(training), len(test)) == (10, 3)


def test_a_single_day_cannot_teach(home):
    assert trained.choose_days(home.day(home.days()[0])) == ((), ())


def test_what_was_learned_here_is_scored_beside_the_shipped_model(home, model):
    few = home.between(home.days()[0], home.days()[5]).select(["kettle", "fridge"])
    found = trained.train_and_score(few, model)
    assert found.scores["fhmm", "kettle"].use_f1 > 0.5
    assert {name for name, _ in found.scores} == {"fhmm", "shipped"}
    assert ["kettle", "fhmm, learned here"] in [row[:2] for row in score_rows(found)]
    assert "Learned from this home" in audit_page(audit(few, model), model, found)


def test_a_poor_day_between_good_ones_keeps_no_network_from_learning(home, model):
    few = home.between(home.days()[0], home.days()[6]).select(["kettle"])
    poor = few.minutes.normalize() == few.day(few.days()[1]).minutes[0]
    gappy = dataclasses.replace(few, aggregate_w=np.where(poor, np.nan, few.aggregate_w))
    found = trained.train_and_score(gappy, model, names=("seq2point",), workers=1, epochs=1)
    assert found.training == (few.days()[0], *few.days()[2:5])
    assert ("seq2point", "kettle") in found.scores
