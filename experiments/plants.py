"""Measure what readers of a live meter still see with different plants: `python -m experiments.plants`.

Makes results/study_plants.csv, docs/img/plants.png and the table of docs/going-live.md. The real controller drives
simulated houses second by second; the plants differ in how late meter and inverter are. A load edge of 500 W or
more counts as *found* where the meter changes by the same amount within 25 %, and as *marked* where it changes by
500 W or more in the same direction, both within one reading. F1 is that of the shipped audit model, which reads
minute means; bits are the certificate of each reader. An *ideal loop* knows every reading without noise and follows it
with the plant's lateness and ramp, but does not make up for what it has missed. *Any loop* is the least that a causal
one can show: it has any power and ramp, may export, and makes up for all that it knows within the reader's interval.
The houses are synthetic, because the available extract of REDD has minute means only. Ten minutes of one core.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments import study
from meterveil.audit.model import SHAPES, Reading, load_model, minutes_of
from meterveil.core.arrays import BoolArray, FloatArray
from meterveil.core.battery import Battery
from meterveil.core.tariff import PAPER_TARIFF
from meterveil.data import synthetic
from meterveil.data.cache import key_of, library_versions
from meterveil.data.protocols import on_threshold_w
from meterveil.defenders import defender, version_of
from meterveil.live.certified import certificates
from meterveil.live.controller import Controller, Home
from meterveil.live.follower import FollowerSettings
from meterveil.live.ports import Ports
from meterveil.live.records import MinuteRecord
from meterveil.live.simulated import ManualClock, Plant, SimulatedHouse
from meterveil.plots import save
from meterveil.plots.studies import plants_figure

NAME = "plants"
READERS_S = (1, 10, 60, 900, 1800)
EDGE_W, SIZE = 500.0, 0.25
NONE = "no battery"
FIRST_SEED = 200
LEAST_USES = 20
"""Fewest on-minutes of an appliance for which an F1 means something."""


class Case(NamedTuple):
    """Plant and the settings of the inner loop that suit it."""

    plant: Plant
    follower: FollowerSettings


CASES = {
    "inverter's own loop": Case(Plant(1.0, 5000.0, 10.0, own_loop=True), FollowerSettings()),
    "1 s meter, 2 s dead time": Case(Plant(2.0, 1000.0), FollowerSettings()),
    "the same, interval_s = 10": Case(Plant(2.0, 1000.0), FollowerSettings(interval_s=10.0)),
    "the same, 5 kW/s": Case(Plant(2.0, 5000.0), FollowerSettings(interval_s=10.0, ramp_w_per_s=5000.0)),
    "the same, 1 s dead time": Case(
        Plant(1.0, 5000.0), FollowerSettings(interval_s=10.0, dead_time_s=1.0, ramp_w_per_s=5000.0)
    ),
    "10 s meter, 3 s dead time": Case(Plant(3.0, 1000.0, meter_period_s=10.0), FollowerSettings(dead_time_s=3.0)),
    "one command a minute": Case(Plant(2.0, 1000.0), FollowerSettings(gap_s=58.0)),
}
IDEAL = {f"ideal loop, {late_s - 1} s dead time": late_s for late_s in (2, 3)}
"""Row -> seconds from a change of the load to that of the battery: one for the reading, the others dead time."""
LEAST = {f"any loop, {late_s - 1} s dead time": late_s for late_s in (2, 3)}
ROWS = (NONE, *IDEAL, *LEAST, *CASES)
PAGE = Path("docs/going-live.md")
SHOWN = ("half hours in 1 Wh", "quarter hours in 1 Wh", "minutes in 10 W")
"""Readers whose certificates are in the table."""


class Masked(NamedTuple):
    """Day of a simulated house with a plant."""

    meter_w: FloatArray  # (second,)
    bits: dict[str, float]  # certificate of each reader


def ideal_loop(load_w: FloatArray, late_s: int, level_w: float = 400.0, ramp_w: float = 1000.0) -> FloatArray:
    """Return the meter with a loop that knows every reading without noise, (second,)."""
    power_w = np.zeros(len(load_w))
    for second in range(late_s, len(load_w)):
        change_w = level_w - load_w[second - late_s] - power_w[second - 1]
        power_w[second] = power_w[second - 1] + min(max(change_w, -ramp_w), ramp_w)
    return load_w + power_w


def least_shown(load_w: FloatArray, late_s: int, reader_s: int, level_w: float = 400.0) -> FloatArray:
    """Return the least that a causal loop can show to a reader, (second,): changes in the last seconds of an interval.

    In the last second of an interval a loop knows the load up to `late_s` before; all that was missed until then can
    be made up for by any power, and what the load changed since cannot.
    """
    unknown_s = min(late_s, reader_s)
    whole = load_w[: len(load_w) // reader_s * reader_s].reshape(-1, reader_s)
    before_w = np.concatenate([load_w[:1], load_w])[: whole.size + 1][reader_s - unknown_s :: reader_s][: len(whole)]
    missed_w = (whole[:, reader_s - unknown_s :] - before_w[:, None]).sum(axis=1) / reader_s
    return np.repeat(level_w + missed_w, reader_s)


def masked_by_second(load_w: FloatArray, case: Case, defence: str, seed: int) -> Masked:
    """Let the controller drive a simulated house for the whole record."""
    clock = ManualClock()
    house = SimulatedHouse(load_w, clock, case.plant, rng=np.random.default_rng(seed))
    meter: list[float] = []
    house.on_second = lambda load, power: meter.append(load + power)
    policy, minutes = defender(defence), list[MinuteRecord]()
    home = Home(policy, Battery(), synthetic.decoy_library(), PAPER_TARIFF, "UTC", may_command=True)
    home = replace(home, follower=case.follower, health=replace(home.health, meter_stale_s=30.0))
    target = house if case.plant.own_loop else None
    ports = Ports(clock, house, house, house, target)
    controller = Controller(home, ports, np.random.default_rng(seed), minutes.append)
    for _ in range(len(load_w)):
        clock.move(1.0)
        controller.tick()
    return Masked(np.array(meter), certificates(policy, minutes, "UTC"))


def edges(load_w: FloatArray, meter_w: FloatArray, reader_s: int) -> tuple[int, int, int]:
    """Count the edges of the load at a reader's interval, those found and those marked in the meter."""
    whole = len(load_w) // reader_s * reader_s
    load_step, meter_step = (np.diff(part[:whole].reshape(-1, reader_s).mean(axis=1)) for part in (load_w, meter_w))
    found = marked = 0
    large = np.flatnonzero(np.abs(load_step) >= EDGE_W)
    for index in large:
        near = meter_step[max(index - 1, 0) : index + 2]
        found += bool(np.any(np.abs(near - load_step[index]) <= SIZE * abs(load_step[index])))
        marked += bool(np.any(near * np.sign(load_step[index]) >= EDGE_W))
    return len(large), found, marked


