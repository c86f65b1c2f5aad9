"""Search the paper's unstated choices by its fingerprint: `python -m experiments.fidelity --library FILE`.

Makes results/study_fidelity.csv of docs/fidelity.md. No attacker takes part and no privacy figure is read: a
candidate is scored by what the battery does on the paper's test days (`meterveil.bench.fingerprint`).

Five steps, each resumable, trainings cached as in `meterveil reproduce`:

    loads     sources of the load, by the day's mean and by a drain that charges at night and covers the load by day
    screen    one training of every candidate on UK-DALE, with the identity probe, which needs no network
    halve     the best of them on both houses; the best of these also with a mask and with the published preset
    final     the best of all with the paper's probe and every seed
    batteries the frozen reading, `as_published`, with the paper's other batteries, not trained again

`--candidate '{"weight": 0.01, "probe": "transformer"}' --on ukdale --seeds 1` measures one candidate only.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any, cast

import numpy as np

from experiments import study
from meterveil.bench import fingerprint, reported
from meterveil.bench.fingerprint import Reading
from meterveil.bench.reproduce.experiments import AS_PUBLISHED, AS_PUBLISHED_LOAD, BOTH, DEFENCES, TABLES, Changes
from meterveil.bench.reproduce.runner import Task, do
from meterveil.bench.reproduce.steps import ProbeSpec, TrainingSpec
from meterveil.bench.reproduce.workspace import Workspace, built_library
from meterveil.core.battery import Battery
from meterveil.core.executor import Command, replay_signature
from meterveil.core.rollout import Policy, View, rollout
from meterveil.core.tariff import PAPER_TARIFF
from meterveil.data.cache import cache_folder
from meterveil.data.files import data_folder
from meterveil.data.household import AGGREGATES, Aggregate
from meterveil.data.protocols import PROTOCOLS
from meterveil.data.simulation import episodes
from meterveil.defenders.run_folder import load_trained
from meterveil.defenders.trained_policies import ManagerPolicy
from meterveil.defenders.training_settings import CHOICES, MANAGER_PRESETS, ManagerSettings, manager_settings
from meterveil.errors import InputError

WEIGHTS = (0.01, 0.0125, 0.015, 0.02, 0.005, 0.05, 0.1, 1.0, 0.0)
"""Lambda: 0 is cost only, 1 is privacy only, which the paper says that it used."""
LOSSES = ("rmse", "mse")
PUBLISHED = "paper"
"""Preset with the published learning rate, with which little is learned in 300 days."""
STEPS = ("loads", "screen", "halve", "final", "batteries")
EXPORTING: Changes = (("export_limit_w", float("inf")),)
"""Battery that may feed the grid, which the paper says that it does not (D3)."""
ALL_SUBMETERS = "all sub-meters"
DRAWS = 3
"""Times that a sampled policy plays the day."""
KEPT = 4
"""Candidates of the screen that are tried on both houses."""
FINALISTS = 2
"""Candidates that are trained with the paper's probe and every seed."""
SEEDS = 5


@dataclass(frozen=True)
class Candidate:
    """Choices that the paper leaves open."""

    weight: float
    loss: str = "rmse"
    choice: str = "greedy"
    masked: bool = False
    """Choose only among idling and actions that move energy, in training and on the test day."""
    skips: bool = False
    """The same on the test day only: the likeliest action that moves energy, or idling. It needs no other training."""
    preset: str = "fast"
    probe: str = "identity"

    @property
    def name(self) -> str:
        """Name of the row in the table."""
        words = [
            f"lambda {self.weight:g}",
            self.loss,
            self.choice,
            *["masked"] * self.masked,
            *["masked acting"] * self.skips,
        ]
        return ", ".join([*words, f"preset {self.preset}", f"{self.probe} probe"])

    @property
    def settings(self) -> ManagerSettings:
        """Settings of the training; the choice does not change what is learned."""
        changes = {"weight": self.weight, "loss": self.loss, "masked": self.masked, "probe": self.probe}
        return manager_settings(self.preset, **changes, choice="greedy")


