"""Results that were measured elsewhere: checked against what a leaderboard needs, and copied unchanged."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from meterveil.bench import results
from meterveil.bench.results import IDENTITY, NUMBERS, Run
from meterveil.data import outputs
from meterveil.errors import InputError

AT_MOST_LESS = 0.1
"""Share by which the random baseline may move less energy than the defence beside it (D8)."""

_HEADLINES = {
    "all": ("rmse_increase_percent", "f1_reduction_percent"),
    "strongest": ("f1", "f1_undefended", "f1_leak"),
    "prior": ("f1",),
}
"""Attacker -> metrics that an entry must have under both threat models (D11)."""

_BATTERY = (*("throughput_kwh", "soc_end", "energy_cost", "degradation_cost", "total_cost", "soc_neutral_cost"),)
_SETTINGS = {"training": "the days that were trained on", "test": "the days of the test"}
_CELL = ["dataset", "house", "days", "aggregate", "battery", "defence"]
_COMMIT = re.compile(r"(.+-g)?[0-9a-f]{7,40}")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,59}")
_BASELINE = "random_equal"


class Submission(NamedTuple):
    """Figures and runs of a folder, and every problem with them as where and what."""

    figures: pd.DataFrame
    runs: dict[str, Run]
    problems: tuple[tuple[str, str], ...]


def read_submission(folder: Path) -> Submission:
    """Read a folder of results and check its rows, its runs, and its entries for the leaderboard."""
    figures, runs = results.read(folder), results.read_runs(folder)
    problems = [*_row_problems(figures), *_run_problems(figures, runs), *_entry_problems(figures)]
    return Submission(figures, runs, tuple(problems))


def write_submission(folder: Path, name: str, figures: pd.DataFrame, runs: Mapping[str, Run]) -> Path:
    """Copy figures and runs to `submitted/NAME` of a folder of results; figures there are never changed."""
    if not _NAME.fullmatch(name):
        raise InputError(f"name is {name!r}; use up to 60 of a to z, 0 to 9, - and _")
    target = folder / results.SUBMITTED / name
    path = target / "figures.csv"
    with outputs.locked(folder):
        known = results.read_file(path) if path.exists() else figures.iloc[:0]
        both = known.merge(figures, on=list(IDENTITY), suffixes=("", "_new"))
        old, new = (both[[f"{column}{end}" for column in NUMBERS]].to_numpy() for end in ("", "_new"))
        if not ((old == new) | (np.isnan(old) & np.isnan(new))).all():
            raise InputError(f"{target} holds other values of the same figures; give the new ones another name")
        text = results.to_csv(pd.concat([known, figures]))
        merged = {**results.read_runs(target), **runs}
        outputs.write_all(
            {
                path: outputs.text_writer(text),
                target / results.RUNS: outputs.text_writer(results.runs_text(merged.values())),
            }
        )
    return target


def _row_problems(figures: pd.DataFrame) -> Iterator[tuple[str, str]]:
    checks = {
        "value: not a finite number": np.isinf(figures[list(NUMBERS)]).any(axis=1),
        "threat: use clean, fixed, adaptive or nothing": ~figures["threat"].isin(["", "clean", "fixed", "adaptive"]),
        "metric: empty": figures["metric"] == "",
        "seeds and n_days: at least 1 for a measured figure": figures["value"].notna()
        & ((figures["seeds"] < 1) | (figures["n_days"] < 1)),
        "spread: below 0": figures["spread"] < 0,
        "low and high: in the wrong order": figures["low"] > figures["high"],
        "the same figure occurs twice": figures.duplicated(list(IDENTITY)),
    }
    for what, wrong in checks.items():
        for row in figures[np.asarray(wrong)].head(3).to_dict("records"):
            yield ", ".join(str(row[name]) for name in IDENTITY if row[name] != ""), what


def _run_problems(figures: pd.DataFrame, runs: Mapping[str, Run]) -> Iterator[tuple[str, str]]:
    for key in figures["run"].unique():
        run = runs.get(key)
        if run is None:
            yield f"run {key!r}", f"{results.RUNS} does not describe it"
            continue
        if not _COMMIT.fullmatch(run.commit):
            yield f"run {key}", f"commit is {run.commit!r}; measure from a clean git checkout of meterveil"
        for name, meaning in _SETTINGS.items():
            if not run.settings.get(name):
                yield f"run {key}", f"settings lack {name}: {meaning}"


def _entry_problems(figures: pd.DataFrame) -> Iterator[tuple[str, str]]:
    played = figures[(figures["battery"] != "") & (figures["threat"] != "clean")]
    for conditions, board in played.groupby(_CELL[:-1]):
        moved = board[board["metric"] == "throughput_kwh"].set_index("defence")["value"]
        for defence, part in board.groupby("defence"):
            where = ", ".join(map(str, (*conditions, defence)))
            yield from ((where, text) for text in _lacking(part))
            yield from ((where, text) for text in _lacking_baseline(str(defence), moved))


def _lacking(part: pd.DataFrame) -> Iterator[str]:
    told = part[part["value"].notna() | (part["note"] != "")]
    known = set(told[["threat", "attacker", "metric"]].itertuples(index=False, name=None))
    for threat in ("fixed", "adaptive"):
        wanted = [(attacker, metric) for attacker, names in _HEADLINES.items() for metric in names]
        yield from _missing(f"{threat} attackers (D11)", [(threat, *key) for key in wanted], known)
    yield from _missing("battery figures (D7)", [("", "", metric) for metric in _BATTERY], known)


def _missing(title: str, wanted: Sequence[tuple[str, str, str]], known: set[tuple[str, ...]]) -> Iterator[str]:
    lacking = [" ".join(filter(None, key[1:])) for key in wanted if key not in known]
    if lacking:
        yield f"{title}: no {', '.join(lacking)}; measure with meterveil evaluate"


def _lacking_baseline(defence: str, moved: pd.Series[float]) -> Iterator[str]:
    """Ask for a random baseline that moves as much: moving more energy alone hurts attackers too (D8)."""
    own_kwh = float(moved.get(defence, 0.0))
    if not own_kwh or defence.startswith(_BASELINE):
        return
    baselines = moved[moved.index.str.startswith(_BASELINE)]
    if not (baselines >= own_kwh * (1.0 - AT_MOST_LESS)).any():
        yield (
            f"it moves {own_kwh:.2f} kWh a day and there is no random baseline with equal throughput (D8); "
            f"also measure {_BASELINE}:{own_kwh:.2f}"
        )
