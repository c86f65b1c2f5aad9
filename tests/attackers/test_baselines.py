import numpy as np
import pytest

from meterveil.attackers.baselines import Mean, Prior
from meterveil.attackers.classical import best_threshold, f1, recentred
from meterveil.attackers.protocol import meter_of
from meterveil.contracts.attackers import home

TARGETS = ["kettle", "microwave", "fridge"]
RNG = np.random.default_rng(0)


def test_the_mean_is_that_of_the_known_training_minutes():
    household = home()
    household.appliances_w["kettle"][:100] = np.nan
    prediction = Mean().fit([household], ["kettle"], RNG).predict(meter_of(home(1)))
    np.testing.assert_allclose(prediction.watts["kettle"], np.nanmean(household.appliances_w["kettle"]))


def test_the_prior_never_uses_the_readings():
    prior, meter = Prior().fit([home(10)], TARGETS, RNG), meter_of(home(1))
    blind = prior.predict(meter._replace(reading_w=np.full_like(meter.reading_w, np.nan)))
    for name, power_w in prior.predict(meter).watts.items():
        np.testing.assert_array_equal(blind.watts[name], power_w)
        np.testing.assert_array_equal(blind.on[name], prior.predict(meter).on[name])


def test_the_prior_knows_the_hour_and_the_weekend():
    prior, next_week = Prior().fit([home(21)], TARGETS, RNG), home(7)
    prediction = prior.predict(meter_of(next_week))
    monday_w, *_, sunday_w = prediction.watts["kettle"][0].reshape(7, 1440)
    assert monday_w[422] > 5 * sunday_w[422]
    assert sunday_w[542] > 5 * monday_w[542]
    on = prediction.on["kettle"][0].reshape(7, 1440) >= 0.5
    assert on[:, 1000:1003].all()
    assert not on[:, :300].any()


def test_the_prior_of_an_appliance_without_routine_is_its_mean():
    household = home(10)
    household.appliances_w["fridge"][:] = np.random.default_rng(5).choice([0.0, 90.0], len(household.minutes))
    prediction = Prior().fit([household], ["fridge"], RNG).predict(meter_of(home(1)))
    np.testing.assert_allclose(prediction.watts["fridge"], 45.0, atol=4.0)
    assert np.mean(prediction.on["fridge"] >= 0.5) > 0.95


def test_the_threshold_has_the_best_f1_of_all_cuts():
    rng = np.random.default_rng(2)
    for _ in range(50):
        probability = rng.integers(0, 8, 30) / 10.0
        truth = rng.random(30) < probability + 0.1
        threshold, score = best_threshold(probability, truth)
        assert score == pytest.approx(f1(truth, probability >= threshold))
        assert score == pytest.approx(max([0.0, *(f1(truth, probability >= cut) for cut in probability)]))


@pytest.mark.parametrize("threshold", [0.0, 0.07, 0.5, 0.93, 1.0])
def test_recentring_keeps_the_order_and_moves_the_threshold_to_one_half(threshold):
    probability = np.sort(np.append(np.linspace(0.0, 1.0, 101), threshold))
    moved = recentred(probability, threshold)
    assert np.all(np.diff(moved) >= 0.0)
    np.testing.assert_array_equal(moved >= 0.5, probability >= min(max(threshold, 1e-9), 1 - 1e-9))


def test_days_on_which_the_clocks_change_are_learned_too():
    training = home(14)
    shifted = type(training)(
        "spring", training.minutes + np.timedelta64(78, "D"), training.aggregate_w, training.appliances_w
    )
    profile = Prior().fit([shifted], ["kettle"], RNG).profiles["kettle"]
    assert profile.mean_w.shape == (2, 1440)
    assert np.isfinite(profile.mean_w).all()