@dataclass(frozen=True)
class Drain:
    """Rule that replays one signature: charging in the cheap hours up to a limit, discharging in the others."""

    soc_limit: float
    signature: int = 0

    def initial(self, batch: int) -> None:
        """Return no memory."""

    def decide(self, view: View, memory: None) -> tuple[Command, None]:
        """Charge or discharge by the price."""
        is_cheap = view.price <= fingerprint.CHEAP
        charges = is_cheap & (view.state.soc < self.soc_limit)
        action = np.where(charges, 1 + self.signature, np.where(is_cheap, 0, 1 + view.library.size + self.signature))
        return replay_signature(view.library, action), memory


def played(
    workspace: Workspace,
    dataset: str,
    aggregate: Aggregate,
    policy: Policy,
    battery: Changes = (),
    seeds: Iterable[int] = (0,),
) -> Reading:
    """Let a policy play the paper's test day and return the mean of its figures over draws of random numbers."""
    protocol = PROTOCOLS[dataset]
    home = workspace.household(dataset, protocol.house, aggregate)
    scenario = episodes(home, protocol.test[:1], PAPER_TARIFF)
    rngs = [np.random.default_rng([seed, 0xF1D]) for seed in seeds]
    trace = rollout(policy, Battery(**dict(battery)), workspace.signatures(), scenario.rows([0] * len(rngs)), rngs)
    price = scenario.price[0, scenario.lead :]
    return average([fingerprint.simulated(power_w, trace.load_w[0], price) for power_w in trace.power_w])


def average(readings: Sequence[Reading]) -> Reading:
    """Average every figure."""
    return Reading(*np.mean([list(reading.terms.values()) for reading in readings], axis=0).tolist())


def trained(workspace: Workspace, dataset: str, settings: ManagerSettings, seed: int) -> ManagerPolicy:
    """Train a manager on the paper's training days, or load it from the cache."""
    house, aggregate = PROTOCOLS[dataset].house, AS_PUBLISHED_LOAD[dataset]
    fit = ProbeSpec(dataset, house, settings.probe, seed, settings.probe_epochs, aggregate)
    probe = fit.key(workspace)
    spec = TrainingSpec(dataset, house, settings, "main", (), seed, probe, aggregate)
    key = spec.key(workspace)
    for task in (Task("probe", probe, "probe", fit.fit), Task("train", key, "training", spec.train)):
        if outcome := do(task, workspace, os.getpid()).error:
            raise InputError(f"{task.title} of {dataset}, seed {seed}: {outcome}")
    return cast(ManagerPolicy, load_trained(workspace.folder("train", key)).policy)


def measured(workspace: Workspace, candidate: Candidate, dataset: str, seeds: int) -> list[Reading]:
    """Train a candidate so many times and return the figures of the paper's test day for each training."""
    readings = []
    for seed in range(seeds):
        policy = trained(workspace, dataset, candidate.settings, seed)
        masked = candidate.masked or candidate.skips
        policy = replace(policy, choice=candidate.choice, masked=masked)  # type: ignore[arg-type]
        draws = range(1 if candidate.choice == "greedy" else DRAWS)
        readings.append(played(workspace, dataset, AS_PUBLISHED_LOAD[dataset], policy, seeds=draws))
    return readings


def load_figures(workspace: Workspace) -> list[dict[str, Any]]:
    """Compare the sources of the load: mean of the test day, its bounds, and a drain on it."""
    figures = []
    for dataset, aggregate in product(BOTH, AGGREGATES):
        bounds = fingerprint.load_bounds(dataset)._asdict()
        shared = {"dataset": dataset, "row": f"load {aggregate}", "seeds": 1, "n_days": 1}
        try:
            reading = played(workspace, dataset, aggregate, Drain(_papers_peak_soc()))
        except InputError as error:
            figures.append({**shared, "metric": "load_w", "value": np.nan, "note": str(error)})
            continue
        values = {**{f"bound_{name}_w": value for name, value in bounds.items()}, **_values(dataset, reading)}
        figures += [{**shared, "metric": metric, "value": value} for metric, value in values.items()]
    for dataset in BOTH:
        shared = {"dataset": dataset, "seeds": 1, "n_days": 1}
        reading = played(workspace, dataset, AS_PUBLISHED_LOAD[dataset], Drain(_papers_peak_soc()), EXPORTING)
        drained = _values(dataset, reading)
        figures += [
            {**shared, "row": "drain that exports", "metric": metric, "value": value}
            for metric, value in drained.items()
        ]
        figures += _mean_figures(workspace, dataset)
    return figures


