"""Evaluation of a defence: what attackers still read, fixed and adaptive (D11), and what the battery does.

Attackers are fitted once on clean days, by the same call as in `meterveil attack`. Only adaptive attackers
are fitted again, for each policy that they attack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from meterveil.attackers.fitting import COPIES, Job, adaptive, fit
from meterveil.attackers.protocol import AGGREGATE, Attacker
from meterveil.attackers.registry import FLOORS, INFORMED, PAPER_SIX, check_known
from meterveil.bench.cases import BEST_F1, Case, Scores, best_f1, cases_of, score
from meterveil.bench.estimates import information_bits
from meterveil.bench.metrics import FloatArray
from meterveil.bench.results import ThreatModel
from meterveil.bench.simulation import simulate
from meterveil.bench.trial import Houses, Trial
from meterveil.core import tariff
from meterveil.core.arrays import KWH_PER_W_MINUTE
from meterveil.core.certificate import Certificate
from meterveil.core.rollout import Trace
from meterveil.core.scenario import Scenario
from meterveil.data.cache import household_digest, key_of
from meterveil.data.household import Household
from meterveil.data.protocols import on_threshold_w
from meterveil.data.simulation import Run, Setup, mask
from meterveil.data.splits import check_recorded, consecutive_pieces, only_days
from meterveil.defenders.defence import Defence, check_unseen
from meterveil.defenders.none import NoDefence
from meterveil.defenders.veil.policy import Logged, Veil
from meterveil.errors import InputError

VERSION = 1  # raise it when a change alters the figures of an evaluation

SEEDS = 5
PRIOR = "prior"
"""Attacker that guesses from routine and never sees the meter."""
METER = "meter"
"""Label of figures that belong to no attacker: mutual information."""

EVERY_ATTACKER = (*PAPER_SIX, "nilmformer")
"""Attackers that see the meter, without those that must know the defence."""

DEFAULT_ATTACKERS: Mapping[ThreatModel, tuple[str, ...]] = {"fixed": PAPER_SIX, "adaptive": INFORMED}
"""Threat model -> attackers; an adaptive one knows the defence (D17), and reads more than the six retrained."""

_TEST_DICE = 0x7E57

OnDone = Callable[[Job], None]


@dataclass(frozen=True)
class Spec:
    """Settings of an evaluation, the same for all defences that are compared."""

    trial: Trial
    setup: Setup
    attackers: Mapping[ThreatModel, tuple[str, ...]] = field(default_factory=lambda: DEFAULT_ATTACKERS)
    """Threat models, and the attackers of each."""
    seeds: int = SEEDS
    """Seeds of a defence; a defence with several trainings has one seed per training instead."""
    copies: int = COPIES
    """Masked copies of the training days that an adaptive attacker learns from."""

    def __post_init__(self) -> None:
        if not self.trial.targets:
            raise InputError(f"no appliance was used on {self.trial.test.days[0]}; choose other days")
        if self.seeds < 2:
            raise InputError(f"seeds={self.seeds} gives no significance; use 2 or more, the paper has 5")
        for threat, names in self.attackers.items():
            for name in names:
                check_known(name)
            if not set(names) - set(FLOORS):
                raise InputError(
                    f"none of the {threat} attackers sees the meter; add one of {', '.join(EVERY_ATTACKER)}"
                )

    @property
    def names(self) -> tuple[str, ...]:
        """Attackers that are fitted on clean days."""
        return tuple(dict.fromkeys([*(name for names in self.attackers.values() for name in names), PRIOR]))


@dataclass(frozen=True)
class Undefended:
    """Attackers that were fitted on clean days, and their scores without a defence."""

    spec: Spec
    home: Household
    training: tuple[Household, ...]
    fitted: Mapping[str, Attacker]
    scores: Mapping[str, Scores]

    @cached_property
    def data(self) -> str:
        """Digest of the training and test days."""
        trial = self.spec.trial
        test = only_days(self.home.select(trial.targets), trial.test.days)
        learned = [household_digest(household, trial.learned) for household in self.training]
        return key_of(learned, household_digest(test, trial.targets))

    def prior(self) -> dict[tuple[str, str], FloatArray]:
        """Return the scores of guessing from routine, (target, metric) -> (day,)."""
        scores = self.scores[PRIOR]
        best = {(target, BEST_F1): best_f1(scores, target) for target in self.spec.trial.targets}
        return {**scores, **best}


class Physical(NamedTuple):
    """Battery figures, (seed, day) each."""

    throughput_kwh: FloatArray  # in and out together
    soc_end: FloatArray  # at midnight
    energy_cost: FloatArray
    degradation_cost: FloatArray
    total_cost: FloatArray
    soc_neutral_cost: FloatArray  # including the energy to start the next day with the same charge (D7)


@dataclass(frozen=True)
class MaskedDays:
    """Test days with a defence at work."""

    days: tuple[tuple[Household, ...], ...]
    """(seed, day) masked days with the true appliances, and the true load as `AGGREGATE`."""
    same_as: tuple[int, ...]
    """Seed -> first seed with the same meter readings; a deterministic defence has the same under all."""
    physical: Physical
    example: Run
    """First day under the first seed, for a picture."""
    certificate: Certificate | None = None
    """Bits that each day can tell at most, (seed, day); None for a defence without a certificate (D18)."""


@dataclass(frozen=True)
class Result:
    """Everything that was measured of one defence."""

    spec: Spec
    defence: Defence
    cases: Mapping[ThreatModel, tuple[Case, ...]]
    """Threat model -> a case for each attacker, target and metric."""
    information: tuple[Case, ...]
    """Bits that a minute of the meter tells about each appliance, over all days together."""
    prior: Mapping[tuple[str, str], FloatArray]
    masked: MaskedDays
    data: str = ""
    """Digest of the training and test days."""

    @property
    def seeds(self) -> int:
        """Number of seeds that were measured."""
        return len(self.masked.days)


def measure_undefended(spec: Spec, houses: Houses, workers: int = 2, on_done: OnDone | None = None) -> Undefended:
    """Fit the attackers on clean training days and score them on clean test days."""
    trial = spec.trial
    home, training = houses[trial.test.key], trial.training_households(houses)
    check_recorded(home, trial.test.days)
    fitted = fit(spec.names, training, trial.fitted, trial.seed, workers=workers, on_done=on_done)
    days = [home.select(trial.targets).day(day) for day in sorted(trial.test.days)]
    scores = {name: score(attacker, days, trial.read) for name, attacker in fitted.items()}
    return Undefended(spec, home, training, fitted, scores)


def evaluate(undefended: Undefended, defence: Defence, workers: int = 2, on_done: OnDone | None = None) -> Result:
    """Run a defence on the test days under every seed and score the attackers on the masked meter."""
    spec = undefended.spec
    check_unseen(defence, undefended.home.name, spec.trial.test.days)
    history = [home for home in undefended.training if home.name == undefended.home.name]
    defence = defence.knowing(history, spec.setup)
    masked = mask_test_days(spec.trial, undefended.home, defence, spec.setup, defence.seeds(spec.seeds))
    cases: dict[ThreatModel, tuple[Case, ...]] = {}
    for threat, names in spec.attackers.items():
        if threat == "fixed" or isinstance(defence.policies[0], NoDefence):  # nothing to adapt to
            attackers = [undefended.fitted] * len(masked.days)
        else:
            attackers = _adapted(undefended, defence, names, len(masked.days), workers, on_done)
        cases[threat] = tuple(_cases(undefended, masked, names, attackers))
    information = _information(spec.trial, masked)
    return Result(spec, defence, cases, information, undefended.prior(), masked, undefended.data)


def mask_test_days(trial: Trial, home: Household, defence: Defence, setup: Setup, seeds: int = SEEDS) -> MaskedDays:
    """Run a defence over the test days, SoC carried over midnight and reset where days are left out."""
    rngs = held_out_rngs(trial.seed, seeds)
    pieces = consecutive_pieces(home.select(trial.targets), trial.test.days)
    days: list[list[Household]] = [[] for _ in range(seeds)]
    figures: list[Physical] = []
    certificates: list[Certificate] = []
    for piece in pieces:
        if len(defence.policies) == 1:
            policy = defence.policies[0]
            logged = Logged(policy) if isinstance(policy, Veil) else None
            parts = [mask(logged or policy, setup, piece, rngs)]
            certificates += [logged.certificate(parts[0].scenario, parts[0].trace)] if logged else []
        else:
            pairs = zip(defence.policies, rngs, strict=True)
            parts = [mask(policy, setup, piece, [rng]) for policy, rng in pairs]
        trace = Trace(*(np.concatenate(column) for column in zip(*(p.trace for p in parts), strict=True)))
        figures += _daily_figures(setup, piece, parts[0].scenario, trace)
        for row, copy in enumerate(household for part in parts for household in part.households):
            days[row] += [copy.day(day) for day in piece.days()]
    physical = Physical(*(np.stack(column, axis=1) for column in zip(*figures, strict=True)))
    example = example_day(defence, pieces[0].day(pieces[0].days()[0]), setup, trial.seed)
    meters = [b"".join(day.aggregate_w.tobytes() for day in row) for row in days]
    same_as = tuple(meters.index(meter) for meter in meters)
    joined = (np.concatenate(column, axis=1) for column in zip(*certificates, strict=True))
    return MaskedDays(
        tuple(map(tuple, days)), same_as, physical, example, Certificate(*joined) if certificates else None
    )


def held_out_rngs(seed: int, seeds: int) -> list[np.random.Generator]:
    """Return generators for the test days that no attacker has seen."""
    return [np.random.default_rng([seed, number, _TEST_DICE]) for number in range(seeds)]


def example_day(defence: Defence, day: Household, setup: Setup, seed: int = 0) -> Run:
    """Simulate one day with the first policy under the first seed, for a picture."""
    [rng] = held_out_rngs(seed, 1)
    return simulate(day, defence.name, day.days()[0], 1, setup, policy=defence.policies[0], rng=rng)


def _adapted(
    undefended: Undefended, defence: Defence, names: Sequence[str], seeds: int, workers: int, on_done: OnDone | None
) -> list[Mapping[str, Attacker]]:
    """Fit attackers on the training days that each policy masked; return the attackers of every seed."""
    spec, trial = undefended.spec, undefended.spec.trial
    fitted: list[Mapping[str, Attacker]] = []
    for policy in defence.policies:
        data = (names, undefended.training, trial.fitted, trial.seed)
        made = adaptive(*data, policy, spec.setup, spec.copies, workers=workers, on_done=on_done)
        fitted.append(made)
    return fitted if len(fitted) > 1 else fitted * seeds


def _cases(
    undefended: Undefended, masked: MaskedDays, names: Sequence[str], attackers: Sequence[Mapping[str, Attacker]]
) -> list[Case]:
    cases = []
    for name in (name for name in names if name not in FLOORS):
        scores: list[Scores] = []
        for seed, first in enumerate(masked.same_as):
            known = first < seed and attackers[first] is attackers[seed]
            fitted, days = attackers[seed][name], masked.days[seed]
            scores.append(scores[first] if known else score(fitted, days, undefended.spec.trial.read))
        cases += cases_of(name, undefended.scores[name], scores)
    return cases


def _information(trial: Trial, masked: MaskedDays) -> tuple[Case, ...]:
    """Estimate what a minute of the meter tells about each appliance, without and with the defence.

    Days are pooled, since one day holds too few uses: there is one value and no interval over days.
    """
    readings_w = [np.concatenate([day.aggregate_w for day in days]) for days in masked.days]
    load_w = np.concatenate([day.appliances_w[AGGREGATE] for day in masked.days[0]])
    cases = []
    for target in trial.targets:
        truth_w = np.concatenate([day.appliances_w[target] for day in masked.days[0]])
        threshold_w = on_threshold_w(target)
        if (truth_w >= threshold_w).any():
            raw, *bits = (
                information_bits(truth_w, meter_w, threshold_w, np.random.default_rng(0))
                for meter_w in (load_w, *readings_w)
            )
            cases.append(Case(METER, target, "information_bits", np.array([raw]), np.array(bits)[:, None]))
    return tuple(cases)


def _daily_figures(setup: Setup, piece: Household, scenario: Scenario, trace: Trace) -> Iterator[Physical]:
    """Sum up every civil day, (seed,) each."""
    price = scenario.price[:1, scenario.lead :]
    soc = np.column_stack([trace.soc_start, trace.soc])
    bounds = np.cumsum([0, *(len(piece.day(day).minutes) for day in piece.days())])
    for begin, end in pairwise(bounds):
        power_w = trace.power_w[:, begin:end]
        prices = np.broadcast_to(price[:, begin:end], power_w.shape)
        cost = tariff.day_cost(setup.battery, prices, power_w, soc[:, begin], soc[:, end])
        moved_kwh = np.abs(power_w).sum(axis=1) * KWH_PER_W_MINUTE
        yield Physical(moved_kwh, soc[:, end], cost.energy, cost.degradation, cost.total, cost.soc_neutral)
