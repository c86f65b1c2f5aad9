"""Measures a defence: what attackers read behind it, fixed and adaptive (D11), and what the battery does.

Attackers are fitted once on the bare days, by the same call as in `meterveil attack`, whatever defends;
only an adaptive attacker is fitted anew, for each policy that it attacks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from meterveil.attackers.fitting import Job
from meterveil.attackers.protocol import AGGREGATE, Attacker
from meterveil.attackers.registry import FLOORS, check_known
from meterveil.attackers.threat import COPIES, adaptive, fixed
from meterveil.bench.cards import ThreatModel
from meterveil.bench.evaluation.play import Played, play
from meterveil.bench.evaluation.readers import DEFAULT_ATTACKERS, EVERY_ATTACKER
from meterveil.bench.evaluation.scores import BEST_F1, Case, best_f1, cases_of
from meterveil.bench.information import appliance_information
from meterveil.bench.metrics import FloatArray
from meterveil.bench.scoring import Scores, score
from meterveil.bench.strength import Houses, Trial
from meterveil.data.household import Household
from meterveil.data.protocols import on_threshold_w
from meterveil.data.simulation import Setup
from meterveil.data.splits import check_recorded
from meterveil.defenders.defence import Defence, check_unseen
from meterveil.defenders.none import NoDefence
from meterveil.errors import InputError

SEEDS = 5
PRIOR = "prior"
METER = "meter"
"""Stands for whoever looks at the meter, in cases that are no attacker's: mutual information."""


@dataclass(frozen=True)
class Spec:
    """Say how defences are measured; the same for all that are compared."""

    trial: Trial
    setup: Setup
    attackers: Mapping[ThreatModel, tuple[str, ...]] = field(default_factory=lambda: DEFAULT_ATTACKERS)
    """Threat models that count, and who attacks under each."""
    seeds: int = SEEDS
    """Of a defence; several trainings are one seed each instead."""
    copies: int = COPIES
    """Masked copies of the training days that an adaptive attacker learns from."""

    def __post_init__(self) -> None:
        if not self.trial.targets:
            raise InputError(
                f"no appliance was used on {self.trial.test.days[0]}, so there is nothing to read; "
                "choose other days"
            )
        if self.seeds < 2:
            raise InputError(f"{self.seeds} seed gives no significance; give 2 or more, the paper has 5")
        for threat, names in self.attackers.items():
            for name in names:
                check_known(name)
            if not set(names) - set(FLOORS):
                raise InputError(
                    f"no {threat} attacker looks at the meter; add one of {', '.join(EVERY_ATTACKER)}"
                )

    @property
    def names(self) -> tuple[str, ...]:
        """Name every attacker that is fitted on the bare days; the prior is the floor of them all."""
        return tuple(dict.fromkeys([*(name for names in self.attackers.values() for name in names), PRIOR]))


@dataclass(frozen=True)
class Bare:
    """Hold what attackers read without a defence: measured once, compared with every defence."""

    spec: Spec
    home: Household
    taught: tuple[Household, ...]
    fitted: Mapping[str, Attacker]
    scores: Mapping[str, Scores]

    def prior(self) -> dict[tuple[str, str], FloatArray]:
        """Return what the attacker that never looks scores on every day, by target and metric."""
        scores = self.scores[PRIOR]
        best = {(target, BEST_F1): best_f1(scores, target) for target in self.spec.trial.targets}
        return {**scores, **best}


@dataclass(frozen=True)
class Result:
    """Hold everything that was measured of one defence."""

    spec: Spec
    contender: Defence
    cases: Mapping[ThreatModel, tuple[Case, ...]]
    """Threat model -> a case for each attacker, target and metric."""
    information: tuple[Case, ...]
    """Bits that a minute of the meter tells of each appliance; over all days together."""
    prior: Mapping[tuple[str, str], FloatArray]
    played: Played

    @property
    def seeds(self) -> int:
        """Number of seeds that it was measured with."""
        return len(self.played.days)


