"""Figures as text, and tables as rows of text: for the page, for CSV and for LaTeX."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from meterveil.attackers.protocol import AGGREGATE
from meterveil.attackers.registry import FLOORS
from meterveil.bench import reported
from meterveil.bench.attack_page import DATASETS
from meterveil.bench.metrics import UNDERTRAINED, UNDERTRAINED_NOTE, UNKNOWN
from meterveil.bench.report.comparison import MARKS, METRICS, is_count, real_attackers, records
from meterveil.bench.report.leaderboard import NOT_MET, Board
from meterveil.bench.reproduce.cells import cell_rows
from meterveil.bench.reproduce.experiments import HELD_OUT, PAPER
from meterveil.bench.results import where
from meterveil.plots.attack import in_order
from meterveil.plots.attack import label as attacker_name
from meterveil.plots.look import readable

Rows = list[list[str]]
SPACE = "\u2009"
"""Space within a figure, at which a line may break on a phone."""

_DEFENCES = {
    "none": "no defence",
    "random": "random replay",
    "random_equal": "random, equal throughput",
    "rule_based": "rule-based",
    "ddql_flat": "DDQL-flat",
    "ddql_mi": "DDQL-MI",
    "flat_decoys": "flat with decoys",
    "best_effort": "Best-Effort",
    "nill": "NILL",
    **{f"stepping_{rule}": f"stepping {rule.upper()}" for rule in ("ls1", "ls2", "lc", "rc")},
    "ours_adaptive": "ours, probe that adapts",
    "ours_paper_settings": "ours, paper's settings",
    "main": "main battery",
    "rationed, main": "rationed, main battery",
    "lstm": "LSTM",
    "cnn": "CNN",
}
_ESCAPED = str.maketrans(
    {letter: f"\\{letter}" for letter in "&%$#_{}"}
    | {
        "≈": r"$\approx$",
        "▲": r"$\uparrow$",
        "▼": r"$\downarrow$",
        "≠": r"$\neq$",
        "∅": r"$\emptyset$",
        "Δ": r"$\Delta$",
        "±": r"$\pm$",
        "<": r"$<$",
        "\u2009": r"\,",
        "\u00a0": "~",
    }
)
_LEAST_P = 0.001
_F1 = ("f1", "f1_head")
"""F1 from power and from an on/off head; an attacker uses the better of the two."""


def dataset_name(dataset: str) -> str:
    """Write the name of a data set."""
    return DATASETS.get(dataset, readable(dataset))


def defence_name(label: str) -> str:
    """Write the label of a defence or of a row."""
    return _DEFENCES.get(label, readable(label))


def days_text(n_days: float) -> str:
    """Write a number of days."""
    return f"{n_days:.0f} days" if n_days > 1 else "one day"


def figure_text(row: Mapping[str, Any] | None, digits: int) -> str:
    """Write a figure with its spread, interval and p; nothing where there is none."""
    if row is None or pd.isna(row["value"]):
        return ""
    number = {name: row.get(name) for name in ("spread", "low", "high", "p", "cases")}
    known = {name: float(value) for name, value in number.items() if not pd.isna(value)}
    if "cases" in known:
        return f"{row['value']:.0f}/{known['cases']:.0f}"
    text = f"{row['value']:z.{digits}f}" + (f"±{known['spread']:.{digits}f}" if known.get("spread") else "")
    if "low" in known:
        text += f"{SPACE}({known['low']:z.{digits}f}..{known['high']:z.{digits}f})"
    if "p" in known:
        text += f",{SPACE}p\u00a0" + (f"{known['p']:.3f}" if known["p"] >= _LEAST_P else f"<\u00a0{_LEAST_P}")
    return text


def paper_text(row: Mapping[str, Any]) -> str:
    """Write the paper's figure; a dash where it has none."""
    if pd.isna(row["paper"]):
        return "-"
    if is_count(row["metric"]):
        return f"{row['paper']:.0f}/{row['paper_cases']:.0f}"
    return f"{row['paper']:.{METRICS[row['metric']].digits}f}"


def ours_text(row: Mapping[str, Any]) -> str:
    """Write our figure after the sign of its verdict."""
    return f"{MARKS[row['verdict']]}\u00a0{figure_text(row, METRICS[row['metric']].digits)}".strip()


