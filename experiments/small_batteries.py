"""Measure small batteries, protected evenings and showers with the veil: `python -m experiments.small_batteries`.

Makes results/study_small_batteries.csv and two tables of docs/veil.md, on up to seven days after the training days of
each house:

- batteries of 1 to 4 kWh with 1 or 2 kW and 2 to 6 kWh a day, used all day or for the evenings only;
- an electric shower of 7 to 9 kW, which is SYNTHETIC and added to the real load once a day (6 to 10 minutes, between
  6:30 and 8:30): without spikes, with spikes, and with dice that add 1, 3 or 7 such spikes a day, so that a real one
  is one of 2, 4 or 8. Lengths and hours of the dice are those of a household with a morning shower.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import numpy as np

from experiments import study
from meterveil.core.arrays import KWH_PER_W_MINUTE, BoolArray, FloatArray
from meterveil.core.battery import Battery
from meterveil.core.certificate import Rules, hours_of
from meterveil.core.rollout import rollout, trace_cost
from meterveil.data.cache import key_of, library_versions
from meterveil.data.files import data_folder
from meterveil.data.household import Household
from meterveil.data.load import load
from meterveil.data.protocols import FURTHER_HOUSES, UKDALE_HOUSE1, Protocol
from meterveil.data.simulation import Setup, span
from meterveil.data.splits import only_days
from meterveil.data.synthetic import decoy_library
from meterveil.defenders import version_of
from meterveil.defenders.defence import knowing
from meterveil.defenders.veil.dice import Dice
from meterveil.defenders.veil.policy import Logged, Veil, highest_spike_w

NAME = "small_batteries"
HOUSES = {"ukdale_1": UKDALE_HOUSE1, "refit_2": FURTHER_HOUSES["refit", 2]}
TITLES = {"ukdale_1": "UK-DALE 1", "refit_2": "REFIT 2"}
MOST_DAYS = 7
SIZES = ((1.0, 1.0, 2.0), (2.0, 1.0, 2.0), (2.0, 2.0, 4.0), (4.0, 1.0, 4.0), (4.0, 2.0, 4.0), (4.0, 2.0, 6.0))
"""kWh, kW and kWh a day."""
USES = {"all day": (), "evenings": hours_of("evenings")}
SHOWER_W, SHOWER_MINUTES, SHOWER_CLOCK = (7000.0, 9000.0), (6, 10), (390, 510)
SHOWER_POWERS_W = (4000.0, 5000.0)
SHOWER_HOURS = tuple(1.0 if SHOWER_CLOCK[0] <= 30 * slot < SHOWER_CLOCK[1] else 0.0 for slot in range(48))
ONE_OF = (1, 2, 4, 8)

HEADS = {
    "followed_percent": ("minutes followed", "{:.1f} %"),
    "certified_bits_median": ("bits a day, median", "{:,.0f}"),
    "throughput_kwh": ("kWh a day", "{:.2f}"),
    "soc_neutral_cost": ("SoC-neutral cost a day", "{:+.2f}"),
}
SHOWER_HEADS = {
    "showers_hidden_percent": ("showers shown as a spike", "{:.0f} %"),
    "spikes_seen": ("spikes of 5 min and more a day", "{:.1f}"),
} | HEADS


def with_showers(home: Household, rng: np.random.Generator) -> tuple[Household, BoolArray]:
    """Add one shower a day to the load; return the household, and which minutes have one."""
    watts, showers = home.aggregate_w.copy(), np.zeros(len(home.aggregate_w), dtype=np.bool_)
    clock = home.minutes.hour * 60 + home.minutes.minute
    for midnight in np.flatnonzero(clock == 0):
        start = midnight + int(rng.integers(*SHOWER_CLOCK))
        end = start + int(rng.integers(SHOWER_MINUTES[0], SHOWER_MINUTES[1] + 1))
        watts[start:end] += rng.uniform(*SHOWER_W)
        showers[start:end] = True
    return replace(home, aggregate_w=watts), showers


def figures(
    protocol: Protocol, home: Household, veil: Veil, battery: Battery, showers: BoolArray | None = None
) -> Iterator[dict[str, Any]]:
    """Run a veil with a batch of batteries on days after the training days; yield the figures of each."""
    rows = len(np.atleast_1d(battery.capacity_kwh))
    setup = Setup(decoy_library())
    start = protocol.training[-1] + timedelta(days=1)
    end = min(start + timedelta(days=MOST_DAYS), home.days()[-1] + timedelta(days=1))
    scenario = span(home, start, end, setup.tariff, lead=0).rows([0] * rows)
    log = Logged(cast(Veil, knowing(veil, [only_days(home, protocol.training)], setup)))
    trace = rollout(log, battery, setup.library, scenario, [np.random.default_rng(5) for _ in range(rows)])
    certified = log.certificate(scenario, trace)
    days = (end - start).days
    unknown = np.isnan(trace.load_w).sum(axis=1)
    cost = trace_cost(battery, scenario, trace).soc_neutral / days
    inside = None if showers is None else showers[home.minutes.searchsorted(home.day(start).minutes[0]) :]
    for row in range(rows):
        known = certified.protected_minutes[row].sum() - unknown[row]
        missed = certified.protected_missed[row].sum() - unknown[row]
        values = {
            "followed_percent": 100.0 * (1.0 - max(missed, 0.0) / known),
            "certified_bits_median": float(np.median(certified.protected_bits[row])),
            "throughput_kwh": float(np.abs(trace.power_w[row]).sum() * KWH_PER_W_MINUTE / days),
            "soc_neutral_cost": float(cost[row]),
        }
        if inside is not None:
            height_w = float(highest_spike_w(battery)[row])
            values |= shower_figures(trace.meter_w[row], inside[: scenario.horizon], height_w, days)
        yield {"n_days": days, "values": values}


def shower_figures(meter_w: FloatArray, shower: BoolArray, height_w: float, days: int) -> Mapping[str, float]:
    """Tell how many showers look like a spike, and how many such spikes the meter shows."""
    begins = np.flatnonzero(np.diff(shower.astype(int), prepend=0) == 1)
    ends = np.flatnonzero(np.diff(shower.astype(int), append=0) == -1) + 1
    at_height = np.round(meter_w) == height_w
    hidden = [bool(at_height[begin:end].all()) for begin, end in zip(begins, ends, strict=True)]
    runs = np.flatnonzero(np.diff(np.concatenate([[0], at_height.astype(int), [0]]))).reshape(-1, 2)
    seen = np.sum(runs[:, 1] - runs[:, 0] >= 5)
    return {"showers_hidden_percent": 100.0 * float(np.mean(hidden)), "spikes_seen": float(seen / days)}


def measure(asked: argparse.Namespace) -> None:
    """Measure every house, and record each setting as soon as it is finished."""
    for house in asked.houses:
        protocol = HOUSES[house]
        home = load(data_folder(asked.data) / protocol.dataset, protocol.house, appliances=[])
        kwh, kw, budget_kwh = np.array(SIZES).T
        small = Battery(capacity_kwh=kwh, charge_w=1000 * kw, discharge_w=1000 * kw, budget_kwh=budget_kwh)
        for use, hours in USES.items():
            measured = figures(protocol, home, Veil(Rules(protect=hours)), small)
            labels = ["/".join(f"{part:g}" for part in size) + f", {use}" for size in SIZES]
            _record(asked, house, use, labels, measured)
        wet, showers = with_showers(home, np.random.default_rng(0))
        powers_w = np.array(SHOWER_POWERS_W)
        strong = Battery(capacity_kwh=np.full(len(powers_w), 8.0), charge_w=powers_w, discharge_w=powers_w)
        for name, veil in shower_veils().items():
            labels = [f"{watts / 1000:g} kW, {name}" for watts in powers_w]
            _record(asked, house, name, labels, figures(protocol, wet, veil, strong, showers))


def shower_veils() -> dict[str, Veil]:
    """Name the veils that a shower is measured with."""
    veils = {"no spikes": Veil(Rules(spike_minutes=()))}
    for one_of in ONE_OF:
        dice = Dice(spike_rate=(one_of - 1) / 1440, hours=SHOWER_HOURS, spikes=((np.inf, 10),))
        veils["spikes" if one_of == 1 else f"spikes, one of {one_of}"] = Veil(dice=dice)
    return veils


def _record(
    asked: argparse.Namespace, house: str, what: str, labels: Sequence[str], measured: Iterator[dict[str, Any]]
) -> None:
    rows = [
        {"dataset": house, "row": label, "metric": metric, "value": value, "n_days": part["n_days"]}
        for label, part in zip(labels, measured, strict=True)
        for metric, value in part["values"].items()
    ]
    settings = {
        "defence": "veil",
        "version": version_of("veil"),
        "what": what,
        "versions": dict(library_versions("numpy")),
    }
    study.record(asked.results, NAME, f"{NAME}_{key_of({**settings, 'house': house})[:12]}", rows, settings)


def write_page(results: Path, page: Path) -> None:
    """Fill the tables of the page from the recorded figures."""
    table = study.read(results, NAME)
    days = table.groupby("dataset")["n_days"].first()
    values = table.set_index(["dataset", "row", "metric"])["value"].to_dict()
    sizes = ["/".join(f"{part:g}" for part in size) for size in SIZES]
    small = [f"{size}, {use}" for size in sizes for use in USES]
    wet = [f"{watts / 1000:g} kW, {name}" for watts in SHOWER_POWERS_W for name in shower_veils()]
    text = page.read_text()
    for mark, rows, heads, head in (
        ("small batteries", small, HEADS, "kWh/kW/kWh a day, protected"),
        ("spikes", wet, SHOWER_HEADS, "battery power, veil"),
    ):
        lines = [
            [f"{TITLES[house]} ({days[house]:.0f})", row]
            + [pattern.format(values[house, row, metric]) for metric, (_, pattern) in heads.items()]
            for house in TITLES
            for row in rows
            if (house, row, "followed_percent") in values
        ]
        text = study.put(
            text, mark, study.table(["house (days)", head, *(title for title, _ in heads.values())], lines, 2)
        )
    page.write_text(text)


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the options and measure."""
    parser = study.options(__doc__ or "")
    parser.add_argument("--houses", nargs="+", default=list(HOUSES), choices=list(HOUSES))
    parser.add_argument("--page", type=Path, default=Path("docs/veil.md"), help="page with the tables")
    asked = parser.parse_args(arguments)
    if not asked.picture:
        measure(asked)
    write_page(asked.results, asked.page)


if __name__ == "__main__":
    main()
