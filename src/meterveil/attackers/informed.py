"""Informed attacker (D17): a U-Net over whole days that knows the defence, the clock and the habits.

Ours. It sees the meter in whole watts, its differences over several spans, local means and deviations, the
time of day and week, and the prior's own probability; one network reads all targets of a house. Before every
epoch it makes new training days: appliances are exchanged between days and moved in time, and the defence
masks the result with new random numbers. Only the load and the random numbers of the test days are unknown
to it. Three networks, each validated on other days, are averaged. The prior's log-odds are added to the
network's output, and an appliance that the network reads no better than the prior on validation days is left
to the prior.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import NamedTuple, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  the usual name

from meterveil.attackers.baselines import Prior
from meterveil.attackers.classical import best_threshold, recentred
from meterveil.attackers.examples import tensor
from meterveil.attackers.neural import load_weights, moving_average, stored_weights, weights_of
from meterveil.attackers.protocol import Arrays, Meter, Prediction, below, check_targets, filled, truth_w
from meterveil.core.arrays import FloatArray, IntArray
from meterveil.core.rollout import Policy, rollout
from meterveil.core.scenario import Scenario
from meterveil.data.household import AGGREGATE, Household
from meterveil.data.protocols import on_threshold_w
from meterveil.data.simulation import Setup, span
from meterveil.errors import InputError

VERSION = 1  # raise it when a change alters the figures of this attacker

DAY = 1440
_POOLS = (3, 4, 4)
_SPANS = (3, 10, 30)
"""Minutes of the differences that follow a slowly moving level."""
_WINDOWS = (5, 15, 60, 180)
"""Half widths, in minutes, of the local means and deviations."""
_CHANNELS = 1 + 6 + 2 * len(_SPANS) + 2 * len(_WINDOWS) + 5
"""Channels beside the prior's: known, reading, differences, local statistics and clock."""
_LOG_ODDS = 9.0
"""Bound of the prior's log-odds."""


@dataclass(frozen=True)
class Recipe:
    """Architecture and training settings."""

    width: int = 32
    epochs: int = 48
    copies: int = 12
    """Training days drawn in an epoch, as a multiple of the recorded ones; at most `most_days`."""
    most_days: int = 160
    chain: int = 4
    """Days that a drawn stretch lasts, so that the defence carries its charge and memory over midnight."""
    batch: int = 8
    learning_rate: float = 3e-3
    averaging: float = 0.99
    """Decay of the moving average of the weights, which is validated and kept."""
    members: int = 3
    """Networks that are averaged; each is validated on another part of the days."""
    resolution_w: float = 1.0
    """Step of the readings that the meter shows."""


class Days(NamedTuple):
    """Days of 24 hours on one clock; `rows` arranges them as (stretch, day) with the same last axes."""

    load_w: FloatArray  # (day, minute)
    targets_w: FloatArray  # (day, target, minute)
    price: FloatArray  # (day, minute)
    weekday: IntArray  # (day,)

    def rows(self, index: IntArray) -> Days:
        """Pick some of the days."""
        return Days(self.load_w[index], self.targets_w[index], self.price[index], self.weekday[index])


class Examples(NamedTuple):
    """Inputs of a network and their labels; labels are empty where only inputs are known."""

    inputs: Tensor  # (batch, channel, minute)
    odds: Tensor  # (batch, target, minute) log-odds of the prior
    on: Tensor
    power: Tensor  # as a multiple of the usual power
    known: Tensor

    def rows(self, index: Tensor) -> Examples:
        """Pick some of the examples."""
        return Examples(*(part[index] for part in self))