def pivot_rows(cells: pd.DataFrame) -> Rows:
    """Write a row for each label: for every metric the paper's figure, where it has any, and ours."""
    metrics = list(dict.fromkeys(cells["metric"]))
    printed = set(cells.loc[cells["paper"].notna(), "metric"])
    head = [""]
    for metric in metrics:
        words = METRICS[metric].words
        head += [f"{words}, paper", "ours"] if metric in printed else [words]
    rows = [head]
    known = {(cell["label"], cell["metric"]): cell for cell in records(cells)}
    for label in dict.fromkeys(label for label, _ in known):
        row = [defence_name(label)]
        for metric in metrics:
            cell = known.get((label, metric))
            row += [paper_text(cell) if cell else ""] if metric in printed else []
            row.append(ours_text(cell) if cell else "")
        rows.append(row)
    return rows


def case_rows(cells: pd.DataFrame) -> Rows:
    """Write raw, masked, change and p of each attacker, appliance and metric, the paper's and ours."""
    rows = [["case", "raw, paper", "ours", "masked, paper", "ours", "Δ, paper", "ours", "p, paper", "ours"]]
    for cell in records(cells):
        digits = METRICS[cell["metric"]].digits
        p = cell["p"] if cell["spread"] else float("nan")  # no test where all seeds agree
        ours = {"raw": cell["value"] - cell["change"], "masked": cell["value"], "p": p}
        papers = {"raw": cell["raw"], "masked": cell["masked"], "p": cell["p_value"]}
        change = figure_text({"value": cell["change"], "spread": cell["spread"]}, digits)
        row = [case_name(cell)]
        for part in ("raw", "masked", "paper", "p"):
            places = 2 if part == "p" else digits
            if part == "paper":
                row += [f"{cell['paper']:.{digits}f}", f"{MARKS[cell['verdict']]}\u00a0{change}".strip()]
            else:
                row += [_number(papers[part], places) or "-", _number(ours[part], places)]
        rows.append(row)
    return rows


def case_name(cell: Mapping[str, Any]) -> str:
    """Write attacker, appliance and metric of a case."""
    return f"{attacker_name(cell['attacker'])}, {readable(cell['appliance'])}, {cell['metric'].upper()}"


def board_rows(board: Board) -> Rows:
    """Write a row for each defence of a leaderboard, without columns in which nothing was measured."""
    columns = {
        "adaptive F1": ("strongest_f1", "adaptive"),
        "leak": ("strongest_f1_leak", "adaptive"),
        "fixed F1": ("strongest_f1", "fixed"),
        "RMSE Inc. %": ("rmse_increase_percent", "fixed"),
        "F1 Red. %": ("f1_reduction_percent", "fixed"),
        "bits": ("information_bits", ""),
        "kWh a day": ("throughput_kwh", ""),
        "SoC at midnight": ("soc_end", ""),
        "SoC-neutral cost": ("soc_neutral_cost", ""),
    }
    known = {(row["defence"], row["metric"], row["threat"]): row for row in records(board.figures)}
    rows = [["defence", "rank", *columns]]
    for entry in records(board.entries):
        cells = {
            head: figure_text(known.get((entry["defence"], *key)), METRICS[key[0]].digits)
            for head, key in columns.items()
        }
        cells["leak"] = _leak_text(entry)  # the recorded one may be a share of another fit without a defence
        rows.append([defence_name(entry["defence"]), entry["rank"], *cells.values()])
    kept = [number for number in range(len(rows[0])) if any(row[number] for row in rows[1:])]
    return [[row[number] for number in kept] for row in rows]


def board_text(board: Board) -> str:
    """Name the attackers of a board, its levels without a defence and from routine, and what has no rank."""
    names = {threat: ", ".join(map(attacker_name, several)) for threat, several in sorted(board.attackers.items())}
    parts = [f"{threat.capitalize()} attackers: {several}." for threat, several in names.items()]
    if board.undefended_f1 == board.undefended_f1:
        parts.append(f"F1 without a defence {board.undefended_f1:.2f}, from routine {board.prior_f1:.2f}.")
    if NOT_MET in set(board.entries["status"]):
        parts.append("Defences that met no adaptive attacker have no rank.")
    if UNDERTRAINED in set(board.entries["status"]):
        parts.append(UNDERTRAINED_NOTE)
    return " ".join(parts)


