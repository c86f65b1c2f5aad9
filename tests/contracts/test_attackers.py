"""Every attacker of the registry, whoever wrote it, keeps the protocol's word."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from homes import home
from scores import scores
from small_networks import quickly, small

from meterveil.attackers.protocol import AGGREGATE, Meter, meter_of
from meterveil.attackers.registry import ATTACKERS, FLOORS
from meterveil.data.household import Household
from meterveil.data.protocols import on_threshold_w
from meterveil.errors import InputError

TARGETS = ("kettle", AGGREGATE)
EVERY = pytest.mark.parametrize("name", ATTACKERS)
SEEING = pytest.mark.parametrize("name", [name for name in ATTACKERS if name not in FLOORS])


@cache
def fitted(name):
    return fit(name, home(days=3))


def fit(name, household, targets=TARGETS, seed=0):
    return quickly(name).fit([household], targets, np.random.default_rng(seed))


def square_waves(days=4, seed=0):
    """A microwave that runs 10 minutes in every 100 or so, in a house that is otherwise only noise."""
    rng = np.random.default_rng(seed)
    minutes = pd.date_range("2024-01-01", periods=days * 1440, freq="min", tz="Europe/London")
    microwave_w = np.zeros(len(minutes))
    for start in np.arange(0, len(minutes), 100) + rng.integers(0, 80, days * 1440 // 100 + 1):
        microwave_w[start : start + 10] = 1000.0
    return Household(
        "waves", minutes, microwave_w + rng.uniform(100, 200, len(minutes)), {"microwave": microwave_w}
    )


def check_said(said, meter, targets=TARGETS):
    """Hold a prediction against what the protocol promises."""
    assert set(said.watts) == set(targets)
    assert set(said.on) <= set(targets) - {AGGREGATE}
    for watts in said.watts.values():
        assert watts.shape == meter.reading_w.shape
        assert np.isfinite(watts).all()
        assert (watts >= 0).all()
    for probability in said.on.values():
        assert probability.shape == meter.reading_w.shape
        assert ((probability >= 0) & (probability <= 1)).all()


def assert_same(first, second, **tolerance):
    for part, other in zip(first, second, strict=True):
        assert part.keys() == other.keys()
        for target in part:
            np.testing.assert_allclose(part[target], other[target], **tolerance)


@EVERY
def test_an_ordinary_day_is_read_in_watts_and_probabilities_and_left_as_it_was(name):
    meter = meter_of(home(days=1, seed=5))
    before = meter.reading_w.copy()
    check_said(fitted(name).predict(meter), meter)
    np.testing.assert_array_equal(meter.reading_w, before)


@EVERY
def test_what_is_stored_and_restored_predicts_the_same(name):
    arrays = fitted(name).arrays()
    assert all(isinstance(part, np.ndarray) for part in arrays.values())
    again = quickly(name).restored(TARGETS, arrays)
    meter = meter_of(home(days=1, seed=5))
    assert_same(again.predict(meter), fitted(name).predict(meter), rtol=0)


@EVERY
def test_a_batch_is_read_as_its_rows_are(name):
    days = [meter_of(home(days=1, seed=seed)) for seed in (3, 4)]
    together = fitted(name).predict(Meter(*(np.concatenate(part) for part in zip(*days, strict=True))))
    for number, day in enumerate(days):
        row = [{target: part[target][number : number + 1] for target in part} for part in together]
        assert_same(row, fitted(name).predict(day), rtol=1e-4, atol=0.01)


@EVERY
def test_gaps_and_a_meter_of_seven_minutes_are_read_throughout(name):
    day = meter_of(home(days=1))
    gappy = day.reading_w.copy()
    gappy[0, 300:400] = np.nan
    dead = np.full_like(gappy, np.nan)
    for meter in (
        day._replace(reading_w=gappy),
        day._replace(reading_w=dead),
        Meter(*(part[:, :7] for part in day)),
    ):
        check_said(fitted(name).predict(meter), meter)


@EVERY
@pytest.mark.parametrize("load_w", [0.0, 500.0])
def test_a_load_that_never_changes_is_read(name, load_w):
    day = meter_of(home(days=1))
    meter = day._replace(reading_w=np.full_like(day.reading_w, load_w))
    check_said(fitted(name).predict(meter), meter)


@EVERY
@pytest.mark.parametrize("load_w", [0.0, 500.0])
def test_a_house_in_which_nothing_ever_happened_teaches_that_or_is_refused(name, load_w):
    still = np.full(3 * 1440, load_w)
    house = replace(home(days=3), aggregate_w=still, appliances_w={"kettle": np.zeros_like(still)})
    check_silence(name, house, meter_of(house))


@EVERY
def test_an_appliance_that_never_ran_is_said_to_be_off_or_is_refused(name):
    house = home(days=3)
    still = replace(house, appliances_w=house.appliances_w | {"kettle": np.zeros(len(house.minutes))})
    check_silence(name, still, meter_of(home(days=1, seed=5)))


def check_silence(name, house, meter):
    """Expect next to nothing, or a refusal that names the appliance."""
    try:
        said = fit(name, house).predict(meter)
    except InputError as error:
        refusal = str(error)
    else:
        check_said(said, meter)
        assert said.watts["kettle"].max() < 0.1 * on_threshold_w("kettle")
        return
    assert "kettle" in refusal


@EVERY
def test_the_same_seed_gives_the_same_attacker_to_the_last_bit_and_another_another_network(name):
    first, second = fitted(name).arrays(), fit(name, home(days=3)).arrays()
    assert first.keys() == second.keys()
    assert all(np.array_equal(first[part], second[part]) for part in first)
    if hasattr(quickly(name), "recipe"):
        other = fit(name, home(days=3), seed=1).arrays()
        assert any(not np.array_equal(first[part], other[part]) for part in first)


@EVERY
def test_nothing_to_learn_from_is_refused(name):
    unknown = home(days=3)
    unknown.appliances_w["kettle"][:] = np.nan
    for households, targets, message in (
        ([], TARGETS, "at least one household"),
        ([home(days=3)], (), "one target"),
        ([unknown], TARGETS, "kettle has no known minute"),
        ([home(days=3)], ("sauna",), "has no sauna"),
    ):
        with pytest.raises(InputError, match=message):
            quickly(name).fit(households, targets, np.random.default_rng(0))


@pytest.mark.parametrize("rate", ["s", "30min"])
def test_no_attacker_ever_sees_another_rate_than_minutes(rate):
    times = pd.date_range("2024-01-01", periods=2880, freq=rate, tz="Europe/London")
    with pytest.raises(InputError, match="put the readings on a full minute grid"):
        Household("fast or slow", times, np.zeros(2880), {"kettle": np.zeros(2880)})


QUICK = {"epochs": 5, "averaging": 0.9, "windows": 270, "batch": 16, "learning_rate": 2e-3}
OTHERWISE = {
    "nilmformer": QUICK | {"epochs": 3},
    "seq2point": {"epochs": 6, "averaging": 0.9, "windows": 33},
}
"""How networks are trained within seconds; those whose steps take longer get fewer of them."""


@SEEING
def test_an_attacker_that_learned_square_waves_beats_those_that_never_look(name):
    teachers, days, rng = [square_waves()], [square_waves(days=1, seed=9)], np.random.default_rng(0)
    learned = small(name, **OTHERWISE.get(name, QUICK)).fit(teachers, ["microwave"], rng)
    rmse_w, f1 = scores(learned, days, "microwave")
    for blind in ("mean", "off"):
        blind_w, blind_f1 = scores(quickly(blind).fit(teachers, ["microwave"], rng), days, "microwave")
        assert rmse_w < 0.6 * blind_w
        assert f1 > blind_f1 + 0.5
    if learned.predict(meter_of(days[0])).on:
        assert scores(learned, days, "microwave", head=True)[1] > 0.5
