"""Measure what a meter of seconds shows of a battery that acts once a minute: `python -m experiments.seconds`.

Makes results/study_seconds.csv, the rows "1 s" and "10 s" of the table "Which meter" of docs/behaviour.md. The meter
shows the load of each second plus the battery's power, which is constant within a minute (D19): steps between
minutes are hidden, steps within a minute are not. The reader looks for rises and equal falls of the size and
duration that it learned from unprotected days. With a battery it leaves the steps between minutes out, and
chooses on the first half of the days whether a rise without its fall counts; the second half is scored.

The household is synthetic. `--redd FOLDER` reads REDD's mains of one second instead, from the full release; the
extract of minute means has none.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments import reading, study
from meterveil.bench.estimates import estimate
from meterveil.bench.metrics import Counts, detection, event_counts
from meterveil.core.arrays import FloatArray, IntArray
from meterveil.data.household import Household
from meterveil.data.load import load
from meterveil.data.protocols import on_threshold_w
from meterveil.data.releases import REDD, find_houses
from meterveil.data.simulation import Setup, mask
from meterveil.data.synthetic import household, load_by_second
from meterveil.defenders.defence import Defence, common_setup, find_defences
from meterveil.errors import InputError

NAME = "seconds"
DEFENCES = ("none", "random_equal:8", "flat", "flat_decoys", "veil")
INTERVALS_S = (1, 10, 60)
SYNTHETIC_SEEDS = (0, 1, 2)
SYNTHETIC_DAYS = 28
SMALLEST_STEP_W = 300.0
TOLERANCE = 0.1
"""Largest relative difference between a rise and its fall."""
RULES = ("pair", "pair or rise", "pair or fall", "pair, rise or fall")
"""What counts as a use; with a battery one of the two edges may be hidden between minutes."""
MARGIN = 0.1
"""Share by which the learned ranges of size and duration are widened."""


class Home(NamedTuple):
    """Household with its load by the second."""

    name: str
    household: Household
    load_w: FloatArray  # (second,)
    appliance: str


class Signature(NamedTuple):
    """Ranges of the rise in watts and of the duration in samples of one appliance."""

    low_w: float
    high_w: float
    shortest: float
    longest: float
    usual: float


def meter_by_second(home: Home, defence: Defence, setup: Setup) -> FloatArray:
    """Return load plus battery, (second,): the battery holds one power for each minute."""
    [masked] = mask(defence.policies[0], setup, home.household, [np.random.default_rng(setup.seed)]).households
    battery_w = masked.aggregate_w - home.household.aggregate_w
    return home.load_w + np.repeat(battery_w, 60)


def steps_of(meter_w: FloatArray, interval_s: int, has_battery: bool) -> FloatArray:
    """Return the change from the sample before to the sample after each one, as the reader sees it.

    With a battery, changes between two minutes are left out, unless there are no others.
    """
    shown_w = np.round(meter_w.reshape(-1, interval_s).mean(axis=1))
    change_w = np.diff(shown_w, prepend=shown_w[0])
    if has_battery and interval_s < 60:
        change_w[:: 60 // interval_s] = 0.0
    return np.asarray(change_w + np.append(change_w[1:], 0.0))


def edges_of(step_w: FloatArray) -> IntArray:
    """Find the samples at which a change is larger than its neighbours'."""
    size = np.abs(step_w)
    around = np.maximum(np.append(size[1:], 0.0), np.append(0.0, size[:-1]))
    return np.flatnonzero((size >= SMALLEST_STEP_W) & (size >= around))


def learn(step_w: FloatArray, truth_w: FloatArray, interval_s: int, threshold_w: float) -> Signature:
    """Measure the largest rise and fall around each true use; keep the middle nine tenths."""
    per_minute = 60 // interval_s
    on = np.diff((truth_w >= threshold_w).astype(int), prepend=0, append=0)
    rises, lengths = [], []
    for start, end in zip(np.flatnonzero(on == 1), np.flatnonzero(on == -1), strict=True):
        part = step_w[max(int(start) - 2, 0) * per_minute : (int(end) + 2) * per_minute]
        if part.size:
            rises.append(float(part.max()))
            lengths.append(abs(int(part.argmin()) - int(part.argmax())))
    if not rises:
        raise InputError("the appliance is not used on the training days; give more days")
    low_w, high_w = np.percentile(rises, [10, 90]) * [1 - MARGIN, 1 + MARGIN]
    shortest, longest = np.percentile(lengths, [5, 95]) * [1 - MARGIN, 1 + MARGIN]
    return Signature(low_w, high_w, shortest, longest, float(np.median(lengths)))