def house_name(board: Board) -> str:
    """Write data set, house and number of days of a leaderboard."""
    return f"{dataset_name(board.dataset)} house {board.house}, {days_text(board.n_days)}"


def informed_rows(boards: Sequence[Board]) -> Rows:
    """Write F1 and leak of the strongest adaptive attacker on the held-out days of every house.

    Without a defence first, then the defences as the first board ranks them, habits last. One that it lacks comes
    after those that its own board ranks better.
    """
    held_out = [board for board in boards if board.days == HELD_OUT and not board.submitted]
    chosen = [board for board in held_out if board.entries["adaptive"].notna().any()]
    chosen = sorted(chosen, key=lambda board: (board.house != 1, board.dataset != "redd", board.dataset))
    known = [{row["defence"]: row for row in records(board.entries.dropna(subset="adaptive"))} for board in chosen]
    names: list[str] = []
    for entries in known:
        place = 0
        for name in entries:
            if name not in names:
                names.insert(place, name)
            place = max(place, names.index(name) + 1)
    rows = [
        [defence_name(name), *(_f1_and_leak(entries.get(name)) for entries in known)]
        for name in sorted(names, key=lambda name: name != "none")
    ]
    habits = ["habits alone", *(f"{board.prior_f1:.2f}" for board in chosen)]
    return [["defence", *map(house_name, chosen)], *rows, habits]


def strength_rows(figures: pd.DataFrame, dataset: str) -> Rows:
    """Write a row for each attacker without a defence on the paper's day: means over the same appliances."""
    clean = real_attackers(where(figures, dataset=dataset, days=PAPER, threat="clean", aggregate="mains"))
    clean = clean[clean["appliance"] != AGGREGATE]
    metrics = {name: METRICS[name] for name in ("rmse", "mae", "sae", "f1")}
    ours = clean.groupby(["attacker", "metric"])["value"].mean()
    printed = reported.cases(dataset)
    same = printed[printed["target"].isin(clean["appliance"])]
    papers = same.groupby(["attacker", "metric"])["raw"].mean()
    head = [part for metric in metrics.values() for part in (f"{metric.words}, paper", "ours")]
    rows = [["attacker", *head]]
    for name in _in_order(clean["attacker"]):
        cells = [
            figure_text({"value": means.get((name, metric), float("nan"))}, known.digits)
            for metric, known in metrics.items()
            for means in (papers, ours)
        ]
        rows.append([attacker_name(name), *cells])
    return rows if len(rows) > 1 else []


def other_rows(figures: pd.DataFrame) -> Rows:
    """Write the F1 of each attacker without a defence for all other days, houses and trainings."""
    clean = where(figures, threat="clean")
    others = clean[(clean["days"] != PAPER) | (clean["aggregate"] != "mains")]
    keys = ["dataset", "house", "days", "aggregate", "training"]
    return _f1_rows(others, keys, _trial_name)


def adapting_rows(figures: pd.DataFrame) -> Rows:
    """Write the F1 of attackers with a defence that was measured at several amounts of adaptive training."""
    cases = real_attackers(figures)
    trainings = cases[cases["threat"] == "adaptive"].groupby("defence")["training"].transform("nunique")
    several = set(cases.loc[trainings[trainings > 1].index, "defence"])
    keys = ["dataset", "defence", "threat", "training"]
    chosen = cases[cases["defence"].isin(several)]
    return _f1_rows(chosen, keys, lambda row: f"{dataset_name(row['dataset'])}, {row['training']}")


