"""Figures of an evaluated defence, as rows of the table of results, and the run that they belong to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from meterveil.attackers.protocol import AGGREGATE
from meterveil.attackers.registry import version_of
from meterveil.bench import cases as over
from meterveil.bench.cases import BEST_F1, PAPER_METRICS, Case
from meterveil.bench.estimates import Estimate, deviation, estimate, mean
from meterveil.bench.evaluate import PRIOR, VERSION, Result
from meterveil.bench.metrics import FloatArray
from meterveil.bench.results import Figure, Run, ThreatModel, battery_label, current_commit
from meterveil.core.battery import Battery
from meterveil.core.tariff import PAPER_TARIFF
from meterveil.data.cache import key_of, library_versions
from meterveil.data.settings import battery_values, tariff_values

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


def figures_of(result: Result, run: str) -> list[Figure]:
    """List everything that was measured of a defence, as figures of the run with this key."""
    base = base_figure(result, run)
    figures: list[Figure] = []
    for threat, cases in result.cases.items():
        under = under_threat(base, result, threat)
        for case in cases:
            figures += _case_figures(replace(under, attacker=case.attacker), result, case)
        figures += _headline_figures(under, result, cases)
    for case in result.information:
        figures += _case_figures(replace(base, attacker=case.attacker), result, case)
    return [*figures, *_battery_figures(base, result)]


def base_figure(result: Result, run: str) -> Figure:
    """Return the labels that all figures of a result share."""
    trial = result.spec.trial
    return Figure(
        dataset=trial.test.dataset,
        house=trial.test.house,
        days=trial.days,
        aggregate=trial.aggregate,
        defence=result.defence.name,
        battery=battery_label(result.spec.setup.battery),
        seeds=result.seeds,
        n_days=len(trial.test.days),
        run=run,
    )


def under_threat(figure: Figure, result: Result, threat: ThreatModel) -> Figure:
    """Add the threat model, and what its attackers learned from."""
    label = result.spec.trial.training_label
    training = f"{label} x {result.spec.copies} copies" if threat == "adaptive" else label
    return replace(figure, threat=threat, training=training)


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
    names = dict.fromkeys(name for names in result.spec.attackers.values() for name in names)
    spec, defence, versions = result.spec, result.defence, library_versions("numpy", "scipy", "torch")
    described = {**_settings(result), "attackers": sorted(names), **settings}
    if not key:
        attackers = {name: version_of(name) for name in names}
        trained = [training.document.get("weights") for training in defence.trainings]
        asked = [dict(spec.attackers), attackers, result.seeds, spec.copies, trained]
        key = key_of("evaluation", VERSION, spec.trial.identity, described, asked, result.data, versions)
    return Run(key, described, result.data, versions, current_commit())


def _case_figures(base: Figure, result: Result, case: Case) -> Iterator[Figure]:
    figure = replace(base, appliance=case.target, n_days=case.n_days)
    if case.metric == BEST_F1:
        yield with_value(figure, "f1_leak", case.leak(mean(result.prior[case.target, BEST_F1])))
        return
    figure = replace(figure, note="" if case.n_days else NOT_USED)
    if case.metric in (*PAPER_METRICS, "information_bits"):
        figure = replace(figure, change=number(case.delta), p=number(case.p))
    yield with_value(figure, case.metric, case.masked, case.spread)
    if case.metric == "rmse" and case.target != AGGREGATE:
        told = case.leak(mean(result.prior[case.target, "rmse"]))
        yield with_value(replace(figure, change=None, p=None, note=""), "rmse_leak", told)


def _headline_figures(base: Figure, result: Result, cases: tuple[Case, ...]) -> Iterator[Figure]:
    figure = replace(base, attacker=EVERY, appliance=EVERY)
    for metric, headline in HEADLINES.items():
        harmed, count = over.significant(cases, metric)
        spread = deviation(over.headline_by_seed(cases, metric))
        yield with_value(figure, headline, over.headline(cases, metric), spread)
        yield with_value(figure, f"{metric}_significant", harmed)
        yield with_value(figure, f"{metric}_cases", count)
    for metric, name in ((BEST_F1, "f1"), ("rmse", "rmse")):
        most = over.strongest(cases, result.prior, metric)
        strongest = replace(figure, attacker=STRONGEST)
        note = {"note": most.attacker}
        yield with_value(strongest, name, most.masked, deviation(most.masked_by_seed), **note)
        yield with_value(strongest, f"{name}_undefended", most.raw)
        yield with_value(replace(figure, attacker=PRIOR), name, most.prior)
        yield with_value(strongest, f"{name}_leak", most.leak, deviation(most.leak_by_seed), **note)


def _battery_figures(base: Figure, result: Result) -> Iterator[Figure]:
    for metric, by_day in result.masked.physical._asdict().items():
        yield with_value(base, metric, estimate(by_day.mean(axis=0)[None], mean), _spread(by_day))
    if seconds := result.defence.training_seconds:
        yield with_value(base, "training_seconds", float(np.mean(seconds)))


def _spread(by_day: FloatArray) -> float:
    """Return the deviation over days, or over seeds where there is one day."""
    values = by_day.mean(axis=0) if by_day.shape[1] > 1 else by_day[:, 0]
    return float(np.std(values, ddof=1))


def _settings(result: Result) -> dict[str, Any]:
    """Return the settings for the runs table; of battery and tariff only what differs from the paper's."""
    setup, defaults = result.spec.setup, battery_values(Battery())
    settings = {**result.spec.trial.settings, **result.defence.settings}
    settings["library"] = setup.library.digest()[:12]
    battery = {
        name: value for name, value in battery_values(setup.battery).items() if value != defaults[name]
    }
    if battery:
        settings["battery"] = battery
    if setup.tariff != PAPER_TARIFF:
        settings["tariff"] = tariff_values(setup.tariff)
    if "adaptive" in result.spec.attackers:
        settings["copies"] = result.spec.copies
    return settings
