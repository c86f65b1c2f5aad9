"""Statistics of households side by side, as the table of docs/synthetic.md shows them.

`python -m experiments.household_statistics synthetic DIR/redd:2` prints a Markdown table. Only known minutes
count: a gap is neither a zero nor a step.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence

import numpy as np

from meterveil.core.arrays import BoolArray, FloatArray, runs
from meterveil.data.coverage import LITTLE_KNOWN, MINUTES_PER_DAY, channels
from meterveil.data.household import AGGREGATE, Household, kind
from meterveil.data.load import load
from meterveil.data.protocols import on_threshold_w

PAUSE_MIN = {"dishwasher": 20, "oven": 10, "washer_dryer": 20, "washing_machine": 20}
"""Longest pause within one event, for machines that soak, drain or hold a temperature."""

LAGS_MIN = (1, 5, 15, 60, 1440)
STEP_W = 200.0
BASE_PERCENTILE = 5.0
_KWH_PER_DAY = 24 / 1000


def measure(household: Household) -> dict[str, float]:
    """Measure a household and its appliances, label -> value; an appliance's labels begin with its name."""
    aggregate_w = household.aggregate_w
    known = aggregate_w[~np.isnan(aggregate_w)]
    steps = np.abs(np.diff(aggregate_w))
    figures = {
        "energy (kWh/day)": _mean(known) * _KWH_PER_DAY,
        "sub-metered share": submetered_share(household),
        "base load (W)": float(np.percentile(known, BASE_PERCENTILE)) if known.size else np.nan,
        "peak (W)": float(known.max()) if known.size else np.nan,
        "steps over 200 W (share)": _mean(steps[~np.isnan(steps)] > STEP_W),
        **{f"autocorrelation, {lag} min": autocorrelation(aggregate_w, lag) for lag in LAGS_MIN},
    }
    for name, watts in household.appliances_w.items():
        figures |= {f"{name}: {label}": value for label, value in measure_appliance(name, watts).items()}
    return figures


def measure_appliance(name: str, watts: FloatArray) -> dict[str, float]:
    """Measure one appliance, which is on from its threshold upwards (D10); NaN where it never ran."""
    known = ~np.isnan(watts)
    on = known & (watts >= on_threshold_w(name))
    starts, stops = runs(on, PAUSE_MIN.get(kind(name), 0))
    lengths = stops - starts
    powers = [_mean(watts[start:stop][on[start:stop]]) for start, stop in zip(starts, stops, strict=True)]
    days = known.sum() / MINUTES_PER_DAY
    return {
        "duty cycle": _mean(on[known]),
        "events/day": lengths.size / days if days else np.nan,
        "event length, median (min)": float(np.median(lengths)) if powers else np.nan,
        "event length, p90 (min)": float(np.percentile(lengths, 90)) if powers else np.nan,
        "event power (W)": float(np.median(powers)) if powers else np.nan,
        "energy (kWh/day)": _mean(watts[known]) * _KWH_PER_DAY,
    }


def submetered_share(household: Household) -> float:
    """Add up each sub-meter's share of the energy in the minutes that it and the mains both know.

    Channels of real houses cover different minutes. Channels of which little is known are left out.
    """
    aggregate_w, share = household.aggregate_w, 0.0
    little = little_known(household)
    for watts in (watts for name, watts in household.appliances_w.items() if name not in little):
        both = ~np.isnan(aggregate_w) & ~np.isnan(watts)
        total_w = aggregate_w[both].sum()
        share += float(watts[both].sum() / total_w) if total_w else 0.0
    return share


def left_out(household: Household) -> list[str]:
    """Say in one line which sub-meters the sub-metered share leaves out."""
    little = [name for name in little_known(household) if name != AGGREGATE]
    known = f"known for less than {LITTLE_KNOWN:.0%} of the record"
    return [f"{', '.join(little)}: {known}, left out of the sub-metered share"] if little else []


def autocorrelation(watts: FloatArray, lag: int) -> float:
    """Correlate a trace with itself `lag` minutes later, over the pairs of minutes that are both known."""
    early, late = watts[:-lag], watts[lag:]
    both = ~np.isnan(early) & ~np.isnan(late)
    if both.sum() < 2:
        return np.nan
    early, late = early[both] - early[both].mean(), late[both] - late[both].mean()
    scale = np.sqrt(np.sum(early**2) * np.sum(late**2))
    return float(np.sum(early * late) / scale) if scale else np.nan


def compare(households: Sequence[Household]) -> str:
    """Measure households and render them side by side as a Markdown table."""
    return comparison_table({household.name: measure(household) for household in households})


def comparison_table(columns: Mapping[str, Mapping[str, float]]) -> str:
    """Render figures as a Markdown table with a column for each name; missing figures stay empty."""
    labels = list(dict.fromkeys(label for figures in columns.values() for label in figures))
    rows = [["statistic", *columns], ["---", *["---:"] * len(columns)]]
    rows += [[label, *(_cell(figures.get(label)) for figures in columns.values())] for label in labels]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _cell(value: float | None) -> str:
    if value is None or np.isnan(value):
        return ""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"


def little_known(household: Household) -> list[str]:
    """Name the channels that know too few of the minutes that the meter knows."""
    metered = float(np.mean(~np.isnan(household.aggregate_w)))
    return [channel.name for channel in channels(household) if 0 < channel.coverage < LITTLE_KNOWN * metered]


def _mean(values: FloatArray | BoolArray) -> float:
    return float(np.mean(values)) if values.size else np.nan


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the statistics of households; notes go to standard error."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("paths", nargs="+", metavar="PATH", help="households; FOLDER:2 is its house 2")
    households = []
    for text in parser.parse_args(arguments).paths:
        path, colon, house = text.rpartition(":")
        has_house = bool(colon) and house.isdecimal()
        households.append(load(path, int(house)) if has_house else load(text))
    for household in households:
        for note in (*household.notes, *left_out(household)):
            print(f"note: {household.name}: {note.removeprefix(f'{household.name}: ')}", file=sys.stderr)
    print(compare(households), end="")


if __name__ == "__main__":
    main()