def adaptive_case_rows(figures: pd.DataFrame, dataset: str) -> Rows:
    """Write every adaptive attacker, appliance and metric on the paper's day, with ours and the baseline."""
    cells = dict(cell_rows("baseline_comparison", dataset))
    parts = {
        label: real_attackers(where(figures, **cells[label], threat="adaptive")) for label in ("ours", "random_equal")
    }
    key = ["attacker", "appliance", "metric"]
    both = parts["ours"].merge(parts["random_equal"], on=key, how="left", suffixes=("", "_random"))
    both = both[both["metric"].isin([*METRICS])]
    rows = [["case", "raw", "masked, ours", "Δ", "p", "masked, random baseline", "Δ", "p"]]
    for case in records(both):
        digits = METRICS[case["metric"]].digits
        row = [case_name(case), figure_text({"value": case["value"] - case["change"]}, digits)]
        for end in ("", "_random"):
            row.append(figure_text({"value": case[f"value{end}"], "spread": case[f"spread{end}"]}, digits))
            row.append(figure_text({"value": case[f"change{end}"]}, digits))
            row.append(figure_text({"value": case[f"p{end}"]}, 2))
        rows.append(row)
    return rows if len(rows) > 1 else []


def reasons_text(cells: pd.DataFrame) -> list[str]:
    """List each reason once, with the metrics or rows that it is about."""
    about: dict[str, dict[str, None]] = {}
    for cell in records(cells[cells["reason"] != ""]):
        name = cell.get("label") or cell["appliance"]
        words = defence_name(name) if cell["verdict"] == "not measured" else METRICS[cell["metric"]].words
        about.setdefault(cell["reason"], {})[words] = None
    return [f"{', '.join(names)}: {text}." for text, names in about.items()]


def latex(rows: Sequence[Sequence[str]], caption: str) -> str:
    """Write rows as a LaTeX table (booktabs), the head first."""
    head, *lines = (" & ".join(cell.translate(_ESCAPED) for cell in row) + r" \\" for row in rows)
    body = "\n".join([r"\toprule", head, r"\midrule", *lines, r"\bottomrule"])
    columns = "l" + "r" * (len(rows[0]) - 1)
    return (
        f"\\begin{{table}}\n\\caption{{{caption.translate(_ESCAPED)}}}\n\\begin{{tabular}}{{{columns}}}\n"
        f"{body}\n\\end{{tabular}}\n\\end{{table}}\n"
    )


def _f1_and_leak(entry: Mapping[str, Any] | None) -> str:
    if entry is None:
        return ""
    return f"{entry['adaptive']:.2f} ({_leak_text(entry)})"


def _leak_text(entry: Mapping[str, Any]) -> str:
    if entry["status"] in (UNDERTRAINED, NOT_MET):
        return UNDERTRAINED if entry["status"] == UNDERTRAINED else ""
    return UNKNOWN if pd.isna(entry["leak"]) else f"{100 * entry['leak']:z.0f}\u00a0%"


def _number(value: float, digits: int) -> str:
    return "" if pd.isna(value) else f"{value:.{digits}f}"


def _f1_rows(figures: pd.DataFrame, keys: list[str], name_of: Callable[[dict[str, Any]], str]) -> Rows:
    cases = real_attackers(figures)
    cases = cases[cases["metric"].isin(_F1) & (cases["appliance"] != AGGREGATE)]
    means = cases.groupby([*keys, "attacker", "metric"], sort=False)["value"].mean()
    best = means.groupby([*keys, "attacker"], sort=False).max()
    names = _in_order(cases["attacker"])
    rows = [["F1", *map(attacker_name, names)]]
    for row in records(cases.groupby(keys, sort=False)["n_days"].max().reset_index()):
        scores = (best.get((*(row[key] for key in keys), name), float("nan")) for name in names)
        rows.append([name_of(row), *(figure_text({"value": score}, 2) for score in scores)])
    return rows if len(rows) > 1 else []


def _trial_name(row: dict[str, Any]) -> str:
    days, n_days = row["days"].replace("_", " "), days_text(row["n_days"])
    test = "the paper's day" if row["days"] == PAPER else f"{n_days} ({days})"
    mains = "" if row["aggregate"] == "mains" else ", sum of sub-meters"
    return f"{dataset_name(row['dataset'])} house {row['house']}, {test}{mains}, trained on {row['training']}"


def _in_order(attackers: pd.Series[str]) -> list[str]:
    """Sort attackers as the paper lists them, predictors that never look at the meter last."""
    return sorted(in_order(attackers.unique()), key=FLOORS.__contains__)
