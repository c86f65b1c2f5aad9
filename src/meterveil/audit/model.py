"""The shipped model: reads five appliances out of any home's minutes with NumPy and onnxruntime alone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from meterveil.audit.calibration import Curve
from meterveil.audit.features import FloatArray, features
from meterveil.audit.uses import SHAPES, Use, runs_of, score_of_run
from meterveil.errors import InputError
from meterveil.extras import how_to_install

SHIPPED = Path(__file__).parent / "models"
WEIGHTS, CARD = "audit.onnx", "audit.json"
FORMAT = "meterveil-audit-1"

STRETCH_MINUTES = 28 * 1440
CONTEXT_MINUTES = 720
"""A year is read month by month, with half a day of both neighbours: further off nothing is drawn on."""


@dataclass(frozen=True)
class Reading:
    """What the model says of a record; NaN where the meter was unknown."""

    probability: Mapping[str, FloatArray]
    """Appliance -> (minute,) probability that it is on."""
    uses: tuple[Use, ...]
    """In order of time."""


@dataclass(frozen=True)
class Decision:
    """How the log-odds of one appliance become probabilities and uses."""

    cut: float
    """Log-odds from which a minute counts as on."""
    minute: Curve
    use: Curve


@dataclass(frozen=True)
class Model:
    """Hold weights, decisions and the card that says where they come from."""

    weights: bytes
    decisions: Mapping[str, Decision]
    card: Mapping[str, Any]

    @cached_property
    def _session(self) -> Any:
        try:
            onnxruntime = import_module("onnxruntime")
        except ImportError as error:
            raise InputError(
                f"reading appliances needs onnxruntime; get it with {how_to_install('audit')}"
            ) from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        return onnxruntime.InferenceSession(self.weights, options, providers=["CPUExecutionProvider"])

    def answer(self, seen: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Run the network: (batch, channel, minute) -> log-odds (batch, appliance, minute)."""
        return np.asarray(self._session.run(None, {"seen": seen})[0])

    def logits(self, reading_w: FloatArray) -> dict[str, FloatArray]:
        """Return log-odds of every appliance for gap-free readings, (minute,) each."""
        parts = []
        for start in range(0, len(reading_w), STRETCH_MINUTES):
            low = max(start - CONTEXT_MINUTES, 0)
            piece = reading_w[low : start + STRETCH_MINUTES + CONTEXT_MINUTES]
            said = self.answer(features(piece[None]))[0]
            parts.append(said[:, start - low : start - low + STRETCH_MINUTES])
        return dict(zip(self.decisions, np.concatenate(parts, axis=-1).astype(np.float64), strict=True))

    def read(self, aggregate_w: FloatArray) -> Reading:
        """Read a record, (minute,), with gaps where the meter was unknown."""
        known = ~np.isnan(aggregate_w)
        logits = self.logits(bridged(aggregate_w))
        uses = [use for name, logit in logits.items() for use in self._uses(name, logit, known)]
        probability = {
            name: np.where(known, self.decisions[name].minute.probability(logit), np.nan)
            for name, logit in logits.items()
        }
        return Reading(probability, tuple(sorted(uses, key=lambda use: (use.start, use.appliance))))

    def _uses(self, name: str, logit: FloatArray, known: Any) -> list[Use]:
        decision = self.decisions[name]
        runs = runs_of((logit >= decision.cut) & known, SHAPES[name])
        scores = np.array([score_of_run(logit, start, end) for start, end in runs])
        sure = decision.use.probability(scores)
        return [Use(name, start, end, float(p)) for (start, end), p in zip(runs, sure, strict=True)]


def bridged(aggregate_w: FloatArray) -> FloatArray:
    """Join the known readings on both sides of a gap by a line, which looks like nothing in particular."""
    known = np.flatnonzero(~np.isnan(aggregate_w))
    return np.interp(np.arange(len(aggregate_w)), known, aggregate_w[known])


def load_model(folder: Path = SHIPPED) -> Model:
    """Load a model and its card; a missing, foreign or altered file is refused."""
    advice = "reinstall meterveil, or make it again: python -m meterveil.audit.train"
    try:
        card = json.loads((folder / CARD).read_text(encoding="utf-8"))
        weights = (folder / WEIGHTS).read_bytes()
    except (OSError, ValueError) as error:
        raise InputError(
            f"{folder} holds no audit model ({CARD} and {WEIGHTS}): {error}; {advice}"
        ) from error
    if not isinstance(card, dict) or card.get("format") != FORMAT:
        raise InputError(f'{folder / CARD} is not a card of "format": "{FORMAT}"; {advice}')
    if hashlib.sha256(weights).hexdigest() != card.get("weights"):
        raise InputError(f"{folder / WEIGHTS} is not the file that {CARD} was written for; {advice}")
    return Model(weights, decisions_of(card["decisions"]), card)


def decisions_of(values: Mapping[str, Mapping[str, Any]]) -> dict[str, Decision]:
    """Read the decisions of a card."""
    return {
        name: Decision(part["cut"], Curve(*part["minute"]), Curve(*part["use"]))
        for name, part in values.items()
    }
