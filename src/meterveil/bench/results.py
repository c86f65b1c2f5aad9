"""Measured figures as one tidy table: a row is a figure, a run says what it was measured with.

`results/` holds a few CSV files for each data set, studies as `study_<name>.csv` with columns
of their own, and `runs.json`. Tables, leaderboards and claims are queries:

    meterveil results --where "defence=flat,threat=adaptive,metric=f1"

docs/design.md lists the columns. Labels are names to compare, never text to parse. The paper's figures are joined
when the table is read.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from io import StringIO
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from meterveil.core.battery import Battery
from meterveil.data import outputs
from meterveil.errors import InputError, unknown

ThreatModel = Literal["clean", "fixed", "adaptive"]

RUNS = "runs.json"
STUDY = "study_"
SUBMITTED = "submitted"
"""Subfolder for figures that were measured elsewhere."""


@dataclass(frozen=True)
class Figure:
    """One measured figure; docs/design.md says what the columns mean."""

    dataset: str
    house: int
    days: str
    aggregate: str = "mains"
    defence: str = "none"
    battery: str = ""
    threat: str = ""
    training: str = ""
    attacker: str = ""
    appliance: str = ""
    metric: str = ""
    value: float | None = None
    change: float | None = None
    p: float | None = None
    spread: float | None = None
    low: float | None = None
    high: float | None = None
    seeds: int = 1
    n_days: int = 1
    run: str = ""
    note: str = ""


COLUMNS = tuple(field.name for field in fields(Figure))
IDENTITY = COLUMNS[: COLUMNS.index("value")]
"""Columns that say which figure a row holds; no two rows share them."""

NUMBERS = ("value", "change", "p", "spread", "low", "high")
COUNTS = ("house", "seeds", "n_days")
DIGITS = 6
"""Significant digits of a recorded number."""

TIMES = ("training_seconds",)
"""Metrics that differ from run to run."""

_GROUPS = ["dataset", "house", "days", "threat"]


@dataclass(frozen=True)
class Run:
    """Description of a run."""

    key: str
    """Hash of everything that can change the figures."""
    settings: Mapping[str, Any]
    """Days, defence, attackers, seeds, signatures, battery and tariff, as far as they are not the paper's."""
    data: str = ""
    """Digest of the household record."""
    versions: Mapping[str, str] | None = None
    """Versions of the libraries that compute."""
    commit: str = ""


@dataclass(frozen=True)
class Difference:
    """Counts by data set, house, days and threat, and the figures that differ."""

    counts: list[list[str]]
    different: pd.DataFrame
    """Identity columns, and the numbers of both sides with the endings `_here` and `_there`."""
    shared: int

    def lines(self, most: int = 20) -> list[str]:
        """Describe the first figures that differ."""
        names = [name for name in IDENTITY if name not in ("aggregate", "training")]
        return [
            f"{', '.join(str(row[name]) for name in names if row[name] != '')}: {row['value_here']:g} here, "
            f"{row['value_there']:g} there"
            for row in self.different.head(most).to_dict("records")
        ]


def read(folder: Path) -> pd.DataFrame:
    """Read the table of all figures in a folder; studies and submissions stay apart."""
    files = [path for path in sorted(folder.glob("*.csv")) if not path.name.startswith((STUDY, "."))]
    if not files:
        raise InputError(f"{folder} holds no results; run the command that measures them first")
    return pd.concat([read_file(path) for path in files], ignore_index=True)


def read_file(path: Path) -> pd.DataFrame:
    """Read one file of figures and check its columns."""
    types = dict.fromkeys(NUMBERS, "float64") | dict.fromkeys(COUNTS, "int64")
    texts = {name: "str" for name in COLUMNS if name not in types}
    try:
        missing = {name: [""] for name in NUMBERS}
        table = pd.read_csv(path, dtype={**types, **texts}, keep_default_na=False, na_values=missing)
    except (ValueError, OSError) as error:
        raise InputError(f"{path} is not a table of results: {error}") from error
    if tuple(table.columns) != COLUMNS:
        raise InputError(f"{path} has the columns {', '.join(table.columns)}; expected {', '.join(COLUMNS)}")
    return table


def read_runs(folder: Path) -> dict[str, Run]:
    """Read what the figures of a folder were measured with, by key."""
    path = folder / RUNS
    if not path.exists():
        return {}
    documents = json.loads(path.read_text(encoding="utf-8"))
    return {key: Run(key, **document) for key, document in documents.items()}


