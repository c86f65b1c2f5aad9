"""Train the model of `meterveil audit` and measure it: `python -m experiments.audit_training --data DIR`.

Makes src/meterveil/audit/models and the accuracy table of docs/audit.md (which the card repeats). DIR
contains `ukdale`; `refit` and `redd` are optional and never used for training: they set the probabilities in
unknown homes (REFIT, March 2014) and measure the model there. The same data, seed and library versions give
the same file. Takes three to four minutes; `--reuse` keeps the weights and repeats only the measurement.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd
import torch
from onnx import TensorProto, checker, helper, numpy_helper
from torch import Tensor, nn

from experiments.audit_examples import Batch, Source, draw, source_of
from meterveil.attackers.classical import best_threshold
from meterveil.audit.model import (
    CARD,
    CHANNELS,
    FORMAT,
    SHAPES,
    SHIPPED,
    WEIGHTS,
    Curve,
    Decision,
    Model,
    Reading,
    agreeing,
    bridged,
    load_model,
    runs_of,
    score_of_run,
)
from meterveil.audit.submeters import score
from meterveil.core.arrays import BoolArray, FloatArray
from meterveil.data.files import data_folder
from meterveil.data.household import Household
from meterveil.data.load import load
from meterveil.data.protocols import on_threshold_w
from meterveil.data.splits import consecutive_pieces

TARGETS = tuple(SHAPES)
IMPORTANCE = {"kettle": 4.0, "microwave": 4.0, "fridge": 0.5, "dishwasher": 2.0, "washing_machine": 2.0}
"""Weight of each appliance in the loss: the fridge is on so often that it would dominate."""
ATTRIBUTION = (
    "Trained from UK-DALE, houses 1 and 2 (J. Kelly and W. Knottenbelt, Scientific Data 2:150007, 2015, "
    "doi:10.1038/sdata.2015.7), CC BY 4.0; averaged to one minute, mixed and rescaled. Probabilities of uses "
    "set with REFIT, house 2, March 2014 (D. Murray, L. Stankovic and V. Stankovic, Scientific Data "
    "4:160122, 2017, doi:10.1038/sdata.2016.122), CC BY 4.0."
)
PAPER_DAY = date(2013, 3, 18)
"""The paper's test day, never used for training."""


@dataclass(frozen=True)
class Part:
    """Days of a house: training before `calibrate_from`, calibration before `measure_from`, then tests."""

    house: int
    calibrate_from: date
    measure_from: date


PARTS = (Part(1, date(2013, 6, 18), date(2013, 7, 10)), Part(2, date(2013, 6, 28), date(2013, 7, 15)))
UNSEEN_HOMES = {
    "refit_house_2": ("refit", Part(2, date(2014, 3, 1), date(2014, 4, 1))),
    "redd_house_2": ("redd", Part(2, date.min, date.min)),
}
"""Homes that are never used for training: name -> (folder, days)."""


@dataclass(frozen=True)
class Recipe:
    """Settings of the training."""

    steps: int = 1600
    batch: int = 8
    learning_rate: float = 2e-3
    seed: int = 0


