"""Pages to open in a browser, in one file that needs no network, and figures as pictures.

Every page is `templates/page.html`: `page` fills it, `render` fills a template that extends it.
Figures are drawn by plotly.js's basic bundle (scatter, bar and pie only), which a page holds once.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
from jinja2 import ChoiceLoader, Environment, PackageLoader
from markupsafe import Markup

from meterveil import __version__
from meterveil.data.outputs import GENERATOR, write_text, write_whole
from meterveil.errors import InputError, how_to_install

_SCRIPT_MARK = "<!--plotly-->"
_FIGURE_CLASS = "plotly-graph-div"

_DRAW = """
function draw(within) {
  within.querySelectorAll(".plotly-graph-div:not(.js-plotly-plot)").forEach(place => {
    if (place.closest("details:not([open])")) return;
    const figure = JSON.parse(place.firstElementChild.textContent);
    Plotly.newPlot(place, figure.data, figure.layout,
      {responsive: true, displaylogo: false, displayModeBar: false});
  });
}
document.addEventListener("DOMContentLoaded", () => draw(document));
document.addEventListener("toggle", event => draw(event.target), true);
"""
"""Draws the figures that are not folded away, and the others when their section is opened."""

_SCALE = 2
"""Pixels of a picture per pixel of its layout, for sharp text on modern screens."""


@dataclass(frozen=True)
class Section:
    """Part of a page; empty fields are left out."""

    heading: str = ""
    text: str = ""
    table: Sequence[Sequence[str]] = ()
    """Rows of cells, the head first; what follows the first line of a cell is small print."""
    figure: go.Figure | None = None
    html: str = ""
    """Anything else, trusted, below the figure."""
    is_folded: bool = False
    """Whether only the heading shows until it is clicked."""


def page(
    title: str,
    sections: Sequence[Section],
    intro: str = "",
    *,
    verdicts: Mapping[str, str] | None = None,
    has_contents: bool = False,
) -> str:
    """Put sections under each other, readable on a phone and on a wide screen, in light and dark.

    Several lines of `intro` become a list. `verdicts` is the text of a cell, or its first sign -> a colour.
    """
    return render(
        "page.html",
        title=title,
        sections=sections,
        intro=intro.splitlines(),
        verdicts=verdicts or {},
        has_contents=has_contents,
    )


def render(template: str, package: str = "", **values: Any) -> str:
    """Fill a template of this package, or of `package`, whose templates may extend `page.html`.

    A template has the filters `figure` (of a plotly figure) and `slug` (an anchor), and macros.html.
    """
    text = (
        _environment(package)
        .get_template(template)
        .render(generator=f"{GENERATOR} {__version__}", **{"verdicts": {}, **values})
    )
    script = f"<script>{_plotly()}{_DRAW}</script>" if _FIGURE_CLASS in text.partition("</style>")[2] else ""
    return text.replace(_SCRIPT_MARK, script, 1).lstrip()


def figure_html(figure: go.Figure) -> Markup:
    """Embed a figure without its title: headings wrap on a narrow screen, titles of figures do not."""
    shown = go.Figure(figure).update_layout(title_text="", margin={"l": 48, "r": 8, "t": 30})
    data = str(shown.to_json()).replace("</", "<\\/")
    style = f"height: {figure.layout.height or 450}px"
    return Markup(  # noqa: S704  JSON in a script element, with its only closing tag escaped
        f'<div class="{_FIGURE_CLASS}" style="{style}"><script type="application/json">{data}</script></div>'
    )


def slug(heading: str) -> str:
    """Turn a heading into the name of an anchor."""
    return re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")


def check_picture(path: Path) -> Path:
    """Refuse a picture that cannot be saved under this name, before any work is done for it."""
    kind = path.suffix.lower()
    if kind not in (".html", ".png", ".svg"):
        raise InputError(f"a picture cannot be saved as {path.name}; use a name in .html, .png or .svg")
    if kind != ".html" and find_spec("kaleido") is None:
        raise InputError(f"saving {kind} needs kaleido; get it with {how_to_install('pictures')}")
    return path


def save(figure: go.Figure, path: Path, width: int = 1200) -> Path:
    """Write a figure as a self-contained .html page, or as a .png or .svg picture."""
    kind = check_picture(path).suffix.lower()
    if kind == ".html":
        return write_text(path, page(figure.layout.title.text or path.stem, [Section(figure=figure)]))
    try:
        return write_whole(
            path, lambda temporary: figure.write_image(temporary, format=kind[1:], width=width, scale=_SCALE)
        )
    except RuntimeError as error:
        raise InputError(
            f"saving {kind} needs Chrome or Chromium; install one, or save as .html "
            f"({str(error).strip().splitlines()[0]})"
        ) from error


@cache
def _environment(package: str) -> Environment:
    packages = ["meterveil.plots", *[package] * bool(package)]
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in packages]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"figure": figure_html, "slug": slug, "verdict": _verdict, "word_columns": _word_columns}
    return environment


@cache
def _plotly() -> str:
    """Read plotly.js's basic bundle; its first lines name its version and licence."""
    packed = files("meterveil.plots").joinpath("templates/plotly-basic.min.js.gz").read_bytes()
    return gzip.decompress(packed).decode()


def _word_columns(rows: Sequence[Sequence[str]]) -> list[bool]:
    """Tell which columns are words, set left: those in which a cell has a space."""
    return [any(" " in cell for cell in column[1:]) for column in zip(*rows, strict=True)]


def _verdict(cell: str, verdicts: Mapping[str, str]) -> str | None:
    matches = (word for word in verdicts if cell == word or (not word.isascii() and cell.startswith(word)))
    return next((verdicts[word] for word in matches), None)
