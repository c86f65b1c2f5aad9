"""Figures as files: self-contained pages and pictures."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import plotly.graph_objects as go

from meterveil.data.outputs import write_text, write_whole
from meterveil.errors import InputError, how_to_install
from meterveil.plots.html import Section, page

_SCALE = 2
"""Pixels of a picture per pixel of its layout, for sharp text on modern screens."""


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
            path,
            lambda temporary: figure.write_image(temporary, format=kind[1:], width=width, scale=_SCALE),
        )
    except RuntimeError as error:
        raise InputError(
            f"saving {kind} needs Chrome or Chromium; install one, or save as .html "
            f"({str(error).strip().splitlines()[0]})"
        ) from error
