"""The page of an evaluation: defences in one table, what is read behind each, and a day of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import plotly.graph_objects as go

from meterveil.attackers.protocol import AGGREGATE
from meterveil.bench.cards import ThreatModel
from meterveil.bench.evaluation.compare import gap_rows
from meterveil.bench.evaluation.estimates import LEAST_DAYS, Estimate, estimate, mean
from meterveil.bench.evaluation.measure import Result
from meterveil.bench.evaluation.reported import papers_headline
from meterveil.bench.evaluation.scores import (
    BEST_F1,
    Case,
    headline,
    significant,
    strongest,
)
from meterveil.data import outputs
from meterveil.plots.attack import Score, label
from meterveil.plots.evaluation import METRICS, Point, defences_figure, reading_figure
from meterveil.plots.html import Section, page
from meterveil.plots.look import readable
from meterveil.plots.simulation import day_figure

FILES = ("evaluate.html",)

_DATASETS: Mapping[str, str] = {"redd": "REDD", "ukdale": "UK-DALE"}

_INTRO = (
    "On the same days a home battery acted in each of these ways, and attackers tried to tell from the meter "
    "alone when which appliance ran. The first table and its picture say how much the best of them still "
    "reads behind each defence, and how much energy that takes; below stand all attackers before and behind "
    "each defence, and a day of each, minute by minute."
)
_WORDS = (
    "RMSE Inc. and F1 Red. are ratios of means over all attackers and appliances, as the paper counts them; "
    "significant are cases that a t-test over seeds calls harmed. F1 is what the strongest attacker reads, "
    "by power or by its on/off head; its leak is the share left of what the meter told beyond habits: "
    "at 0 nothing, below 0 the attacker would do better not to look. Neutral cost includes what it takes to "
    "begin the next day with the same charge."
)
_CO = (
    "CO takes the states of appliances from the labels of the sub-meters; the meter only tells it how wide a "
    "floor to take away first. Where that stays the same, it reads alike fixed and adaptive."
)
_BRACKETS = "Brackets are 95 % intervals over days."
_GAPS = "How much more each figure is than with {}; p is that of a t-test over seeds."
_CASES = "Masked is the mean over seeds ± its deviation; a star marks a significant harm to the attacker."


def write_evaluation(
    results: Sequence[Result], folder: Path, against: Result | None = None, conclusion: str = ""
) -> Path:
    """Write the page, with gaps to one of the defences where it is named; return it.

    `conclusion` is what the reader should take away, in a sentence or two.
    """
    outputs.folder(folder, FILES)
    heading = f"meterveil, {title_of(results[0])}: what is still read behind each defence"
    brackets = [_BRACKETS] * (len(results[0].spec.trial.test.days) >= LEAST_DAYS)
    words = " ".join([_WORDS, *_adapts_little(results[0]), *brackets])
    sections = [Section("In short", conclusion)] * bool(conclusion)
    sections.append(Section("Defences", words, defence_rows(results), defences_chart(results)))
    if against and len(results) > 1:
        name = against.contender.name
        gaps = " ".join([_GAPS.format(name), *brackets])
        sections.append(Section(f"Against {name}", gaps, gap_rows(results, against)))
    for result in results:
        if result.played.physical.throughput_kwh.any():  # there is nothing to see where nothing was done
            sections += _sections(result)
    return outputs.write_text(folder / FILES[0], page(heading, sections, _INTRO, has_contents=True))


def title_of(result: Result) -> str:
    """Say where and when was measured."""
    test = result.spec.trial.test
    first = f"{min(test.days):%d %B %Y}"
    days = first if len(test.days) == 1 else f"{len(test.days)} days from {first} on"
    return f"{_DATASETS.get(test.dataset, test.dataset)} house {test.house}, {days}"


def defence_rows(results: Sequence[Result]) -> list[list[str]]:
    """Write one row for each defence, the head of the table first."""
    rows = [_cells(result) for result in results]
    heads = dict.fromkeys(head for row in rows for head in row)
    return [list(heads), *([row.get(head, "") for head in heads] for row in rows)]


def case_rows(result: Result, threat: ThreatModel) -> list[list[str]]:
    """Write one row for each attacker and target: raw, masked, Delta and p, as in the paper's tables."""
    cases = {(case.attacker, case.target, case.metric): case for case in result.cases[threat]}
    metrics = {"rmse": ("RMSE", 1), "mae": ("MAE", 1), "sae": ("SAE", 2), "f1": ("F1", 2)}
    head = [f"{words} {part}" for words, _ in metrics.values() for part in ("raw", "masked", "Δ", "p")]
    rows = [["attacker, target", *head]]
    for name, target in dict.fromkeys((case.attacker, case.target) for case in result.cases[threat]):
        cells = [_case(cases.get((name, target, metric)), digits) for metric, (_, digits) in metrics.items()]
        rows.append([f"{label(name)}, {readable(target)}", *(cell for part in cells for cell in part)])
    return rows


