"""The tables once more under attackers that adapt to the defence, which the paper leaves to others (D11)."""

from __future__ import annotations

from collections.abc import Iterator

from meterveil.bench.report.chance import adaptive_table
from meterveil.bench.report.compare import Comparison, TableSpec, datasets_of
from meterveil.bench.report.lookup import CaseKey, Found, Recorded
from meterveil.bench.report.names import CHANCE, dataset_name, row_order
from meterveil.bench.report.reading import Results
from meterveil.bench.report.text import found_text, measured_words, pivot_rows
from meterveil.plots.attack import label as attacker_name
from meterveil.plots.html import Section
from meterveil.plots.look import readable

COLUMNS = (
    "rmse_increase_percent",
    "f1_reduction_percent",
    "rmse_significant",
    "f1_significant",
    "strongest_f1",
    "f1_leak",
    "event_f1",
    "information_bits",
    "throughput_kwh",
    "soc_end",
    "soc_neutral_cost",
)

_WORDS = (
    "Attackers trained again on days that this very defence had masked, with the true appliance readings as "
    "labels. What they read is a lower bound: others may adapt better. A household compares with chance at "
    "equal kWh, which plays signatures by dice and moves as much as ours."
)
_CASES = "Behind our learned defence, and behind chance that moves as much. Events is the F1 of uses found."
_METRICS = {
    "rmse": ("RMSE", 1),
    "mae": ("MAE", 1),
    "sae": ("SAE", 2),
    "f1": ("F1", 2),
    "event_f1": ("events", 2),
}


def adaptive_comparisons(spec: TableSpec, dataset: str, results: Results) -> list[Comparison]:
    """List what adaptive attackers read behind every row of a table; nothing where none was measured."""
    recorded = Recorded(results.of(spec.name, dataset))
    labels = sorted(recorded.labels, key=row_order)
    met = [row for row in labels if recorded.find(row, "strongest_f1", "adaptive")]
    found = [(row, column, recorded.find(row, column, "adaptive")) for row in met for column in COLUMNS]
    return [
        Comparison(spec.name, dataset, row, column, "beyond the paper", ours=ours, threat="adaptive")
        for row, column, ours in found
        if ours
    ]


def adaptive_sections(spec: TableSpec, results: Results) -> Iterator[Section]:
    """Show a table under adaptive attackers, for each data set on which they were measured."""
    words = _WORDS
    for dataset in datasets_of(spec, results):
        comparisons = adaptive_comparisons(spec, dataset, results)
        if comparisons:
            said = [words, _levels(Recorded(results.of(spec.name, dataset))), measured_words(comparisons)]
            heading = f"{spec.title}, {dataset_name(dataset)}: adaptive attackers"
            yield Section(heading, " ".join(part for part in said if part), pivot_rows(comparisons))
            words = ""


def adaptive_case_sections(results: Results) -> Iterator[Section]:
    """Show every adaptive attacker and appliance, on the paper's day or, where that is missing, many days."""
    for dataset in ("ukdale", "redd"):
        recorded = Recorded(results.of(adaptive_table(results, dataset), dataset))
        rows = adaptive_case_rows(recorded)
        if len(rows) > 1:
            days = max(found.n_days for found in recorded.cases("ours", "adaptive").values())
            when = f"mean over {days} days" if days > 1 else "the paper's test day"
            heading = f"Every adaptive attacker and appliance, {dataset_name(dataset)}"
            yield Section(heading, f"{_CASES} Here: {when}.", rows)


def adaptive_case_rows(recorded: Recorded) -> list[list[str]]:
    """Write a row for each attacker, target and metric: raw; then masked, Delta and p, ours and chance's."""
    ours, chance = (recorded.cases(label, "adaptive") for label in ("ours", CHANCE))
    heads = [f"{part}, {who}" for who in ("ours", "chance") for part in ("masked", "Δ", "p")]
    rows = [["case", "raw", *heads]]
    for key in (key for key in ours if key.metric in _METRICS):
        words, digits = _METRICS[key.metric]
        delta = ours.get(_part(key, "delta"))
        raw = "" if delta is None else f"{ours[key].value - delta.value:.{digits}f}"
        name = f"{attacker_name(key.attacker)}, {readable(key.target)}, {words}"
        rows.append([name, raw, *_figures(ours, key, digits), *_figures(chance, key, digits)])
    return rows


def _figures(cases: dict[CaseKey, Found], key: CaseKey, digits: int) -> Iterator[str]:
    yield found_text(cases.get(key), digits)
    yield found_text(cases.get(_part(key, "delta")), digits)
    yield found_text(cases.get(_part(key, "p")), 2)


def _part(key: CaseKey, part: str) -> CaseKey:
    return key._replace(metric=f"{key.metric}_{part}")


def _levels(recorded: Recorded) -> str:
    """Say between which levels a defence can lie, and who read."""
    names = ", ".join(map(attacker_name, recorded.attackers("adaptive")))
    found = [
        next((one for row in recorded.labels if (one := recorded.find(row, column, "adaptive"))), None)
        for column in ("strongest_f1_raw", "prior_f1")
    ]
    raw, prior = (found_text(one, 2) for one in found)
    who = f"Attackers: {names}." if names else ""
    levels = f"Without a defence the strongest reads F1 {raw}; habits alone give {prior}." if raw else ""
    return " ".join(part for part in (who, levels) if part)
