"""Training of a probe on a household's aggregate, with the leak-free sampling of appendix E.3."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from meterveil.core.arrays import FloatArray, IntArray
from meterveil.data.household import Household
from meterveil.data.splits import VALIDATION_SHARE, check_recorded
from meterveil.data.windows import Scaler, complete_starts
from meterveil.defenders.manager.probes import MINUTES, Probe, build, check_kind
from meterveil.errors import InputError

Progress = Callable[[int, float], object]
"""Callback after every epoch, with its number and the validation loss."""


@dataclass(frozen=True)
class Recipe:
    """How a probe is trained; what the paper leaves open was chosen on validation segments."""

    segments: int = 5000
    """Number of segments for training, and for validation (E.3)."""
    stride: int = 30
    offsets: int = 1440
    """Number of minutes that the start of a pass is drawn from."""
    batch: int = 64
    epochs: int = 5
    learning_rate: float = 2e-3
    """Maximum of a one-cycle schedule."""


def train_probe(
    kind: str,
    household: Household,
    days: Sequence[date],
    seed: int,
    recipe: Recipe | None = None,
    progress: Progress | None = None,
) -> Probe:
    """Train a probe on these days and keep the weights of the best epoch.

    The first eight tenths of the days are for scaling and training, the rest for validation.
    """
    check_kind(kind)
    recipe = recipe or Recipe()
    aggregate_w = training_minutes(household, days)
    cut = cut_minute(len(aggregate_w))
    scaler = Scaler.fit(aggregate_w[:cut])
    rng = np.random.default_rng(seed)
    learning, validating = (
        _cut_out(scaler, aggregate_w, starts) for starts in sample_segments(aggregate_w, cut, recipe, rng)
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = build(kind)
        if network is not None:
            _fit(network, learning, validating, recipe, progress)
    return Probe(kind, scaler, network, clean_quality(Probe(kind, scaler, network), validating))


def training_minutes(household: Household, days: Sequence[date]) -> FloatArray:
    """Return the minutes from the first to the last day; days between that are not given are unknown."""
    if not days:
        raise InputError(f"{household.name}: no days to train a probe on; give at least one whole day")
    check_recorded(household, days)
    part = household.between(min(days), max(days) + timedelta(days=1))
    chosen = pd.Series(part.minutes.date).isin(list(days)).to_numpy()
    return np.where(chosen, part.aggregate_w, np.nan)


def cut_minute(minutes: int) -> int:
    """Return the first minute of validation: the start of day 9 of ten."""
    return round(minutes * (1.0 - VALIDATION_SHARE))


def sample_segments(
    aggregate_w: FloatArray, cut: int, recipe: Recipe, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Draw the first minutes of training and validation segments; no minute is in both (E.3)."""
    known = np.zeros(len(aggregate_w), dtype=np.bool_)
    known[_complete_starts(aggregate_w)] = True
    if not known[: cut - MINUTES + 1].any() or not known[cut:].any():
        raise InputError(
            f"{len(aggregate_w):,} minutes, {int(np.isnan(aggregate_w).sum()):,} of them unknown, hold no "
            f"whole hour on both sides of minute {cut:,}; give more or better days"
        )
    found: tuple[list[int], list[int]] = ([], [])
    while min(map(len, found)) < recipe.segments:
        for kept, starts in zip(found, _one_pass(len(aggregate_w), cut, recipe, rng), strict=True):
            kept.extend(starts[known[starts]].tolist())
    learning, validating = (np.array(kept[: recipe.segments], dtype=np.int64) for kept in found)
    return learning, validating


def _one_pass(minutes: int, cut: int, recipe: Recipe, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Slide over the record once: split by order, then drop segments that cross the cut."""
    offset = int(rng.integers(min(recipe.offsets, minutes - MINUTES + 1)))
    starts = np.arange(offset, minutes - MINUTES + 1, recipe.stride, dtype=np.int64)
    tagged = round(len(starts) * (1.0 - VALIDATION_SHARE))
    learning, validating = starts[:tagged], starts[tagged:]
    return learning[learning + MINUTES <= cut], validating[validating >= cut]


def _complete_starts(aggregate_w: FloatArray) -> IntArray:
    if len(aggregate_w) < MINUTES:
        return np.empty(0, dtype=np.int64)
    return complete_starts(aggregate_w, MINUTES)


def _cut_out(scaler: Scaler, aggregate_w: FloatArray, starts: IntArray) -> Tensor:
    windows = aggregate_w[starts[:, None] + np.arange(MINUTES)]
    return torch.from_numpy(scaler.transform(windows).astype(np.float32))


def _fit(
    network: nn.Module, learning: Tensor, validating: Tensor, recipe: Recipe, progress: Progress | None
) -> None:
    """Minimise the squared error of the reconstruction and keep the weights of the best epoch."""
    optimiser = torch.optim.Adam(network.parameters(), lr=recipe.learning_rate)
    steps = -(-len(learning) // recipe.batch) * recipe.epochs
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, recipe.learning_rate, total_steps=steps)
    best_loss, best = np.inf, dict[str, Tensor]()
    for epoch in range(recipe.epochs):
        network.train()
        for part in torch.split(torch.randperm(len(learning)), recipe.batch):
            optimiser.zero_grad(set_to_none=True)
            nn.functional.mse_loss(network(learning[part]), learning[part]).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            schedule.step()
        loss = _validation_loss(network, validating)
        if loss < best_loss:
            best_loss, best = loss, {name: part.clone() for name, part in network.state_dict().items()}
        if progress:
            progress(epoch, loss)
    network.load_state_dict(best)
    network.eval()


def _validation_loss(network: nn.Module, validating: Tensor) -> float:
    network.eval()
    with torch.inference_mode():
        parts = [
            nn.functional.mse_loss(network(part), part) * len(part) for part in torch.split(validating, 256)
        ]
    return float(sum(parts)) / len(validating)


def clean_quality(probe: Probe, validating: Tensor) -> dict[str, float]:
    """Measure how well a probe reconstructs unmasked segments."""
    truth = validating.numpy()
    answers = np.concatenate([probe.reconstruct(part.numpy()) for part in torch.split(validating, 256)])
    error = float(np.mean((answers - truth) ** 2))
    return {
        "rmse_w": error**0.5 * probe.scaler.std,
        "mse": error,
        "explained": 1.0 - error / float(np.var(truth)),
        "segments": float(len(truth)),
    }