WIDTH, STEM_MINUTES = 48, 9
DILATIONS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""Nine blocks see eight hours to either side: both heating phases of a dishwasher, the cycle of a fridge."""


class Network(nn.Module):
    """Dilated convolutions from (batch, channel, minute) to log-odds (batch, appliance, minute)."""

    def __init__(self, appliances: int) -> None:
        super().__init__()
        self.stem = nn.Conv1d(CHANNELS, WIDTH, STEM_MINUTES, padding=STEM_MINUTES // 2)
        self.wide = nn.ModuleList(nn.Conv1d(WIDTH, WIDTH, 3, padding=reach, dilation=reach) for reach in DILATIONS)
        self.mix = nn.ModuleList(nn.Conv1d(WIDTH, WIDTH, 1) for _ in DILATIONS)
        self.head = nn.Conv1d(WIDTH, appliances, 1)
        for layer in self.mix:
            nn.init.normal_(cast(Tensor, layer.weight), std=0.02)
        nn.init.constant_(cast(Tensor, self.head.bias), -3.0)

    def forward(self, seen: Tensor) -> Tensor:
        """Return log-odds for every minute."""
        hidden = torch.relu(self.stem(seen))
        for wide, mix in zip(self.wide, self.mix, strict=True):
            hidden = hidden + mix(torch.relu(wide(hidden)))
        return cast(Tensor, self.head(torch.relu(hidden)))


def onnx_bytes(network: Network) -> bytes:
    """Write the network as an ONNX graph; fixed versions give the same file with any version of onnx."""
    nodes: list[Any] = []
    weights: list[Any] = []

    def add(kind: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        name = output or f"value_{len(nodes)}"
        nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def convolution(value: str, layer: nn.Module, output: str = "") -> str:
        conv = cast(nn.Conv1d, layer)
        names = [f"{part}_{len(weights)}" for part in ("weight", "bias")]
        for name, part in zip(names, (conv.weight, conv.bias), strict=True):
            array = np.asarray(cast(Tensor, part).detach().numpy(), dtype=np.float32)
            weights.append(numpy_helper.from_array(array, name))
        pads = [cast(int, conv.padding[0])] * 2
        return add("Conv", value, *names, output=output, pads=pads, dilations=[int(conv.dilation[0])])

    value = add("Relu", convolution("seen", network.stem))
    for wide, mix in zip(network.wide, network.mix, strict=True):
        inner = add("Relu", convolution(value, wide))
        value = add("Add", value, convolution(inner, mix))
    convolution(add("Relu", value), network.head, "logits")
    sizes = {"seen": CHANNELS, "logits": network.head.out_channels}
    seen, logits = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", size, "minute"])
        for name, size in sizes.items()
    )
    graph = helper.make_graph(nodes, "meterveil-audit", [seen], [logits], weights)
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=9, producer_name="meterveil")
    checker.check_model(model)
    return cast(bytes, model.SerializeToString(deterministic=True))


def train(sources: Sequence[Source], recipe: Recipe, report: Callable[[int, float], None] | None = None) -> Network:
    """Train the network with a one-cycle learning rate."""
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


def fit_curve(scores: FloatArray, truth: BoolArray, ridge: float = 1.0, rounds: int = 50) -> Curve:
    """Fit a calibration curve by Newton's method; `ridge` pulls it towards slope 1 and shift 0."""
    plain = np.array([1.0, 0.0])
    weights = plain.copy()
    design = np.stack([scores, np.ones_like(scores)], axis=-1)
    for _ in range(rounds):
        probability = Curve(*weights).probability(scores)
        gradient = design.T @ (probability - truth) + ridge * (weights - plain)
        spread = design * (probability * (1.0 - probability))[:, None]
        step = np.linalg.solve(design.T @ spread + ridge * np.eye(2), gradient)
        weights = weights - np.clip(step, -1.0, 1.0)
        if np.abs(step).max() < 1e-8:
            break
    return Curve(float(weights[0]), float(weights[1]))


class Case(NamedTuple):
    """Log-odds and truth of one appliance in one record, (minute,) each."""

    logit: FloatArray
    truth: BoolArray


def decide(
    weights: bytes, homes: Sequence[Household], unseen: Sequence[Household], rng: np.random.Generator
) -> dict[str, Decision]:
    """Set thresholds and probabilities on held-out days.

    Half of the cases are days of the training homes, half are mixed homes. The probability of a use also
    rests on `unseen` homes, because the model is less accurate there than in the homes it knows.
    """
    plain = Model(weights, dict.fromkeys(TARGETS, Decision(0.0, Curve(), Curve())), {})
    known, unknown = ([_cases(plain, home) for home in part] for part in (homes, unseen))
    sources = [source for source in (source_of(home, TARGETS) for home in homes) if len(source.starts)]
    days = sum(len(home.days()) for home in homes)
    known += [_mixed_case(plain, draw(sources, TARGETS, 1, rng)) for _ in range(days)]
    return {
        name: _decision(name, *([case[name] for case in part if name in case] for part in (known, unknown)))
        for name in TARGETS
    }


def _cases(model: Model, home: Household) -> dict[str, Case]:
    logits = model.logits(bridged(home.aggregate_w))
    known = {name: ~np.isnan(home.aggregate_w + watts) for name, watts in home.appliances_w.items()}
    return {
        name: Case(logits[name][known[name]], watts[known[name]] >= on_threshold_w(name))
        for name, watts in home.appliances_w.items()
    }


def _mixed_case(model: Model, made: Batch) -> dict[str, Case]:
    """Take the appliances of a mixed home whose every minute is labelled."""
    logits = model.answer(made.seen)[0].astype(np.float64)
    return {
        name: Case(logits[row], made.on[0, row] > 0) for row, name in enumerate(TARGETS) if made.weight[0, row].all()
    }


def _decision(name: str, known: Sequence[Case], unknown: Sequence[Case]) -> Decision:
    logit, truth = (np.concatenate(part) for part in zip(*known, strict=True))
    cut, _ = best_threshold(logit, truth)
    rated: list[float] = []
    right: list[bool] = []
    for case in (*known, *unknown):
        detected, true = runs_of(case.logit >= cut, SHAPES[name]), runs_of(case.truth, SHAPES[name])
        rated += [score_of_run(case.logit, start, end) for start, end in detected]
        right += list(agreeing(detected, true, len(case.truth)))
    return Decision(cut, fit_curve(logit, truth), fit_curve(np.array(rated), np.array(right, dtype=bool)))


