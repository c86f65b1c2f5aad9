import numpy as np
import pytest

from meterveil.bench.estimates import information_bits


def mixture(seed, share_on, step_w, minutes=12_000):
    """Return (truth, reading) of an appliance of `step_w` in a Gaussian background of 100 W."""
    rng = np.random.default_rng(seed)
    on = rng.random(minutes) < share_on
    return on * 1000.0, rng.normal(400.0 + step_w * on, 100.0)


def integrated_bits(share_on, step_w):
    """Mutual information of the same mixture, by integration."""
    grid = np.linspace(-2000.0, 4000.0, 200_001)
    densities = [
        weight * np.exp(-(((grid - mean) / 100.0) ** 2) / 2) / (100.0 * np.sqrt(2 * np.pi))
        for weight, mean in ((1 - share_on, 0.0), (share_on, step_w))
    ]
    whole = np.sum(densities, axis=0)
    bits = [
        np.trapezoid(
            np.where(d > 0, d * np.log2(np.where(d > 0, d, 1) / np.maximum(weight * whole, 1e-300)), 0), grid
        )
        for d, weight in zip(densities, (1 - share_on, share_on), strict=True)
    ]
    return float(np.sum(bits))


def estimate(truth_w, reading_w, seed=0):
    return information_bits(truth_w, reading_w, 500.0, np.random.default_rng(seed))


@pytest.mark.parametrize(("share_on", "step_w"), [(0.5, 100.0), (0.3, 200.0), (0.05, 300.0), (0.02, 1000.0)])
def test_the_estimate_is_that_of_the_integral(share_on, step_w):
    bits = [estimate(*mixture(seed, share_on, step_w, minutes=40_000)) for seed in range(4)]
    assert np.mean(bits) == pytest.approx(integrated_bits(share_on, step_w), abs=0.008)


def test_a_meter_that_does_not_show_the_appliance_tells_nothing():
    bits = [estimate(*mixture(seed, 0.3, 0.0)) for seed in range(4)]
    assert abs(np.mean(bits)) < 0.006
    truth, reading = mixture(1, 0.3, 300.0)
    assert abs(estimate(truth, np.full_like(reading, 400.0))) < 0.012


def test_a_meter_that_shows_the_appliance_alone_tells_the_whole_entropy():
    truth, _ = mixture(1, 0.3, 0.0)
    assert estimate(truth, truth) == pytest.approx(0.8813, abs=0.01)


@pytest.mark.parametrize("used_minutes", [0, 1])
def test_an_appliance_that_is_hardly_used_has_nothing_to_tell(used_minutes):
    truth = np.zeros(100)
    truth[:used_minutes] = 1000.0
    assert estimate(truth, np.arange(100.0)) == 0


def test_neither_unit_nor_offset_nor_the_state_that_is_called_on_matters():
    truth, reading = mixture(2, 0.2, 250.0)
    bits = estimate(truth, reading)
    assert estimate(truth, 1000.0 - 4.0 * reading) == pytest.approx(bits, abs=2e-3)
    assert estimate(1000.0 - truth, reading) == pytest.approx(bits, abs=1e-12)
    assert estimate(truth, np.exp(reading / 200.0)) == pytest.approx(bits, abs=0.02)


def test_coarse_readings_tell_as_much_as_their_bins_do():
    truth, reading = mixture(3, 0.3, 300.0)
    rounded = 200.0 * np.round(reading / 200.0)
    counts = np.array([[np.sum((truth > 0) == on) for on in (0, 1)]])
    joint = np.array(
        [[np.sum((rounded == level) & ((truth > 0) == on)) for on in (0, 1)] for level in np.unique(rounded)]
    )
    expected = joint * len(truth) / (joint.sum(axis=1, keepdims=True) * counts)
    exact = np.sum(joint / len(truth) * np.log2(np.where(joint > 0, expected, 1)))
    assert estimate(truth, rounded) == pytest.approx(exact, abs=0.03)


def test_unknown_minutes_are_left_out():
    truth, reading = mixture(7, 0.3, 300.0)
    truth[:3000], reading[-3000:] = np.nan, np.nan
    kept = slice(3000, -3000)
    assert estimate(truth, reading) == pytest.approx(estimate(truth[kept], reading[kept]), abs=2e-3)


def test_the_same_generator_gives_the_same_bits():
    truth, reading = mixture(8, 0.3, 300.0)
    coarse = np.round(reading, -2)
    assert estimate(truth, coarse, seed=3) == estimate(truth, coarse, seed=3)
    assert estimate(truth, coarse, seed=3) != estimate(truth, coarse, seed=4)
