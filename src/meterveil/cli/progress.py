"""The bar of a reproduction: cells that are finished, and the time left."""

# ruff: noqa: PLC0415  heavy imports wait for the verb

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from meterveil.bench.reproduce.plan import Plan
    from meterveil.bench.reproduce.runner import Listener
    from meterveil.bench.reproduce.task import Task


@contextmanager
def progress(plan: Plan) -> Iterator[Listener]:
    """Show how many cells are finished, what was done last, and the time left."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    from meterveil.bench.reproduce.profile import foretell
    from meterveil.bench.reproduce.runner import Listener

    seconds = foretell(plan)
    columns = (
        TextColumn("{task.fields[cells]}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(stderr=True), speed_estimate_period=3600.0) as bar:
        shown = bar.add_task("", total=None, cells="")
        count = [0]

        def cells() -> str:
            return f"{count[0]} of {len(plan.cells)} cells"

        def on_start(tasks: Sequence[Task]) -> None:
            count[0] = len(plan.cells) - sum(task.key in plan.cells for task in tasks)
            bar.update(shown, total=sum(seconds[task.key] for task in tasks), cells=cells())

        def on_done(task: Task) -> None:
            count[0] += task.key in plan.cells
            bar.update(shown, advance=seconds[task.key], description=task.title, cells=cells())
            if not bar.console.is_terminal:
                bar.console.print(f"{cells()}, {bar.tasks[0].percentage:.0f} %: {task.title}", soft_wrap=True)

        def on_death(reason: str, left: int) -> None:
            bar.console.print(f"a worker died; {left} tasks are left and begin again ({reason[:200]})")

        yield Listener(on_start, on_done, on_death)
