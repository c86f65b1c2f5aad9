"""Measure what decoys of the veil do, and whether they look real: `python -m experiments.decoys`.

Makes results/study_decoys.csv, docs/img/decoys.png and a table of docs/veil.md: certified bits, headline of fixed
attackers, energy and cost against the number of decoys a day, on the paper's test days (five seeds); and how well a
nearest-neighbour classifier tells the uses that the veiled meter shows from those in the load, on up to 14 other
days of each house (0.5: not at all). Signatures, their hours and thresholds come from the training days.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
import pandas as pd

from experiments import study
from meterveil.bench.cases import headline
from meterveil.bench.evaluate import Spec, evaluate, measure_undefended
from meterveil.bench.trial import DayChoice, protocol_trial
from meterveil.core.arrays import FloatArray
from meterveil.core.decoys import Library
from meterveil.core.rollout import rollout
from meterveil.core.scenario import stack
from meterveil.data.cache import key_of, library_versions
from meterveil.data.files import data_folder
from meterveil.data.household import Household
from meterveil.data.load import load
from meterveil.data.protocols import PROTOCOLS, Protocol
from meterveil.data.signatures import composites, find_events, own_uses
from meterveil.data.signatures import library as read_library
from meterveil.data.simulation import Setup, span
from meterveil.data.splits import consecutive_pieces, only_days
from meterveil.defenders import version_of
from meterveil.defenders.defence import Defence, knowing
from meterveil.defenders.veil.dice import ANY_HOUR, Dice, hours_of_use
from meterveil.defenders.veil.policy import Veil
from meterveil.plots.html import save
from meterveil.plots.studies import curves_figure

NAME = "decoys"
RATES = (0.0, 5.0, 10.0, 15.0, 20.0, 40.0)
"""Decoys a day of the paper's library, at any hour."""
OTHERS_RATE = 15.0
HEADLINE = ("library, usual hours", 16.0)
"""Like `veil:16`: as many as the budget carries; also measured on many held-out days with --many."""
REMEDIES = (("composites, usual hours", 16.0), ("spikes of 3 min, usual hours", 24.0))
"""Decoys with more error of an attacker for each kWh, measured with --remedies."""
FIXED = ["co", "fhmm"]
"""Attackers of most rows; with others, only the headline or the remedies are measured."""
RISE_W = 1000.0
"""What a use must rise by to be seen as one."""
MOST_DAYS = 14
NEIGHBOURS = 7
TITLES = {"redd": "REDD 2", "ukdale": "UK-DALE 1"}
HEADS = {
    "rmse_increase_percent": ("RMSE Inc. of fixed attackers", "{:+.0f} %"),
    "f1_reduction_percent": ("F1 Red.", "{:.0f} %"),
    "certified_bits_median": ("bits, median", "{:,.1f}"),
    "throughput_kwh": ("kWh a day", "{:.2f}"),
    "soc_neutral_cost": ("SoC-neutral cost", "{:+.2f}"),
    "two_sample_auc": ("decoy or real use (AUC)", "{:.2f}"),
}


class Kind(NamedTuple):
    """Signatures and hours of decoys, learned from training days."""

    library: Library
    hours: tuple[float, ...]
    spike_minutes: tuple[int, ...] = ()
    """Lengths of spikes at the battery's power, in place of signatures."""

    def dice(self, rate: float) -> Dice:
        """Return the dice that draw `rate` decoys a day."""
        if self.spike_minutes:
            return Dice(0.0, self.hours, rate / 1440, tuple((np.inf, length) for length in self.spike_minutes))
        return Dice(rate / 1440, self.hours)


