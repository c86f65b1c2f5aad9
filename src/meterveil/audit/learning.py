"""How the shipped network learns, and how its log-odds become decisions; both on days that are kept apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from meterveil.attackers.decisions import best_threshold
from meterveil.audit.calibration import Curve, fit_curve
from meterveil.audit.examples import Batch, Source, draw, source_of
from meterveil.audit.features import FloatArray
from meterveil.audit.model import Decision, Model, bridged
from meterveil.audit.network import Network
from meterveil.audit.uses import SHAPES, BoolArray, agreeing, runs_of, score_of_run
from meterveil.data.household import Household
from meterveil.data.protocols import on_threshold_w

TARGETS = tuple(SHAPES)
IMPORTANCE = {"kettle": 4.0, "microwave": 4.0, "fridge": 0.5, "dishwasher": 2.0, "washing_machine": 2.0}
"""Weight of an appliance's loss: a rare one's would drown in that of the fridge."""


@dataclass(frozen=True)
class Recipe:
    """Settings of the training."""

    steps: int = 1600
    batch: int = 8
    learning_rate: float = 2e-3
    seed: int = 0


def train(
    sources: Sequence[Source], recipe: Recipe, report: Callable[[int, float], None] | None = None
) -> Network:
    """Train the network; the step size falls to nothing along half a cosine."""
    torch.manual_seed(recipe.seed)
    torch.set_num_threads(1)
    rng = np.random.default_rng(recipe.seed)
    network = Network(len(TARGETS))
    optimiser = torch.optim.AdamW(network.parameters(), recipe.learning_rate, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, recipe.learning_rate, recipe.steps)
    importance = torch.tensor([IMPORTANCE[name] for name in TARGETS])[:, None]
    for step in range(recipe.steps):
        batch = draw(sources, TARGETS, recipe.batch, rng)
        seen, on, weight = (torch.from_numpy(part) for part in batch)
        loss = nn.functional.binary_cross_entropy_with_logits(network(seen), on, weight * importance)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        if report:
            report(step + 1, loss.item())
    return network.eval()


class Case(NamedTuple):
    """What the network says of one appliance in one record, and what is true, (minute,) each."""

    logit: FloatArray
    truth: BoolArray


def decide(
    weights: bytes, homes: Sequence[Household], strangers: Sequence[Household], rng: np.random.Generator
) -> dict[str, Decision]:
    """Set cuts and probabilities on days that taught nothing.

    Half of the cases are days of the homes that taught, half are homes as they might be. How sure a use is
    also rests on `strangers`, homes that taught nothing at all: in known homes alone, the model would seem
    surer than it may be in others.
    """
    plain = Model(weights, dict.fromkeys(TARGETS, Decision(0.0, Curve(), Curve())), {})
    known, strange = ([_cases(plain, home) for home in part] for part in (homes, strangers))
    sources = [source for source in (source_of(home, TARGETS) for home in homes) if len(source.starts)]
    days = sum(len(home.days()) for home in homes)
    known += [_made_up(plain, draw(sources, TARGETS, 1, rng)) for _ in range(days)]
    return {name: _decision(name, _of(name, known), _of(name, strange)) for name in TARGETS}


def _of(name: str, records: Sequence[dict[str, Case]]) -> list[Case]:
    return [record[name] for record in records if name in record]


def _cases(model: Model, home: Household) -> dict[str, Case]:
    logits = model.logits(bridged(home.aggregate_w))
    known = {name: ~np.isnan(home.aggregate_w + watts) for name, watts in home.appliances_w.items()}
    return {
        name: Case(logits[name][known[name]], watts[known[name]] >= on_threshold_w(name))
        for name, watts in home.appliances_w.items()
    }


def _made_up(model: Model, made: Batch) -> dict[str, Case]:
    """Take the appliances whose every minute is known in a home that might be."""
    said = model.answer(made.seen)[0].astype(np.float64)
    return {
        name: Case(said[row], made.on[0, row] > 0)
        for row, name in enumerate(TARGETS)
        if made.weight[0, row].all()
    }


def _decision(name: str, known: Sequence[Case], strange: Sequence[Case]) -> Decision:
    logit, truth = (np.concatenate(part) for part in zip(*known, strict=True))
    cut, _ = best_threshold(logit, truth)
    rated: list[float] = []
    right: list[bool] = []
    for case in (*known, *strange):
        found, true = runs_of(case.logit >= cut, SHAPES[name]), runs_of(case.truth, SHAPES[name])
        rated += [score_of_run(case.logit, start, end) for start, end in found]
        right += list(agreeing(found, true, len(case.truth)))
    return Decision(cut, fit_curve(logit, truth), fit_curve(np.array(rated), np.array(right, dtype=bool)))