def uses_of(step_w: FloatArray, known: Signature, interval_s: int, rule: str) -> FloatArray:
    """Mark the minutes of the uses that a rule finds, as 0 and 1, (minute,)."""
    edges = edges_of(step_w)
    fits = (np.abs(step_w[edges]) >= known.low_w) & (np.abs(step_w[edges]) <= known.high_w)
    rises, falls = (edges[fits & (sign * step_w[edges] > 0)] for sign in (1, -1))
    spans = [(rise, end) for rise in rises if (end := _end_of(step_w, known, rise, falls))]
    if "rise" in rule:
        spans += [(rise, rise + known.usual) for rise in rises]
    if "fall" in rule:
        ended = {end for _, end in spans}
        spans += [(max(fall - known.usual, 0), fall) for fall in falls if fall not in ended]
    found = np.zeros(len(step_w) * interval_s // 60)
    for begin, end in spans:
        found[int(begin * interval_s // 60) : int(end * interval_s // 60) + 1] = 1.0
    return found


def counts_of(home: Home, meter_w: FloatArray, interval_s: int, has_battery: bool) -> FloatArray:
    """Count found, predicted and true uses of each day of the second half, (3, day); the first half is learned."""
    truth_w, threshold_w = home.household.appliances_w[home.appliance], on_threshold_w(home.appliance)
    step_w = steps_of(meter_w, interval_s, has_battery)
    days = home.household.days()
    starts = [int(home.household.minutes.searchsorted(home.household.day(day).minutes[0])) for day in days]
    parts = [slice(*bounds) for bounds in pairwise([*starts, len(truth_w)])]
    half = len(days) // 2
    clean_w = steps_of(home.load_w[: starts[half] * 60], interval_s, has_battery=False)
    known = learn(clean_w, truth_w[: starts[half]], interval_s, threshold_w)
    by_rule = []
    for rule in RULES:
        found = uses_of(step_w, known, interval_s, rule)
        counts = [event_counts(truth_w[part], found[part], threshold_w, cut=0.5) for part in parts]
        by_rule.append(np.array(counts, dtype=float).T)
    learned = [float(detection(Counts(*counts[:, :half].sum(axis=1))).f1) for counts in by_rule]
    return by_rule[int(np.argmax(learned))][:, half:]


def _end_of(step_w: FloatArray, known: Signature, rise: int, falls: IntArray) -> int | None:
    """Find the first fall after a rise that equals it, at a fitting distance."""
    near = falls[np.searchsorted(falls, rise + max(known.shortest, 1)) :]
    near = near[: np.searchsorted(near, rise + known.longest, side="right")]
    equal = near[np.abs(step_w[near] + step_w[rise]) <= TOLERANCE * step_w[rise]]
    return int(equal[0]) if equal.size else None


def synthetic_home(seed: int, days: int = SYNTHETIC_DAYS) -> Home:
    """Draw a synthetic household by the second; its kettle is read."""
    load_w = load_by_second(np.random.default_rng(seed), days)
    home = household(np.random.default_rng(seed), days)
    return Home("synthetic", replace(home, aggregate_w=load_w.reshape(-1, 60).mean(axis=1)), load_w, "kettle")


def redd_home(folder: Path, house: int) -> Home:
    """Read the whole days of a house of the full REDD release by the second; its microwave is read."""
    [channels] = [part for name, part in find_houses(REDD, folder).items() if name == f"house_{house}"]
    home = load(folder, house).select(["microwave"])
    days = home.days()
    home = home.between(days[0], days[-1] + timedelta(days=1))
    first_s = home.minutes[0].timestamp()
    load_w = np.zeros(60 * len(home.minutes))
    for number in channels.mains:
        second, watts = np.loadtxt(channels.folder / f"channel_{number}.dat").T
        if np.median(np.diff(second)) > 2:
            raise InputError(
                f"{channels.folder} has a mains reading every {np.median(np.diff(second)):.0f} s; "
                "give the full REDD release, with one a second"
            )
        at = np.searchsorted(second, first_s + np.arange(len(load_w)), side="right") - 1
        load_w += watts[np.maximum(at, 0)]  # the last reading stands until the next
    known_w = np.where(np.isnan(home.aggregate_w), np.nan, load_w.reshape(-1, 60).mean(axis=1))
    return Home(f"redd_{house}", replace(home, aggregate_w=known_w), load_w, "microwave")


def measure(options: argparse.Namespace) -> None:
    """Count the uses that are found with every defence and interval, and record them."""
    homes = [redd_home(options.redd, options.house)] if options.redd else list(map(synthetic_home, SYNTHETIC_SEEDS))
    defences = find_defences(options.defences)
    setup = common_setup(defences, options.library)
    for defence in defences:
        rows = []
        meters_w = [meter_by_second(home, defence, setup) for home in homes]
        for interval_s in INTERVALS_S:
            pairs = zip(homes, meters_w, strict=True)
            parts = [counts_of(home, meter_w, interval_s, defence.name != "none") for home, meter_w in pairs]
            counts = np.concatenate(parts, axis=1)
            labels = {"dataset": homes[0].name, "row": defence.name, "meter": f"{interval_s} s"}
            for part in ("precision", "recall", "f1"):
                found = estimate(counts, partial(reading.detected, part))
                metric = f"{homes[0].appliance}_use_{part}"
                rows.append({**labels, "metric": metric, **found._asdict(), "seeds": 1, "n_days": counts.shape[1]})
        settings = {**defence.settings, "homes": len(homes), "library": setup.library.digest()[:12]}
        key = f"{NAME}_{homes[0].name}_{defence.name.replace(':', '_')}"
        study.record(options.results, NAME, key, rows, settings)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure synthetic households, or REDD's mains of one second."""
    parser = study.options(__doc__ or "")
    parser.add_argument("--defences", nargs="+", default=list(DEFENCES))
    parser.add_argument("--redd", type=Path, help="folder of the full REDD release")
    parser.add_argument("--house", type=int, default=2, help="house of REDD")
    measure(parser.parse_args(arguments))


if __name__ == "__main__":
    main()
