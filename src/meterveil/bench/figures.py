"""Figures of evaluated defences and their differences as rows of the table of results, and their runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from meterveil.attackers.protocol import AGGREGATE
from meterveil.attackers.registry import INFORMED, version_of
from meterveil.bench.cases import (
    BEST_F1,
    PAPER_METRICS,
    Case,
    Strongest,
    counted,
    headline,
    headline_by_seed,
    significant,
    strongest,
    thirds,
)
from meterveil.bench.estimates import Estimate, deviation, estimate, mean, welch_p
from meterveil.bench.evaluate import PRIOR, VERSION, Result, Spec
from meterveil.bench.metrics import FloatArray, headline_percent, leak
from meterveil.bench.results import Figure, Run, ThreatModel, battery_label, check_effort, current_commit, to_table
from meterveil.core.battery import INITIAL_SOC, Battery
from meterveil.core.tariff import PAPER_TARIFF
from meterveil.data.cache import key_of, library_versions
from meterveil.data.settings import battery_values, tariff_values
from meterveil.defenders.defence import Defence
from meterveil.errors import InputError

HEADLINES = {
    "rmse": "rmse_increase_percent",
    "mae": "mae_increase_percent",
    "sae": "sae_increase_percent",
    "f1": "f1_reduction_percent",
}
"""Metric of a case -> metric of its headline."""

EVERY, STRONGEST = "all", "strongest"
"""Labels of figures over all cases, and of the attacker that reads most."""

NOT_USED = "undefined: the appliance stood still"
_WORDS = {HEADLINES["rmse"]: "RMSE Inc. %", HEADLINES["f1"]: "F1 Red. %", "f1": "F1"}


def figures_of(result: Result, run: str) -> list[Figure]:
    """List everything that was measured of a defence, as figures of the run with this key."""
    base = base_figure(result.spec, result.defence, run)
    figures: list[Figure] = []
    for threat, cases in result.cases.items():
        under = under_threat(base, result.spec, threat)
        for case in cases:
            figures += _case_figures(replace(under, attacker=case.attacker), result, case)
        figures += _headline_figures(under, result, cases)
    for case in result.information:
        figures += _case_figures(replace(base, attacker=case.attacker), result, case)
    return [*figures, *_battery_figures(base, result)]


def base_figure(spec: Spec, defence: Defence, run: str = "") -> Figure:
    """Return the labels that all figures of a defence share."""
    trial = spec.trial
    return Figure(
        dataset=trial.test.dataset,
        house=trial.test.house,
        days=trial.days,
        aggregate=trial.aggregate,
        defence=defence.name,
        battery=battery_label(spec.setup.battery),
        seeds=defence.seeds(spec.seeds),
        n_days=len(trial.test.days),
        run=run,
    )


def under_threat(figure: Figure, spec: Spec, threat: ThreatModel) -> Figure:
    """Add the threat model, and what its attackers learned from."""
    label = spec.trial.training_label
    if threat == "adaptive" and set(spec.attackers[threat]) - set(INFORMED):  # informed ones make their own copies
        label = f"{label} x {spec.copies} copies"
    return replace(figure, threat=threat, training=label)


def with_value(
    figure: Figure, metric: str, value: Estimate | float, spread: float | None = None, **more: Any
) -> Figure:
    """Put a value into a figure, with its interval over days where it has one; NaN becomes empty."""
    middle, low, high = map(number, value if isinstance(value, Estimate) else Estimate(value))
    spread = number(spread)
    return replace(figure, metric=metric, value=middle, low=low, high=high, spread=spread, **more)


def number(value: float | None) -> float | None:
    """Return a number for a figure: None for NaN, and never minus zero."""
    return None if value is None or np.isnan(value) else float(value) + 0.0


def run_of(result: Result, key: str = "", **settings: Any) -> Run:
    """Describe how a result was measured; without a key it gets the hash of everything that matters."""
    spec, defence, versions = result.spec, result.defence, library_versions("numpy", "scipy", "torch")
    described = {**_settings(spec, defence), **settings}
    if not key:
        attackers = {name: version_of(name) for name in described["attackers"]}
        trained = [training.document.get("weights") for training in defence.trainings]
        asked = [dict(spec.attackers), attackers, result.seeds, spec.copies, trained]
        key = key_of("evaluation", VERSION, spec.trial.identity, described, asked, result.data, versions)
    return Run(key, described, result.data, versions, current_commit())


def check_recordable(folder: Path, spec: Spec, defence: Defence) -> None:
    """Refuse before an evaluation what `results.write` would refuse after it."""
    headline_figure = replace(base_figure(spec, defence), attacker=EVERY, appliance=EVERY)
    expected = [
        replace(under_threat(headline_figure, spec, threat), metric=HEADLINES["rmse"]) for threat in spec.attackers
    ]
    check_effort(folder, to_table(expected), [Run("", _settings(spec, defence))])


def gap_figures(result: Result, other: Result, run: str = "") -> list[Figure]:
    """Compare two defences: headlines, and F1 and leak of the strongest attacker under every threat model.

    A difference has an interval over days, which both defences share, and p and spread over their seeds.
    """
    if result.spec.trial != other.spec.trial or result.spec.attackers != other.spec.attackers:
        raise InputError("two defences can be compared only on the same days and with the same attackers")
    label = f"{result.defence.name} minus {other.defence.name}"
    base = replace(base_figure(result.spec, result.defence, run), defence=label, appliance=EVERY)
    figures: list[Figure] = []
    for threat in result.cases:
        under = under_threat(base, result.spec, threat)
        figures += [_headline_gap(under, result.cases[threat], other.cases[threat], m) for m in ("rmse", "f1")]
        strongest_two = (strongest(side.cases[threat], side.prior, BEST_F1) for side in (result, other))
        figures += _strongest_gaps(replace(under, attacker=STRONGEST), *strongest_two)
    return figures


def gap_rows(results: Sequence[Result], other: Result) -> list[list[str]]:
    """Write a table of the differences to one defence, the head first; F1 stands for the leak too."""
    heads = [f"{threat} {words}" for threat in other.cases for words in _WORDS.values()]
    rows = [["defence", *(part for head in heads for part in (head, "p"))]]
    for result in results:
        if result is not other:
            shown = [gap for gap in gap_figures(result, other) if gap.metric in _WORDS]
            cells = [part for gap in shown for part in (_difference_text(gap), "" if gap.p is None else f"{gap.p:.3f}")]
            rows.append([result.defence.name, *cells])
    return rows


def _case_figures(base: Figure, result: Result, case: Case) -> Iterator[Figure]:
    figure = replace(base, appliance=case.target, n_days=case.n_days)
    if case.metric == BEST_F1:
        yield with_value(figure, "f1_leak", case.leak(mean(result.prior[case.target, BEST_F1])))
        return
    figure = replace(figure, note="" if case.n_days else NOT_USED)
    if case.metric in (*PAPER_METRICS, "information_bits"):
        figure = replace(figure, change=number(case.delta), p=number(case.p) if case.spread else None)
    yield with_value(figure, case.metric, case.masked, case.spread)
    if case.metric == "rmse" and case.target != AGGREGATE:
        told = case.leak(mean(result.prior[case.target, "rmse"]))
        yield with_value(replace(figure, change=None, p=None, note=""), "rmse_leak", told)


def _headline_figures(base: Figure, result: Result, cases: tuple[Case, ...]) -> Iterator[Figure]:
    figure = replace(base, attacker=EVERY, appliance=EVERY)
    for metric, name in HEADLINES.items():
        harmed, count = significant(cases, metric)
        yield with_value(figure, name, headline(cases, metric), deviation(headline_by_seed(cases, metric)))
        yield with_value(figure, f"{metric}_significant", harmed)
        yield with_value(figure, f"{metric}_cases", count)
    for metric, name in ((BEST_F1, "f1"), ("rmse", "rmse")):
        most = strongest(cases, result.prior, metric)
        most_read = replace(figure, attacker=STRONGEST)
        note = {"note": most.attacker}
        yield with_value(most_read, name, most.masked, deviation(most.masked_by_seed), **note)
        yield with_value(most_read, f"{name}_undefended", most.raw)
        yield with_value(replace(figure, attacker=PRIOR), name, most.prior)
        yield with_value(most_read, f"{name}_leak", most.leak, deviation(most.leak_by_seed), **note)


def _battery_figures(base: Figure, result: Result) -> Iterator[Figure]:
    def averaged(metric: str, by_day: FloatArray) -> Figure:
        return with_value(base, metric, estimate(by_day.mean(axis=0)[None], mean), _spread(by_day))

    for metric, by_day in result.masked.physical._asdict().items():
        yield averaged(metric, by_day)
    if certified := result.masked.certificate:
        bits = certified.bits.mean(axis=0)
        yield averaged("certified_bits", certified.bits)
        yield with_value(base, "certified_bits_median", float(np.median(bits)))
        yield with_value(base, "certified_bits_p90", float(np.percentile(bits, 90.0)))
        yield averaged("followed_percent", 100.0 * (1.0 - certified.missed / certified.minutes))
        yield averaged("rescues", certified.rescues)
    if seconds := result.defence.training_seconds:
        yield with_value(base, "training_seconds", float(np.mean(seconds)))


def _spread(by_day: FloatArray) -> float:
    """Return the deviation over days, or over seeds where there is one day."""
    values = by_day.mean(axis=0) if by_day.shape[1] > 1 else by_day[:, 0]
    return float(np.std(values, ddof=1))


def _settings(spec: Spec, defence: Defence) -> dict[str, Any]:
    """Return the settings for the runs table; of battery and tariff only what differs from the paper's."""
    setup, defaults = spec.setup, battery_values(Battery())
    battery = {name: value for name, value in battery_values(setup.battery).items() if value != defaults[name]}
    optional = {
        "battery": battery,
        "tariff": tariff_values(setup.tariff) if setup.tariff != PAPER_TARIFF else None,
        "copies": spec.copies if "adaptive" in spec.attackers else None,
        "soc_start": setup.soc_start if setup.soc_start != INITIAL_SOC else None,
    }
    return {
        **spec.trial.settings,
        **defence.settings,
        "library": setup.library.digest()[:12],
        **{name: value for name, value in optional.items() if value not in (None, {})},
        "attackers": sorted({name for names in spec.attackers.values() for name in names}),
    }