def measure_bare(
    spec: Spec, houses: Houses, workers: int = 2, on_done: Callable[[Job], None] | None = None
) -> Bare:
    """Fit the attackers on the bare training days, or take their fits from the cache; let them read."""
    trial = spec.trial
    taught = trial.taught(houses)
    home = houses[trial.test.key]
    check_recorded(home, trial.test.days)
    fitted = fixed(spec.names, taught, trial.fitted, trial.seed, workers=workers, on_done=on_done)
    days = [home.select(trial.targets).day(day) for day in sorted(trial.test.days)]
    scores = {name: score(one, days, trial.read) for name, one in fitted.items()}
    return Bare(spec, home, taught, fitted, scores)


def evaluate(
    bare: Bare, one: Defence, workers: int = 2, on_done: Callable[[Job], None] | None = None
) -> Result:
    """Let a defence act on the test days under every seed, and the attackers read what it leaves."""
    spec = bare.spec
    check_unseen(one, bare.home.name, spec.trial.test.days)
    played = play(spec.trial, bare.home, one, spec.setup, one.seeds(spec.seeds))
    cases: dict[ThreatModel, tuple[Case, ...]] = {}
    for threat, names in spec.attackers.items():
        if threat == "fixed" or isinstance(one.policies[0], NoDefence):
            readers = [bare.fitted] * len(played.days)  # there is nothing to adapt to
        else:
            readers = _adapted(bare, one, names, len(played.days), workers, on_done)
        cases[threat] = tuple(_cases(bare, played, names, readers))
    return Result(spec, one, cases, _information(bare, played), bare.prior(), played)


def _adapted(
    bare: Bare,
    one: Defence,
    names: Sequence[str],
    seeds: int,
    workers: int,
    on_done: Callable[[Job], None] | None,
) -> list[Mapping[str, Attacker]]:
    """Fit attackers to what each policy makes of the training days; return those of every seed."""
    trial, setup, copies = bare.spec.trial, bare.spec.setup, bare.spec.copies
    fitted: list[Mapping[str, Attacker]] = []
    for policy in one.policies:
        asked = (names, bare.taught, trial.fitted, trial.seed, policy, setup, copies)
        fitted.append(adaptive(*asked, workers=workers, on_done=on_done))
    return fitted if len(fitted) > 1 else fitted * seeds


def _cases(
    bare: Bare, played: Played, names: Sequence[str], readers: Sequence[Mapping[str, Attacker]]
) -> list[Case]:
    found = []
    for name in (name for name in names if name not in FLOORS):
        masked: list[Scores] = []
        for seed, first in enumerate(played.alike):
            known = first < seed and readers[first] is readers[seed]
            days, fitted = played.days[seed], readers[seed]
            masked.append(masked[first] if known else score(fitted[name], days, bare.spec.trial.read))
        found += cases_of(name, bare.scores[name], masked)
    return found


def _information(bare: Bare, played: Played) -> tuple[Case, ...]:
    """Estimate what a minute of the meter tells of each appliance, before and behind the defence.

    Days are pooled, since one day holds too few uses; so there is one value, and no interval over days.
    """
    readings_w = [_joined([day.aggregate_w for day in days]) for days in played.days]
    load_w = _joined([day.appliances_w[AGGREGATE] for day in played.days[0]])
    found = []
    for target in bare.spec.trial.targets:
        truth_w = _joined([day.appliances_w[target] for day in played.days[0]])
        if (truth_w >= on_threshold_w(target)).any():
            raw, *masked = (_bits(target, truth_w, reading_w) for reading_w in (load_w, *readings_w))
            found.append(Case(METER, target, "information_bits", np.array([raw]), np.array(masked)[:, None]))
    return tuple(found)


def _joined(parts: Sequence[FloatArray]) -> FloatArray:
    return np.concatenate(list(parts))


def _bits(target: str, truth_w: FloatArray, reading_w: FloatArray) -> float:
    rng = np.random.default_rng(0)
    return appliance_information(truth_w, reading_w, on_threshold_w(target), rng).bits
