"""How fast the batched core simulates, beside one household in a Gymnasium loop, in one run.

Every household replays random decoys for a day of the embedded synthetic household. Rates are simulated
household-minutes per second of wall time, the best of several rounds; setting up the loads is not timed,
drawing the random numbers is.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots
from rich.console import Console
from rich.table import Table

from _record import record
from meterveil.adapters.gymnasium import HouseholdEnv
from meterveil.core.battery import Battery
from meterveil.core.decoys import Library
from meterveil.core.env import EnvParams
from meterveil.core.rollout import Trace, rollout
from meterveil.core.scenario import Scenario
from meterveil.core.tariff import PAPER_TARIFF
from meterveil.data import synthetic
from meterveil.defenders.random import RandomDecoys
from meterveil.plots.html import save
from meterveil.plots.look import CYCLE, figure_of
from plain_gymnasium import PlainHousehold

BATCH, LARGE_BATCH, CORES = 256, 4096, 2
DAY = 1440
HOUSEHOLDS = [4**n for n in range(8)]
DAYS = [1, 2, 4, 8, 16, 32]
SECONDS = [1e-4, 1e-3, 0.01, 0.1, 0.2, 0.5, 1, 2, 5, 10]
PICTURE = Path(__file__).parents[1] / "docs" / "img" / "scaling.svg"


def fleet(batch: int, days: int = 1) -> Scenario:
    """Give each household the same weeks, begun at another day; clock and price are shared, not copied."""
    household = synthetic.household(np.random.default_rng(0), days=32)
    begin = np.arange(batch) % (32 - days + 1) * DAY
    load_w = household.aggregate_w[begin[:, None] + np.arange(days * DAY)]
    minute = np.arange(days * DAY)
    shared = (minute % DAY, minute // DAY, PAPER_TARIFF.price(minute % DAY, minute))
    clock, day, price = (np.broadcast_to(part, load_w.shape) for part in shared)
    return Scenario(load_w, clock, day, price, np.full(batch, days * DAY))


def run(scenario: Scenario, decoys: Library) -> Trace:
    rngs = [np.random.default_rng(row) for row in range(scenario.batch)]
    return rollout(RandomDecoys(), Battery(), decoys, scenario, rngs)


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def batch_rate(batch: int, days: int = 1, rounds: int = 5) -> float:
    """Measure one process."""
    scenario, decoys = fleet(batch, days), synthetic.decoy_library()
    best = min(seconds(lambda: run(scenario, decoys)) for _ in range(rounds))
    return batch * days * DAY / best


def _take_part(batch: int, rounds: int, barrier: Barrier, slot: int, ends: object) -> None:
    scenario, decoys = fleet(batch), synthetic.decoy_library()
    run(scenario, decoys)
    for number in range(rounds):
        barrier.wait()
        ends[slot * rounds + number] = seconds(lambda: run(scenario, decoys))  # type: ignore[index]


def parallel_rate(batch: int, processes: int = CORES, rounds: int = 10) -> float:
    """Measure processes that start each round together; a round lasts as long as its slowest."""
    context = multiprocessing.get_context("spawn")
    barrier, ends = context.Barrier(processes), context.Array("d", processes * rounds, lock=False)
    parts = [context.Process(target=_take_part, args=(batch, rounds, barrier, slot, ends)) for slot in range(processes)]
    for part in parts:
        part.start()
    for part in parts:
        part.join()
    return processes * batch * DAY / np.array(ends).reshape(processes, rounds).max(axis=0).min()


def decide(rng: np.random.Generator, rate: float, size: int) -> int:
    """Throw the dice of `RandomDecoys` for one household, the same numbers in the same order."""
    starts, which = rng.random(2)
    return 1 + int(which * 2 * size) if starts < rate else 0


def plain_day(scenario: Scenario, row: int, signatures: list[list[float]]) -> tuple[float, list[float]]:
    """Step a day through the plain environment; return seconds and battery power."""
    env = PlainHousehold(scenario.load_w[row].tolist(), scenario.price[row].tolist(), signatures)
    rng, rate, power_w, over = np.random.default_rng(row), RandomDecoys().rate, [], False
    began = time.perf_counter()
    env.reset()
    while not over:
        _, _, over, _, info = env.step(decide(rng, rate, len(signatures)))
        power_w.append(info["power_w"])
    return time.perf_counter() - began, power_w


def plain_rate(days: int = 32) -> float:
    """Measure the plain loop, and make sure that it simulates the same thing as the core."""
    scenario, decoys = fleet(days), synthetic.decoy_library()
    signatures = [watts.tolist() for _, watts in decoys.signatures()]
    runs = [plain_day(scenario, row, signatures) for row in range(days)]
    np.testing.assert_allclose([power for _, power in runs], run(scenario, decoys).power_w, atol=1e-9)
    return DAY / min(took for took, _ in runs)


def adapter_rate(days: int = 8) -> float:
    """Measure the package's own Gymnasium view, asked whenever nothing is running."""
    scenario = fleet(days)
    env = HouseholdEnv(EnvParams(Battery(), synthetic.decoy_library()), scenario, lambda *step: -step[-1].cost)

    def day(row: int) -> None:
        rng, over = np.random.default_rng(row), False
        env.reset(options={"row": row})
        while not over:
            _, _, over, _, _ = env.step(np.int64(decide(rng, RandomDecoys().rate, env.params.library.size)))

    return DAY / min(seconds(lambda row=row: day(row)) for row in range(days))