def audit_f1(readings: list[Reading], truths: list[dict[str, BoolArray]]) -> float:
    """Return the mean F1 over appliances that were used, minutes of all houses pooled."""
    scores = []
    for name in SHAPES:
        true = np.concatenate([truth[name] for truth in truths])
        said = np.concatenate(
            [
                minutes_of([(use.start, use.end) for use in reading.uses if use.appliance == name], len(truth[name]))
                for reading, truth in zip(readings, truths, strict=True)
            ]
        )
        if true.sum() >= LEAST_USES:
            scores.append(2.0 * (true & said).sum() / max(true.sum() + said.sum(), 1))
    return float(np.mean(scores))


def houses(count: int) -> Iterator[tuple[FloatArray, dict[str, BoolArray]]]:
    """Draw households of one day: load by second and minutes in which each appliance is on."""
    for seed in range(FIRST_SEED, FIRST_SEED + count):
        home = synthetic.household(np.random.default_rng(seed), 1, timezone="UTC")
        truth = {name: home.appliances_w[name] >= on_threshold_w(name) for name in SHAPES}
        yield synthetic.load_by_second(np.random.default_rng(seed), 1, timezone="UTC"), truth


def measure(asked: argparse.Namespace) -> None:
    """Drive every house with every plant, and record each plant as soon as it is finished."""
    model, drawn = load_model(), list(houses(asked.houses))
    for row in ROWS:
        case = CASES.get(row)
        masked = [
            masked_by_second(load_w, case, asked.defence, seed)
            if case
            else Masked(ideal_loop(load_w, IDEAL[row]) if row in IDEAL else load_w, {})
            for seed, (load_w, _) in enumerate(drawn)
        ]
        shared = {"dataset": "synthetic", "row": row, "n_days": len(drawn)}
        figures: list[dict[str, Any]] = []
        for reader_s in READERS_S:
            meters = [
                least_shown(load_w, LEAST[row], reader_s) if row in LEAST else day.meter_w
                for (load_w, _), day in zip(drawn, masked, strict=True)
            ]
            counts = [edges(load, meter, reader_s) for (load, _), meter in zip(drawn, meters, strict=True)]
            total, found, marked = np.sum(counts, axis=0)
            for metric, value in (("edges", total), ("found", found / total), ("marked", marked / total)):
                figures.append({**shared, "x": reader_s, "metric": metric, "value": value})
            if reader_s == 60:
                readings = [model.read(meter.reshape(-1, 60).mean(axis=1)) for meter in meters]
        f1 = audit_f1(readings, [truth for _, truth in drawn])
        figures.append({**shared, "x": 60, "attacker": "audit", "metric": "f1", "value": f1})
        for name in masked[0].bits:
            bits = [day.bits[name] for day in masked]
            spread = {"low": min(bits), "high": max(bits)}
            figures.append({**shared, "meter": name, "metric": "bits", "value": float(np.median(bits)), **spread})
        settings = {
            "defence": asked.defence,
            "version": version_of(asked.defence),
            "plant": row if case is None else repr(case),
            "houses": asked.houses,
            "first_seed": FIRST_SEED,
            "versions": dict(library_versions("numpy", "onnxruntime")),
        }
        study.record(asked.results, NAME, f"{NAME}_{key_of(settings)[:12]}", figures, settings)


