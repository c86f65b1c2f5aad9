"""What the informed attacker knows of a defence: the load behind a level, and the same after a fit was stored."""

import numpy as np
import pytest
import torch

from meterveil.attackers import informed
from meterveil.attackers.day_network import UNet, following_channels
from meterveil.attackers.drawn_days import meter_of_days
from meterveil.attackers.fitting import adaptive, load
from meterveil.attackers.informed import Informed
from meterveil.attackers.protocol import meter_of, meters_of
from meterveil.data import synthetic
from meterveil.data.simulation import Setup, mask
from meterveil.defenders import defender
from meterveil.defenders.inversion import level_below_decoys
from meterveil.errors import InputError

SETUP = Setup(synthetic.decoy_library())


@pytest.fixture(scope="module")
def home():
    return synthetic.household(np.random.default_rng(3), days=3).select(["kettle"])


def hourly(values):
    return values[: len(values) // 60 * 60].reshape(-1, 60).mean(axis=1)


@pytest.mark.parametrize("name", ["flat", "flat_decoys"])
def test_a_flat_level_gives_the_load_of_every_hour_back(name, home):
    policy = defender(name)
    [day] = mask(policy, SETUP, home, [np.random.default_rng(0)]).households
    meter = meter_of(day)
    load_w = policy.invert(meter._replace(reading_w=meter.reading_w.round()), SETUP)[0]
    seen, inverted = (np.corrcoef(hourly(part), hourly(home.aggregate_w))[0, 1] for part in (day.aggregate_w, load_w))
    assert inverted > 0.9 > seen + 0.3


def test_a_decoy_on_a_level_is_removed_by_its_shape():
    library = SETUP.library
    level_w, length = np.linspace(300.0, 340.0, 60), int(library.lengths[0])
    meter_w = level_w.copy()
    meter_w[20 : 20 + length] = level_w[20] + library.watts[0, :length]
    found_w = level_below_decoys(meter_w.round()[None], library)[0]
    np.testing.assert_allclose(found_w, level_w, atol=1.0)


def test_a_stored_fit_is_given_the_inversion_again(home, tmp_path, monkeypatch):
    monkeypatch.setenv("METERVEIL_CACHE", str(tmp_path))
    asked = (["informed"], [home], ("kettle",), 0, defender("flat"), SETUP)
    made, stored = (adaptive(*asked, workers=1, epochs=1)["informed"].predict(meter_of(home)) for _ in range(2))
    np.testing.assert_array_equal(made.watts["kettle"], stored.watts["kettle"])
    [folder] = (tmp_path / "attackers").glob("informed-*")
    with pytest.raises(InputError, match="tell it the defence of its fit"):
        load(folder)[0].predict(meter_of(home))


def test_an_inversion_of_ones_own_takes_the_place_of_the_policys():
    def own(meter, setup):
        return np.zeros_like(meter.reading_w)

    assert Informed(inversion=own).knowing(defender("flat"), SETUP).inversion is own
    assert Informed().knowing(defender("none"), SETUP).inversion is None


def test_networks_are_used_only_where_they_read_more_than_chance_gives():
    day = np.repeat(np.arange(6), 2)
    truth = np.zeros((12, 8), dtype=bool)
    truth[day == 0, :4] = True  # an appliance that runs on one of six days
    seen, habits = np.ones_like(truth), np.tile([0.5, 0.5, -1.0, -1.0, -1.0, -1.0, 0.5, 0.5], (12, 1))
    well = np.where(truth, 3.0, -3.0)
    lucky = np.where((day == 0)[:, None], well, np.where((day == 3)[:, None], 2.0, habits))
    prior, by_chance, rare = (informed._option(0.5, logit, truth, seen, day) for logit in (habits, lucky, well))
    assert by_chance.f1 > prior.f1  # on the one day with a use
    assert rare.exceeds(prior)
    assert not by_chance.exceeds(prior)


def test_each_validation_day_is_decided_by_the_threshold_of_the_others():
    day, seen = np.arange(6), np.ones((6, 8), dtype=bool)
    truth = np.tile(np.arange(8) < 2, (6, 1))
    shown = np.where(truth, 1.0, -1.0)
    drifting = shown + 3.0 * day[:, None]  # reads each day perfectly by a threshold of its own
    steady, other = (informed._option(1.0, logit, truth, seen, day) for logit in (shown, drifting))
    np.testing.assert_array_equal(steady.f1, np.ones(6))
    assert other.f1.mean() < 0.6


def test_a_threshold_has_the_best_mean_f1_of_the_days_with_a_use():
    truth, seen = np.zeros((6, 8), dtype=bool), np.ones((6, 8), dtype=bool)
    truth[:3, :2] = True
    logit = np.where(truth, 0.5, -2.0)
    logit[0] += 2.0
    logit[3:] = 1.0  # at rest, where it seems to be in use all day: F1 of all minutes would be best above 1.0
    option = informed._option(0.5, logit, truth, seen, np.arange(6))
    assert np.log(option.threshold / (1.0 - option.threshold)) == pytest.approx(0.5)
    np.testing.assert_array_equal(option.f1, np.ones(3))


@pytest.mark.parametrize("is_known", [True, False])
def test_networks_are_not_used_for_an_appliance_that_rests_on_all_validation_days(is_known):
    truth, seen, day = np.zeros((6, 8), dtype=bool), np.full((6, 8), is_known), np.arange(6)
    habits, networks = (informed._option(0.5, np.full((6, 8), logit), truth, seen, day) for logit in (-1.0, -5.0))
    assert not networks.exceeds(habits)


@pytest.mark.parametrize(
    ("f1_gain", "loss_gain", "is_used"),
    [
        ([0.2, 0.1, 0.2], [1, 0, 0, 0, 0, 0], True),  # cross-entropy: one standard error
        ([0.2, -0.1, 0.0], [1, 0, 0, 0, 0, 0], False),  # F1: less than one
        ([0.2, 0.1, 0.2], [1, -0.7, 0, 0, 0, 0], False),  # cross-entropy: less than a half
        ([0.2, 0.1, 0.2], [0, 0, 0, 0, 0, 0], False),
        ([0.0, 0.0, 0.0], [1, 1, 0, 0, 0, 0], True),  # cross-entropy: more than one and a half
        ([0.2], [1, 1, 1, 0, 0, 0], True),
        ([], [1, 1, 1, 1, 1, 1], False),  # no use on validation days
    ],
)
def test_networks_are_used_if_cross_entropy_gains_enough_alone_or_with_f1(f1_gain, loss_gain, is_used):
    habits = informed._Option(0.0, 0.5, np.zeros(len(f1_gain)), np.array(loss_gain, dtype=float))
    networks = informed._Option(1.0, 0.5, np.array(f1_gain), np.zeros(6))
    assert networks.exceeds(habits) is is_used


def test_the_power_of_networks_is_used_only_where_it_gains_on_days_that_did_not_choose_its_share():
    day = np.repeat(np.arange(6), 2)
    wanted = np.full((12, 8), -0.1)  # habits expect a little all day
    wanted[day == 0, :4] = 0.9  # an appliance that runs on one of six days
    assert informed._share_of_power(0.5 * wanted, wanted, day) == 1.0
    assert informed._share_of_power(2.0 * wanted, wanted, day) == pytest.approx(0.5)
    lucky = np.where((day == 0)[:, None], wanted, np.where((day == 3)[:, None], 0.8, 0.0))
    assert np.sum(lucky * wanted) > 0.0  # a share of it has a smaller error on the days that choose it
    assert informed._share_of_power(lucky, wanted, day) == 0.0
    assert informed._share_of_power(np.zeros_like(wanted), wanted, day) == 0.0
    assert informed._share_of_power(wanted[:2], wanted[:2], day[:2]) == 1.0  # a single day
    one_day = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0])  # its mean is one standard error
    assert informed._is_beyond_chance(one_day, 0.99)
    assert not informed._is_beyond_chance(one_day, 1.01)


