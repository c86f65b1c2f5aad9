"""Steps that fit attackers: to the bare days of a house, or to what a defence made of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from meterveil.attackers.fitting import CARD, Job
from meterveil.attackers.threat import adaptive, fixed
from meterveil.bench.reproduce.entrant import Entrant
from meterveil.bench.reproduce.place import Place, digest, versions
from meterveil.bench.strength import Trial
from meterveil.data import outputs
from meterveil.data.household import Household
from meterveil.fingerprint import code_hash

SECONDS: dict[str, float] = {
    "fhmm": 40.0,
    "dae": 60.0,
    "seq2point": 90.0,
    "electricity": 150.0,
    "bert4nilm": 150.0,
}
"""Attacker -> roughly what a fit takes; the others take seconds."""

_ADAPTIVE_TAKES = 3.0
"""Times as long, for copies of the training days."""


@dataclass(frozen=True)
class Attack:
    """Fit an attacker to bare days; the fit is kept where `meterveil attack` finds it too."""

    trial: Trial
    name: str
    folder: Path

    @classmethod
    def of(cls, trial: Trial, name: str, place: Place) -> Attack:
        """Find out where the fit belongs."""
        job = Job(name, trial.fitted, _taught(trial, place), trial.seed)
        return cls(trial, name, job.folder)

    @property
    def seconds(self) -> float:
        """Roughly what a fit takes."""
        return SECONDS.get(self.name, 3.0)

    def is_finished(self, place: Place, key: str) -> bool:
        """Look for the fit, which appears whole."""
        return (self.folder / CARD).exists()

    def run(self, place: Place, key: str) -> None:
        """Fit it."""
        fixed([self.name], _taught(self.trial, place), self.trial.fitted, self.trial.seed, workers=1)


@dataclass(frozen=True)
class Adapt:
    """Fit an attacker to one policy of a defence (D11)."""

    trial: Trial
    entrant: Entrant
    policy: int
    name: str
    copies: int

    @property
    def seconds(self) -> float:
        """Roughly what a fit takes."""
        return _ADAPTIVE_TAKES * SECONDS.get(self.name, 3.0)

    def key(self, place: Place, bare: str) -> str:
        """Hash all that can change the fit: that on bare days, the policy, and what the battery can do."""
        one, signatures = self.entrant, self.entrant.setup(place).library.digest()
        policy = one.origin(self.policy)
        code = code_hash("meterveil.attackers.threat", "meterveil.defenders")
        return digest("adapt", bare, repr(policy), one.battery, signatures, self.copies, code, versions())

    def is_finished(self, place: Place, key: str) -> bool:
        """Look for the note; were the fit itself gone, the cell would make it again."""
        return place.fit(key).exists()

    def was_fitted(self, place: Place, key: str) -> bool:
        """Tell whether the fit was made by this task, and not found in the cache."""
        return bool(json.loads(place.fit(key).read_text(encoding="utf-8")).get("was_fitted"))

    def run(self, place: Place, key: str) -> None:
        """Fit it by the very call that the cell will make."""
        policy, setup = self.entrant.contender(place).policies[self.policy], self.entrant.setup(place)
        homes, targets = _taught(self.trial, place), self.trial.fitted
        made: list[Job] = []
        seed = self.trial.seed
        adaptive(
            [self.name], homes, targets, seed, policy, setup, self.copies, workers=1, on_done=made.append
        )
        note = {
            "format": "meterveil-adapted-1",
            "attacker": self.name,
            "defence": self.entrant.label,
            "was_fitted": bool(made),
        }
        outputs.write_text(place.fit(key), json.dumps(note) + "\n")


def _taught(trial: Trial, place: Place) -> tuple[Household, ...]:
    return trial.taught({part.key: place.household(*part.key) for part in trial.training})
