"""Output in the terminal: tables from rows of text whose first is the head, notes and progress."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import combinations, pairwise, zip_longest
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from meterveil.cli.options import spoken

if TYPE_CHECKING:
    from rich.progress import Progress

_GAP = "  "
_LEAST_TEXT = 24
"""A column of sentences that is narrower than this is hard to read."""
LINE_EVERY_S = 60.0
"""Seconds between two lines of progress where there is no terminal."""


def show_table(rows: Sequence[Sequence[str]], title: str = "", text_columns: Sequence[str] = ()) -> None:
    """Print rows; the first column and those named in `text_columns` are text, the others figures.

    Figures are never cut: columns that do not fit the window follow below, beside the first column again. Heads
    over figures have two lines, or three where the window is too narrow for that.
    """
    console = Console()
    columns, narrow = (
        [
            _Column(head, tuple(cells), number == 0 or head in text_columns, lines)
            for number, (head, *cells) in enumerate(zip(*rows, strict=True))
        ]
        for lines in (2, 3)
    )
    if _total([column.width for column in columns]) > console.width:
        columns = narrow
    if title:
        show_line(title, "bold")
    for number, block in enumerate(_blocks(columns, console.width)):
        widths = _widths(block, console.width)
        for heads in zip(*(_heads(column, block) for column in block), strict=True):
            show_line(_line(heads, block, widths))
        rule = "-" if console.options.ascii_only else "─"
        show_line(rule * _total(widths))
        for cells in zip(*(column.cells for column in block), strict=True):
            if number and not any(cells[1:]):
                continue
            for line in _wrapped(cells, widths):
                show_line(_line(line, block, widths))


def show_line(text: str, style: str = "") -> None:
    """Print one line without wrapping it."""
    Console().print(Text(text, style), soft_wrap=True)


def show_notes(notes: Sequence[str], err: bool = False) -> None:
    """Print notes on the data, each once, fainter than the result."""
    for note in dict.fromkeys(notes):
        Console(stderr=err).print(Text(f"note: {spoken(note)}", "dim"), soft_wrap=True)


def show_defaults(chosen: Mapping[str, str]) -> None:
    """Print the value of each option that was left out; an empty one was given."""
    used = [f"{option} {value}" for option, value in chosen.items() if value]
    if used:
        Console().print(Text(f"Using {', '.join(used)} (default).", "dim"), soft_wrap=True)


def show_file(what: str, path: Path) -> None:
    """Print the address of a file, which terminals open with a click."""
    show_line(f"{what}: {path.resolve().as_uri()}")


def progress(**options: Any) -> Progress:
    """Make a progress bar with the time left and a description; it is removed at the end by default.

    Where nobody looks at a terminal (a log, a scheduler), it is a line now and then.
    """
    from rich import progress as rich  # noqa: PLC0415  only a bar needs it

    console = options.pop("console", None) or Console(stderr=True)
    is_hidden = options.pop("disable", False)

    class Lines(rich.Progress):
        last = time.monotonic()

        def update(self, task_id: rich.TaskID, **changes: Any) -> None:
            super().update(task_id, **changes)
            task, now = self._tasks[task_id], time.monotonic()
            if is_hidden or not task.visible or now < self.last + LINE_EVERY_S:
                return
            self.last = now
            left = "" if task.time_remaining is None else f", {timedelta(seconds=round(task.time_remaining))} left"
            console.print(f"{task.percentage:.0f} %{left}: {task.description}", soft_wrap=True, markup=False)

    if not console.is_terminal:
        return Lines(console=console, disable=True)
    times = (rich.TimeElapsedColumn(), rich.TextColumn("left"), rich.TimeRemainingColumn())
    columns = (rich.BarColumn(), rich.TaskProgressColumn(), *times, rich.TextColumn("{task.description}"))
    return rich.Progress(*columns, **{"console": console, "transient": True, "disable": is_hidden, **options})


@contextmanager
def steps(total: int, description: str, is_shown: bool = True) -> Iterator[Callable[..., None]]:
    """Show a bar of `total` steps; call the function that is returned after each, with a name or without.

    Where steps may be left out (stored fits), tell it how many are over.
    """
    with progress(disable=not is_shown) as bar:
        task = bar.add_task(description, total=total)

        def on_done(name: str = "", over: int | None = None) -> None:
            count: dict[str, Any] = {"advance": 1} if over is None else {"completed": over}
            bar.update(task, description=f"{description}, done: {name}" if name else description, **count)

        yield on_done


@dataclass(frozen=True)
class _Column:
    """Column of a table; only one of text may be narrower than its cells."""

    head: str
    cells: tuple[str, ...]
    is_text: bool
    head_lines: int
    """Most lines of the head of figures; that of text has one."""

    @property
    def heads(self) -> list[str]:
        """Lines of the head, broken where they are narrowest."""
        words = self.head.split(" ")
        most = 1 if self.is_text else self.head_lines
        breaks = combinations(range(1, len(words)), min(most, len(words)) - 1)
        broken = ([" ".join(words[a:b]) for a, b in pairwise((0, *places, len(words)))] for places in breaks)
        return min(broken, key=lambda lines: max(map(cell_len, lines)))

    @property
    def width(self) -> int:
        return max(cell_len(line) for line in (*self.heads, *self.cells))

    @property
    def least(self) -> int:
        return min(self.width, _LEAST_TEXT) if self.is_text else self.width


def _blocks(columns: Sequence[_Column], room: int) -> Iterator[list[_Column]]:
    """Split columns into groups that fit beside the first column."""
    first, *others = columns
    block, used = [first], first.least
    for column in others:
        if len(block) > 1 and used + len(_GAP) + column.least > room:
            yield block
            block, used = [first], first.least
        block.append(column)
        used += len(_GAP) + column.least
    yield block


def _widths(block: Sequence[_Column], room: int) -> list[int]:
    """Give each column its least width, and the spare width to columns of text, from the left."""
    widths = [column.least for column in block]
    spare = max(room - _total(widths), 0)
    for number, column in enumerate(block):
        more = min(column.width - widths[number], spare)
        widths[number] += more
        spare -= more
    return widths


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _heads(column: _Column, block: Sequence[_Column]) -> list[str]:
    """Pad heads with fewer lines than the tallest one at the top."""
    lines = max(len(other.heads) for other in block)
    return [""] * (lines - len(column.heads)) + column.heads


def _wrapped(cells: Sequence[str], widths: Sequence[int]) -> Iterator[tuple[str, ...]]:
    """Break cells that are wider than their column into lines."""
    broken = [
        [cell] if cell_len(cell) <= width else wrap(cell, width) for cell, width in zip(cells, widths, strict=True)
    ]
    return zip_longest(*broken, fillvalue="")


def _line(cells: Sequence[str], block: Sequence[_Column], widths: Sequence[int]) -> str:
    padded = []
    for cell, column, width in zip(cells, block, widths, strict=True):
        blank = " " * (width - cell_len(cell))
        padded.append(cell + blank if column.is_text else blank + cell)
    return _GAP.join(padded).replace("\u00a0", " ").rstrip()
