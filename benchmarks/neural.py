"""Measure the neural attackers: Seq2Point beside its window-by-window form, transformers beside float64."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from _record import record
from meterveil.attackers import bert4nilm, electricity, nilmformer, seq2point
from meterveil.attackers.examples import Batch
from meterveil.attackers.neural import power_and_state_loss
from meterveil.attackers.protocol import AGGREGATE, meter_of
from meterveil.attackers.registry import PAPER_SIX, attacker
from meterveil.data import synthetic

REPEATS = 5
MINUTES = 1440
WINDOWS = 16
TARGETS = 5
"""One network reads all targets: four appliances and the household's load, as in the UK-DALE tables."""


def best_seconds(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """Time the fastest of several runs: the others were disturbed."""
    work()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def step(network: nn.Module, loss: Callable[[], Tensor]) -> None:
    network.zero_grad(set_to_none=True)
    loss().backward()


def measure_seq2point() -> None:
    network = seq2point.Network(TARGETS)
    margin = seq2point.WINDOW - 1
    stretch = torch.randn(4, 1, margin + seq2point.STRETCH)
    asked = (4, TARGETS, seq2point.STRETCH)
    batch = Batch(stretch, torch.randn(asked), torch.zeros(asked), torch.ones(TARGETS, 1))

    def window_by_window(seen: Tensor) -> Tensor:
        windows = seen.unfold(2, seq2point.WINDOW, 1).movedim(2, 1).flatten(0, 1)
        return network(windows).view(len(seen), -1, 2, TARGETS).movedim(1, 3)

    slow = best_seconds(lambda: step(network, lambda: power_and_state_loss(window_by_window, batch, 0.0)), 3)
    shared = best_seconds(lambda: step(network, lambda: power_and_state_loss(network, batch, 0.0)))
    fast = best_seconds(lambda: step(network, lambda: seq2point.loss(network, batch, 0.0)))
    record("attack: Seq2Point fit step, shared convolutions", slow / shared, "x window by window", ">= 2")
    record("attack: Seq2Point fit step, as trained", slow / fast, "x window by window", ">= 4")
    print(f"Seq2Point fit step: {slow / shared:.1f} x shared, {slow / fast:.1f} x as trained")
    day = torch.randn(1, 1, margin + MINUTES)
    with torch.inference_mode():
        slow, fast = best_seconds(lambda: window_by_window(day), 3), best_seconds(lambda: network(day))
    record("attack: Seq2Point predict a day", slow / fast, "x window by window", ">= 2")
    print(f"Seq2Point predict a day: {slow / fast:.1f} x ({fast * 1e3:.0f} ms)")


def measure_transformer(
    name: str, build: Callable[[int], nn.Module], loss: Callable[..., Tensor], channels: int
) -> None:
    seen, power = torch.randn(WINDOWS, channels, 128), torch.randn(WINDOWS, TARGETS, 128)
    rates = {}
    for dtype in (torch.float64, torch.float32):
        network = build(TARGETS).to(dtype)
        parts = (seen, power, torch.zeros_like(power), torch.ones(TARGETS, 1))
        batch = Batch(*(part.to(dtype) for part in parts))
        rates[dtype] = WINDOWS / best_seconds(lambda n=network, b=batch: step(n, lambda: loss(n, b, 1.0)))
    ratio = rates[torch.float32] / rates[torch.float64]
    record(f"attack: {name} training", rates[torch.float32], "windows/s on one core", "")
    record(f"attack: {name} training in float32", ratio, "x float64 as published", ">= 1.5")
    print(f"{name}: {rates[torch.float32]:.0f} windows/s, {ratio:.1f} x float64")


def measure_reading() -> None:
    """Let every attacker of the registry read a day of five appliances; weights do not change the time."""
    household = synthetic.household(np.random.default_rng(0), days=4)
    targets = ("kettle", "fridge", "microwave", "dishwasher", "washing_machine", AGGREGATE)
    meter = meter_of(household.day(household.days()[0]))
    total = 0.0
    for name in (*PAPER_SIX, "nilmformer"):
        one: Any = attacker(name)
        if hasattr(one, "recipe"):
            one = replace(one, recipe=replace(one.recipe, windows=4, epochs=1))
        fitted = one.fit([household], targets, np.random.default_rng(0))
        seconds = best_seconds(lambda fitted=fitted: fitted.predict(meter), 3)
        print(f"{name}: reads a day in {seconds:.2f} s")
        total += seconds
    record("attack: all seven read a day of five appliances", total, "s on one core", "< 2")
    print(f"all together: {total:.2f} s")


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    measure_reading()
    measure_seq2point()
    measure_transformer("BERT4NILM", bert4nilm.network, bert4nilm.loss, 1)
    measure_transformer("ELECTRIcity", electricity.Network, electricity.loss, 1)
    measure_transformer("NILMFormer", nilmformer.Network, power_and_state_loss, 5)


if __name__ == "__main__":
    main()
