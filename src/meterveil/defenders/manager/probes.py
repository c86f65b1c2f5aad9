"""Privacy probes: networks that reconstruct an hour of the clean aggregate from the masked meter (E.3).

A probe stands in for unknown attackers during training; a trained defence does not need it. It is trained on
a household's aggregate with the leak-free sampling of appendix E.3.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_weights
from safetensors.torch import save as weights_bytes
from torch import Tensor, nn

from meterveil.core.arrays import FloatArray, IntArray
from meterveil.data.household import Household
from meterveil.data.outputs import text_writer, write_all
from meterveil.data.splits import VALIDATION_SHARE, Scaler, check_recorded, complete_starts
from meterveil.defenders.training_settings import DENOISING
from meterveil.errors import InputError, unknown

MINUTES = 60
CARD, WEIGHTS = "probe.json", "probe.safetensors"
FORMAT = "meterveil-probe-1"

Float32Array = npt.NDArray[np.float32]

Progress = Callable[[int, float], object]
"""Callback after every epoch, with its number and the validation loss."""


class TransformerProbe(nn.Module):
    """Three layers of attention; the paper does not give the width of the feed-forward part."""

    def __init__(self, width: int = 64, layers: int = 3, heads: int = 4, dropout: float = 0.1) -> None:
        super().__init__()
        self.embed = nn.Linear(1, width)
        self.register_buffer("position", _sinusoids(MINUTES, width), persistent=False)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.project = nn.Linear(width, 1)

    def forward(self, seen: Tensor) -> Tensor:
        """Map (batch, minute) to (batch, minute)."""
        hidden = self.encoder(self.embed(seen[..., None]) + self.position)
        return torch.squeeze(self.project(hidden), -1)


class LstmProbe(nn.Module):
    """Two recurrent layers."""

    def __init__(self, width: int = 64, layers: int = 2) -> None:
        super().__init__()
        self.encoder = nn.LSTM(1, width, layers, batch_first=True)
        self.project = nn.Linear(width, 1)

    def forward(self, seen: Tensor) -> Tensor:
        """Map (batch, minute) to (batch, minute)."""
        hidden, _ = self.encoder(seen[..., None])
        return torch.squeeze(self.project(hidden), -1)


class CnnProbe(nn.Module):
    """Three convolutions that keep the length of the hour."""

    def __init__(self, width: int = 64, kernel: int = 3) -> None:
        super().__init__()
        padding = kernel // 2
        self.layers = nn.Sequential(
            nn.Conv1d(1, width, kernel, padding=padding),
            nn.ReLU(),
            nn.Conv1d(width, width, kernel, padding=padding),
            nn.ReLU(),
            nn.Conv1d(width, 1, kernel, padding=padding),
        )

    def forward(self, seen: Tensor) -> Tensor:
        """Map (batch, minute) to (batch, minute)."""
        return torch.squeeze(self.layers(seen[:, None]), 1)


class DenoisingProbe(nn.Module):
    """Dilated convolutions that see half an hour to each side and the usual load; not in the paper.

    It learns to remove what the battery added, and is refitted while the manager learns (`denoising.py`).
    """

    def __init__(self, width: int = 32, kernel: int = 5, dilations: Sequence[int] = (1, 2, 4, 8)) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for dilation in dilations:
            channels, padding = width if layers else 2, dilation * (kernel // 2)
            layers += [nn.Conv1d(channels, width, kernel, padding=padding, dilation=dilation), nn.ReLU()]
        self.layers = nn.Sequential(*layers, nn.Conv1d(width, 1, 1))

    def forward(self, seen: Tensor, usual: Tensor | None = None) -> Tensor:
        """Map (batch, minute) to (batch, minute); the usual load is the mean unless given."""
        usual = torch.zeros_like(seen) if usual is None else usual
        return usual + torch.squeeze(self.layers(torch.stack([seen, usual], dim=1)), 1)


PROBES: dict[str, Callable[[], nn.Module] | None] = {
    "transformer": TransformerProbe,
    "lstm": LstmProbe,
    "cnn": CnnProbe,
    "identity": None,
    DENOISING: DenoisingProbe,
}
"""Name -> network; `identity` returns its input, so that its error is a formula."""


@dataclass(frozen=True)
class Probe:
    """Fitted probe; its input and output are scaled readings."""

    kind: str
    scaler: Scaler
    network: nn.Module | None = None
    quality: Mapping[str, float] = field(default_factory=dict)
    """Quality on clean validation segments: `rmse_w`, `explained` (share of the variance) and more."""

    def reconstruct(self, *scaled: Float32Array) -> Float32Array:
        """Reconstruct the clean aggregate, (batch, 60), from the meter and, for a denoising probe, the usual load."""
        if self.network is None:
            return scaled[0]
        with torch.inference_mode():
            answer: Float32Array = self.network(*map(torch.from_numpy, scaled)).numpy()
        return answer

    def weights(self) -> bytes:
        """Return the weights as a safetensors file, empty for an identity."""
        return weights_bytes(dict(self.network.state_dict())) if self.network else weights_bytes({})


def build(kind: str) -> nn.Module | None:
    """Build an untrained network."""
    if kind not in PROBES:
        raise unknown("probe", kind, PROBES)
    make = PROBES[kind]
    return make() if make else None


def save(probe: Probe, folder: Path) -> None:
    """Write the weights and the card of a probe."""
    weights = probe.weights()
    card = {
        "format": FORMAT,
        "kind": probe.kind,
        "mean_w": probe.scaler.mean,
        "std_w": probe.scaler.std,
        "quality": dict(probe.quality),
        "weights": hashlib.sha256(weights).hexdigest(),
    }
    write_all(
        {
            folder / WEIGHTS: lambda path: path.write_bytes(weights),
            folder / CARD: text_writer(json.dumps(card, indent=1) + "\n"),
        }
    )


def load(folder: Path) -> Probe:
    """Read a probe; a missing, foreign or altered file is refused."""
    try:
        card = json.loads((folder / CARD).read_text(encoding="utf-8"))
        weights = (folder / WEIGHTS).read_bytes()
    except (OSError, ValueError) as error:
        raise InputError(f"{folder} holds no probe ({CARD} and {WEIGHTS}); {error}") from error
    if not isinstance(card, dict) or card.get("format") != FORMAT:
        raise InputError(f'{folder / CARD} is not a card of "format": "{FORMAT}"; train the probe again')
    if hashlib.sha256(weights).hexdigest() != card.get("weights"):
        raise InputError(f"{folder / WEIGHTS} is not the file that {CARD} was written for; train it again")
    network = build(card["kind"])
    if network is not None:
        try:
            network.load_state_dict(load_weights(weights))
        except (SafetensorError, RuntimeError) as error:
            raise InputError(f"{folder / WEIGHTS} does not fit a {card['kind']} probe; {error}") from error
        network.eval()
    return Probe(card["kind"], Scaler(card["mean_w"], card["std_w"]), network, card["quality"])


def _sinusoids(length: int, width: int) -> Tensor:
    """Return the sinusoidal positions of the original transformer, (length, width)."""
    minute = torch.arange(length)[:, None]
    rate = torch.exp(torch.arange(0, width, 2) * (-math.log(10_000.0) / width))
    table = torch.zeros(length, width)
    table[:, 0::2], table[:, 1::2] = torch.sin(minute * rate), torch.cos(minute * rate)
    return table


@dataclass(frozen=True)
class Recipe:
    """Training settings of a probe; what the paper leaves open was chosen on validation segments."""

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
            parts = Segments(learning, (learning,)), Segments(validating, (validating,))
            fit_network(network, *parts, recipe, progress)
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
    if len(aggregate_w) >= MINUTES:
        known[complete_starts(aggregate_w, MINUTES)] = True
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


def _cut_out(scaler: Scaler, aggregate_w: FloatArray, starts: IntArray) -> Tensor:
    windows = aggregate_w[starts[:, None] + np.arange(MINUTES)]
    return torch.from_numpy(scaler.transform(windows).astype(np.float32))


class Segments(NamedTuple):
    """Hours to learn from, (segment, minute), scaled."""

    clean: Tensor
    inputs: tuple[Tensor, ...]  # arguments of the network


def fit_network(
    network: nn.Module, learning: Segments, validating: Segments, recipe: Recipe, progress: Progress | None = None
) -> None:
    """Minimise the squared error of the reconstruction and keep the weights of the best epoch."""
    optimiser = torch.optim.Adam(network.parameters(), lr=recipe.learning_rate)
    clean, inputs = learning
    steps = -(-len(clean) // recipe.batch) * recipe.epochs
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, recipe.learning_rate, total_steps=steps)
    best_loss, best = np.inf, dict[str, Tensor]()
    for epoch in range(recipe.epochs):
        network.train()
        for part in torch.split(torch.randperm(len(clean)), recipe.batch):
            optimiser.zero_grad(set_to_none=True)
            answer = network(*(given[part] for given in inputs))
            nn.functional.mse_loss(answer, clean[part]).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            schedule.step()
        loss = _validation_loss(network, validating)
        if loss < best_loss:
            best_loss, best = loss, {name: part.clone() for name, part in network.state_dict().items()}
        if progress:
            progress(epoch, loss)
    network.load_state_dict(best)
    network.eval()


def _validation_loss(network: nn.Module, validating: Segments) -> float:
    network.eval()
    batches = zip(*(torch.split(part, 256) for part in (validating.clean, *validating.inputs)), strict=True)
    with torch.inference_mode():
        parts = [nn.functional.mse_loss(network(*inputs), clean) * len(clean) for clean, *inputs in batches]
    return float(sum(parts)) / len(validating.clean)


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