def where(table: pd.DataFrame, **equal: Any) -> pd.DataFrame:
    """Select the rows in which every named column equals a value, or one of several."""
    chosen = pd.Series(True, index=table.index)
    for column, value in equal.items():
        if column not in table.columns:
            raise InputError(f"a result has no column {column!r}; columns are {', '.join(table.columns)}")
        values = value if isinstance(value, (list, tuple, set)) else [value]
        chosen &= table[column].isin(list(values))
    return table[chosen]


def query(table: pd.DataFrame, text: str) -> pd.DataFrame:
    """Select rows by conditions as `parse_where` reads them; refuse a value that no row has."""
    conditions = parse_where(text)
    chosen = where(table, **conditions)
    for column, values in conditions.items():
        if column in (*NUMBERS, "run"):
            continue
        known = list(map(str, sorted(table[column].dropna().unique())))
        for value in map(str, values):
            if value not in known:
                raise unknown(column, value, known)
    return chosen


def parse_where(text: str) -> dict[str, Any]:
    """Read conditions such as "defence=flat,threat=adaptive"; a bar separates alternatives: "house=1|2"."""
    conditions: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        column, equals, value = part.partition("=")
        if not equals:
            raise InputError(f"where has {part!r}; write column=value, several separated by commas")
        values: list[Any] = value.split("|")
        conditions[column] = list(map(int, values)) if column in COUNTS else values
    return conditions


def write(folder: Path, figures: Iterable[Figure], runs: Sequence[Run], replaced: Collection[str] = ()) -> list[Path]:
    """Record figures and their runs, all or none; figures with the same identity are replaced.

    In the files that are written, all figures of the runs in `replaced` are removed. Other figures are not
    replaced by ones of less effort, see `check_effort`.
    """
    with outputs.locked(folder):
        return write_locked(folder, figures, runs, replaced)


def write_locked(
    folder: Path, figures: Iterable[Figure], runs: Sequence[Run], replaced: Collection[str] = ()
) -> list[Path]:
    """Record figures as `write` does, for a caller that has locked the folder: a second lock would wait forever."""
    fresh = to_table(figures)
    check_effort(folder, fresh, runs, replaced)
    texts: dict[Path, str] = {}
    for name, part in fresh.groupby(_file_names(fresh)):
        path = folder / str(name)
        known = [_without_runs(read_file(path), replaced)] if path.exists() else []
        texts[path] = to_csv(pd.concat([*known, part], ignore_index=True))
    files: list[Path | StringIO] = [path for path in folder.glob("*.csv") if path not in texts]
    files += map(StringIO, texts.values())
    used = {key for file in files for key in pd.read_csv(file, usecols=["run"], dtype=str)["run"]}
    known_runs = read_runs(folder) | {run.key: run for run in runs}
    texts[folder / RUNS] = runs_text(run for key, run in known_runs.items() if key in used)
    outputs.write_all({path: outputs.text_writer(text) for path, text in texts.items()})
    return list(texts)


def check_effort(folder: Path, fresh: pd.DataFrame, runs: Sequence[Run], replaced: Collection[str] = ()) -> None:
    """Refuse to replace figures by ones with fewer seeds, fewer attackers or other signatures."""
    recorded = {key: run.settings for key, run in read_runs(folder).items()}
    coming = {run.key: run.settings for run in runs}
    for name, part in fresh.groupby(_file_names(fresh)):
        path = folder / str(name)
        if not path.exists():
            continue
        known = _without_runs(read_file(path), {*replaced, *coming})
        for row in known.merge(part, on=list(IDENTITY), suffixes=("", "_new")).to_dict("records"):
            old, new = recorded.get(row["run"], {}), coming.get(row["run_new"], {})
            lost = set(old.get("attackers", ())) - set(new.get("attackers", old.get("attackers", ())))
            is_other_library = old.get("library") != new.get("library", old.get("library"))
            is_over_attackers = row["attacker"] in ("all", "strongest")
            if row["seeds_new"] < row["seeds"] or is_other_library or (lost and is_over_attackers):
                raise InputError(
                    f"{path} has {row['defence']}, {row['threat'] or 'battery figures'}, with "
                    f"{_effort_text(row['seeds'], old)}; a run with {_effort_text(row['seeds_new'], new)} "
                    "would replace it; give another folder with `results`"
                )


