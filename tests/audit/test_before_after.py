"""Uses that the shipped model finds before and after."""

import numpy as np

from meterveil.audit.before_after import Found, compare, found_rows
from meterveil.audit.model import SHAPES


def test_an_unchanged_meter_shows_every_use_again_and_a_flat_one_shows_none(model, home):
    load_w = home.aggregate_w[: 3 * 1440]
    same, flat = compare(model, load_w, load_w), compare(model, load_w, np.full(len(load_w), load_w.mean()))
    assert list(same) == list(SHAPES)
    assert same["kettle"].before > 3
    for name, found in same.items():
        assert found.before == found.after == found.still
        assert flat[name] == Found(found.before, 0, 0)


def test_a_use_at_another_time_does_not_count_as_found_again(model, home):
    load_w = home.aggregate_w[: 3 * 1440]
    kettle = compare(model, load_w, np.roll(load_w, 200))["kettle"]
    assert kettle.after > 3
    assert kettle.still < kettle.before / 2


def test_rows_are_uses_a_day_of_the_appliances_that_were_found(model):
    found = {"kettle": Found(8, 2, 1), "microwave": Found(0, 3, 0), "fridge": Found(0, 0, 0)}
    rows = found_rows(found, np.zeros(2 * 1440))
    assert rows[1:] == [["kettle", "4.0", "1.0", "1 of 8"], ["microwave", "0.0", "1.5", ""]]
