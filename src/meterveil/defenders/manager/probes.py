"""Privacy probes: networks that reconstruct an hour of the clean aggregate from the masked meter (E.3).

A probe stands in for unknown attackers during training; a trained defence does not need it.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_weights
from safetensors.torch import save as weights_bytes
from torch import Tensor, nn

from meterveil.data.outputs import text_writer, write_all
from meterveil.data.windows import Scaler
from meterveil.errors import InputError, unknown

MINUTES = 60
CARD, WEIGHTS = "probe.json", "probe.safetensors"
FORMAT = "meterveil-probe-1"

Float32Array = npt.NDArray[np.float32]


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


PROBES: dict[str, Callable[[], nn.Module] | None] = {
    "transformer": TransformerProbe,
    "lstm": LstmProbe,
    "cnn": CnnProbe,
    "identity": None,
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

    def reconstruct(self, scaled: Float32Array) -> Float32Array:
        """Reconstruct the clean aggregate, (batch, 60) to (batch, 60)."""
        if self.network is None:
            return scaled
        with torch.inference_mode():
            answer: Float32Array = self.network(torch.from_numpy(scaled)).numpy()
        return answer

    def weights(self) -> bytes:
        """Return the weights as a safetensors file, empty for an identity."""
        return weights_bytes(dict(self.network.state_dict())) if self.network else weights_bytes({})


def check_kind(kind: str) -> str:
    """Refuse an unknown probe."""
    if kind not in PROBES:
        raise unknown("probe", kind, PROBES)
    return kind


def build(kind: str) -> nn.Module | None:
    """Build an untrained network."""
    make = PROBES[check_kind(kind)]
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
