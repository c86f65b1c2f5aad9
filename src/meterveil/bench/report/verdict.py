"""The verdict in sentences: what a reader sees first."""

from __future__ import annotations

from collections.abc import Iterator

from meterveil.bench.report.chance import adaptive_table
from meterveil.bench.report.compare import compare_one
from meterveil.bench.report.leaderboard import Board, Standing, boards, standing_name
from meterveil.bench.report.lookup import Recorded
from meterveil.bench.report.names import CHANCE, dataset_name
from meterveil.bench.report.reading import Results
from meterveil.bench.report.text import ours_text, paper_text


def verdict_words(results: Results) -> str:
    """Say in a line each what became of the paper's headline, and what adaptive attackers still read."""
    return "\n".join([*_fixed(results), *_adaptive(results)])


def _fixed(results: Results) -> Iterator[str]:
    for dataset in ("ukdale", "redd"):
        recorded = Recorded(results.of("overall_transfer", dataset))
        rmse, f1 = (
            compare_one("overall_transfer", dataset, "ours", column, recorded)
            for column in ("rmse_increase_percent", "f1_reduction_percent")
        )
        if rmse.ours and f1.ours:
            rise = f"RMSE rises by {ours_text(rmse)} %, the paper's by {paper_text(rmse)} ({rmse.verdict})"
            fall = f"F1 falls by {ours_text(f1)} %, the paper's by {paper_text(f1)} ({f1.verdict})"
            yield f"{dataset_name(dataset)}, attackers that never saw the defence: {rise}, {fall}."


def _adaptive(results: Results) -> Iterator[str]:
    for board in boards(results):
        known = {one.label: one for one in board.standings if one.adaptive_f1 and not one.submitted}
        if board.table == adaptive_table(results, board.dataset) and "ours" in known:
            yield _sentence(board, known)


def _sentence(board: Board, known: dict[str, Standing]) -> str:
    ours = known["ours"]
    days = ours.adaptive_f1.n_days if ours.adaptive_f1 else 1
    parts = [f"F1 {_read(ours)} behind ours"]
    if CHANCE in known:
        parts.append(f"{_read(known[CHANCE])} behind chance that moves as much")
    best = next(one for one in board.standings if one.adaptive_f1)
    if best.label not in ("ours", CHANCE):
        parts.append(f"{_read(best)} behind {standing_name(best)}, which leaves them least")
    levels = [
        f"{words} {value:.2f}"
        for words, value in (("the bare meter tells", board.raw_f1), ("habits alone", board.prior_f1))
        if value is not None
    ]
    where = f"{dataset_name(board.dataset)}, {f'{days} days' if days > 1 else 'one day'}"
    ending = f" ({', '.join(levels)})" if levels else ""
    return f"{where}, attackers that adapt to the defence: {', '.join(parts)}{ending}."


def _read(one: Standing) -> str:
    return f"{one.adaptive_f1.value:.2f}" if one.adaptive_f1 else ""