def diff(here: pd.DataFrame, there: pd.DataFrame) -> Difference:
    """Compare the figures of two tables digit by digit, all but times."""
    keys = list(IDENTITY)
    parts = [table[~table["metric"].isin(TIMES)][[*keys, *NUMBERS]] for table in (here, there)]
    both = parts[0].merge(parts[1], on=keys, how="outer", suffixes=("_here", "_there"), indicator=True)
    mine, theirs = (both[[f"{name}_{end}" for name in NUMBERS]].to_numpy() for end in ("here", "there"))
    same = ((mine == theirs) | (pd.isna(mine) & pd.isna(theirs))).all(axis=1)
    is_shared = both["_merge"] == "both"
    states = {
        "same": is_shared & same,
        "different": is_shared & ~same,
        "only here": both["_merge"] == "left_only",
        "only there": both["_merge"] == "right_only",
    }
    table = both[_GROUPS].assign(**states).groupby(_GROUPS, as_index=False).sum()
    counts = [[*map(str, row)] for row in table.itertuples(index=False)]
    return Difference([[*_GROUPS, *states], *counts], both[states["different"]], int(is_shared.sum()))


def to_table(figures: Iterable[Figure]) -> pd.DataFrame:
    """Put figures into a table."""
    table = pd.DataFrame([asdict(figure) for figure in figures], columns=list(COLUMNS))
    return table.astype(dict.fromkeys(NUMBERS, "float64"))


def to_csv(table: pd.DataFrame) -> str:
    """Write figures as sorted CSV; of several with the same identity the last one counts."""
    last = table.drop_duplicates(list(IDENTITY), keep="last").sort_values(list(IDENTITY), kind="stable")
    return str(last.to_csv(index=False, float_format=f"%.{DIGITS}g", lineterminator="\n"))


def runs_text(runs: Iterable[Run]) -> str:
    """Write runs as JSON, one line each."""
    lines = []
    for run in sorted(runs, key=lambda run: run.key):
        document = asdict(run)
        key = json.dumps(document.pop("key"))
        lines.append(f"{key}: {json.dumps(document, sort_keys=True, default=str)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def battery_label(battery: Battery) -> str:
    """Name a battery by capacity in kWh, power in kW and daily budget in kWh."""
    power_w = (float(battery.charge_w), float(battery.discharge_w))
    power = "+".join(f"{watts / 1000:g}" for watts in dict.fromkeys(power_w))
    return f"{float(battery.capacity_kwh):g}/{power}/{float(battery.budget_kwh):g}"


def current_commit() -> str:
    """Name the commit of this package, marked where more than results and pages differ; "" outside its checkout."""
    own = Path(__file__)
    try:
        _git(own.parent, "ls-files", "--error-unmatch", own.name)
        commit = _git(own.parent, "describe", "--always", "--abbrev=7")
        changes = _git(
            own.parent, "status", "--porcelain", "-uno", "--", ":/", ":(top,exclude)results", ":(top,exclude)docs"
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f"{commit}-dirty" if changes else commit


def _file_names(table: pd.DataFrame) -> pd.Series[str]:
    """Name the file of each row: attacker strength apart from defences, these by kind of days."""
    days = table["days"].where(table["days"].isin(["paper", "held_out"]), "other_days")
    subject = days.where(table["threat"] != "clean", "attackers")
    return table["dataset"] + "_" + subject + ".csv"


def _effort_text(seeds: int, settings: Mapping[str, Any]) -> str:
    parts = [f"{seeds} seeds"]
    parts += [f"library {settings['library']}"] if "library" in settings else []
    parts += [f"attackers {' '.join(settings['attackers'])}"] if settings.get("attackers") else []
    return ", ".join(parts)


def _without_runs(table: pd.DataFrame, runs: Collection[str]) -> pd.DataFrame:
    return table[~table["run"].isin(list(runs))]


def _git(folder: Path, *words: str) -> str:
    command = ("git", *words)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)  # noqa: S603
    return done.stdout.strip()


def main() -> None:
    """Print the figures that meet the conditions, as CSV; the same as `meterveil results`."""
    parser = argparse.ArgumentParser(prog="python -m meterveil.bench.results", description=main.__doc__)
    parser.add_argument("--where", default="", help='such as "defence=flat,threat=adaptive,metric=f1"')
    parser.add_argument("--results", type=Path, default=Path("results"), help="folder of results")
    asked = parser.parse_args()
    try:
        table = query(read(asked.results), asked.where)
    except InputError as error:
        parser.error(str(error))
    sys.stdout.write(to_csv(table))


if __name__ == "__main__":
    main()
