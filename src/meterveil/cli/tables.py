"""Tables in the terminal, from rows of text whose first is the head."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text


def show_table(rows: Sequence[Sequence[str]], title: str = "", text_columns: Sequence[str] = ()) -> None:
    """Print rows; the first column and those named in `text_columns` are text, the others figures."""
    table = Table(title=title or None, box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    table.title_justify, table.title_style = "left", "bold"
    for number, head in enumerate(rows[0]):
        is_text = number == 0 or head in text_columns
        heading = head if is_text else head.replace(" ", "\n")
        table.add_column(heading, justify="left" if is_text else "right", no_wrap=number == 0)
    for row in rows[1:]:
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)


def show_line(text: str) -> None:
    """Print one line as it is, however long."""
    Console().print(Text(text), soft_wrap=True)


def show_file(what: str, path: Path) -> None:
    """Print where a file is, as an address that terminals open with a click."""
    show_line(f"{what}: {path.resolve().as_uri()}")
