"""Training of the veil's learned manager by PPO, from the household's own meter alone.

Hundreds of households are simulated side by side in the model of `half_hours`: their days are those of the household,
scaled and recombined block by block. The reward needs no probe and no attacker: minus certified bits, minus cost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Box, Discrete
from stable_baselines3.common.distributions import CategoricalDistribution
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import MlpExtractor
from stable_baselines3.common.utils import FloatSchedule
from stable_baselines3.common.vec_env.base_vec_env import VecEnvStepReturn
from torch import Tensor, nn

from meterveil.adapters.sb3 import BatchVecEnv
from meterveil.core.arrays import FloatArray, IntArray
from meterveil.core.battery import Battery
from meterveil.core.certificate import DAY_MINUTES, SLOT_MINUTES, Rules
from meterveil.core.tariff import usual_price
from meterveil.data.household import Household
from meterveil.data.simulation import Setup
from meterveil.defenders.manager import ppo
from meterveil.defenders.run_folder import TrainedRun, finish_run, own_randomness, run_document, write_run
from meterveil.defenders.trained_policies import Mlp
from meterveil.defenders.training_days import training_figures, training_scenario
from meterveil.defenders.training_settings import VeilSettings
from meterveil.defenders.veil.half_hours import Homes, Limits, block, tables_of
from meterveil.defenders.veil.learned import WORST, Learned, observation, plan_logits, usual_course
from meterveil.defenders.veil.planner import Planner
from meterveil.defenders.veil.policy import Veil
from meterveil.defenders.veil.situation import SLOTS, Situation, complete, quiet_need_kwh, record_of
from meterveil.errors import InputError

KBITS = 1000.0
"""Bits that count as much as one unit of money where lambda is 0.5."""
_TRIAL_DECISIONS = 12
"""Decisions by the plan that show how large rewards usually are."""
RECOMBINED = 0.5
"""Share of the blocks within a day that follow another day's load than the block before."""


@dataclass(frozen=True)
class Round:
    """State of a training after an update; means over its decisions."""

    decisions: int
    days: float
    """Days simulated so far, of all households together."""
    bits: float
    """Certified bits a day, those of scheduled choices left out."""
    cost: float
    """SoC-neutral cost a day."""
    missed_minutes: float
    """Minutes a day that the veil did not follow."""


