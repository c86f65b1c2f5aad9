"""The laws bite: whoever breaks one is told which, in plain words."""

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


class Hidden(Flat):
    """Remembers outside of its memory."""

    asked = 0

    def decide(self, view, memory):
        self.__dict__["asked"] = self.asked + 1
        return add_power(view.library, np.full(len(view.load_w), 5.0 * self.asked)), memory


class Dicing(Flat):
    """Throws dice of its own."""

    def decide(self, view, memory):
        return add_power(view.library, np.random.default_rng().normal(0.0, 500.0, len(view.load_w))), memory


class Crowd(Flat):
    """Looks at its neighbours."""

    def decide(self, view, memory):
        return hold_meter(view.library, np.full(len(view.load_w), np.nanmean(view.load_w))), memory


class Stuck(Flat):
    """Never forgets an unknown load."""

    def initial(self, batch):
        return np.zeros(batch)

    def decide(self, view, memory):
        memory = memory + view.load_w
        return add_power(view.library, np.nan_to_num(0.0 * memory + 100.0)), memory


class Scribbling(Flat):
    """Writes into the memory that it was given."""

    def initial(self, batch):
        return np.zeros(batch)

    def decide(self, view, memory):
        memory += 1.0
        return add_power(view.library, memory.copy()), memory


class Smearing(Flat):
    """Writes into what it was shown."""

    def decide(self, view, memory):
        view.load_w[:] = np.nan_to_num(view.load_w)
        return super().decide(view, memory)


@pytest.mark.parametrize(
    ("defence", "words"),
    [
        (NoDefence, "it moves energy unless it is meant to rest: it moved 0.00 kWh"),
        (Hidden, "keep all in `memory`"),
        (Dicing, "take chance from view.chance alone"),
        (Crowd, "fewer neighbours change what a household does"),
        (Stuck, "it never moved again"),
        (Scribbling, "it changed the memory that it was given"),
        (Smearing, "it changed what it was shown"),
    ],
)
def test_a_defence_that_breaks_a_law_is_told_which(defence, words):
    with pytest.raises(BrokenLawError, match="laws are broken") as broken:
        check_defence(defence)
    assert words in str(broken.value)


@dataclass(frozen=True)
class Negative(CO):
    """Says less than nothing."""

    def predict(self, meter):
        said = super().predict(meter)
        return Prediction({name: watts - 1.0 for name, watts in said.watts.items()}, said.on)


@dataclass(frozen=True)
class Forgetful(CO):
    """Keeps something back that it learned."""

    def restored(self, targets, arrays):
        return replace(super().restored(targets, arrays), floor_minutes=1)


@dataclass(frozen=True)
class Random(CO):
    """Learns by dice of its own."""

    def arrays(self):
        return {**super().arrays(), "dice": np.random.default_rng().random(2)}


@dataclass(frozen=True)
class Credulous(CO):
    """Learns from nothing."""

    def fit(self, households, targets, rng):
        return super().fit(households, targets, rng) if households and targets else self


@pytest.mark.parametrize(
    ("attacker", "words"),
    [
        (Negative, "the watts of kettle are not within 0 and inf"),
        (Forgetful, "restored from arrays(), it says something else"),
        (Random, "fitted twice with the same rng, it learned something else"),
        (Credulous, "it learned from no household; call attackers.protocol.check_targets first"),
        (Mean, "which never looks, has"),
    ],
)
def test_an_attacker_that_breaks_a_law_is_told_which(attacker, words):
    with pytest.raises(BrokenLawError, match="laws are broken") as broken:
        check_attacker(attacker)
    assert words in str(broken.value)