def _mean_figures(workspace: Workspace, dataset: str) -> list[dict[str, Any]]:
    """Compare the mean of each appliance on the paper's test days with the highest that its tables allow.

    The sum of all available sub-meters is one more source of the load.
    """
    protocol, highest = PROTOCOLS[dataset], fingerprint.highest_means(dataset)
    every = workspace.household(dataset, protocol.house).day(protocol.test[0]).appliances_w.values()
    total_w = sum(float(np.nanmean(watts)) for watts in every if not np.isnan(watts).all())
    shared = {"dataset": dataset, "row": f"load {ALL_SUBMETERS}", "seeds": 1, "n_days": 1}
    figures: list[dict[str, Any]] = [{**shared, "metric": "load_w", "value": total_w}]
    for day in protocol.test:
        known = workspace.household(dataset, protocol.house).day(day).appliances_w
        for name in (name for name in protocol.targets if name in known and not np.isnan(known[name]).all()):
            values = {"mean_w": np.nanmean(known[name]), "highest_mean_w": highest[name]}
            shared = {"dataset": dataset, "row": f"mean of {name}, {day}", "seeds": 1, "n_days": 1}
            figures += [{**shared, "metric": metric, "value": value} for metric, value in values.items()]
    return figures


def battery_figures(workspace: Workspace, seeds: int) -> list[dict[str, Any]]:
    """Let the frozen reading drive the paper's other batteries; errors are shares of that with the paper's battery.

    The paper prints the mean over attackers, so only the shares can be compared. The same trainings also act without
    the mask.
    """
    table = reported.figures("battery_sensitivity")
    printed = table[table["metric"] == "aggregate_delta_rmse_w"].set_index("label")["paper"]
    policies = [trained(workspace, "ukdale", AS_PUBLISHED, seed) for seed in range(seeds)]
    aggregate, rows = AS_PUBLISHED_LOAD["ukdale"], [r for r in TABLES["battery_sensitivity"].rows if r.label in printed]
    figures: list[dict[str, Any]] = []
    for name, masked in (("share", DEFENCES["as_published"].acts_masked), ("share_unmasked", False)):
        acting = [replace(policy, masked=masked) for policy in policies]
        plays = [[played(workspace, "ukdale", aggregate, policy, row.battery) for policy in acting] for row in rows]
        errors_w = [average(play).rmse_w for play in plays]
        for row, error_w in zip(rows, errors_w, strict=True):
            values = {name: error_w / errors_w[0], f"rmse_w, {name}": error_w}
            values["paper_share"] = printed[row.label] / printed[rows[0].label]
            shared = {"dataset": "ukdale", "row": f"battery, {row.label}", "seeds": seeds, "n_days": 1}
            figures += [{**shared, "metric": metric, "value": value} for metric, value in values.items()]
    return list({(figure["row"], figure["metric"]): figure for figure in figures}.values())


def screened(done: set[str]) -> list[Candidate]:
    """List the candidates of the screen that are not done."""
    grid = [Candidate(weight, loss) for loss, weight in product(LOSSES, WEIGHTS)]
    grid = [candidate for candidate in grid if candidate.weight or candidate.loss == LOSSES[0]]  # no loss counts at 0
    acting = [*({"choice": choice} for choice in reversed(CHOICES)), {"skips": True}]  # none needs another training
    every = [replace(candidate, **changes) for candidate in grid for changes in acting]  # type: ignore[arg-type]
    return [candidate for candidate in every if candidate.name not in done]


def record(folder: Any, name: str, readings: Mapping[str, Sequence[Reading]], settings: dict[str, Any]) -> float:
    """Record the mean figures of a row over its trainings, their spread and the score; return the score."""
    means = {dataset: average(trainings) for dataset, trainings in readings.items()}
    seeds, score = min(map(len, readings.values())), fingerprint.score(means)
    shared = {"row": name, "seeds": seeds, "n_days": 1}
    figures = [{**shared, "dataset": "_".join(readings), "metric": "score", "value": score}]
    for dataset, trainings in readings.items():
        for metric, value in _values(dataset, means[dataset]).items():
            by_seed = [training.terms.get(metric, np.nan) for training in trainings]
            spread = np.std(by_seed, ddof=1) if seeds > 1 else np.nan
            figures.append({**shared, "dataset": dataset, "metric": metric, "value": value, "spread": spread})
    study.record(folder, "fidelity", f"fidelity_{name}".replace(" ", "_").replace(",", ""), figures, settings)
    return score