def test_an_untrained_network_expects_what_habits_tell():
    odds = torch.tensor([-9.0, 0.0, 2.0]).reshape(1, 3, 1).expand(2, 3, 96)
    state, power = UNet(channels=4, targets=3, width=8)(torch.randn(2, 4, 96), odds)
    torch.testing.assert_close(state, odds)
    torch.testing.assert_close(power, torch.sigmoid(odds))


def test_a_day_is_read_with_the_one_that_follows_it(home):
    first, second, third = (home.day(day) for day in home.days())
    meters = meters_of([first, second])
    np.testing.assert_array_equal(meters[0].after_w, meters[1].reading_w)
    assert meters[1].after_w.size == 0
    assert meters_of([first, third])[0].after_w.size == 0


def test_the_level_after_midnight_is_shown_all_day_and_unknown_after_the_last_day_of_a_stretch():
    stretch_w = np.repeat([[100.0], [400.0]], 1440, axis=1)
    meter = meter_of_days(stretch_w, np.zeros((1, 2), dtype=np.int64))
    channels = np.array(following_channels(stretch_w, meter.after_w))
    levels, known = np.split(channels, 2)
    assert np.all(levels[:, 0] == 0.4)
    assert np.all(known[:, 0] == 1.0)
    assert not known[:, 1].any()
