"""The defence of a cell: by name, as trained under several seeds, or chance that moves as much."""

from __future__ import annotations

from dataclasses import dataclass

from meterveil.bench.evaluation.defences import Contender, equal_kwh, trained
from meterveil.bench.reproduce.place import Place
from meterveil.bench.reproduce.specs import Changes, Defence, EqualTo, Training
from meterveil.bench.reproduce.training import read_run
from meterveil.core.battery import Battery
from meterveil.data.run import Setup
from meterveil.defenders import defender
from meterveil.defenders.random_equal import RandomEqual


@dataclass(frozen=True)
class Entrant:
    """Say which defence stands in a row, and with which trainings."""

    label: str
    defence: Defence
    battery: Changes = ()
    runs: tuple[str, ...] = ()
    """Keys of its trainings, one for each seed."""

    @property
    def policies(self) -> int:
        """Number of policies that an adaptive attacker has to meet."""
        if isinstance(self.defence, Training):
            return len(self.runs)
        return 0 if self.defence == "none" else 1

    def contender(self, place: Place) -> Contender:
        """Load the defence, once all its trainings are finished."""
        if isinstance(self.defence, Training):
            return trained(self.label, [place.run(key) for key in self.runs])
        if isinstance(self.defence, EqualTo):
            return Contender(self.label, (RandomEqual(self.moved_kwh(place)),))
        return Contender(self.label, (defender(self.defence),))

    def moved_kwh(self, place: Place) -> float:
        """Average what the trainings moved on their own days: the test days must not choose the rival."""
        figures = [read_run(place.run(key))["figures"]["training_days_moved_kwh"] for key in self.runs]
        return equal_kwh(figures)

    def setup(self, place: Place) -> Setup:
        """Put signatures and battery together."""
        name = self.defence.signatures if isinstance(self.defence, Training) else "main"
        return Setup(place.signatures(name), Battery(**dict(self.battery)))

    def settings(self, place: Place) -> dict[str, object]:
        """Return what a card must say of it beyond what the trainings say of themselves."""
        if isinstance(self.defence, Training):
            return {"preset": self.defence.preset, "signatures": self.defence.signatures}
        if isinstance(self.defence, EqualTo):
            return {"equal_to_kwh": self.moved_kwh(place)}
        return {}
