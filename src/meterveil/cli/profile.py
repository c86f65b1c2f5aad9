"""The profile of a reproduction in the terminal, as cards, and as a picture."""

# ruff: noqa: PLC0415  heavy imports wait for the verb

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from meterveil.cli.tables import show_file, show_line, show_table

if TYPE_CHECKING:
    from meterveil.bench.reproduce.plan import Plan
    from meterveil.bench.reproduce.profile import Share

_HEAD = ["task", "tasks", "with record", "CPU seconds each", "clock seconds each", "CPU min measured", "all"]


def show_profile(plan: Plan, picture: Path | None) -> None:
    """Say what the tasks of a plan took, and write that down."""
    from meterveil.bench import cards
    from meterveil.bench.reproduce.profile import CORES, SCOPES, cards_of, profile, totals

    shares = profile(plan)
    for scope, (minutes, missing) in totals(shares).items():
        rows = [_row(one) for one in shares if one.scope == scope]
        show_table([_HEAD, *rows], SCOPES[scope])
        show_line(
            f"{minutes:.0f} minutes of one core: {minutes / 60 / CORES:.1f} h where {CORES} are kept busy"
        )
        if missing:
            show_line(f"not in it, for want of a record: {', '.join(missing)}", "yellow")
        show_line("")
    show_line("a task without a record counts as the mean of its like; all others were measured", "dim")
    files = cards.write(plan.place.results, cards_of(shares, plan.cells.values()))
    show_file("cards", files[0].parent)
    if picture:
        _draw(shares, picture)


def _row(one: Share) -> list[str]:
    counts = [one.sort, str(one.tasks), str(len(one.recorded))]
    if one.mean is None or one.minutes is None:
        return [*counts, "", "", "", "unknown"]
    each = (one.mean.cpu_seconds, one.mean.seconds, one.measured_minutes, one.minutes)
    return [*counts, *(f"{value:.1f}" for value in each)]


def _draw(shares: Sequence[Share], picture: Path) -> None:
    from meterveil import plots
    from meterveil.bench.reproduce.profile import SCOPES
    from meterveil.plots.spending import Minutes, time_figure

    panels: dict[str, dict[str, Minutes]] = {}
    for one in shares:
        if one.minutes is not None:
            minutes = Minutes(one.measured_minutes, one.minutes - one.measured_minutes)
            panels.setdefault(SCOPES[one.scope], {})[one.sort] = minutes
    figure = time_figure(panels, "Where the time goes")
    show_file("picture", plots.save(figure, picture, width=1000))
