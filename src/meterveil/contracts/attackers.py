"""The laws of attackers: they can be stored, read whatever a meter shows, and learn what is easy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from meterveil.attackers.protocol import AGGREGATE, Attacker, Meter, Prediction, meter_of
from meterveil.attackers.registry import attacker
from meterveil.contracts.homes import home, scores, square_waves
from meterveil.contracts.law import Law, expect, same
from meterveil.core.arrays import FloatArray
from meterveil.data.household import Household
from meterveil.data.protocols import on_threshold_w
from meterveil.errors import InputError

TARGETS = ("kettle", AGGREGATE)


@dataclass(frozen=True)
class AttackerCase:
    """Hold what is put to the test."""

    build: Callable[[], Attacker]
    able: Callable[[], Attacker] | None = None
    """Builds one that learns as much as it can, where `build` gives one that learns in no time."""
    looks: bool = True
    """False for a predictor that never sees the meter."""

    @cached_property
    def fitted(self) -> Attacker:
        """One that learned an ordinary home."""
        return self.fit(home(days=3))

    def fit(self, household: Household, targets: Sequence[str] = TARGETS, seed: int = 0) -> Attacker:
        """Let a new one learn."""
        return self.build().fit([household], targets, np.random.default_rng(seed))


def an_ordinary_day_is_read_in_watts_and_probabilities_and_left_as_it_was(case: AttackerCase) -> None:
    """Expect every target in every minute, and nothing changed that it was given."""
    meter = meter_of(home(days=1, seed=5))
    before = meter.reading_w.copy()
    check_said(case.fitted.predict(meter), meter)
    expect(same(meter.reading_w, before), "it changed the readings that it was given")


def what_is_stored_and_restored_predicts_the_same(case: AttackerCase) -> None:
    """Expect everything learned in `arrays`."""
    arrays = case.fitted.arrays()
    for name, part in arrays.items():
        stored = isinstance(part, np.ndarray) and part.dtype != np.object_
        expect(stored, f"arrays()[{name!r}] is {type(part).__name__}; give arrays of numbers")
    again = case.build().restored(TARGETS, arrays)
    meter = meter_of(home(days=1, seed=5))
    agrees = near(again.predict(meter), case.fitted.predict(meter), 0.0, 0.0)
    expect(agrees, "restored from arrays(), it says something else")


def a_batch_is_read_as_its_rows_are(case: AttackerCase) -> None:
    """Expect that a meter is read for itself."""
    days = [meter_of(home(days=1, seed=seed)) for seed in (3, 4)]
    together = case.fitted.predict(Meter(*(np.concatenate(part) for part in zip(*days, strict=True))))
    for number, day in enumerate(days):
        row = Prediction(
            *({target: part[target][number : number + 1] for target in part} for part in together)
        )
        expect(
            near(row, case.fitted.predict(day), 1e-4, 0.01), "two days together are read otherwise than alone"
        )


def gaps_and_a_meter_of_seven_minutes_are_read_throughout(case: AttackerCase) -> None:
    """Expect an answer where readings are unknown (NaN), and where a record is short."""
    day = meter_of(home(days=1))
    gappy = day.reading_w.copy()
    gappy[0, 300:400] = np.nan
    dead = np.full_like(gappy, np.nan)
    short = Meter(day.reading_w[:, :7], day.minute_of_day[:, :7], day.weekday[:, :7])
    for meter in (day._replace(reading_w=gappy), day._replace(reading_w=dead), short):
        check_said(case.fitted.predict(meter), meter)


def a_load_that_never_changes_is_read(case: AttackerCase) -> None:
    """Expect that nothing is divided by a spread of zero."""
    day = meter_of(home(days=1))
    for load_w in (0.0, 500.0):
        meter = day._replace(reading_w=np.full_like(day.reading_w, load_w))
        check_said(case.fitted.predict(meter), meter)


def a_house_in_which_nothing_ever_happened_teaches_that_or_is_refused(case: AttackerCase) -> None:
    """Expect that a dead meter is no reason to see appliances."""
    for load_w in (0.0, 500.0):
        still = np.full(3 * 1440, load_w)
        house = replace(home(days=3), aggregate_w=still, appliances_w={"kettle": np.zeros_like(still)})
        check_silence(case, house, meter_of(house))


def an_appliance_that_never_ran_is_said_to_be_off_or_is_refused(case: AttackerCase) -> None:
    """Expect that nobody recognises what was never seen."""
    house = home(days=3)
    still = replace(house, appliances_w={**house.appliances_w, "kettle": np.zeros(len(house.minutes))})
    check_silence(case, still, meter_of(home(days=1, seed=5)))


def the_same_seed_gives_the_same_attacker_to_the_last_bit_and_another_another_network(
    case: AttackerCase,
) -> None:
    """Expect all chance from `rng`, and that a network (whatever has a `recipe`) does use it."""
    first, second = case.fitted.arrays(), case.fit(home(days=3)).arrays()
    expect(same(first, second), "fitted twice with the same rng, it learned something else")
    if hasattr(case.build(), "recipe"):
        other = case.fit(home(days=3), seed=1).arrays()
        expect(not same(first, other), "another rng gives the same network: draw its weights from rng")


def nothing_to_learn_from_is_refused(case: AttackerCase) -> None:
    """Expect the refusals of `attackers.protocol.check_targets`."""
    unknown = home(days=3)
    unknown.appliances_w["kettle"][:] = np.nan
    rng = np.random.default_rng(0)
    check_refused(lambda: case.build().fit([], TARGETS, rng), "no household", "at least one household")
    check_refused(lambda: case.build().fit([home(days=3)], (), rng), "no target", "one target")
    check_refused(lambda: case.fit(unknown), "a kettle of unknown power", "kettle has no known minute")
    check_refused(lambda: case.fit(home(days=3), ("sauna",)), "a sauna that is not there", "has no sauna")


def what_learned_square_waves_beats_those_that_never_look(case: AttackerCase) -> None:
    """Expect more than the mean and the always-off predictor give: else it has learned nothing."""
    if not case.looks:
        return
    teachers, days, rng = [square_waves()], [square_waves(days=1, seed=9)], np.random.default_rng(0)
    learned = (case.able or case.build)().fit(teachers, ["microwave"], rng)
    rmse_w, f1 = scores(learned, days, "microwave")
    for blind in ("mean", "off"):
        blind_w, blind_f1 = scores(attacker(blind).fit(teachers, ["microwave"], rng), days, "microwave")
        expect(
            rmse_w < 0.6 * blind_w,
            f"its RMSE is {rmse_w:.0f} W; {blind}, which never looks, has {blind_w:.0f}",
        )
        expect(f1 > blind_f1 + 0.5, f"its F1 is {f1:.2f}; {blind}, which never looks, has {blind_f1:.2f}")
    if learned.predict(meter_of(days[0])).on:
        f1_head = scores(learned, days, "microwave", head=True)[1]
        expect(f1_head > 0.5, f"the F1 of its on/off head is {f1_head:.2f}; 0.5 is easy here")


def check_said(said: Prediction, meter: Meter, targets: Sequence[str] = TARGETS) -> None:
    """Hold a prediction against what the protocol promises."""
    expect(set(said.watts) == set(targets), f"it read {sorted(said.watts)}; asked were {sorted(targets)}")
    heads = set(targets) - {AGGREGATE}
    expect(set(said.on) <= heads, f"it says whether {sorted(said.on)} run; asked were {sorted(heads)}")
    for target, watts in said.watts.items():
        _check_range(f"watts of {target}", watts, meter, np.inf)
    for target, probability in said.on.items():
        _check_range(f"on-probabilities of {target}", probability, meter, 1.0)


def check_silence(case: AttackerCase, house: Household, meter: Meter) -> None:
    """Expect next to nothing, or a refusal that names the appliance."""
    try:
        said = case.fit(house).predict(meter)
    except InputError as error:
        expect("kettle" in str(error), f"the refusal does not name the kettle: {error}")
        return
    check_said(said, meter)
    most_w = said.watts["kettle"].max()
    expect(most_w < 0.1 * on_threshold_w("kettle"), f"it read {most_w:.0f} W of a kettle that never ran")


def check_refused(act: Callable[[], object], what: str, words: str) -> None:
    """Expect an `InputError` that says these words."""
    try:
        act()
    except InputError as error:
        expect(words in str(error), f"the refusal of {what} does not say {words!r}: {error}")
        return
    expect(False, f"it learned from {what}; call attackers.protocol.check_targets first")


def near(first: Prediction, second: Prediction, rtol: float, atol: float) -> bool:
    """Tell whether two predictions agree."""
    return _near(first.watts, second.watts, rtol, atol) and _near(first.on, second.on, rtol, atol)


def _near(
    first: Mapping[str, FloatArray], second: Mapping[str, FloatArray], rtol: float, atol: float
) -> bool:
    return first.keys() == second.keys() and all(
        np.allclose(first[target], second[target], rtol, atol) for target in first
    )


def _check_range(what: str, values: FloatArray, meter: Meter, most: float) -> None:
    expect(
        values.shape == meter.reading_w.shape,
        f"the {what} are {values.shape}, readings {meter.reading_w.shape}",
    )
    expect(np.isfinite(values).all(), f"the {what} are not all finite")
    expect(np.all((values >= 0.0) & (values <= most)), f"the {what} are not within 0 and {most:g}")


ATTACKER_LAWS: tuple[Law[AttackerCase], ...] = (
    an_ordinary_day_is_read_in_watts_and_probabilities_and_left_as_it_was,
    what_is_stored_and_restored_predicts_the_same,
    a_batch_is_read_as_its_rows_are,
    gaps_and_a_meter_of_seven_minutes_are_read_throughout,
    a_load_that_never_changes_is_read,
    a_house_in_which_nothing_ever_happened_teaches_that_or_is_refused,
    an_appliance_that_never_ran_is_said_to_be_off_or_is_refused,
    the_same_seed_gives_the_same_attacker_to_the_last_bit_and_another_another_network,
    nothing_to_learn_from_is_refused,
    what_learned_square_waves_beats_those_that_never_look,
)