def _headline_gap(figure: Figure, first: Sequence[Case], second: Sequence[Case], metric: str) -> Figure:
    mine, theirs = counted(first, metric), counted(second, metric)
    pairs = [(*case.paired(), rival.paired()[1]) for case, rival in zip(mine, theirs, strict=True)]
    rows = np.concatenate([np.array(column) for column in zip(*pairs, strict=True)])

    def statistic(means: FloatArray) -> float:
        raw, first, second = np.split(means, 3)
        return headline_percent(metric, raw, first) - headline_percent(metric, raw, second)

    by_seed = headline_by_seed(mine, metric), headline_by_seed(theirs, metric)
    return _gap(replace(figure, attacker=EVERY), HEADLINES[metric], estimate(rows, statistic), *by_seed)


def _strongest_gaps(figure: Figure, mine: Strongest, theirs: Strongest) -> list[Figure]:
    rows = np.concatenate([mine.by_day, theirs.by_day])

    def compared(score: Callable[[list[float]], float]) -> Estimate:
        def statistic(means: FloatArray) -> float:
            first, second = (score(thirds(half)) for half in np.split(means, 2))
            return first - second

        return estimate(rows, statistic)

    f1 = compared(lambda parts: parts[-1])
    leaked = compared(lambda parts: float(leak(BEST_F1, *parts)))
    return [
        _gap(figure, "f1", f1, mine.masked_by_seed, theirs.masked_by_seed),
        _gap(figure, "f1_leak", leaked, mine.leak_by_seed, theirs.leak_by_seed),
    ]


def _gap(figure: Figure, metric: str, difference: Estimate, first: FloatArray, second: FloatArray) -> Figure:
    """Add p and spread from the figures of every seed, (seed,) of each defence; no p where all seeds agree."""
    spread = float(np.hypot(deviation(first), deviation(second)))
    return with_value(figure, metric, difference, spread, p=number(welch_p(first, second)) if spread else None)


def _difference_text(figure: Figure) -> str:
    digits = 2 if figure.metric == "f1" else 1
    value, low, high = (
        "" if part is None else f"{part:+.{digits}f}" for part in (figure.value, figure.low, figure.high)
    )
    return f"{value}\u00a0({low}..{high})" if low else value
