from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meterveil.attackers.classical import cluster_means, floor_w, running_levels_w
from meterveil.attackers.co import CO, nearest_combination
from meterveil.attackers.protocol import AGGREGATE, meter_of
from meterveil.contracts.attackers import home
from meterveil.errors import InputError

TARGETS = ["kettle", "microwave", "fridge"]
RNG = np.random.default_rng(0)

levels = st.lists(st.integers(1, 12), max_size=3).map(lambda more: np.unique([0.0, *more]))


def fitted(targets=TARGETS, **settings):
    return CO(**settings).fit([home()], targets, np.random.default_rng(0))


@settings(max_examples=200, deadline=None)
@given(st.lists(levels, min_size=1, max_size=4), st.lists(st.integers(-8, 100), min_size=1, max_size=8))
def test_the_combination_is_that_of_a_search_over_all_of_them(levels_w, halves):
    readings_w = np.array([halves]) / 2.0
    powers = np.stack(nearest_combination(levels_w, readings_w))[:, 0]
    for reading_w, chosen in zip(readings_w[0], powers.T, strict=True):
        best = min(product(*levels_w), key=lambda combo: (abs(sum(combo) - reading_w), sum(combo)))
        assert tuple(chosen) == best


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 40), min_size=1, max_size=8), st.integers(1, 3))
def test_no_other_split_on_the_line_has_a_smaller_squared_error(values, clusters):
    values = np.sort(np.array(values, dtype=float))

    def error(means):
        return np.min((values[:, None] - np.asarray(means)) ** 2, axis=1).sum()

    cuts = product(range(len(values) + 1), repeat=clusters - 1)
    splits = ([part.mean() for part in np.split(values, sorted(cut)) if len(part)] for cut in cuts)
    assert error(cluster_means(values, clusters)) == pytest.approx(min(map(error, splits)))


def test_levels_are_the_powers_of_an_appliance_and_none_if_it_hardly_ran():
    assert list(fitted().levels_w["kettle"]) == [0.0, 2200.0]
    assert len(running_levels_w(np.array([500.0] * 19 + [0.0] * 1000), 2)) == 0


def test_a_home_of_known_appliances_is_decoded_exactly():
    day = replace(home(1, seed=3), aggregate_w=sum(home(1, seed=3).appliances_w.values()))
    prediction = fitted(floors=(0,)).predict(meter_of(day))
    for name in TARGETS:
        np.testing.assert_array_equal(prediction.watts[name][0], day.appliances_w[name])


def test_the_floor_is_chosen_where_the_home_draws_more_than_its_targets():
    household = home(base_w=400.0)
    assert CO().fit([household], TARGETS, RNG).floor_minutes > 0
    assert CO(floors=(0,)).fit([household], TARGETS, RNG).floor_minutes == 0


def test_the_aggregate_is_the_floor_plus_the_appliances():
    readings_w = np.random.default_rng(1).uniform(0, 100, (2, 50))
    assert floor_w(readings_w, 11)[1, 20] == np.sort(readings_w[1, 15:26])[1]
    meter = meter_of(home(1, seed=2))
    watts = fitted([*TARGETS, AGGREGATE], floors=(31,)).predict(meter).watts
    parts = floor_w(meter.reading_w, 31) + sum(watts[name] for name in TARGETS)
    np.testing.assert_allclose(watts[AGGREGATE], parts)


def test_more_than_twelve_appliances_have_one_running_level_each_and_more_than_twenty_are_refused():
    many = {f"microwave_{number}": np.tile([0.0, 50.0, 300.0], 960) for number in range(21)}
    household = replace(home(2), appliances_w=many)
    attacker = CO(floors=(0,)).fit([household], list(many)[:13], RNG)
    assert {len(levels) for levels in attacker.levels_w.values()} == {2}
    with pytest.raises(InputError, match="at most 20 targets"):
        CO().fit([household], list(many), RNG)
