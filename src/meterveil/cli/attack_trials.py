"""The part of `meterveil attack` that finds the houses and chooses the days."""

# ruff: noqa: PLC0415  heavy imports wait for the verb

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from meterveil.errors import InputError

if TYPE_CHECKING:
    from meterveil.bench.strength import Houses, Trial
    from meterveil.data.household import Aggregate, Household
    from meterveil.data.protocols import Dataset


class DaysAsked(NamedTuple):
    """Say which days are asked for."""

    training: int
    held_out: bool = False
    reserved: int = 0
    """Read no day that so many training days would take."""


def crossing_trials(name: str, seed: int) -> list[Trial]:
    """Learn from other houses than the one that is read."""
    from meterveil.bench.crossing import crossings

    return [crossing.trial(seed) for crossing in crossings(name)]


def own_house_trial(folder: Path, name: str, asked: DaysAsked, aggregate: Aggregate, seed: int) -> Trial:
    """Learn a house from some of its days and read others."""
    from meterveil.bench.strength import longer_training, own_house
    from meterveil.data.protocols import protocol

    training_days, held_out, reserve_days = asked
    chosen = replace(protocol(name), aggregate=aggregate)
    household = _load(folder, (chosen.dataset, chosen.house), chosen.many_day_targets, aggregate)
    training = longer_training(chosen, household, training_days)
    if reserve_days and not held_out:
        raise InputError("--reserve-days is for --held-out alone; add it or leave this out")
    if not held_out:
        day = chosen.test[0]
        present = chosen.present_targets(household, day)
        return own_house(chosen, training, (day,), present, seed)
    kept = tuple(target for target in chosen.many_day_targets if target in household.appliances_w)
    taken = longer_training(chosen, household, max(training_days, reserve_days))
    test = tuple(day for day in chosen.held_out(household, min_days=1) if day not in taken)
    return own_house(chosen, training, test, kept, seed)


def load_houses(folder: Path, trial: Trial) -> Houses:
    """Load every house that teaches or is read."""
    keys = dict.fromkeys(part.key for part in (*trial.training, trial.test))
    aggregate, summed = trial.settings["aggregate"], trial.settings.get("summed", ())
    return {key: _load(folder, key, summed, aggregate) for key in keys}


def _load(folder: Path, key: tuple[Dataset, int], summed: Sequence[str], aggregate: Aggregate) -> Household:
    from meterveil.data.load import load

    dataset, house = key
    if aggregate == "mains":
        return load(folder / dataset, house)
    return load(folder / dataset, house, appliances=summed, aggregate=aggregate)