def kinds(base: Library, training_w: FloatArray) -> dict[str, Kind]:
    """Return the kinds of decoys to compare, by name; `training_w` is (day, 1440)."""
    usual, always = hours_of_use(training_w, RISE_W), ANY_HOUR
    rng = np.random.default_rng(0)
    own = own_uses(list(training_w), RISE_W)
    return {
        "library": Kind(base, always),
        "library, usual hours": Kind(base, usual),
        "composites, usual hours": Kind(composites(base, base.size, rng), usual),
        "spikes of 3 min, usual hours": Kind(base, usual, (3,)),
        "own uses, usual hours": Kind(own, usual),
        "own uses and composites, usual hours": Kind(composites(own, own.size // 4, rng), usual),
    }


def measure(asked: argparse.Namespace) -> None:
    """Measure every kind and rate in both houses, and record each as soon as it is finished."""
    days: DayChoice = "many" if asked.many else "paper"
    for name in asked.on:
        protocol = PROTOCOLS[name]
        home = load(data_folder(asked.data) / protocol.dataset, protocol.house)
        training = only_days(home, protocol.training)
        days_w = [training.day(day).aggregate_w for day in training.days()]
        known_w = np.stack([watts for watts in days_w if len(watts) == 1440 and np.isfinite(watts).mean() > 0.9])
        every = kinds(read_library(asked.library), np.nan_to_num(known_w, nan=float(np.nanmedian(known_w))))
        others = [kind for kind, made in every.items() if kind != "library" and not made.spike_minutes]
        wanted = [("library", rate) for rate in RATES] + [(kind, OTHERS_RATE) for kind in others]
        trial = protocol_trial(protocol, home, days, 0)
        trial = replace(trial, test=replace(trial.test, days=trial.test.days[: asked.most_days]))
        if asked.many or asked.attackers != FIXED:
            wanted = []
        for kind, rate in REMEDIES if asked.remedies else [*wanted, HEADLINE]:
            setup = Setup(every[kind].library)
            veil = Veil(dice=every[kind].dice(rate))
            row = (f"{kind}, {rate:g} a day" if rate else "no decoys") + (", many days" if days == "many" else "")
            row += "" if asked.attackers == FIXED else f", {len(asked.attackers)} attackers"
            spec = Spec(trial, setup, {"fixed": tuple(asked.attackers)}, asked.seeds)
            size = {"seeds": asked.seeds, "n_days": len(trial.test.days)}
            rows = [
                {"dataset": name, "row": row, "x": rate, "metric": metric, "value": value, **size}
                for metric, value in figures(spec, protocol, home, veil)
            ]
            settings = {
                "defence": "veil",
                "version": version_of("veil"),
                "row": row,
                "attackers": list(asked.attackers),
                "library": setup.library.digest()[:12],
                "versions": dict(library_versions("numpy")),
            }
            study.record(asked.results, NAME, f"{NAME}_{key_of({**settings, 'on': name})[:12]}", rows, settings)


def figures(spec: Spec, protocol: Protocol, home: Household, veil: Veil) -> Iterator[tuple[str, float]]:
    """Yield the figures of test days, and of decoys on other days."""
    undefended = measure_undefended(spec, {spec.trial.test.key: home}, workers=1)
    result = evaluate(undefended, Defence("veil", (veil,)), workers=1)
    yield "rmse_increase_percent", headline(result.cases["fixed"], "rmse").value
    yield "f1_reduction_percent", headline(result.cases["fixed"], "f1").value
    if certified := result.masked.certificate:
        yield "certified_bits_median", float(np.median(certified.bits))
    yield "throughput_kwh", float(result.masked.physical.throughput_kwh.mean())
    yield "soc_neutral_cost", float(result.masked.physical.soc_neutral_cost.mean())
    if veil.dice.rate == OTHERS_RATE / 1440:
        yield "two_sample_auc", two_sample_auc(protocol, home, spec.setup, veil)


def two_sample_auc(protocol: Protocol, home: Household, setup: Setup, veil: Veil) -> float:
    """Compare the uses that the veiled meter shows with those in the load, on days that are held out."""
    held_out = protocol.held_out(home, min_days=1)[:MOST_DAYS]
    meter = home.select([])
    fitted = cast(Veil, knowing(veil, [only_days(meter, protocol.training)], setup))
    pieces = [
        span(piece, piece.days()[0], piece.days()[-1] + timedelta(days=1), setup.tariff, lead=0)
        for piece in consecutive_pieces(meter, held_out)
    ]
    scenario = stack(pieces)
    rngs = [np.random.default_rng([11, row]) for row in range(scenario.batch)]
    trace = rollout(fitted, setup.battery, setup.library, scenario, rngs)
    shown, real = (
        np.concatenate([uses(row_w, clock) for row_w, clock in zip(watts, scenario.minute_of_day, strict=True)])
        for watts in (trace.meter_w, trace.load_w)
    )
    return separation(shown, real, np.random.default_rng(0))


def uses(watts: FloatArray, clock: FloatArray) -> FloatArray:
    """Describe what rises above the median: minutes, mean, highest and first power, spread, time of day; (use, 7)."""
    described = []
    for start, end in find_events(watts - np.nanmedian(watts), RISE_W):
        rise_w = watts[start:end] - watts[start - 1] if start else watts[start:end]
        angle = 2.0 * np.pi * clock[start] / 1440.0
        day = np.cos(angle), np.sin(angle)
        described.append([np.log(end - start), rise_w.mean(), rise_w.max(), rise_w[0], rise_w.std(), *day])
    return np.array(described).reshape(-1, 7)


def separation(first: FloatArray, second: FloatArray, rng: np.random.Generator) -> float:
    """Return the area under the ROC curve of a nearest-neighbour classifier, trained on one half of both samples."""
    count = min(len(first), len(second))
    halves = [np.array_split(rng.permutation(sample)[:count], 2) for sample in (first, second)]
    train, test = (np.concatenate([pair[half] for pair in halves]) for half in (0, 1))
    known, truth = (np.repeat([0, 1], [len(pair[half]) for pair in halves]) for half in (0, 1))
    centre, scale = train.mean(axis=0), np.maximum(train.std(axis=0), 1e-9)
    gap = (((train - centre) / scale)[None] - ((test - centre) / scale)[:, None]) ** 2
    nearest = np.argsort(gap.sum(axis=2), axis=1)[:, :NEIGHBOURS]
    votes = known[nearest].mean(axis=1)
    pairs = votes[truth == 1][:, None] - votes[truth == 0][None]
    return float(np.mean((pairs > 0.0) + 0.5 * (pairs == 0.0)))


def draw(asked: argparse.Namespace) -> None:
    """Write the table, and draw the figures against the rate."""
    table = study.read(asked.results, NAME)
    asked.page.write_text(study.put(asked.page.read_text(), "decoys", page_table(table)))
    by_rate = table[table["row"].str.startswith(("library, ", "no decoys")) & ~table["row"].str.contains("usual")]
    panels: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for metric in ("rmse_increase_percent", "certified_bits_median", "throughput_kwh"):
        part = by_rate[by_rate["metric"] == metric]
        panels[HEADS[metric][0]] = {
            title: list(zip(rows["x"], rows["value"], strict=True))
            for name, title in TITLES.items()
            if len(rows := part[part["dataset"] == name]) > 0
        }
    title = "Decoys of the veil: what they do to fixed attackers, and what they take"
    save(curves_figure(panels, "decoys a day", title, ["bits, median"]), asked.pictures / "decoys.png", width=760)


def page_table(table: pd.DataFrame) -> str:
    """Write the table of the page: the rates first, then other kinds of decoys."""
    values = table.set_index(["dataset", "row", "metric"])["value"].to_dict()
    ordered = table.assign(other=table["row"].str.contains("usual")).sort_values(["dataset", "other", "x", "row"])
    lines = []
    for name, row in dict.fromkeys(zip(ordered["dataset"], ordered["row"], strict=True)):
        cells = [
            pattern.format(values[name, row, metric]) if (name, row, metric) in values else "-"
            for metric, (_, pattern) in HEADS.items()
        ]
        lines.append([TITLES[name], row, *cells])
    return study.table(["house", "decoys", *(head for head, _ in HEADS.values())], lines, texts=2)


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the options and measure."""
    parser = study.options(__doc__ or "")
    parser.add_argument("--on", nargs="+", default=list(TITLES), choices=list(TITLES))
    parser.add_argument("--attackers", nargs="+", default=FIXED, help="fixed attackers")
    parser.add_argument("--many", action="store_true", help="measure 16 decoys a day on held-out days only")
    parser.add_argument("--remedies", action="store_true", help="measure the remedies instead")
    parser.add_argument("--most-days", type=int, default=42, help="most held-out days to read")
    parser.add_argument("--seeds", type=int, default=5, help="seeds of the dice")
    parser.add_argument("--page", type=Path, default=Path("docs/veil.md"), help="page with the table")
    asked = parser.parse_args(arguments)
    if not asked.picture:
        measure(asked)
    draw(asked)


if __name__ == "__main__":
    main()