def defences_chart(results: Sequence[Result]) -> go.Figure:
    """Draw every defence by throughput and by what is read behind it, under the hardest threat measured."""
    threat: ThreatModel = "adaptive" if "adaptive" in results[0].cases else "fixed"
    read = [strongest(result.cases[threat], result.prior, BEST_F1) for result in results]
    points = [
        Point(result.contender.name, float(result.played.physical.throughput_kwh.mean()), *most.masked)
        for result, most in zip(results, read, strict=True)
    ]
    title = f"{title_of(results[0])}: energy moved and what is still read"
    return defences_figure(points, read[0].prior, read[0].raw, threat, title)


def reading_chart(result: Result) -> go.Figure:
    """Draw what every attacker reads without this defence and behind it, mean over appliances."""
    scores = {
        metric: {
            "raw": _means([case for cases in result.cases.values() for case in cases], metric, masked=False),
            **{threat: _means(cases, metric, masked=True) for threat, cases in result.cases.items()},
        }
        for metric in METRICS
    }
    targets = result.spec.trial.targets
    prior = {metric: mean(np.array([mean(result.prior[t, metric]) for t in targets])) for metric in METRICS}
    title = f"{title_of(result)}: read before and behind {result.contender.name}"
    return reading_figure(scores, prior, title)


def day_chart(result: Result) -> go.Figure:
    """Draw a day as the paper's second figure does: meter, battery power by decoy, state of charge."""
    return day_figure(result.played.example)


def _cells(result: Result) -> dict[str, str]:
    cells = {"defence": result.contender.name}
    if "fixed" in result.cases:
        cases = result.cases["fixed"]
        papers = papers_headline(result)
        for metric, words, column in (
            ("rmse", "RMSE Inc. %", "rmse_increase_percent"),
            ("f1", "F1 Red. %", "f1_reduction_percent"),
        ):
            cells[words] = _number(headline(cases, metric), 1)
            if column in papers:
                cells[f"paper's {words}"] = f"{papers[column]:.1f}"
        for metric, words in (("rmse", "RMSE sig."), ("f1", "F1 sig.")):
            cells[words] = "{}/{}".format(*significant(cases, metric))
    for threat, cases in result.cases.items():
        most = strongest(cases, result.prior, BEST_F1)
        cells[f"{threat} F1"] = _number(most.masked, 2)
        cells[f"{threat} leak %"] = _number(Estimate(*(100 * part for part in most.leak)), 0)
    physical = result.played.physical._asdict()
    done = {name: estimate(by_day.mean(axis=0)[None], mean) for name, by_day in physical.items()}
    cells["kWh a day"] = _number(done["throughput_kwh"], 2)
    cells["SoC at midnight"] = _number(done["soc_end"], 2)
    cells["neutral cost a day"] = _number(done["soc_neutral_cost"], 3)
    return cells


def _adapts_little(result: Result) -> list[str]:
    attackers = result.spec.attackers
    return [_CO] * (len(attackers) > 1 and all("co" in names for names in attackers.values()))


def _sections(result: Result) -> list[Section]:
    name = result.contender.name
    return [
        Section(f"What is read behind {name}", "", (), reading_chart(result)),
        *(
            Section(f"{name}: {threat} attackers, case by case", _CASES, case_rows(result, threat))
            for threat in result.cases
        ),
        Section(f"A day behind {name}", "", (), day_chart(result)),
    ]


def _means(cases: Sequence[Case], metric: str, masked: bool) -> dict[str, Score]:
    """Average over appliances, with the spread over seeds behind a defence."""
    chosen: dict[str, dict[str, Case]] = {}
    for case in cases:
        if case.metric == metric and case.target != AGGREGATE and case.n_days:
            chosen.setdefault(case.attacker, {})[case.target] = case
    if not masked:
        return {
            name: Score(mean(np.array([case.raw for case in mine.values()]))) for name, mine in chosen.items()
        }
    found = {}
    for name, mine in chosen.items():
        by_seed = np.mean([case.masked_by_seed for case in mine.values()], axis=0)
        found[name] = Score(float(by_seed.mean()), float(by_seed.std(ddof=1)))
    return found


def _case(case: Case | None, digits: int) -> list[str]:
    if case is None or not case.n_days:
        return [""] * 4
    p = "<0.01" if case.p < 0.005 else f"{case.p:.2f}"
    return [
        f"{case.raw:.{digits}f}",
        f"{case.masked:.{digits}f}±{case.spread:.{digits}f}",
        f"{case.delta:+.{digits}f}",
        f"{p}*" if case.is_harmful else p,
    ]


def _number(found: Estimate, digits: int) -> str:
    if np.isnan(found.value):
        return ""
    value, low, high = (f"{round(part, digits) + 0.0:.{digits}f}" for part in found)
    return value if np.isnan(found.low) else f"{value}\u00a0({low}..{high})"
