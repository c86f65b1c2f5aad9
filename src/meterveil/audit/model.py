"""Shipped model that reads five appliances out of one-minute readings with NumPy and onnxruntime.

A use is a run of minutes in which an appliance seems to be on, joined over short pauses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from meterveil.core.arrays import BoolArray, FloatArray, runs
from meterveil.data.files import read_card
from meterveil.errors import InputError, how_to_install

SHIPPED = Path(__file__).parent / "models"
WEIGHTS, CARD = "audit.onnx", "audit.json"
FORMAT = "meterveil-audit-1"

STRETCH_MINUTES = 28 * 1440
CONTEXT_MINUTES = 720
"""A long record is read in stretches with half a day of context on both sides, more than the network uses."""

WIDE_MINUTES = 241
"""The lowest reading over four hours is the base load: no target appliance runs longer."""
NARROW_MINUTES = 31
"""The lowest reading over half an hour also removes an oven or a washing machine below a kettle."""
MOST_KW = 12.0
CHANNELS = 3


class Shape(NamedTuple):
    """Durations of one use of an appliance: longest pause within it, shortest and longest run."""

    pause_minutes: int
    least_minutes: int
    most_minutes: int


SHAPES: dict[str, Shape] = {
    "kettle": Shape(pause_minutes=1, least_minutes=1, most_minutes=15),
    "microwave": Shape(pause_minutes=2, least_minutes=1, most_minutes=60),
    "fridge": Shape(pause_minutes=2, least_minutes=4, most_minutes=720),
    "dishwasher": Shape(pause_minutes=45, least_minutes=20, most_minutes=300),
    "washing_machine": Shape(pause_minutes=30, least_minutes=20, most_minutes=300),
}
"""Appliances that the shipped model knows, in the order of its outputs."""
MACHINES = ("dishwasher", "washing_machine")
"""Appliances that run while people sleep or are away."""

OTHER = Shape(pause_minutes=5, least_minutes=1, most_minutes=1440)

WORDS = ((0.9, "almost certain"), (0.65, "likely"), (0.0, "unsure"))
"""Least probability -> word."""

AGREEMENT = 0.5
"""A detected use is right where at least this share of its minutes lies in a true use."""
SLACK_MINUTES = 2
"""Allowed difference between the clocks of two meters."""


class Use(NamedTuple):
    """One use, as minutes of the record from `start` up to, not including, `end`."""

    appliance: str
    start: int
    end: int
    probability: float

    @property
    def word(self) -> str:
        return next(word for least, word in WORDS if self.probability >= least)

    @property
    def is_sure(self) -> bool:
        return self.word != "unsure"


def runs_of(on: BoolArray, shape: Shape) -> list[tuple[int, int]]:
    """List the uses in (minute,) on-minutes as half-open ranges."""
    return [
        (int(start), int(end))
        for start, end in zip(*runs(on, shape.pause_minutes), strict=True)
        if shape.least_minutes <= end - start <= shape.most_minutes
    ]


def minutes_of(runs: list[tuple[int, int]], length: int) -> BoolArray:
    """Mark the minutes of uses, pauses included."""
    marked = np.zeros(length + 1, dtype=np.int64)
    for start, end in runs:
        marked[start] += 1
        marked[end] -= 1
    return np.asarray(np.cumsum(marked)[:-1] > 0)


def agreeing(detected: list[tuple[int, int]], true: list[tuple[int, int]], length: int) -> BoolArray:
    """Mark the detected uses that lie to a large enough share in true uses."""
    spread = [(max(start - SLACK_MINUTES, 0), min(end + SLACK_MINUTES, length)) for start, end in true]
    covered = np.concatenate([[0], np.cumsum(minutes_of(spread, length))])
    shares = [(covered[end] - covered[start]) / (end - start) for start, end in detected]
    return np.asarray(shares, dtype=np.float64) >= AGREEMENT


def score_of_run(logit: FloatArray, start: int, end: int) -> float:
    """Rate a use by the mean log-odds of the better half of its minutes, so that pauses do not count."""
    part = np.sort(logit[start:end])
    return float(part[len(part) // 2 :].mean())


class Curve(NamedTuple):
    """Logistic curve from scores to calibrated probabilities."""

    slope: float = 1.0
    shift: float = 0.0

    def probability(self, score: FloatArray) -> FloatArray:
        return np.asarray(1.0 / (1.0 + np.exp(-np.clip(self.slope * score + self.shift, -40.0, 40.0))))


class Reading(NamedTuple):
    """Output of the model for one record: (minute,) probabilities, NaN where unknown, and uses by time."""

    probability: Mapping[str, FloatArray]
    uses: tuple[Use, ...]


@dataclass(frozen=True)
class Decision:
    """Log-odds from which a minute of one appliance counts as on, and the calibration of minutes and uses."""

    cut: float
    minute: Curve
    use: Curve


@dataclass(frozen=True)
class Model:
    """Weights, decisions and the card that states their origin."""

    weights: bytes
    decisions: Mapping[str, Decision]
    card: Mapping[str, Any]

    @cached_property
    def _session(self) -> Any:
        try:
            onnxruntime = import_module("onnxruntime")
        except ImportError as error:
            advice = f"install it with {how_to_install('audit')}"
            raise InputError(f"reading appliances needs onnxruntime; {advice}") from error
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
            logits = self.answer(features(piece[None]))[0]
            parts.append(logits[:, start - low : start - low + STRETCH_MINUTES])
        return dict(zip(self.decisions, np.concatenate(parts, axis=-1).astype(np.float64), strict=True))

    def read(self, aggregate_w: FloatArray) -> Reading:
        """Read a record, (minute,), with NaN where the meter was unknown."""
        known, probability = ~np.isnan(aggregate_w), {}
        uses: list[Use] = []
        for name, logit in self.logits(bridged(aggregate_w)).items():
            decision = self.decisions[name]
            probability[name] = np.where(known, decision.minute.probability(logit), np.nan)
            runs = runs_of((logit >= decision.cut) & known, SHAPES[name])
            sure = decision.use.probability(np.array([score_of_run(logit, *run) for run in runs]))
            uses += [Use(name, *run, float(p)) for run, p in zip(runs, sure, strict=True)]
        return Reading(probability, tuple(sorted(uses, key=lambda use: (use.start, use.appliance))))


def features(reading_w: FloatArray) -> npt.NDArray[np.float32]:
    """Turn gap-free readings, (batch, minute), into (batch, channel, minute) without the base load."""
    above_kw = (reading_w - lowest(reading_w, WIDE_MINUTES)) / 1000.0
    step_kw = (reading_w - lowest(reading_w, NARROW_MINUTES)) / 1000.0
    channels = [np.clip(above_kw, 0.0, MOST_KW) / 2.0, _log_scaled(above_kw), _log_scaled(step_kw)]
    return np.stack(channels, axis=-2).astype(np.float32)


def lowest(reading_w: FloatArray, window: int) -> FloatArray:
    """Return the minimum over an odd number of minutes around each minute, along the last axis.

    Windows of doubled length are combined, so the work grows with the logarithm of the window.
    """
    half = window // 2
    minimum = np.pad(reading_w, [(0, 0)] * (reading_w.ndim - 1) + [(half, half)], mode="edge")
    reach = 1
    while reach * 2 <= window:
        minimum = np.minimum(minimum[..., :-reach], minimum[..., reach:])
        reach *= 2
    rest = window - reach
    return np.asarray(np.minimum(minimum[..., : minimum.shape[-1] - rest], minimum[..., rest:]))


def _log_scaled(power_kw: FloatArray) -> FloatArray:
    """Compress large powers, so that a fridge is as visible as a shower."""
    return np.asarray(np.log1p(20.0 * np.clip(power_kw, 0.0, MOST_KW)) / 4.0)


def bridged(aggregate_w: FloatArray) -> FloatArray:
    """Interpolate linearly over gaps."""
    known = np.flatnonzero(~np.isnan(aggregate_w))
    return np.interp(np.arange(len(aggregate_w)), known, aggregate_w[known])


def load_model(folder: Path = SHIPPED) -> Model:
    """Load a model and its card; refuse missing, foreign and altered files."""
    advice = "reinstall meterveil, or train the model: python -m experiments.audit_training"
    card, weights = read_card(folder, (CARD, WEIGHTS), FORMAT, "audit model", advice)
    decisions = {
        name: Decision(part["cut"], Curve(*part["minute"]), Curve(*part["use"]))
        for name, part in card["decisions"].items()
    }
    return Model(weights, decisions, card)
