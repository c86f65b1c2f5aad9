"""Measure what a meter tells about the people in a house: `python -m experiments.behaviour --houses ukdale_1`.

Makes results/study_behaviour.csv: uses of the kettle, the first and last activity of the day, the evening meal and
absence, read by an attacker that knows the defence (D17), beside what habits tell. Absence is also read from the energy
of the day. `--meters` are the readings that the attacker sees; with a meter of one minute the fits are those of
`meterveil reproduce --table informed`. The tables and pictures of docs/behaviour.md are made from this study, `seconds`
and `crossing`; `--picture` only makes them.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
import plotly.graph_objects as go

from experiments import reading, study
from meterveil.bench.trial import Houses, Trial, protocol_trial
from meterveil.data.files import data_folder
from meterveil.data.load import load
from meterveil.data.protocols import FURTHER_HOUSES, UKDALE_HOUSE1, Protocol
from meterveil.data.simulation import Resolution
from meterveil.defenders.defence import common_setup, find_defences
from meterveil.plots.answers import Answer, answers_figure
from meterveil.plots.html import save

NAME = "behaviour"
DEFENCES = ("none", "random_equal:8", "flat", "flat_decoys", "veil")
PAGE = Path("docs/behaviour.md")
HOUSES: dict[str, Protocol] = {
    "ukdale_1": UKDALE_HOUSE1,
    "ukdale_2": FURTHER_HOUSES["ukdale", 2],
    "refit_2": FURTHER_HOUSES["refit", 2],
}
"""REDD house 2 has two test days: too few for questions about days."""
METERS = {
    "1 min": Resolution(),
    "1 min, 10 W": Resolution(step_w=10.0),
    "15 min": Resolution(15),
    "30 min": Resolution(30),
}
HOUSE_NAMES = {"ukdale_1": "UK-DALE 1", "ukdale_2": "UK-DALE 2", "refit_2": "REFIT 2"}
TIMES = {"first_activity": "first activity, error in min", "last_activity": "last activity", "meal": "evening meal"}
PANELS = {
    "kettle_use_f1": "Uses of the kettle found (F1)",
    "first_activity_error_min": "First activity of the day, error in minutes",
    "last_activity_error_min": "Last activity, error in minutes",
    "meal_error_min": "Evening meal, error in minutes",
    "absence_accuracy": "Absence, balanced accuracy",
}
AXES: dict[str, dict[str, object]] = {
    "f1": {"range": [0, 1]},
    "min": {"rangemode": "tozero"},
    "accuracy": {"range": [0.3, 1], "tickformat": ".0%"},
}
"""End of a metric's name -> settings of its axis."""


def house_trial(protocol: Protocol, folder: Path) -> tuple[Trial, Houses]:
    """Learn from ten days of a house and read all held-out ones, as the evaluation does."""
    home = load(folder / protocol.dataset, protocol.house)
    trial = replace(protocol_trial(protocol, home, "many"), also_learned=protocol.many_day_targets)
    return trial, {trial.test.key: home}


def measure(options: argparse.Namespace) -> None:
    """Measure every defence in every house with every meter, and record each as soon as it is finished."""
    defences = find_defences(options.defences)
    for meter in options.meters:
        setup = replace(common_setup(defences, options.library), resolution=METERS[meter])
        for house in options.houses:
            trial, houses = house_trial(HOUSES[house], data_folder(options.data))
            for defence in defences:
                labels = {"dataset": house, "row": defence.name, "meter": meter}
                if options.energy:
                    answers = reading.read_energy(trial, houses, defence, setup)
                else:
                    answers = reading.read(trial, houses, defence, setup, options.epochs)
                rows = reading.figures(answers, **labels)
                reading.record(options, NAME, trial, defence, setup, rows)


def _number(value: float | None) -> str:
    return "" if value is None or pd.isna(value) else f"{value:.2f}"


def _percent(value: float | None) -> str:
    return "" if value is None or pd.isna(value) else f"{value:.0%}"


def _whole(value: float | None) -> str:
    return "" if value is None or pd.isna(value) else f"{value:.0f}"


METER_QUESTIONS = {
    "uses of the kettle found, F1": ("kettle_use_f1", _number),
    "first activity, error in minutes": ("first_activity_error_min", _whole),
    "absence, balanced accuracy": ("absence_accuracy", _percent),
}


def people_table(table: pd.DataFrame) -> str:
    """Tabulate every question with a meter of one minute, for each house."""
    head = ("house", "defence", "kettle uses found", "precision", *TIMES.values(), "absence")
    rows = []
    for house in (house for house in HOUSES if house in set(table["dataset"])):
        part = table[(table["dataset"] == house) & (table["meter"] == "1 min")]
        for name, figures in _by_defence(part):
            times = [_minutes_text(figures, state) for state in TIMES]
            found = [_percent(figures.get(f"kettle_use_{metric}")) for metric in ("recall", "precision")]
            rows.append((HOUSE_NAMES[house], name, *found, *times, _percent(figures.get("absence_accuracy"))))
    return study.table(head, rows, texts=2)