class VeiledHouseholds(BatchVecEnv):
    """Parallel households that choose from the veil's menu; a step leads to the next decision.

    Each household keeps one kind of days: a scale of the load and a record of recent days, drawn once. They go on
    without end, so that the charge of a midnight is worth what later days make of it.
    """

    def __init__(
        self, veil: Veil, days_w: FloatArray, battery: Battery, price: FloatArray, settings: VeilSettings
    ) -> None:
        rules, scales = veil.rules, np.asarray(settings.scales)
        self.rules, self.price, self._weight = rules, price, settings.weight
        self.limits = Limits(
            float((np.max(battery.soc_max) - np.min(battery.soc_min)) * np.max(battery.capacity_kwh)),
            np.full(settings.slots, min(float(np.max(battery.budget_kwh)), 1e3)),
            veil.rescue_kwh,
            max(veil.rescue_minutes // SLOT_MINUTES, 1),
            float(np.max(battery.charge_efficiency)),
            float(np.max(battery.discharge_efficiency)),
        )
        scaled_w = np.concatenate([days_w * scale for scale in scales])
        self._tables = tables_of(scaled_w, rules, veil.large_w)
        self._records = complete(record_of(scaled_w, rules)).reshape(len(scales), len(days_w), SLOTS, -1)
        self._margin, self._days = veil.quiet_margin, len(days_w)
        self._kinds = len(scales) * settings.records
        self._plan, self._battery = _plan_of(veil), battery
        width = 11 + 3 * len(rules.menu_w) + 2 * rules.choices
        super().__init__(settings.slots, Box(-5.0, 5.0, (width,)), Discrete(rules.choices))
        self.totals = np.zeros(4)
        """Days, bits, cost and missed minutes so far, of all households together."""
        self.lasted: IntArray = np.ones(settings.slots, dtype=np.int64)
        """Half hours of the latest decision of each household."""

    def reset(self) -> FloatArray:
        """Draw the records, and begin everywhere at some decision of the day with some charge."""
        self._rng = np.random.default_rng(self._seeds[0])
        self._reset_seeds()
        rng, rules, batch = self._rng, self.rules, self.num_envs
        self._scale = np.arange(self._kinds) % len(self._records)
        shape = (self._kinds, self._records.shape[1])
        records = self._records[self._scale[:, None], rng.integers(self._days, size=shape)]  # (kind, day, half hour, .)
        slots = np.arange(SLOTS)
        self._course = np.stack([usual_course(np.repeat(record[None], SLOTS, 0), slots, rules) for record in records])
        self._kept_kwh = self._margin * np.stack([_needs_kwh(record, rules) for record in records])
        self._planned = self._plans(records)
        self._kind = rng.permutation(np.arange(batch) % self._kinds)
        self._day = self._drawn_days()
        times = np.array(rules.choice_minutes) // SLOT_MINUTES
        self.homes = Homes(
            rng.choice(times, size=batch),
            rng.uniform(0.0, self.limits.range_kwh, batch),
            self.limits.budget_kwh * rng.uniform(0.5, 1.0, batch),
        )
        self._unit = np.ones(batch)
        self._unit = self._usual_reward()
        self.totals[:] = 0.0
        return self._observe()

    def _usual_reward(self) -> FloatArray:
        """Play the plan for some days, and return the root mean square reward of each household's kind.

        A heavy load costs many bits a day; without units the other kinds would hardly be learned.
        """
        squares = np.zeros(self._kinds)
        for _ in range(_TRIAL_DECISIONS):
            self._actions = self._plan_scores().argmax(axis=1)
            reward = self.step_wait()[1]
            squares += np.bincount(self._kind, reward**2, minlength=self._kinds)
        counts = np.bincount(self._kind, minlength=self._kinds) * _TRIAL_DECISIONS
        return np.asarray(np.maximum(np.sqrt(squares / np.maximum(counts, 1)), 1e-3)[self._kind])

    def step_wait(self) -> VecEnvStepReturn:
        """Hold every household's choice until its next decision."""
        kept_kwh = self._kept_kwh[self._kind, self.homes.slot, self._actions]
        self.homes, played = block(
            self._tables, self.rules, self.limits, self.price, self.homes, self._day, self._actions, kept_kwh
        )
        self.lasted = played.slots
        changes = ~played.rescued & ((self.homes.slot == 0) | (self._rng.random(self.num_envs) < RECOMBINED))
        self._day = np.where(changes, self._drawn_days(), self._day)
        reward = -self._weight * played.bits / KBITS - (1.0 - self._weight) * played.cost
        self.totals += [played.slots.sum() / SLOTS, played.bits.sum(), played.cost.sum(), played.missed_minutes.sum()]
        never = np.zeros(self.num_envs, dtype=np.bool_)
        return self._observe(), (reward / self._unit).astype(np.float32), never, [{} for _ in never]

    def _drawn_days(self) -> IntArray:
        days: IntArray = self._scale[self._kind] * self._days + self._rng.integers(self._days, size=self.num_envs)
        return days

    def _observe(self) -> FloatArray:
        slot, stored_kwh, left_kwh = self.homes
        seen = observation(
            self._course[self._kind, slot],
            slot,
            stored_kwh,
            left_kwh,
            self.limits.range_kwh,
            self.limits.budget_kwh,
            self.price,
        )
        planned = plan_logits(self._plan_scores(), self.rules.choices)
        return np.concatenate([seen, planned / WORST, planned], axis=1).astype(np.float32)

    def _plans(self, records: FloatArray) -> FloatArray:
        """Plan for every kind of household, (kind, half hour, 1 + budget steps, 1 + SoC steps, M), hour by hour."""
        values = {part.name: np.max(getattr(self._battery, part.name)) for part in fields(Battery)}
        shared = {name: np.full(len(records), value) for name, value in values.items()}
        battery, zero, costs = Battery(**shared), np.zeros(len(records)), []
        for slot in range(0, SLOTS, 2):
            clock = np.full(len(records), slot * SLOT_MINUTES)
            situation = Situation(self.rules, battery, zero, zero, clock, records, np.arange(len(records)), self.price)
            costs.append(self._plan.grid_costs(situation))
        return np.repeat(np.stack(costs, axis=1), 2, axis=1).swapaxes(3, 4)

    def _plan_scores(self) -> FloatArray:
        """Interpolate the plan between charges and budgets."""
        slot, stored_kwh, left_kwh = self.homes
        budgets, charges = (steps - 1 for steps in self._planned.shape[2:4])
        x = np.clip(stored_kwh / self.limits.range_kwh * charges, 0.0, charges - 1e-9)
        y = np.clip(left_kwh / self.limits.budget_kwh * budgets, 0.0, budgets - 1e-9)
        column, row = x.astype(np.int64), y.astype(np.int64)
        cost = np.zeros((len(slot), self._planned.shape[4]))
        for down, right in ((0, 0), (0, 1), (1, 0), (1, 1)):
            weight = np.abs(1 - down - y + row) * np.abs(1 - right - x + column)
            cost += weight[:, None] * self._planned[self._kind, slot, row + down, column + right]
        return -cost


class PlannedPolicy(ActorCriticPolicy):
    """Policy whose logits are a plan's plus those of the network; the plan's follow the observation."""

    def _build_mlp_extractor(self) -> None:
        actions = int(self.action_space.n)  # type: ignore[attr-defined]
        self.mlp_extractor = _PastPlan(self.features_dim - actions, self.net_arch, self.activation_fn)
        self.mlp_extractor.latent_dim_pi += actions

    def _build(self, lr_schedule: Any) -> None:
        self.action_dist = _PlannedCategorical(int(self.action_space.n))  # type: ignore[attr-defined]
        super()._build(lr_schedule)


class _PastPlan(MlpExtractor):
    """Feature extractor that passes the plan's logits around both networks."""

    def __init__(self, width: int, *args: Any) -> None:
        super().__init__(width, *args)
        self.width = width

    def forward_actor(self, features: Tensor) -> Tensor:
        return torch.cat([super().forward_actor(features[:, : self.width]), features[:, self.width :]], dim=1)

    def forward_critic(self, features: Tensor) -> Tensor:
        return super().forward_critic(features[:, : self.width])


class _PlannedCategorical(CategoricalDistribution):
    def proba_distribution_net(self, latent_dim: int) -> nn.Module:
        return _PlannedLogits(latent_dim - self.action_dim, self.action_dim)


class _PlannedLogits(nn.Linear):
    def forward(self, latent: Tensor) -> Tensor:
        return super().forward(latent[:, : self.in_features]) + latent[:, self.in_features :]


def learn(
    household: Household,
    days: Sequence[date],
    setup: Setup,
    settings: VeilSettings,
    folder: Path,
    notes: Mapping[str, Any] | None = None,
    on_round: Callable[[Round], object] | None = None,
) -> TrainedRun:
    """Train the veil's manager for a household in a run folder; an interrupted training begins again."""
    scenario = training_scenario(household, days, setup)
    whole = [day.aggregate_w for day in map(household.day, days) if len(day.aggregate_w) == DAY_MINUTES]
    if not whole:
        raise InputError(f"{household.name} has no training day of {DAY_MINUTES} minutes; give other days")
    document = run_document(settings, household, days, setup, notes)
    write_run(folder, document)
    price = usual_price(setup.tariff)
    decider, curve, seconds = train(Veil(), whole, setup.battery, price, settings, setup.seed, on_round)
    fitted = Veil(decider=decider).fitted(whole, price, setup.battery)
    figures = training_figures(fitted, scenario, setup) | {"training_seconds": seconds}
    entries = [asdict(entry) for entry in curve]
    return finish_run(folder, document, decider.network.arrays(), figures=figures, curve=entries)


def train(
    veil: Veil,
    days_w: Sequence[FloatArray],
    battery: Battery,
    price: FloatArray,
    settings: VeilSettings,
    seed: int,
    on_round: Callable[[Round], object] | None = None,
) -> tuple[Learned, list[Round], float]:
    """Train the decider of a veil on days of 1440 minutes; return it, its curve and the seconds it took."""
    if not np.max(battery.budget_kwh) > 0.0:
        raise InputError("this battery can do nothing: its budget is 0 kWh a day; give it more")
    began = time.perf_counter()
    known_w = np.stack([np.where(np.isnan(load_w), np.nanmedian(load_w), load_w) for load_w in days_w])
    households = VeiledHouseholds(veil, known_w, battery, price, settings)
    curve: list[Round] = []
    with own_randomness():
        model = ppo.build(settings, households, seed, PlannedPolicy)
        model.set_logger(Logger(None, []))
        for number in range(settings.rounds):
            left = 1.0 - number / settings.rounds
            model.lr_schedule = FloatSchedule(settings.learning_rate * left)
            model.ent_coef = settings.entropy * left
            before = households.totals.copy()
            model.learn(settings.horizon, reset_num_timesteps=False)
            days, *sums = households.totals - before
            curve.append(Round(model.num_timesteps, float(households.totals[0]), *(float(x / days) for x in sums)))
            if on_round:
                on_round(curve[-1])
        network = ppo.actor(model)
    weights, biases = (tuple(part.astype(np.float64) for part in parts) for parts in (network.weights, network.biases))
    return Learned(Mlp(weights, biases), _plan_of(veil)), curve, time.perf_counter() - began


def _plan_of(veil: Veil) -> Planner:
    """Return the plan that the manager corrects: the veil's own, if it has one."""
    return veil.decider if isinstance(veil.decider, Planner) else Planner()


def _needs_kwh(record: FloatArray, rules: Rules) -> FloatArray:
    """Return the budget that the quiet hours need, (half hour of the choice, choice, half hour)."""
    usual = np.median(record, axis=0)[None, None]
    slot, choice = np.divmod(np.arange(SLOTS * rules.choices), rules.choices)
    known: IntArray = np.minimum(choice, len(rules.menu_w) - 1)
    needs_kwh = quiet_need_kwh(usual, np.zeros_like(slot), known, slot * SLOT_MINUTES, rules)
    return needs_kwh.reshape(SLOTS, rules.choices, SLOTS)
