"""An attacker or a defence that breaks a law is told which."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from meterveil.attackers.baselines import Mean
from meterveil.attackers.co import CO
from meterveil.attackers.protocol import Prediction
from meterveil.contracts import BrokenLawError, check_attacker, check_defence
from meterveil.core.executor import add_power, hold_meter
from meterveil.defenders.flat import Flat
from meterveil.defenders.none import NoDefence


class HiddenMemory(Flat):
    calls = 0

    def decide(self, view, memory):
        self.__dict__["calls"] = self.calls + 1
        return add_power(view.library, np.full(len(view.load_w), 5.0 * self.calls)), memory


class OwnRandomness(Flat):
    def decide(self, view, memory):
        return add_power(view.library, np.random.default_rng().normal(0.0, 500.0, len(view.load_w))), memory


class MeanOfTheBatch(Flat):
    def decide(self, view, memory):
        return hold_meter(view.library, np.full(len(view.load_w), np.nanmean(view.load_w))), memory


class SpoiledByGaps(Flat):
    def initial(self, batch):
        return np.zeros(batch)

    def decide(self, view, memory):
        memory = memory + view.load_w
        return add_power(view.library, np.nan_to_num(0.0 * memory + 100.0)), memory


class ChangesItsMemory(Flat):
    def initial(self, batch):
        return np.zeros(batch)

    def decide(self, view, memory):
        memory += 1.0
        return add_power(view.library, memory.copy()), memory


class ChangesTheView(Flat):
    def decide(self, view, memory):
        view.load_w[:] = np.nan_to_num(view.load_w)
        return super().decide(view, memory)


@dataclass(frozen=True)
class Negative(CO):
    def predict(self, meter):
        prediction = super().predict(meter)
        return Prediction({name: watts - 1.0 for name, watts in prediction.watts.items()}, prediction.on)


@dataclass(frozen=True)
class Forgetful(CO):
    def restored(self, targets, arrays):
        return replace(super().restored(targets, arrays), floor_minutes=1)


@dataclass(frozen=True)
class Random(CO):
    def arrays(self):
        return {**super().arrays(), "dice": np.random.default_rng().random(2)}


@dataclass(frozen=True)
class Credulous(CO):
    def fit(self, households, targets, rng):
        return super().fit(households, targets, rng) if households and targets else self


@pytest.mark.parametrize(
    ("check", "build", "words"),
    [
        (check_defence, NoDefence, "it moves energy unless"),
        (check_defence, HiddenMemory, "keep all state in `memory`"),
        (check_defence, OwnRandomness, "view.chance alone"),
        (check_defence, MeanOfTheBatch, "other households in the batch"),
        (check_defence, SpoiledByGaps, "it never moved again"),
        (check_defence, ChangesItsMemory, "changed the memory"),
        (check_defence, ChangesTheView, "changed the view"),
        (check_attacker, Negative, "watts of kettle are not within 0 and inf"),
        (check_attacker, Forgetful, "a restored attacker predicts the same"),
        (check_attacker, Random, "fitted twice with the same rng"),
        (check_attacker, Credulous, "it learned from no household"),
        (check_attacker, Mean, "it beats baselines"),
    ],
)
def test_a_broken_law_is_named(check, build, words):
    with pytest.raises(BrokenLawError, match="laws are broken") as broken:
        check(build)
    assert words in str(broken.value)
