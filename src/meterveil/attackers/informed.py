"""Informed attacker (D17): a network over whole days that knows the defence, the clock and the habits.

Ours. It sees the meter in whole watts, its differences over several spans, local means and deviations, the
time of day and week, what the meter shows in the hours after midnight, the prior's own probability and, for a
defence that can be inverted, an estimate of the load; one network reads all targets of a house. It trains on
new days: appliances are exchanged between days and moved in time, and the defence masks every drawn day with
random numbers of its own. Only the load and the random numbers of the test days are unknown to it. Three
networks, each validated on other days, are averaged.
The prior's log-odds are added to the network's output. How much of the network is used beside the prior is
chosen for each appliance on validation days: none of it where the gain may be chance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

import numpy as np
import torch
from torch import nn

from meterveil.attackers import baselines, drawn_days
from meterveil.attackers.baselines import Prior
from meterveil.attackers.classical import recentred
from meterveil.attackers.day_network import (
    Examples,
    UNet,
    following_channels,
    inverted_channels,
    loss_of,
    read,
    reading_channels,
)
from meterveil.attackers.drawn_days import Days, Draw
from meterveil.attackers.examples import tensor
from meterveil.attackers.neural import load_weights, moving_average, stored_weights, weights_of
from meterveil.attackers.protocol import Arrays, Meter, Prediction, below, check_targets, filled
from meterveil.core.arrays import BoolArray, FloatArray, IntArray
from meterveil.core.rollout import Policy
from meterveil.data.household import AGGREGATE, Household
from meterveil.data.protocols import on_threshold_w
from meterveil.data.simulation import Setup
from meterveil.errors import InputError

VERSION = 9  # raise it when a change alters the figures of this attacker

_LOG_ODDS = 9.0
"""Bound of the prior's log-odds."""
_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Candidate shares of the network in the log-odds, beside the prior; the first one is the prior alone."""
_THRESHOLDS = 200
"""Number of candidate thresholds; they are closest together among the highest log-odds."""
_REPEATS = 4
"""Random draws of the defence on the validation days."""

Inversion = Callable[[Meter, Setup], FloatArray]
"""(meter as it is shown, with gaps filled; battery, library and tariff) -> estimate of the load, (batch, minute).