def scores(folder: Any, dataset: str) -> dict[str, float]:
    """Return the recorded scores on a data set or on both: row -> score."""
    try:
        table = study.read(folder, "fidelity")
    except InputError:
        return {}
    rows = table[(table["metric"] == "score") & (table["dataset"] == dataset)]
    return dict(zip(rows["row"], rows["value"], strict=True))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the steps that are asked for, and record each candidate as soon as it is measured."""
    parser = study.options(__doc__ or "")
    parser.add_argument("--step", choices=STEPS, action="append", help="default: all")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="trainings of the best candidates")
    parser.add_argument("--candidate", type=json.loads, help="fields of one candidate as JSON; no step is run")
    parser.add_argument("--on", choices=BOTH, action="append", help="houses of --candidate; default: both")
    options = parser.parse_args(arguments)
    steps = [] if options.candidate else options.step or STEPS
    folder, cache = data_folder(options.data), cache_folder()
    library = (options.library or built_library(folder, cache)).resolve()
    workspace = Workspace(options.results.resolve(), cache, folder, library)
    workspace.use_cache()
    if options.candidate:
        candidate = Candidate(**options.candidate)
        readings = {name: measured(workspace, candidate, name, options.seeds) for name in options.on or BOTH}
        record(options.results, candidate.name, readings, asdict(candidate))
    if "loads" in steps:
        settings = {"drain_to": _papers_peak_soc(), "library": workspace.signatures().digest()[:12]}
        study.record(options.results, "fidelity", "fidelity_loads", load_figures(workspace), settings)
    if "screen" in steps:
        for candidate in screened(set(scores(options.results, "ukdale"))):
            readings = {"ukdale": measured(workspace, candidate, "ukdale", 1)}
            record(options.results, candidate.name, readings, asdict(candidate))
    if "halve" in steps:
        screen = screened(set())
        _on_both(workspace, options.results, best(screen, scores(options.results, "ukdale"), KEPT))
        [first] = best(screen, scores(options.results, "_".join(BOTH)), 1)
        _on_both(
            workspace, options.results, [replace(first, masked=True, skips=False), replace(first, preset=PUBLISHED)]
        )
    if "final" in steps:
        every = [
            replace(c, masked=m, preset=p) for c in screened(set()) for m in (False, True) for p in MANAGER_PRESETS
        ]
        finalists = best(every, scores(options.results, "_".join(BOTH)), FINALISTS)
        probed = [replace(candidate, probe="transformer") for candidate in finalists]
        _on_both(workspace, options.results, probed, options.seeds)
    if "batteries" in steps:
        figures = battery_figures(workspace, options.seeds)
        study.record(options.results, "fidelity", "fidelity_batteries", figures, asdict(AS_PUBLISHED))


def best(candidates: Sequence[Candidate], known: Mapping[str, float], number: int) -> list[Candidate]:
    """Return so many candidates with the lowest recorded scores."""
    recorded = [candidate for candidate in candidates if candidate.name in known]
    return sorted(recorded, key=lambda candidate: known[candidate.name])[:number]


def _on_both(workspace: Workspace, folder: Any, candidates: Sequence[Candidate], seeds: int = 1) -> None:
    for candidate in candidates:
        if candidate.name not in scores(folder, "_".join(BOTH)):
            readings = {dataset: measured(workspace, candidate, dataset, seeds) for dataset in BOTH}
            record(folder, candidate.name, readings, asdict(candidate))


def _papers_peak_soc() -> float:
    """Return the highest state of charge of a day with the paper's costs: what was charged at night on top of half."""
    paper = fingerprint.printed("ukdale")
    charged = np.mean(fingerprint.flows(paper.energy_cost, paper.throughput_kwh).cheap)
    return float(0.5 + charged / Battery().capacity_kwh)


def _values(dataset: str, reading: Reading) -> dict[str, float]:
    missed = fingerprint.misses(dataset, reading)
    return {**reading.terms, **{f"{name}_miss": value for name, value in missed.items()}}


if __name__ == "__main__":
    main()