def main() -> None:
    """Parse the options, measure and draw."""
    parser = study.options(__doc__ or "")
    parser.add_argument("--defence", default="veil")
    parser.add_argument("--houses", type=int, default=4)
    asked = parser.parse_args()
    if not asked.picture:
        measure(asked)
    table = study.read(asked.results, NAME)
    found = table[table["metric"] == "found"].sort_values("x")
    rows = [(row, found[found["row"] == row]["value"].tolist()) for row in ROWS if row in set(table["row"])]
    save(plants_figure(READERS_S, rows), asked.pictures / "plants.png", width=900)
    picture = f"![Edges that a reader still finds, by plant and reader](img/{NAME}.png)"
    text = study.put(PAGE.read_text(encoding="utf-8"), NAME, f"{picture}\n\n{text_of(table)}")
    PAGE.write_text(text, encoding="utf-8")


def text_of(table: Any) -> str:
    """Write the table of docs/going-live.md."""
    head = ["plant", *(f"{reader} s" if reader < 900 else f"{reader // 60} min" for reader in READERS_S), "F1"]
    lines = []
    for row in (row for row in ROWS if row in set(table["row"])):
        own = table[table["row"] == row]
        found = own[own["metric"] == "found"].sort_values("x")["value"]
        bits = own[own["metric"] == "bits"].set_index("meter")["value"]
        f1 = own[own["metric"] == "f1"]["value"].iloc[0]
        certified = [f"{bits[name]:,.0f}" if name in bits else "" for name in SHOWN]
        lines.append([row, *(f"{100 * share:.0f} %" for share in found), f"{f1:.2f}", *certified])
    return study.table([*head, *(f"bits, {name}" for name in SHOWN)], lines)


if __name__ == "__main__":
    main()