def meter_table(table: pd.DataFrame, seconds: pd.DataFrame) -> str:
    """Tabulate a few questions for each meter and defence; of meters of seconds only the uses are known."""
    minutes = table[table["dataset"] == "ukdale_1"]
    names = [name for name, _ in _by_defence(minutes)]
    by_meter = {meter: seconds[seconds["meter"] == meter] for meter in ("1 s", "10 s")}
    by_meter |= {meter: minutes[minutes["meter"] == meter] for meter in METERS}
    rows = []
    for question, (metric, write) in METER_QUESTIONS.items():
        for meter, part in by_meter.items():
            if metric in set(part["metric"]):
                by_name = dict(_by_defence(part))
                rows.append((question, meter, *(write(by_name.get(name, {}).get(metric)) for name in names)))
    return study.table(("question", "meter", *names), rows, texts=2)


def crossing_table(table: pd.DataFrame) -> str:
    """Tabulate the mean F1 of appliances for each house that was read and each defence."""
    names = [name for name, _ in _by_defence(table)]
    rows = []
    for house, part in table.groupby("dataset", sort=False):
        by_name = dict(_by_defence(part))
        learned = str(part["note"].iloc[0]).removeprefix("learned from ")
        rows.append((str(house), learned, *(_number(by_name.get(name, {}).get("f1")) for name in names)))
    return study.table(("house", "learned from", *names), rows, texts=2)


def make_page(options: argparse.Namespace) -> None:
    """Draw the pictures and fill the tables of the page from what is recorded."""
    table = study.read(options.results, NAME)
    page = study.put(PAGE.read_text(), "people", people_table(table))
    if study.is_recorded(options.results, "seconds"):
        page = study.put(page, "meters", meter_table(table, study.read(options.results, "seconds")))
    if study.is_recorded(options.results, "crossing"):
        page = study.put(page, "crossing", crossing_table(study.read(options.results, "crossing")))
    PAGE.write_text(page)
    house = table[table["dataset"] == "ukdale_1"]
    by_minute = house[house["meter"] == "1 min"]
    title = "UK-DALE house 1, meter of one minute: what is read"
    save(_figure(by_minute, "row", None, title), options.pictures / "behaviour.png", width=760)
    title = "UK-DALE house 1: what is read with which meter"
    save(_figure(house, "meter", "row", title), options.pictures / "meters.png", width=760)


def _figure(table: pd.DataFrame, row: str, series: str | None, title: str) -> go.Figure:
    most = _strongest(table)
    read = most[most["metric"].isin(list(PANELS))]
    order = {name: n for n, name in enumerate([*DEFENCES, *METERS])}
    parts = sorted(read.to_dict("records"), key=lambda part: (order.get(part[row], 99), order.get(part["row"], 99)))
    answers = [
        Answer(
            question=PANELS[part["metric"]],
            row=part[row],
            series=part[series] if series else "",
            **{name: part[name] for name in ("value", "low", "high")},
        )
        for part in parts
    ]
    habits = table[table["attacker"] == "prior"].drop_duplicates("metric").set_index("metric")["value"]
    usual = {heading: float(habits[metric]) for metric, heading in PANELS.items() if metric in habits}
    axes = {heading: AXES[metric.rpartition("_")[2]] for metric, heading in PANELS.items()}
    return answers_figure(answers, usual, axes, title)


def _by_defence(table: pd.DataFrame) -> list[tuple[str, dict[str, float]]]:
    """List the figures of each defence, metric -> value, in order, and those of habits alone."""
    read = _strongest(table) if "attacker" in table else table
    names = sorted(set(read["row"]), key=lambda name: (*DEFENCES, name).index(name))
    parts = {f"`{name}`": read[read["row"] == name] for name in names}
    if "attacker" in table:
        habits = table[table["attacker"] == "prior"]
        parts["habits alone"] = habits[habits["row"] == names[0]] if names else habits
    return [(name, dict(zip(part["metric"], part["value"], strict=True))) for name, part in parts.items()]


def _strongest(table: pd.DataFrame) -> pd.DataFrame:
    """Keep the attackers that look at the meter; of the two that tell absence, the one that is right more often."""
    read = table[table["attacker"] != reading.PRIOR]
    absence = read[read["metric"] == "absence_accuracy"].sort_values("value", kind="stable", na_position="first")
    labels = [column for column in ("dataset", "row", "meter") if column in read]
    worse = absence.index[absence.duplicated(labels, keep="last")]
    return read.drop(index=worse)


def _minutes_text(figures: Mapping[str, float], state: str) -> str:
    return f"{_whole(figures.get(f'{state}_error_min'))} ({_percent(figures.get(f'{state}_close'))})"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is asked for, and make the page."""
    parser = study.options(__doc__ or "")
    parser.add_argument("--houses", nargs="+", default=list(HOUSES), choices=list(HOUSES))
    parser.add_argument("--meters", nargs="+", default=["1 min"], choices=list(METERS))
    parser.add_argument("--defences", nargs="+", default=list(DEFENCES))
    parser.add_argument("--epochs", type=int, help="shorter training of the attacker")
    parser.add_argument("--energy", action="store_true", help="only the reader of a day's energy, which needs no fit")
    options = parser.parse_args(arguments)
    make_page(options) if options.picture else measure(options)


if __name__ == "__main__":
    main()