@dataclass(frozen=True)
class Informed:
    """Attacker that trains against a known defence."""

    recipe: Recipe = field(default_factory=Recipe)
    policy: Policy | None = None
    """Defence that it knows; None for an unprotected meter."""
    setup: Setup | None = None
    targets: tuple[str, ...] = ()
    prior: Prior = field(default_factory=Prior)
    networks: tuple[nn.Module, ...] = ()
    scale_w: FloatArray = field(default_factory=lambda: np.ones(1))
    """(target,) usual power of each target in use; 0 where it was never used."""
    threshold: FloatArray = field(default_factory=lambda: np.full(1, 0.5))
    """(target,) on-probability with the best F1 on validation days; NaN where the prior reads better."""

    def knowing(self, policy: Policy, setup: Setup) -> Self:
        """Return this attacker with knowledge of a defence; fit it to days without the defence."""
        return replace(self, policy=policy, setup=setup)

    def fit(self, households: Sequence[Household], targets: Sequence[str], rng: np.random.Generator) -> Self:
        check_targets(households, targets)
        days = _days(households, targets, self.setup)
        if len(days.load_w) < 2:
            raise InputError("the informed attacker needs two whole days or more; give a longer record")
        prior = Prior().fit(households, targets, rng)
        scale_w = np.array([_usual_w(days.targets_w[:, n], name) for n, name in enumerate(targets)])
        task = replace(self, targets=tuple(targets), prior=prior, scale_w=scale_w)
        folds = _folds(len(days.load_w), self.recipe.members)
        networks, probability, truth = [], [], []
        with torch.random.fork_rng(devices=[]):
            for held_out in folds:
                torch.manual_seed(int(rng.integers(2**63)))
                network, examples = task._trained(days, held_out, rng)
                networks.append(network)
                probability.append(torch.sigmoid(_read(network, examples)[0]).numpy())
                truth.append(np.where(examples.known.numpy() > 0, examples.on.numpy(), np.nan))
        validation = days.rows(np.concatenate(folds))
        threshold = task._thresholds(validation, np.concatenate(probability), np.concatenate(truth))
        return replace(task, networks=tuple(networks), threshold=threshold)

    def predict(self, meter: Meter) -> Prediction:
        """Average the networks; shift each probability so that its threshold is one half."""
        examples = self._inputs(meter)
        outputs = [_read(network, examples) for network in self.networks]
        on = np.mean([torch.sigmoid(logit).numpy() for logit, _ in outputs], axis=0).astype(np.float64)
        power_w = np.mean([power.numpy() for _, power in outputs], axis=0) * self.scale_w[:, None]
        habits = self.prior.predict(meter)
        watts, probability = dict(habits.watts), dict(habits.on)
        for n, name in enumerate(self.targets):
            if np.isnan(self.threshold[n]):
                continue
            watts[name] = np.maximum(power_w[:, n], 0.0).astype(np.float64)
            if name != AGGREGATE:
                probability[name] = recentred(on[:, n], float(self.threshold[n]))
        return Prediction(watts, probability)

    def arrays(self) -> Arrays:
        stored = {f"prior/{name}": part for name, part in self.prior.arrays().items()}
        for n, network in enumerate(self.networks):
            stored |= stored_weights(network, f"network/{n}/")
        return stored | {"scale_w": self.scale_w, "threshold": self.threshold}

    def restored(self, targets: Sequence[str], arrays: Arrays) -> Self:
        sizes = _CHANNELS + len(targets), len(targets), self.recipe.width
        members = range(self.recipe.members)
        return replace(
            self,
            targets=tuple(targets),
            prior=Prior().restored(targets, below(arrays, "prior/")),
            networks=tuple(load_weights(UNet(*sizes), arrays, f"network/{n}/") for n in members),
            scale_w=arrays["scale_w"],
            threshold=arrays["threshold"],
        )

    def _trained(self, days: Days, held_out: IntArray, rng: np.random.Generator) -> tuple[nn.Module, Examples]:
        """Train one network; keep the weights of the epoch with the least validation loss."""
        recipe, learning = self.recipe, np.setdiff1d(np.arange(len(days.load_w)), held_out)
        validation = self._examples(days.rows(np.tile(held_out, (4 if self.policy else 1, 1))), rng)
        network = UNet(validation.inputs.shape[1], len(self.targets), recipe.width)
        averaged = moving_average(network, recipe.averaging)
        optimiser = torch.optim.AdamW(network.parameters(), recipe.learning_rate, weight_decay=1e-2)
        stretches = -(-min(len(learning) * recipe.copies, recipe.most_days) // recipe.chain)
        steps = recipe.epochs * -(-stretches * recipe.chain // recipe.batch)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, recipe.learning_rate, total_steps=steps)
        best, weights = np.inf, network.state_dict()
        for epoch in range(recipe.epochs):
            examples = self._examples(self._mixed(days, learning, (stretches, recipe.chain), rng), rng)
            network.train()
            for rows in torch.split(torch.randperm(len(examples.inputs)), recipe.batch):
                loss = _loss(network, examples.rows(rows))
                optimiser.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                nn.utils.clip_grad_norm_(network.parameters(), 1.0)
                optimiser.step()
                schedule.step()
                averaged.update_parameters(network)
            if epoch >= recipe.epochs // 2:
                with torch.no_grad():
                    reached = float(_loss(averaged.module.eval(), validation))
                if reached < best:
                    best, weights = reached, weights_of(averaged.module)
        network.load_state_dict(weights)
        return network.eval(), validation

    def _mixed(self, days: Days, learning: IntArray, shape: tuple[int, int], rng: np.random.Generator) -> Days:
        """Draw stretches of days; half of the appliances come from other days, half move by up to 20 min."""
        chosen = rng.choice(learning, shape)
        each = *shape, len(self.targets)
        other = rng.choice(learning, each)
        donor = np.where(rng.random(each) < 0.5, other, chosen[..., None])
        moved = np.where(rng.random(each) < 0.5, rng.integers(-20, 21, each), 0)
        minute = (np.arange(DAY) - moved[..., None]) % DAY
        targets_w = days.targets_w[donor[..., None], np.arange(len(self.targets))[:, None], minute]
        is_aggregate = np.array([name == AGGREGATE for name in self.targets])
        before_w, after_w = (
            np.nansum(np.compress(~is_aggregate, part, axis=-2), axis=-2) for part in (days.targets_w, targets_w)
        )
        load_w = np.maximum((days.load_w - before_w)[chosen] + after_w, 0.0)
        targets_w[:, :, is_aggregate] = load_w[:, :, None]
        return days.rows(chosen)._replace(load_w=load_w, targets_w=targets_w)

    def _examples(self, stretches: Days, rng: np.random.Generator) -> Examples:
        """Mask stretches of days, (stretch, day), and turn them into inputs and labels."""
        meter_w = self._masked(stretches, rng).reshape(-1, DAY)
        labels_w = stretches.targets_w.reshape(-1, len(self.targets), DAY)
        on_w = np.array([np.inf if name == AGGREGATE else on_threshold_w(name) for name in self.targets])
        return self._inputs(_meter(meter_w, stretches.weekday))._replace(
            on=tensor(labels_w >= on_w[:, None]),
            power=tensor(labels_w / np.maximum(self.scale_w, 1.0)[:, None]),
            known=tensor(~np.isnan(labels_w) & ~np.isnan(meter_w)[:, None]),
        )

    def _masked(self, days: Days, rng: np.random.Generator) -> FloatArray:
        """Let the defence act on stretches of days from any state of charge, (stretch, minute)."""
        stretches = len(days.load_w)
        load_w, price = (part.reshape(stretches, -1) for part in (days.load_w, days.price))
        if self.policy is None or self.setup is None:
            return load_w
        minute = np.broadcast_to(np.arange(load_w.shape[1]), load_w.shape)
        lasts = np.full(stretches, load_w.shape[1])
        scenario = Scenario(load_w, minute % DAY, minute // DAY, price, lasts)
        battery = self.setup.battery
        middle, room = (np.asarray(battery.soc_max) + battery.soc_min) / 2, battery.soc_max - battery.soc_min
        soc = middle + room * rng.uniform(-0.25, 0.25, stretches)
        return rollout(self.policy, battery, self.setup.library, scenario, rng.spawn(stretches), soc).meter_w

    def _inputs(self, meter: Meter) -> Examples:
        """Compute what the network sees of a meter; labels are left empty."""
        step_w = self.recipe.resolution_w
        shown_w = np.round(filled(meter.reading_w) / step_w) * step_w
        day, weekend = 2 * np.pi * meter.minute_of_day / DAY, (meter.weekday >= 5).astype(np.int64)
        clock = [np.sin(day), np.cos(day), np.sin(2 * day), np.cos(2 * day), weekend]
        channels = [~np.isnan(meter.reading_w), *_reading_channels(shown_w), *clock]
        profiles = [self.prior.profiles[name].on[weekend, meter.minute_of_day] for name in self.targets]
        on = np.clip(np.stack(profiles, axis=1), 1e-9, 1.0 - 1e-9)
        odds = np.clip(np.log(on / (1.0 - on)), -_LOG_ODDS, _LOG_ODDS)
        inputs = np.concatenate([np.stack(channels, axis=1), odds / 4.0], axis=1)
        empty = torch.zeros(0)
        return Examples(tensor(inputs), tensor(odds), empty, empty, empty)

    def _thresholds(self, validation: Days, probability: FloatArray, truth: FloatArray) -> FloatArray:
        """Choose each target's threshold on the validation days; NaN where the prior has a better F1."""
        habits = self.prior.predict(_meter(validation.load_w, validation.weekday)).on
        thresholds = np.full(len(self.targets), 0.5)
        for n, name in enumerate(self.targets):
            if name == AGGREGATE:
                continue
            known = ~np.isnan(truth[:, n])
            thresholds[n], reached = best_threshold(probability[:, n][known], truth[:, n][known] > 0)
            power_w = validation.targets_w[:, n]
            known = ~np.isnan(power_w)
            _, of_prior = best_threshold(habits[name][known], power_w[known] >= on_threshold_w(name))
            if reached <= of_prior:
                thresholds[n] = np.nan
        return thresholds


class _Block(nn.Module):
    """Convolution, normalisation and ReLU, added to the input where the widths agree."""

    def __init__(self, into: int, out: int, dilation: int = 1) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(into, out, 5, padding=2 * dilation, dilation=dilation)
        self.norm = nn.GroupNorm(4, out)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.norm(self.convolution(x)))
        return x + y if x.shape == y.shape else y


class UNet(nn.Module):
    """U-Net along the day: four resolutions from a minute to 48, with a head for state and one for power."""

    def __init__(self, channels: int, targets: int, width: int) -> None:
        super().__init__()
        self.first = nn.Sequential(_Block(channels, width), _Block(width, width))
        self.down = nn.ModuleList(nn.Sequential(_Block(width, width), _Block(width, width, 2)) for _ in _POOLS)
        self.deepest = _Block(width, width, 4)
        self.up = nn.ModuleList(_Block(2 * width, width) for _ in _POOLS)
        self.last = _Block(width, width)
        self.state = nn.Conv1d(width, targets, 1)
        self.power = nn.Conv1d(width, targets, 1)
        for part in self.state.parameters():
            nn.init.zeros_(part)

    def forward(self, inputs: Tensor, odds: Tensor) -> tuple[Tensor, Tensor]:
        """Return log-odds of each target being on, and its power as a multiple of the usual one."""
        length = inputs.shape[-1]
        padded = F.pad(inputs, (0, -length % math.prod(_POOLS)), mode="replicate")
        levels = [self.first(padded)]
        for pool, down in zip(_POOLS, self.down, strict=True):
            levels.append(down(F.max_pool1d(levels[-1], pool)))
        x = self.deepest(levels.pop())
        for up in self.up:
            beside = levels.pop()
            x = up(torch.cat([F.interpolate(x, size=beside.shape[-1]), beside], dim=1))
        x = self.last(x)[..., :length]
        return self.state(x) + odds, self.power(x)


def _loss(network: nn.Module, examples: Examples) -> Tensor:
    """Add the cross-entropy of the state, with more weight on rare appliances, and the error of the power."""
    state, power = network(examples.inputs, examples.odds)
    entropy = F.binary_cross_entropy_with_logits(state, examples.on, reduction="none") * examples.known
    share = examples.on.mean(dim=(0, 2)).clamp(0.005, 0.2)
    error = F.smooth_l1_loss(power, examples.power, reduction="none") * examples.known
    return (0.1 * entropy.mean(dim=(0, 2)) / share).mean() + error.mean()


def _read(network: nn.Module, examples: Examples) -> tuple[Tensor, Tensor]:
    """Return log-odds and power for all examples, a few at a time."""
    batches = zip(torch.split(examples.inputs, 32), torch.split(examples.odds, 32), strict=True)
    with torch.no_grad():
        parts = [network(*batch) for batch in batches]
    states, powers = zip(*parts, strict=True)
    return torch.cat(states), torch.cat(powers)


def _reading_channels(shown_w: FloatArray) -> list[FloatArray]:
    """Return the reading, its differences over several spans, and local means and deviations."""
    next_w, step_w = _differences(shown_w, 1)
    channels = [shown_w / 1000.0, _compressed(shown_w), step_w / 1000.0, _compressed(step_w)]
    channels += [np.clip(step_w, -20.0, 20.0) / 10.0, _compressed(next_w)]
    for minutes in _SPANS:
        channels += [np.clip(part, -60.0, 60.0) / 30.0 for part in _differences(shown_w, minutes)]
    for minutes in _WINDOWS:
        mean_w, deviation_w = _local(shown_w, minutes)
        channels += [(shown_w - mean_w) / 1000.0, _compressed(deviation_w)]
    return channels


def _differences(values: FloatArray, minutes: int) -> tuple[FloatArray, FloatArray]:
    """Return the change in the next minutes and in the last ones."""
    wide = np.pad(values, ((0, 0), (minutes, minutes)), mode="edge")
    return wide[:, 2 * minutes :] - values, values - wide[:, : -2 * minutes]


def _local(values: FloatArray, minutes: int) -> tuple[FloatArray, FloatArray]:
    """Return mean and deviation within so many minutes on either side."""
    length = values.shape[1]
    low = np.clip(np.arange(length) - minutes, 0, length)
    high = np.clip(np.arange(length) + minutes + 1, 0, length)
    sums = (np.cumsum(np.pad(power, ((0, 0), (1, 0))), axis=1) for power in (values, values**2))
    mean, square = ((total[:, high] - total[:, low]) / (high - low) for total in sums)
    return mean, np.sqrt(np.maximum(square - mean**2, 0.0))


def _compressed(watts: FloatArray) -> FloatArray:
    return np.asarray(np.sign(watts) * np.log1p(np.abs(watts)) / 7.0)


def _meter(reading_w: FloatArray, weekday: IntArray) -> Meter:
    """Return the meter of whole days, (day, minute)."""
    minute = np.broadcast_to(np.arange(DAY), reading_w.shape)
    return Meter(reading_w, minute, np.repeat(weekday.reshape(-1, 1), DAY, axis=1))


def _days(households: Sequence[Household], targets: Sequence[str], setup: Setup | None) -> Days:
    """Lay the days with readings out on one clock; days of 23 and 25 hours are left out."""
    load_w, targets_w, price, weekday = [], [], [], []
    pairs = [(household, day) for household in households for day in household.days()]
    for household, day in pairs:
        part = household.day(day)
        if len(part.minutes) != DAY or np.isnan(part.aggregate_w).all():
            continue
        load_w.append(truth_w(part, AGGREGATE))
        targets_w.append([truth_w(part, name) for name in targets])
        weekday.append(part.minutes[0].weekday())
        after = day + timedelta(days=1)
        price.append(span(household, day, after, setup.tariff, 0).price[0] if setup else np.zeros(DAY))
    return Days(*(np.array(part) for part in (load_w, targets_w, price, weekday)))


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
    return float(used.mean()) if used.size else 0.0
