"""Laws of attackers (storage, any input, easy cases) and the small homes that they are checked on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from meterveil.attackers.protocol import AGGREGATE, Attacker, Meter, Prediction, meter_of
from meterveil.attackers.registry import attacker as registered
from meterveil.contracts.law import Law, equal_bits, expect
from meterveil.data.household import Household
from meterveil.data.protocols import on_threshold_w
from meterveil.errors import InputError

TARGETS = ("kettle", AGGREGATE)


@dataclass(frozen=True)
class AttackerCase:
    """Attacker under test."""

    build: Callable[[], Attacker]
    able: Callable[[], Attacker] | None = None
    """Builds one with more training, where that of `build` is very short."""
    looks: bool = True
    """False for a baseline that never sees the meter."""

    @cached_property
    def fitted(self) -> Attacker:
        """Attacker fitted to an ordinary home."""
        return self.fit(home(days=3))

    def fit(self, household: Household, targets: Sequence[str] = TARGETS, seed: int = 0) -> Attacker:
        return self.build().fit([household], targets, np.random.default_rng(seed))


def minutes_of(days: int) -> pd.DatetimeIndex:
    """Return the minutes of some days in January."""
    return pd.date_range("2024-01-01", periods=days * 1440, freq="min", tz="Europe/London")


def home(days: int = 5, seed: int = 0, base_w: float = 60.0) -> Household:
    """Make a home with a kettle at breakfast (later at weekends), a microwave at noon and a fridge."""
    rng, minutes = np.random.default_rng(seed), minutes_of(days)
    power_w = {name: np.zeros(len(minutes)) for name in ("kettle", "microwave", "fridge")}
    for day in range(days):
        breakfast = 420 + 120 * (day % 7 >= 5) + int(rng.integers(-10, 11))
        noon = 720 + int(rng.integers(-15, 16))
        power_w["kettle"][day * 1440 + breakfast :][:4] = 2200.0
        power_w["kettle"][day * 1440 + 1000 :][:3] = 2200.0
        power_w["microwave"][day * 1440 + noon :][:8] = 800.0
    power_w["fridge"] = np.where((np.arange(len(minutes)) + seed) % 50 < 20, 90.0, 0.0)
    total_w = base_w + sum(power_w.values()) + rng.normal(0.0, 1.0, len(minutes))
    return Household("home", minutes, np.maximum(total_w, 0.0), power_w)


def square_waves(days: int = 4, seed: int = 0) -> Household:
    """Make a home with noise and a microwave that runs 10 minutes in about every 100."""
    rng, minutes = np.random.default_rng(seed), minutes_of(days)
    microwave_w = np.zeros(len(minutes))
    for start in np.arange(0, len(minutes), 100) + rng.integers(0, 80, days * 1440 // 100 + 1):
        microwave_w[start : start + 10] = 1000.0
    noise_w = rng.uniform(100, 200, len(minutes))
    return Household("waves", minutes, microwave_w + noise_w, {"microwave": microwave_w})


def scores(attacker: Attacker, days: Sequence[Household], target: str, head: bool = False) -> tuple[float, float]:
    """Return RMSE in watts and F1, from the power or, with `head`, from the on-probability."""
    truth_w = np.concatenate([day.appliances_w[target] for day in days])
    known = ~np.isnan(truth_w) & ~np.isnan(np.concatenate([day.aggregate_w for day in days]))
    predictions = [attacker.predict(meter_of(day)) for day in days]
    predicted_w = np.concatenate([prediction.watts[target][0] for prediction in predictions])[known]
    on = predicted_w >= on_threshold_w(target)
    if head:
        on = np.concatenate([prediction.on[target][0] for prediction in predictions])[known] >= 0.5
    truly_on = truth_w[known] >= on_threshold_w(target)
    rmse_w = float(np.sqrt(np.mean((predicted_w - truth_w[known]) ** 2)))
    return rmse_w, float(2 * np.sum(on & truly_on) / max(np.sum(on) + np.sum(truly_on), 1))


def an_ordinary_day_gives_watts_and_probabilities_and_is_not_changed(case: AttackerCase) -> None:
    meter = meter_of(home(days=1, seed=5))
    before = meter.reading_w.copy()
    check_prediction(case.fitted.predict(meter), meter)
    expect(equal_bits(meter.reading_w, before), "it changed its input: copy the readings first")


def a_restored_attacker_predicts_the_same(case: AttackerCase) -> None:
    arrays = case.fitted.arrays()
    for name, part in arrays.items():
        stored = isinstance(part, np.ndarray) and part.dtype != np.object_
        expect(stored, f"arrays()[{name!r}] is {type(part).__name__}; give arrays of numbers")
    again = case.build().restored(TARGETS, arrays)
    meter = meter_of(home(days=1, seed=5))
    agrees = near(again.predict(meter), case.fitted.predict(meter), 0.0, 0.0)
    expect(agrees, "restored from arrays(), it predicts something else")


def a_batch_gives_the_predictions_of_its_rows(case: AttackerCase) -> None:
    days = [meter_of(home(days=1, seed=seed)) for seed in (3, 4)]
    together = case.fitted.predict(Meter(*(np.concatenate(part) for part in zip(*days, strict=True))))
    for number, day in enumerate(days):
        row = Prediction(*({name: part[name][number : number + 1] for name in part} for part in together))
        agrees = near(row, case.fitted.predict(day), 1e-4, 0.01)
        expect(agrees, "a batch gives other predictions than its rows")


def gaps_a_constant_load_and_a_meter_of_seven_minutes_give_predictions(case: AttackerCase) -> None:
    day = meter_of(home(days=1))
    gappy = day.reading_w.copy()
    gappy[0, 300:400] = np.nan
    constant = [np.full_like(gappy, load_w) for load_w in (np.nan, 0.0, 500.0)]
    short = Meter(day.reading_w[:, :7], day.minute_of_day[:, :7], day.weekday[:, :7])
    for meter in (*(day._replace(reading_w=reading_w) for reading_w in (gappy, *constant)), short):
        check_prediction(case.fitted.predict(meter), meter)


def an_appliance_that_never_ran_is_predicted_off_or_is_refused(case: AttackerCase) -> None:
    """Expect almost no power, or an `InputError` that names the appliance; also of a constant meter."""
    house, never = home(days=3), np.zeros(3 * 1440)
    still = replace(house, appliances_w={**house.appliances_w, "kettle": never})
    check_silence(case, still, home(days=1, seed=5))
    for load_w in (0.0, 500.0):
        constant = replace(house, aggregate_w=never + load_w, appliances_w={"kettle": never})
        check_silence(case, constant, constant)


def the_same_seed_gives_the_same_attacker_bit_for_bit_and_another_seed_another_network(case: AttackerCase) -> None:
    """Expect all randomness from `rng`, and that a network (an attacker with a `recipe`) uses it."""
    first, second = case.fitted.arrays(), case.fit(home(days=3)).arrays()
    expect(equal_bits(first, second), "fitted twice with the same rng, it learned something else")
    if hasattr(case.build(), "recipe"):
        other = case.fit(home(days=3), seed=1).arrays()
        expect(not equal_bits(first, other), "another rng gives the same network: draw its weights from rng")


def training_without_households_targets_or_known_minutes_is_refused(case: AttackerCase) -> None:
    """Expect the errors of `attackers.protocol.check_targets`."""
    unknown = home(days=3)
    unknown.appliances_w["kettle"][:] = np.nan
    rng = np.random.default_rng(0)
    check_refused(lambda: case.build().fit([], TARGETS, rng), "no household", "at least one household")
    check_refused(lambda: case.build().fit([home(days=3)], (), rng), "no target", "one target")
    check_refused(lambda: case.fit(unknown), "a kettle of unknown power", "kettle has no known minute")
    check_refused(lambda: case.fit(home(days=3), ("sauna",)), "a sauna that is not there", "has no sauna")


def after_training_on_square_waves_it_beats_baselines_that_never_see_the_meter(case: AttackerCase) -> None:
    if not case.looks:
        return
    training, days, rng = [square_waves()], [square_waves(days=1, seed=9)], np.random.default_rng(0)
    learned = (case.able or case.build)().fit(training, ["microwave"], rng)
    rmse_w, f1 = scores(learned, days, "microwave")
    for blind in ("mean", "off"):
        blind_w, blind_f1 = scores(registered(blind).fit(training, ["microwave"], rng), days, "microwave")
        expect(rmse_w < 0.6 * blind_w, f"its RMSE is {rmse_w:.0f} W, that of {blind} {blind_w:.0f}")
        expect(f1 > blind_f1 + 0.5, f"its F1 is {f1:.2f}, that of {blind} {blind_f1:.2f}")
    if learned.predict(meter_of(days[0])).on:
        f1_head = scores(learned, days, "microwave", head=True)[1]
        expect(f1_head > 0.5, f"the F1 of its on/off head is {f1_head:.2f}; 0.5 is easy here")


def check_prediction(prediction: Prediction, meter: Meter, targets: Sequence[str] = TARGETS) -> None:
    """Check names, shapes and ranges of a prediction."""
    watts, on = sorted(prediction.watts), sorted(prediction.on)
    expect(watts == sorted(targets), f"it predicts {watts}; the targets are {sorted(targets)}")
    expect({*on} <= {*targets} - {AGGREGATE}, f"it has on-probabilities of {on}; the targets are {targets}")
    shape = meter.reading_w.shape
    for kind, part, most in (("watts", prediction.watts, np.inf), ("on-probabilities", prediction.on, 1.0)):
        for what, values in ((f"the {kind} of {target}", values) for target, values in part.items()):
            expect(values.shape == shape, f"{what} have shape {values.shape}, the readings {shape}")
            expect(np.isfinite(values).all(), f"{what} are not all finite")
            expect(np.all((values >= 0.0) & (values <= most)), f"{what} are not within 0 and {most:g}")


def check_silence(case: AttackerCase, training: Household, test: Household) -> None:
    """Expect almost no power of the kettle, or an `InputError` that names it."""
    meter = meter_of(test)
    try:
        prediction = case.fit(training).predict(meter)
    except InputError as error:
        expect("kettle" in str(error), f"its error does not name the kettle: {error}")
        return
    check_prediction(prediction, meter)
    most_w = prediction.watts["kettle"].max()
    expect(most_w < 0.1 * on_threshold_w("kettle"), f"it predicts {most_w:.0f} W for a kettle that never ran")


def check_refused(act: Callable[[], object], what: str, words: str) -> None:
    """Expect an `InputError` with these words."""
    try:
        act()
    except InputError as error:
        expect(words in str(error), f"its error on {what} does not contain {words!r}: {error}")
        return
    expect(False, f"it learned from {what}; call attackers.protocol.check_targets first")


def near(first: Prediction, second: Prediction, rtol: float, atol: float) -> bool:
    """Tell whether two predictions agree within tolerances."""
    return all(
        part.keys() == other.keys() and all(np.allclose(part[name], other[name], rtol, atol) for name in part)
        for part, other in zip(first, second, strict=True)
    )


ATTACKER_LAWS: tuple[Law[AttackerCase], ...] = (
    an_ordinary_day_gives_watts_and_probabilities_and_is_not_changed,
    a_restored_attacker_predicts_the_same,
    a_batch_gives_the_predictions_of_its_rows,
    gaps_a_constant_load_and_a_meter_of_seven_minutes_give_predictions,
    an_appliance_that_never_ran_is_predicted_off_or_is_refused,
    the_same_seed_gives_the_same_attacker_bit_for_bit_and_another_seed_another_network,
    training_without_households_targets_or_known_minutes_is_refused,
    after_training_on_square_waves_it_beats_baselines_that_never_see_the_meter,
)