def measure(model: Model, homes: Sequence[Household]) -> dict[str, dict[str, float]]:
    """Score the model on held-out records, appliance by appliance."""
    readings = [model.read(home.aggregate_w) for home in homes]
    accuracy: dict[str, dict[str, float]] = {}
    for name, decision in model.decisions.items():
        pairs = [pair for pair in zip(homes, readings, strict=True) if name in pair[0].appliances_w]
        if pairs:
            cut = float(decision.minute.probability(np.array(decision.cut)))
            truth = np.concatenate([home.appliances_w[name] for home, _ in pairs])
            probability = np.concatenate([reading.probability[name] for _, reading in pairs])
            scores = score(name, truth, probability, cut)._asdict()
            figures = {**scores, "likely_right": _likely_right(name, pairs)}
            accuracy[name] = {metric: round(value, 3) for metric, value in figures.items()}
    return accuracy


def _likely_right(name: str, pairs: Sequence[tuple[Household, Reading]]) -> float:
    """Return the share that is right of the uses called likely or almost certain."""
    right: list[bool] = []
    for home, reading in pairs:
        sure = [(use.start, use.end) for use in reading.uses if use.appliance == name and use.is_sure]
        true = runs_of(home.appliances_w[name] >= on_threshold_w(name), SHAPES[name])
        right += list(agreeing(sure, true, len(home.minutes)))
    return float(np.mean(right)) if right else 0.0


def _metered(home: Household) -> Household:
    """Keep the targets that this house meters most of the time."""
    return home.select(name for name in TARGETS if name in home.appliances_w and home.coverage()[name] > 0.5)


def _days(home: Household, start: date, end: date) -> list[Household]:
    days = [day for day in home.days() if start <= day < end and day != PAPER_DAY]
    return consecutive_pieces(_metered(home), days)


def without_paper_day(home: Household) -> Household:
    """Make the paper's day unknown in the meter and in every sub-meter, because mixed homes use both."""
    hidden = home.minutes.tz_localize(None).normalize() == pd.Timestamp(PAPER_DAY)
    return replace(
        home,
        aggregate_w=np.where(hidden, np.nan, home.aggregate_w),
        appliances_w={name: np.where(hidden, np.nan, watts) for name, watts in home.appliances_w.items()},
    )


def make_weights(folder: Path, recipe: Recipe, report: Callable[[int, float], None] | None = None) -> bytes:
    """Train, and return the network as an ONNX file."""
    homes = [(part, _metered(load(folder / "ukdale", part.house))) for part in PARTS]
    first = [home.between(home.days()[0], part.calibrate_from) for part, home in homes]
    return onnx_bytes(train([source_of(without_paper_day(home), TARGETS) for home in first], recipe, report))


def make_card(weights: bytes, folder: Path, recipe: Recipe) -> dict[str, Any]:
    """Set thresholds and probabilities, measure the model, and return its card."""
    homes = {f"ukdale_house_{part.house}": (part, load(folder / "ukdale", part.house)) for part in PARTS}
    for name, (path, part) in UNSEEN_HOMES.items():
        if (folder / path).is_dir():
            homes[name] = (part, load(folder / path, part.house))
    homes["synthetic"] = (Part(0, date.min, date.min), load("synthetic", days=28))
    calibration = {name: _days(home, part.calibrate_from, part.measure_from) for name, (part, home) in homes.items()}
    trained_on = [piece for name in homes if name.startswith("ukdale") for piece in calibration[name]]
    unseen = [piece for name in UNSEEN_HOMES for piece in calibration.get(name, [])]
    decisions = decide(weights, trained_on, unseen, np.random.default_rng(recipe.seed))
    model = Model(weights, decisions, {})
    return {
        "format": FORMAT,
        "weights": hashlib.sha256(weights).hexdigest(),
        "attribution": ATTRIBUTION,
        "recipe": asdict(recipe),
        "parts": [{key: str(value) for key, value in asdict(part).items()} for part in PARTS],
        "decisions": {name: asdict(decision) for name, decision in decisions.items()},
        "accuracy": {
            name: measure(model, _days(home, part.measure_from, date.max)) for name, (part, home) in homes.items()
        },
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Train the model, or reuse its weights, and write it with its card."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with ukdale; default: $METERVEIL_DATA")
    parser.add_argument("--out", type=Path, default=SHIPPED, help="folder for the model and its card")
    parser.add_argument("--steps", type=int, default=Recipe.steps)
    parser.add_argument("--seed", type=int, default=Recipe.seed)
    parser.add_argument("--reuse", action="store_true", help="keep the weights in --out; only measure")
    options = parser.parse_args(arguments)
    folder, recipe = data_folder(options.data), Recipe(steps=options.steps, seed=options.seed)
    weights = load_model(options.out).weights if options.reuse else make_weights(folder, recipe)
    card = make_card(weights, folder, recipe)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / WEIGHTS).write_bytes(weights)
    (options.out / CARD).write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