def scaling() -> tuple[dict[int, float], dict[int, float]]:
    """Measure seconds for a day of more and more households, and for more and more days of a batch."""
    by_households = {n: n * DAY / batch_rate(n, rounds=max(2, 64 // n)) for n in HOUSEHOLDS}
    by_days = {n: BATCH * n * DAY / batch_rate(BATCH, n, rounds=3) for n in DAYS}
    return by_households, by_days


def scaling_figure(by_households: dict[int, float], by_days: dict[int, float]) -> go.Figure:
    """Draw time against size on logarithmic axes, with the line of strict proportion."""
    titles = ("one day of more households", f"more days of {BATCH} households")
    figure = make_subplots(1, 2, subplot_titles=titles, horizontal_spacing=0.1)
    for column, (measured, unit) in enumerate([(by_households, "households"), (by_days, "days")], start=1):
        sizes, times = list(measured), list(measured.values())
        line = [times[-1] * size / sizes[-1] for size in sizes]
        shown = {"row": 1, "col": column}
        first = column == 1
        proportion = go.Scatter(x=sizes, y=line, name="in proportion to size", mode="lines", showlegend=first)
        figure.add_trace(proportion.update(line={"color": CYCLE[1], "dash": "dash"}), **shown)
        points = go.Scatter(x=sizes, y=times, name="measured", mode="lines+markers", showlegend=first)
        figure.add_trace(points.update(line={"color": CYCLE[5]}), **shown)
        ticks = [f"{size:,}" for size in sizes]
        figure.update_xaxes(type="log", title=unit, tickvals=sizes, ticktext=ticks, **shown)
        figure.update_yaxes(type="log", title="seconds" if first else None, tickvals=SECONDS, **shown)
    return figure_of(figure, "Time to simulate, one process", height=420).update_layout(
        margin={"t": 120}, title_y=0.93, legend={"y": 1.1}
    )


def figures() -> list[tuple[str, str, float, str, str]]:
    """Measure everything that is recorded: (name, words, value, unit, target)."""
    plain, adapter = plain_rate(), adapter_rate()
    single, both, large = batch_rate(BATCH), parallel_rate(BATCH), parallel_rate(LARGE_BATCH, rounds=4)
    rate, small, big = "household-minutes/s", f"batch {BATCH}", f"batch {LARGE_BATCH:,}"
    return [
        ("household_minutes_per_second", f"core, {small}, {CORES} processes", both, rate, ">= 1e6"),
        ("household_minutes_per_second_one_process", f"core, {small}, 1 process", single, rate, ""),
        ("household_minutes_per_second_large_batch", f"core, {big}, {CORES} processes", large, rate, ""),
        ("gymnasium_loop_minutes_per_second", "one household in Household-v0", adapter, rate, ""),
        ("float_loop_minutes_per_second", "one household in plain floats", plain, rate, ""),
        ("speedup_over_gymnasium_loop", f"{small} / Household-v0", both / adapter, "x", ">= 100"),
        ("speedup_over_float_loop", f"{small} / plain floats", both / plain, "x", ">= 100"),
        ("speedup_over_float_loop_one_process", f"same, 1 process, {small}", single / plain, "x", ""),
        ("speedup_over_float_loop_large_batch", f"{big} / plain floats", large / plain, "x", ""),
    ]


def growth_figures(
    by_households: dict[int, float], by_days: dict[int, float]
) -> list[tuple[str, str, float, str, str]]:
    """Say how much dearer one household, or one day, becomes when there are many."""
    most, few = HOUSEHOLDS[-1], BATCH
    household = by_households[most] / most / (by_households[few] / few)
    day = by_days[DAYS[-1]] / DAYS[-1] / by_days[1]
    return [
        ("household_cost_growth", f"time a household, {most:,} / {few} households", household, "x", "<= 1.5"),
        ("day_cost_growth", f"time a day, {DAYS[-1]} / 1 days", day, "x", "<= 1.5"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--picture", action="store_true", help="draw docs/img/scaling (needs Chromium)")
    picture = parser.parse_args().picture
    measured = figures()
    by_households, by_days = scaling()
    measured += growth_figures(by_households, by_days)
    table = Table("what", "value", "unit", "target", title="Simulation speed")
    for name, words, value, unit, target in measured:
        record(f"simulate.{name}", value, unit, target)
        table.add_row(words, f"{value:,.1f}" if value < 1000 else f"{value:,.0f}", unit, target)
    for size, took in by_households.items():
        table.add_row(f"a day of {size:,} households", f"{took:.3f}", "s", "")
    for size, took in by_days.items():
        table.add_row(f"{size} days of {BATCH} households", f"{took:.3f}", "s", "")
    Console().print(table)
    if picture:
        figure = scaling_figure(by_households, by_days)
        PICTURE.parent.mkdir(parents=True, exist_ok=True)
        save(figure, PICTURE)


if __name__ == "__main__":
    main()
