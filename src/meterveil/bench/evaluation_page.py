"""Page and tables of an evaluation: defences side by side, every case, and a day of each defence."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import plotly.graph_objects as go

from meterveil.attackers.protocol import AGGREGATE
from meterveil.attackers.registry import PAPER_SIX
from meterveil.bench import reported
from meterveil.bench.attack_page import DATASETS
from meterveil.bench.cases import BEST_F1, Case, headline, significant, strongest
from meterveil.bench.estimates import FEWEST_DAYS, Estimate, estimate, mean
from meterveil.bench.evaluate import Result
from meterveil.bench.figures import HEADLINES, gap_rows
from meterveil.bench.metrics import MISLED, MISLED_NOTE, UNDERTRAINED, UNDERTRAINED_NOTE, UNKNOWN, UNKNOWN_NOTE
from meterveil.bench.results import ThreatModel
from meterveil.bench.trial import OWN_HOUSE
from meterveil.core.battery import INITIAL_SOC, Battery
from meterveil.core.tariff import PAPER_TARIFF
from meterveil.data import outputs
from meterveil.data.household import SOURCE_NOTES
from meterveil.data.protocols import PROTOCOLS
from meterveil.data.settings import battery_values
from meterveil.defenders.training_settings import MANAGER
from meterveil.plots.attack import EVALUATED, Point, Score, defences_figure, label, reading_figure
from meterveil.plots.html import Section, page
from meterveil.plots.look import readable
from meterveil.plots.simulation import day_figure

FILES = ("evaluate.html",)

_INTRO = (
    "A home battery ran each of these defences on the same days. Attackers saw only the meter and estimated "
    "when each appliance ran. The first table shows how well the best attacker still reads the meter with "
    "each defence, and how much energy the battery moved. Below are all attackers and one day per defence."
)
_BEST = (
    "F1 is that of the strongest attacker; less is better. Leak: 100 % = as exposed as without a defence, 0 % = no "
    "better than guessing from routine."
)
_COLUMNS = (
    "RMSE Inc. and F1 Red. are ratios of means over all attackers and appliances, as in the paper; sig. "
    "counts the cases in which a t-test over seeds finds the attacker worse. Costs are a day's: energy, wear of "
    "the battery, and both together; the neutral cost includes the energy to start the next day with the same "
    "charge. Bits are an upper bound on what any reader can learn from a day (median over the test days and "
    "seeds); only the veil has one. The paper's figures are shown where battery, tariff, attackers and day are the "
    "paper's."
)
_CO = "CO learns the states of appliances from sub-meters, so it changes little when it adapts."
_INTERVALS = "Brackets are 95 % intervals over days."
_CASES = "With the defence: mean over seeds ± standard deviation. A star marks an attacker that got worse."
_PAPERS_NAMES = {
    "none": "No defense",
    "random": "Random baseline",
    "rule_based": "Rule-based baseline",
    "ddql_flat": "DDQL-flat",
    "ddql_mi": "DDQL-MI",
}
_CASE_METRICS = {"rmse": ("RMSE", 1), "mae": ("MAE", 1), "sae": ("SAE", 2), "f1": ("F1", 2)}


def write_evaluation(
    results: Sequence[Result], folder: Path, against: Result | None = None, conclusion: str = ""
) -> Path:
    """Write the page, with differences to one of the defences if given, and return its path."""
    outputs.folder(folder, FILES)
    attackers = results[0].spec.attackers
    rows = defence_rows(results)
    intervals = [_INTERVALS] * (len(results[0].spec.trial.test.days) >= FEWEST_DAYS)
    has_co = len(attackers) > 1 and all("co" in names for names in attackers.values())
    meanings = [_COLUMNS, *[_CO] * has_co, *intervals]
    sections = [Section("In short", conclusion)] * bool(conclusion)
    sections.append(Section("Defences", " ".join([_BEST, *notes_of(results[0], rows)]), rows, defences_chart(results)))
    sections.append(Section("What the columns mean", " ".join(meanings), is_folded=True))
    if against and len(results) > 1:
        name = against.defence.name
        words = [f"Each figure minus that of {name}; p is that of a t-test over seeds.", *intervals]
        sections.append(Section(f"Against {name}", " ".join(words), gap_rows(results, against)))
    for result in results:
        if result.masked.physical.throughput_kwh.any():
            sections += _sections(result)
    title = f"meterveil, {title_of(results[0])}: what attackers still read"
    return outputs.write_text(folder / FILES[0], page(title, sections, _INTRO, has_contents=True))


def title_of(result: Result) -> str:
    """Name the house, the days and the source of the load of an evaluation."""
    test, source = result.spec.trial.test, SOURCE_NOTES.get(result.spec.trial.aggregate, "")
    first = f"{min(test.days):%d %B %Y}"
    days = first if len(test.days) == 1 else f"{len(test.days)} days from {first} on"
    house = f" house {test.house}" * (test.house != OWN_HOUSE)
    return f"{DATASETS.get(test.dataset, test.dataset)}{house}, {days}{source}"


def defence_rows(results: Sequence[Result]) -> list[list[str]]:
    """Write a table with one row per defence, the head first."""
    rows = [_cells(result) for result in results]
    heads = dict.fromkeys(head for row in rows for head in row)
    return [list(heads), *([row.get(head, "") for head in heads] for row in rows)]


def notes_of(result: Result, rows: Sequence[Sequence[str]]) -> list[str]:
    """Say what routine alone tells, and explain the words that stand for a leak where a table has them."""
    routine = mean(np.array([mean(result.prior[target, BEST_F1]) for target in result.spec.trial.targets]))
    notes = {MISLED: MISLED_NOTE, UNDERTRAINED: UNDERTRAINED_NOTE, UNKNOWN: UNKNOWN_NOTE}
    words = [note for word, note in notes.items() if any(word in row for row in rows)]
    return [f"Guessing from routine, by hour and weekday without the meter, gives F1 {routine:.2f}.", *words]


def case_rows(result: Result, threat: ThreatModel) -> list[list[str]]:
    """Write a table with one row per attacker and target, as in the paper: raw, masked, Delta and p."""
    cases = {(case.attacker, case.target, case.metric): case for case in result.cases[threat]}
    columns = ("without", "with", "Δ", "p")
    rows = [["attacker, target", *(f"{words} {c}" for words, _ in _CASE_METRICS.values() for c in columns)]]
    for name, target in dict.fromkeys((attacker, target) for attacker, target, _ in cases):
        cells = [
            _case_cells(cases.get((name, target, metric)), digits) for metric, (_, digits) in _CASE_METRICS.items()
        ]
        rows.append([f"{label(name)}, {readable(target)}", *(cell for part in cells for cell in part)])
    return rows


def defences_chart(results: Sequence[Result]) -> go.Figure:
    """Draw F1 of the strongest attacker over throughput, under the hardest threat model measured."""
    threat: ThreatModel = "adaptive" if "adaptive" in results[0].cases else "fixed"
    most = [strongest(result.cases[threat], result.prior, BEST_F1) for result in results]
    points = [
        Point(result.defence.name, float(result.masked.physical.throughput_kwh.mean()), *attacker.masked)
        for result, attacker in zip(results, most, strict=True)
    ]
    title = f"{title_of(results[0])}: energy moved and F1 of the strongest attacker"
    return defences_figure(points, most[0].prior, most[0].raw, threat, title)


def reading_chart(result: Result) -> go.Figure:
    """Draw the scores of every attacker without and with the defence, mean over appliances."""
    every = [case for cases in result.cases.values() for case in cases]
    scores = {
        metric: {
            "raw": _means(every, metric, masked=False),
            **{threat: _means(cases, metric, masked=True) for threat, cases in result.cases.items()},
        }
        for metric in EVALUATED
    }
    targets = result.spec.trial.targets
    prior = {metric: mean(np.array([mean(result.prior[t, metric]) for t in targets])) for metric in EVALUATED}
    return reading_figure(scores, prior, f"{title_of(result)}: attackers without and with {result.defence.name}")


def day_chart(result: Result) -> go.Figure:
    """Draw the meter, the battery power by decoy and the state of charge of one day."""
    return day_figure(result.masked.example)


def _sections(result: Result) -> list[Section]:
    name = result.defence.name
    return [
        Section(f"Attackers without and with {name}", "", (), reading_chart(result)),
        *(
            Section(f"{name}: {threat} attackers, case by case", _CASES, case_rows(result, threat), is_folded=True)
            for threat in result.cases
        ),
        Section(f"A day with {name}", "", (), day_chart(result)),
    ]


def _cells(result: Result) -> dict[str, str]:
    certified = result.masked.certificate
    first, *others = sorted(result.cases)  # adaptive attackers, which count, if any: a phone shows the first columns
    cells = {"defence": result.defence.name, **_leak_cells(result, first)}
    cells["bits at most, median day"] = f"{np.median(certified.bits):,.1f}" if certified else "no\u00a0bound"
    for threat in others:
        cells |= _leak_cells(result, threat)
    physical = result.masked.physical
    for words, by_day, digits in (
        ("kWh a day", physical.throughput_kwh, 2),
        ("SoC at midnight", physical.soc_end, 2),
        ("energy cost", physical.energy_cost, 3),
        ("wear cost", physical.degradation_cost, 3),
        ("total cost", physical.total_cost, 3),
        ("neutral cost a day", physical.soc_neutral_cost, 3),
    ):
        cells[words] = _number(estimate(by_day.mean(axis=0)[None], mean), digits)
    if fixed := result.cases.get("fixed"):
        papers = _papers_figures(result)
        for metric, words in (("rmse", "RMSE Inc. %"), ("f1", "F1 Red. %")):
            cells[words] = _number(headline(fixed, metric), 1)
            if HEADLINES[metric] in papers:
                cells[f"paper's {words}"] = f"{papers[HEADLINES[metric]]:.1f}"
        for metric, words in (("rmse", "RMSE sig."), ("f1", "F1 sig.")):
            cells[words] = "{}/{}".format(*significant(fixed, metric))
    return cells


def _leak_cells(result: Result, threat: ThreatModel) -> dict[str, str]:
    """Write what the strongest attacker of a threat model reads."""
    most = strongest(result.cases[threat], result.prior, BEST_F1)
    percent = Estimate(*(100 * part for part in most.leak))
    leak = _number(percent, 0) or UNKNOWN
    if leak != UNKNOWN and round(percent.value) < 0:
        leak = MISLED if threat == "fixed" else UNDERTRAINED
    return {f"{threat} F1": _number(most.masked, 2), f"{threat} leak %": leak}


def _papers_figures(result: Result) -> dict[str, float]:
    """Look up the paper's figures for this defence where all is the paper's; its comparison is on UK-DALE."""
    spec, test, method = result.spec, result.spec.trial.test, result.defence.method
    setup, attackers = spec.setup, set(spec.attackers.get("fixed", ()))
    is_papers_battery = battery_values(setup.battery) == battery_values(Battery()) and setup.tariff == PAPER_TARIFF
    is_papers_setup = is_papers_battery and setup.soc_start == INITIAL_SOC and attackers == set(PAPER_SIX)
    if spec.trial.days != "paper" or test.dataset not in PROTOCOLS or not is_papers_setup:
        return {}
    if method == MANAGER:
        printed = reported.table("overall_transfer").set_index("dataset")
        return dict(printed.loc[DATASETS[test.dataset], list(HEADLINES.values())])
    printed = reported.table("baseline_comparison").set_index("method")
    if test.dataset != "ukdale" or method not in _PAPERS_NAMES:
        return {}
    return dict(printed.loc[_PAPERS_NAMES[method], [HEADLINES["rmse"], HEADLINES["f1"]]])


def _means(cases: Sequence[Case], metric: str, masked: bool) -> dict[str, Score]:
    """Average over appliances, with the standard deviation over seeds if masked."""
    chosen: dict[str, dict[str, Case]] = {}
    for case in cases:
        if case.metric == metric and case.target != AGGREGATE and case.n_days:
            chosen.setdefault(case.attacker, {})[case.target] = case
    scores = {}
    for name, by_target in chosen.items():
        if masked:
            by_seed = np.mean([case.masked_by_seed for case in by_target.values()], axis=0)
            scores[name] = Score(float(by_seed.mean()), float(by_seed.std(ddof=1)))
        else:
            scores[name] = Score(mean(np.array([case.raw for case in by_target.values()])))
    return scores


def _case_cells(case: Case | None, digits: int) -> list[str]:
    if case is None or not case.n_days:
        return [""] * 4
    p = ("<0.01" if case.p < 0.005 else f"{case.p:.2f}") if case.spread else ""
    return [
        f"{case.raw:.{digits}f}",
        f"{case.masked:.{digits}f}±{case.spread:.{digits}f}",
        f"{case.delta:+.{digits}f}",
        f"{p}*" if case.is_harmful else p,
    ]


def _number(figure: Estimate, digits: int) -> str:
    if np.isnan(figure.value):
        return ""
    value, low, high = (f"{round(part, digits) + 0.0:.{digits}f}" for part in figure)
    return value if np.isnan(figure.low) else f"{value}\u00a0({low}..{high})"
