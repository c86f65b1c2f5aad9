"""The defence of a cell: by name, as trained under several seeds, or chance that moves as much."""

from __future__ import annotations

from dataclasses import dataclass, replace

from meterveil.bench.reproduce.place import Place
from meterveil.bench.reproduce.specs import Changes, Defence, EqualTo, RationOf, Training
from meterveil.bench.reproduce.training import read_run
from meterveil.core.battery import Battery
from meterveil.data.simulation import Setup
from meterveil.defenders import defender
from meterveil.defenders.defence import Defence as DefenceUnderTest
from meterveil.defenders.defence import equal_kwh, trained_defence
from meterveil.defenders.random_equal import RandomEqual
from meterveil.defenders.rationed import Rationed
from meterveil.fingerprint import code_hash


@dataclass(frozen=True)
class Entrant:
    """Say which defence stands in a row, and with which trainings."""

    label: str
    defence: Defence
    battery: Changes = ()
    runs: tuple[str, ...] = ()
    """Keys of its trainings, one for each seed."""

    @property
    def training(self) -> Training | None:
        """How its policies were trained; None where it learned nothing."""
        if isinstance(self.defence, RationOf):
            return self.defence.training
        return self.defence if isinstance(self.defence, Training) else None

    @property
    def policies(self) -> int:
        """Number of policies that an adaptive attacker has to meet."""
        if self.training:
            return len(self.runs)
        return 0 if self.defence == "none" else 1

    @property
    def code(self) -> tuple[str, ...]:
        """Hash the code that stands between a training and what it does."""
        return (code_hash("meterveil.defenders.rationed"),) if isinstance(self.defence, RationOf) else ()

    def origin(self, policy: int) -> object:
        """Say what can change one of its policies."""
        if isinstance(self.defence, Training):
            return self.runs[policy]
        return (self.runs[policy], *self.code) if self.training else (self.defence, self.runs)

    def contender(self, place: Place) -> DefenceUnderTest:
        """Load the defence, once all its trainings are finished."""
        if isinstance(self.defence, str):
            return DefenceUnderTest(self.label, (defender(self.defence),))
        if isinstance(self.defence, EqualTo):
            return DefenceUnderTest(self.label, (RandomEqual(self.moved_kwh(place)),))
        found = trained_defence(self.label, [place.run(key) for key in self.runs])
        if isinstance(self.defence, RationOf):
            return replace(found, policies=tuple(map(Rationed, found.policies)))
        return found

    def moved_kwh(self, place: Place) -> float:
        """Average what the trainings moved on their own days: the test days must not choose the rival."""
        figures = [read_run(place.run(key))["figures"]["training_days_moved_kwh"] for key in self.runs]
        return equal_kwh(figures)

    def setup(self, place: Place) -> Setup:
        """Put signatures and battery together."""
        name = self.training.signatures if self.training else "main"
        return Setup(place.signatures(name), Battery(**dict(self.battery)))

    def settings(self, place: Place) -> dict[str, object]:
        """Return what a card must say of it beyond what the trainings say of themselves."""
        if self.training:
            return {"preset": self.training.preset, "signatures": self.training.signatures}
        if isinstance(self.defence, EqualTo):
            return {"equal_to_kwh": self.moved_kwh(place)}
        return {}
