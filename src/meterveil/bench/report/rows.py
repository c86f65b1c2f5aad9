"""Rows of the two largest tables: the leaderboard, and every attacker and appliance."""

from __future__ import annotations

from meterveil.bench.report.compare import case_figures, compare_cases
from meterveil.bench.report.leaderboard import Board, standing_name
from meterveil.bench.report.reading import Results
from meterveil.bench.report.text import NONE, found_text, marked_text
from meterveil.plots.attack import label
from meterveil.plots.look import readable

_NO_RANK = (
    "No adaptive attacker has read these defences yet, so there is no rank: they are in the order of what "
    "fixed attackers read."
)
_SOME_UNRANKED = (
    "Those without a rank met fixed attackers alone; they come last, in the order of what these read."
)


def board_rows(board: Board) -> list[list[str]]:
    """Write a row for each defence, the best first."""
    rows = [
        [
            "defence",
            "rank",
            "adaptive F1",
            "adaptive leak",
            "fixed F1",
            "fixed leak",
            "RMSE Inc. %",
            "F1 Red. %",
            "events",
            "bits",
            "kWh a day",
            "SoC at midnight",
            "neutral cost",
        ]
    ]
    for rank, one in enumerate(board.standings, start=1):
        rows.append(
            [
                standing_name(one),
                str(rank) if one.adaptive_f1 else "",
                found_text(one.adaptive_f1, 2),
                found_text(one.adaptive_leak, 2),
                found_text(one.fixed_f1, 2),
                found_text(one.fixed_leak, 2),
                found_text(one.rmse_increase, 1),
                found_text(one.f1_reduction, 1),
                found_text(one.event_f1, 2),
                found_text(one.information_bits, 3),
                found_text(one.throughput_kwh, 2),
                found_text(one.soc_end, 2),
                found_text(one.neutral_cost, 3),
            ]
        )
    return _without_empty(rows)


def _without_empty(rows: list[list[str]]) -> list[list[str]]:
    """Leave out columns in which nothing was measured."""
    kept = [number for number in range(len(rows[0])) if any(row[number] for row in rows[1:])]
    return [[row[number] for number in kept] for row in rows]


def board_words(board: Board) -> str:
    """Say who read, since boards with other attackers do not compare, and which defences have no rank."""
    known = {threat: ", ".join(map(label, names)) for threat, names in board.attackers.items()}
    said = [f"{threat.capitalize()} attackers: {names}." for threat, names in known.items()]
    return " ".join([*said, *_unranked(board)])


def _unranked(board: Board) -> list[str]:
    met = [one.adaptive_f1 is not None for one in board.standings]
    if all(met):
        return []
    return [_SOME_UNRANKED if any(met) else _NO_RANK]


def case_rows(dataset: str, results: Results) -> list[list[str]]:
    """Write a row for each attacker, target and metric: raw, masked, Delta and p, the paper's and ours."""
    judged = {(one.row, one.column): one for one in compare_cases(dataset, results)}
    parts = ("raw", "masked", "delta", "p_value")
    rows = [["case", "raw, paper", "ours", "masked, paper", "ours", "Δ, paper", "ours", "p, paper", "ours"]]
    for key, paper, ours in case_figures(dataset, results):
        one = judged[f"{key.attacker} {key.target}", f"{key.metric}_delta"]
        digits = 1 if key.metric in ("rmse", "mae") else 2
        row = [f"{label(key.attacker)}, {readable(key.target)}, {key.metric.upper()}"]
        for part in parts:
            places = 2 if part == "p_value" else digits
            theirs = f"{paper[part]:.{places}f}" if part in paper else NONE
            mine = f"{ours[part]:.{places}f}" if part in ours else ""
            row += [theirs, marked_text(one) if part == "delta" else mine]
        rows.append(row)
    return rows
