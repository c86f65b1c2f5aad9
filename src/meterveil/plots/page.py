"""A page to open in a browser: headings, tables and figures in one file that needs no network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import plotly.graph_objects as go
from plotly.io import to_html
from plotly.offline import get_plotlyjs

from meterveil import __version__
from meterveil.data.outputs import GENERATOR

LONG_ROWS = 30
"""A table of more rows may scroll in its own box, and says how many it has."""


@dataclass(frozen=True)
class Section:
    """Hold a part of a page; whatever is empty is left out."""

    heading: str = ""
    text: str = ""
    table: Sequence[Sequence[str]] = ()
    """Rows of cells, the head first; the first column is words, the others figures or words."""
    figure: go.Figure | None = None
    is_stacked: bool = False
    """Whether the first and the last cell of each row have a line of their own on a phone."""


def page(title: str, sections: Sequence[Section], intro: str = "") -> str:
    """Put sections under each other, readable on a phone and on a wide screen."""
    body = "\n".join(_section(section) for section in sections)
    lead = f"<p>{escape(intro)}</p>" if intro else ""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="generator" content="{GENERATOR} {__version__}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{_STYLE}</style>
<script>{get_plotlyjs()}</script>
</head>
<body><main>
<h1>{escape(title)}</h1>
{lead}
{body}
</main></body>
</html>
"""


def _section(section: Section) -> str:
    parts = [
        f"<h2>{escape(section.heading)}</h2>" if section.heading else "",
        f"<p>{escape(section.text)}</p>" if section.text else "",
        _table(section.table, section.is_stacked) if section.table else "",
        _figure(section.figure) if section.figure is not None else "",
    ]
    return "<section>" + "\n".join(part for part in parts if part) + "</section>"


def _figure(figure: go.Figure) -> str:
    """Draw without the title: headings of the page wrap on a narrow screen, titles of figures do not."""
    bare = go.Figure(figure).update_layout(title_text="", margin={"l": 48, "r": 8, "t": 30})
    config = {"responsive": True, "displaylogo": False, "displayModeBar": False}
    height = f"{figure.layout.height or 450}px"
    return str(to_html(bare, config=config, include_plotlyjs=False, full_html=False, default_height=height))


def _table(rows: Sequence[Sequence[str]], is_stacked: bool) -> str:
    """Set figures right and words left; a cell with a space in it is words. Say how long a long one is."""
    words = [any(" " in cell for cell in column[1:]) for column in zip(*rows, strict=True)]
    head, *body = (_row(row, words, tag) for row, tag in zip(rows, ["th"] + ["td"] * len(rows), strict=False))
    box = f'<div class="wide{" stacked" * is_stacked}">'
    count = f'<p class="count">{len(body)} rows in all</p>' if len(body) > LONG_ROWS else ""
    return f"{box}<table><thead>{head}</thead><tbody>{''.join(body)}</tbody></table></div>{count}"


def _row(row: Sequence[str], words: Sequence[bool], tag: str) -> str:
    cells = (
        f'<{tag} class="words">{_cell(cell)}</{tag}>' if is_words else f"<{tag}>{_cell(cell)}</{tag}>"
        for cell, is_words in zip(row, words, strict=True)
    )
    return f"<tr>{''.join(cells)}</tr>"


def _cell(text: str) -> str:
    """Write a cell; what follows its first line is small print, whose options stay whole at their hyphens."""
    first, newline, rest = text.partition("\n")
    words = " ".join(f"<span>{escape(word)}</span>" for word in rest.split())
    return escape(first) + (f"<small>{words}</small>" if newline else "")


_STYLE = """
body { margin: 0; background: #fff; color: #202124;
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 1200px; margin: 0 auto; padding: 12px; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 8px 0; }
h2 { font-size: 1.15rem; margin: 28px 0 4px; }
p { max-width: 46rem; margin: 4px 0 12px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.9rem; font-variant-numeric: tabular-nums; }
th, td { padding: 4px 10px; border-bottom: 1px solid #e8eaed; text-align: right; white-space: nowrap; }
th:first-child, td:first-child, .words { text-align: left; }
td small { display: block; color: #5f6368; }
small span { white-space: nowrap; }
.count { font-size: 0.85rem; color: #5f6368; }
"""