A policy may offer one as its method `invert`. It knows the settings of the defence, never the load or the dice.
Raise `VERSION` when an inversion is added or changed: stored fits belong to the inputs that they were made with.
"""


@dataclass(frozen=True)
class Recipe:
    """Architecture and training settings."""

    width: int = 32
    epochs: int = 24
    copies: int = 12
    """Training days drawn in an epoch, as a multiple of the recorded ones; at most `most_days`."""
    most_days: int = 160
    chain: int = 4
    """Days that a drawn stretch lasts, so that the defence carries its charge and memory over midnight."""
    batch: int = 2
    learning_rate: float = 3e-3
    averaging: float = 0.98
    """Decay of the moving average of the weights, which is validated and kept."""
    members: int = 3
    """Networks that are averaged; each is validated on another part of the days."""
    resolution_w: float = 1.0
    """Step of the readings that the meter shows."""


@dataclass(frozen=True)
class Informed:
    """Attacker that trains against a known defence."""

    recipe: Recipe = field(default_factory=Recipe)
    policy: Policy | None = None
    """Defence that it knows; None for an unprotected meter."""
    setup: Setup | None = None
    inversion: Inversion | None = None
    """Estimate of the load behind the defence, one more input; by default the policy's own `invert`, if it has one."""
    targets: tuple[str, ...] = ()
    prior: Prior = field(default_factory=Prior)
    networks: tuple[nn.Module, ...] = ()
    scale_w: FloatArray = field(default_factory=lambda: np.ones(1))
    """(target,) usual power of each target in use; 1 where it was never used."""
    share: FloatArray = field(default_factory=lambda: np.ones((2, 1)))
    """(2, target) share of the networks beside the prior, in the log-odds and in the power."""
    threshold: FloatArray = field(default_factory=lambda: np.full(1, 0.5))
    """(target,) on-probability with the best mean F1 of the validation days with a use."""

    def knowing(self, policy: Policy, setup: Setup) -> Self:
        """Return this attacker with knowledge of a defence; fit it to days without the defence."""
        inversion = self.inversion or getattr(policy, "invert", None)
        return replace(self, policy=policy, setup=setup, inversion=inversion)

    def fit(self, households: Sequence[Household], targets: Sequence[str], rng: np.random.Generator) -> Self:
        check_targets(households, targets)
        days = drawn_days.recorded_days(households, targets, self.setup)
        count = len(days.load_w)
        if count < 2:
            raise InputError("the informed attacker needs two whole days or more; give a longer record")
        prior = Prior().fit(households, targets, rng)
        scale_w = np.array([_usual_w(days.targets_w[:, n], name) for n, name in enumerate(targets)])
        task = replace(self, targets=tuple(targets), prior=prior, scale_w=scale_w)
        folds = _folds(count, self.recipe.members)
        learning = [np.setdiff1d(np.arange(count), fold) for fold in folds]
        drawn = [self._drawn(part, len(targets), rng) for part in learning]
        meters_w = task._masked(days, drawn, rng)
        repeats = _REPEATS if self.policy else 1
        held_out = [drawn_days.as_recorded(np.tile(fold, (repeats, 1)), len(targets)) for fold in folds]
        held_out_w = task._masked(days, held_out, rng)
        networks, validations, usual = [], [], []
        with torch.random.fork_rng(devices=[]):
            for member in range(len(folds)):
                torch.manual_seed(int(rng.integers(2**63)))
                told = replace(task, prior=_prior_of(days, learning[member], prior))
                validation = told._examples(days, held_out[member], held_out_w[member])
                networks.append(told._trained(days, drawn[member], meters_w[member], validation))
                validations.append(validation)
                usual.append(told._usual(days, held_out[member], held_out_w[member]))
        day = np.concatenate([part.day.ravel() for part in held_out])
        share, threshold = task._chosen(networks, validations, np.concatenate(usual), day)
        return replace(task, networks=tuple(networks), share=share, threshold=threshold)

    def predict(self, meter: Meter) -> Prediction:
        """Average the networks; shift each probability so that its threshold is one half."""
        examples = self._inputs(meter)
        if examples.inputs.shape[1] != self.networks[0].channels:
            raise InputError(
                f"this attacker has {examples.inputs.shape[1]} inputs and was fitted with {self.networks[0].channels}; "
                "tell it the defence of its fit by `knowing` first"
            )
        outputs = [read(network, examples) for network in self.networks]
        state = np.mean([_odds(torch.sigmoid(logit).numpy()) for logit, _ in outputs], axis=0)
        power_w = np.mean([power.numpy() for _, power in outputs], axis=0) * self.scale_w[:, None]
        habits = self.prior.predict(meter)
        watts, on = dict(habits.watts), dict(habits.on)
        for n, (name, of_state, of_power) in enumerate(zip(self.targets, *self.share, strict=True)):
            mixed_w = habits.watts[name] + of_power * (power_w[:, n] - habits.watts[name])
            watts[name] = np.maximum(mixed_w, 0.0)
            if name != AGGREGATE and of_state > 0.0:
                mixed = of_state * state[:, n] + (1.0 - of_state) * examples.odds[:, n].numpy()
                on[name] = recentred(_probability(mixed), float(self.threshold[n]))
        return Prediction(watts, on)

    def arrays(self) -> Arrays:
        stored = {f"prior/{name}": part for name, part in self.prior.arrays().items()}
        for n, network in enumerate(self.networks):
            stored |= stored_weights(network, f"network/{n}/")
        channels = np.asarray(self.networks[0].channels)
        return stored | {
            "channels": channels,
            "scale_w": self.scale_w,
            "share": self.share,
            "threshold": self.threshold,
        }

    def restored(self, targets: Sequence[str], arrays: Arrays) -> Self:
        sizes = int(arrays["channels"]), len(targets), self.recipe.width
        members = range(self.recipe.members)
        return replace(
            self,
            targets=tuple(targets),
            prior=Prior().restored(targets, below(arrays, "prior/")),
            networks=tuple(load_weights(UNet(*sizes), arrays, f"network/{n}/") for n in members),
            scale_w=arrays["scale_w"],
            share=arrays["share"],
            threshold=arrays["threshold"],
        )

    def _drawn(self, learning: IntArray, targets: int, rng: np.random.Generator) -> Draw:
        """Draw the days of all epochs at once, (stretch, day): a rollout takes as long for many as for few."""
        recipe = self.recipe
        stretches = -(-min(len(learning) * recipe.copies, recipe.most_days) // recipe.chain)
        return drawn_days.draw(learning, targets, (recipe.epochs * stretches, recipe.chain), rng)

    def _masked(self, days: Days, draws: Sequence[Draw], rng: np.random.Generator) -> list[FloatArray]:
        """Mask the days of all members in one rollout; return the meters of each, (day, minute)."""
        together = Draw(*(np.concatenate(parts) for parts in zip(*draws, strict=True)))
        meter_w = drawn_days.masked(days, together, self.policy, self.setup, rng)
        return np.split(meter_w, np.cumsum([drawn.day.size for drawn in draws])[:-1])

    def _trained(self, days: Days, drawn: Draw, meter_w: FloatArray, validation: Examples) -> nn.Module:
        """Train one network; keep the weights of the epoch with the least validation loss."""
        recipe = self.recipe
        network = UNet(validation.inputs.shape[1], len(self.targets), recipe.width)
        averaged = moving_average(network, recipe.averaging)
        optimiser = torch.optim.AdamW(network.parameters(), recipe.learning_rate, weight_decay=1e-2, fused=True)
        epochs = [Draw(*part) for part in zip(*(np.split(part, recipe.epochs) for part in drawn), strict=True)]
        steps = len(epochs) * -(-epochs[0].day.size // recipe.batch)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, recipe.learning_rate, total_steps=steps)
        best, weights = np.inf, network.state_dict()
        for epoch, (part, part_w) in enumerate(zip(epochs, np.split(meter_w, recipe.epochs), strict=True)):
            examples = self._examples(days, part, part_w)
            network.train()
            for rows in torch.split(torch.randperm(len(examples.inputs)), recipe.batch):
                loss = loss_of(network, examples.rows(rows))
                optimiser.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                nn.utils.clip_grad_norm_(network.parameters(), 1.0)
                optimiser.step()
                schedule.step()
                averaged.update_parameters(network)
            if epoch >= recipe.epochs // 2:
                with torch.no_grad():
                    reached = float(loss_of(averaged.module.eval(), validation))
                if reached < best:
                    best, weights = reached, weights_of(averaged.module)
        network.load_state_dict(weights)
        return network.eval()

    def _examples(self, days: Days, drawn: Draw, meter_w: FloatArray) -> Examples:
        """Turn drawn days and their meter, (day, minute), into inputs and labels."""
        labels_w = drawn_days.compose(days, drawn)[1].reshape(-1, len(self.targets), drawn_days.DAY)
        on_w = np.array([np.inf if name == AGGREGATE else on_threshold_w(name) for name in self.targets])
        return self._inputs(drawn_days.meter_of_days(meter_w, days.weekday[drawn.day]))._replace(
            on=tensor(labels_w >= on_w[:, None]),
            power=tensor(np.nan_to_num(labels_w) / self.scale_w[:, None]),
            known=tensor(~np.isnan(labels_w) & ~np.isnan(meter_w)[:, None]),
        )

    def _inputs(self, meter: Meter) -> Examples:
        """Compute what the network sees of a meter; labels are left empty."""
        step_w = self.recipe.resolution_w
        shown_w = np.round(filled(meter.reading_w) / step_w) * step_w
        day, weekend = 2 * np.pi * meter.minute_of_day / drawn_days.DAY, (meter.weekday >= 5).astype(np.int64)
        clock = [np.sin(day), np.cos(day), np.sin(2 * day), np.cos(2 * day), weekend]
        after_w = np.round(meter.after_w / step_w) * step_w
        channels = [
            ~np.isnan(meter.reading_w),
            *reading_channels(shown_w),
            *following_channels(shown_w, after_w),
            *clock,
        ]
        if self.inversion and self.setup:
            channels += inverted_channels(self.inversion(meter._replace(reading_w=shown_w), self.setup))
        profiles = [self.prior.profiles[name].on[weekend, meter.minute_of_day] for name in self.targets]
        odds = _odds(np.stack(profiles, axis=1))
        inputs = np.concatenate([np.stack(channels, axis=1), odds / 4.0], axis=1)
        empty = torch.zeros(0)
        return Examples(tensor(inputs), tensor(odds), empty, empty, empty)

    def _usual(self, days: Days, drawn: Draw, meter_w: FloatArray) -> FloatArray:
        """Return what the prior expects of drawn days, (day, target, minute), as a multiple of the usual power."""
        habits = self.prior.predict(drawn_days.meter_of_days(meter_w, days.weekday[drawn.day])).watts
        return np.stack([habits[name] for name in self.targets], axis=1) / self.scale_w[:, None]

    def _chosen(
        self, networks: Sequence[nn.Module], validations: Sequence[Examples], usual: FloatArray, day: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """Choose shares and thresholds on validation days, whose numbers are `day`, (batch,).

        The share has the least cross-entropy, which varies less on few days than F1. The networks are used where
        they are better than the prior beyond chance: a smaller gain would make this attacker read less than the
        prior elsewhere.
        """
        outputs = [read(*pair) for pair in zip(networks, validations, strict=True)]
        state, power = (np.concatenate([part.numpy() for part in parts]) for parts in zip(*outputs, strict=True))
        odds, on, true_power, known = (
            np.concatenate([getattr(examples, name).numpy() for examples in validations])
            for name in ("odds", "on", "power", "known")
        )
        share, threshold = np.zeros((2, len(self.targets))), np.full(len(self.targets), 0.5)
        for n, name in enumerate(self.targets):
            seen, truth = known[:, n] > 0, on[:, n] > 0
            if name != AGGREGATE:
                habits, *others = (
                    _option(c, c * state[:, n] + (1.0 - c) * odds[:, n], truth, seen, day) for c in _SHARES
                )
                best = min(others, key=lambda option: float(option.loss.sum()))
                chosen = best if best.exceeds(habits) else habits
                share[0, n], threshold[n] = chosen.share, chosen.threshold
            away, wanted = (np.where(seen, part[:, n] - usual[:, n], 0.0) for part in (power, true_power))
            share[1, n] = _share_of_power(away, wanted, day)
        return share, threshold


class _Option(NamedTuple):
    """Share of the networks, with its threshold, and what it reaches on validation days."""

    share: float
    threshold: float
    f1: FloatArray  # (day with a use,) by a threshold that was chosen on the other days, where there are any
    loss: FloatArray  # (day,) cross-entropy, summed over the known minutes

    def exceeds(self, other: _Option) -> bool:
        """Tell whether this option is better than another one beyond chance.

        Either its cross-entropy is better by 1.5 standard errors, or its F1 by one and its cross-entropy by a half.
        F1 of rare appliances varies much between days, so a good network may not gain in F1.
        """
        f1_gain, loss_gain = self.f1 - other.f1, other.loss - self.loss
        if not f1_gain.size:
            return False
        is_better_f1 = _is_beyond_chance(f1_gain, 1.0)
        return _is_beyond_chance(loss_gain, 1.5) or (is_better_f1 and _is_beyond_chance(loss_gain, 0.5))


def _option(share: float, logit: FloatArray, truth: BoolArray, seen: BoolArray, day: IntArray) -> _Option:
    """Choose the threshold of a share; `logit` and `truth` are (batch, minute), and `day` is the number of each row.

    The threshold has the best mean F1 of the days with a use, as in the tables. F1 by a threshold that was chosen on
    the same days is too high, most of all for rare appliances, so each day is decided by the threshold of the others.
    """
    number = np.unique(day, return_inverse=True)[1]
    entropy = np.where(seen, np.logaddexp(0.0, np.where(truth, -logit, logit)), 0.0)
    loss = np.asarray(np.bincount(number, entropy.sum(axis=1)), dtype=np.float64)
    with_use = np.unique(number[(truth & seen).any(axis=1)])
    if not with_use.size:
        return _Option(share, 0.5, np.zeros(0), loss)
    descending = -np.sort(-logit[seen], kind="stable")
    levels = descending[np.geomspace(1, len(descending), _THRESHOLDS).astype(np.int64) - 1]
    by_row = np.array([_f1(row[part], used[part], levels) for row, used, part in zip(logit, truth, seen, strict=True)])
    by_day = np.array([by_row[number == n].mean(axis=0) for n in with_use])
    total = by_day.sum(axis=0)
    of_others = total - by_day if len(by_day) > 1 else by_day
    f1 = np.take_along_axis(by_day, of_others.argmax(axis=1)[:, None], axis=1)[:, 0]
    return _Option(share, float(_probability(levels[total.argmax()])), f1, loss)


def _f1(logit: FloatArray, truth: BoolArray, levels: FloatArray) -> FloatArray:
    """Return F1 of one row by each threshold on the log-odds, (level,); 0 where the appliance is never in use."""
    above, right = (len(part) - np.searchsorted(np.sort(part), levels) for part in (logit, logit[truth]))
    return np.asarray(2.0 * right / np.maximum(above + np.sum(truth), 1))


def _share_of_power(away: FloatArray, wanted: FloatArray, day: IntArray) -> float:
    """Return the share of the networks with the least square error, or 0 if it gains nothing beyond chance.

    The gain of each day is measured with the share of the other days, where there are any. `away` and `wanted`,
    (batch, minute), are differences to what the prior expects; `day` is the number of each row.
    """
    number = np.unique(day, return_inverse=True)[1]
    products, squares = (np.bincount(number, np.sum(away * part, axis=1)) for part in (wanted, away))

    def share(product: FloatArray, square: FloatArray) -> FloatArray:
        return np.clip(product / np.maximum(square, 1e-12), 0.0, 1.0)

    of_all = share(products.sum(), squares.sum())
    of_others = share(products.sum() - products, squares.sum() - squares) if len(products) > 1 else of_all
    gain = 2.0 * of_others * products - of_others**2 * squares
    return float(of_all) if _is_beyond_chance(gain, 0.5) else 0.0


def _is_beyond_chance(gain: FloatArray, standard_errors: float) -> bool:
    """Tell whether the mean gain of the days, (day,), exceeds this many of its standard errors.

    It is one standard error if all gain comes from a single day, and 1.58 if two of six days gain the same.
    """
    return bool(gain.mean() > standard_errors * np.std(gain) / np.sqrt(max(len(gain) - 1, 1)))


def _odds(probability: FloatArray) -> FloatArray:
    """Return bounded log-odds."""
    inside = np.clip(probability, 1e-9, 1.0 - 1e-9)
    with np.errstate(divide="ignore"):  # single precision rounds 1 - 1e-9 to 1
        return np.clip(np.log(inside / (1.0 - inside)), -_LOG_ODDS, _LOG_ODDS)


def _probability(odds: FloatArray) -> FloatArray:
    return np.asarray(1.0 / (1.0 + np.exp(-odds.astype(np.float64))))


def _prior_of(days: Days, rows: IntArray, prior: Prior) -> Prior:
    """Learn the prior from some of the days, so that validation days are as new to it as test days."""
    weekend = (days.weekday[rows] >= 5).astype(np.int64)
    profiles = dict(prior.profiles)
    for n, name in enumerate(profiles):
        power_w = days.targets_w[rows, n]
        known = ~np.isnan(power_w)
        if known.any():
            part = baselines.Days(np.nan_to_num(power_w), known.astype(np.float64), weekend)
            profiles[name] = baselines.learn_profile(part, name)
    return Prior(profiles)


def _folds(count: int, members: int) -> list[IntArray]:
    """Choose the validation days of each member: the last fifth, the fifth before it, and so on."""
    fifth = max(round(count / 5), 1)
    ends = [count - n * fifth for n in range(members)]
    return [np.arange(max(end - fifth, 0), end) if end > 0 else np.arange(fifth) for end in ends]


def _usual_w(power_w: FloatArray, name: str) -> float:
    """Return the mean power of a target while it is in use; the deviation of the household's own load."""
    if name == AGGREGATE:
        return max(float(np.nanstd(power_w)), 1.0)
    used = power_w[power_w >= on_threshold_w(name)]
    return float(used.mean()) if used.size else 1.0
