"""Pictures that were drawn earlier, put into a page: one for a wide screen, one for a phone."""

from __future__ import annotations

import base64
from html import escape
from pathlib import Path

import plotly.graph_objects as go

from meterveil.plots.look import save

WIDE_PX, PHONE_PX = 1000, 390
_PHONE = "-phone"


def save_both(figure: go.Figure, path: Path) -> list[Path]:
    """Save a figure as `path`, and drawn anew for a phone beside it; the page's heading is its title."""
    bare = go.Figure(figure).update_layout(title_text="", margin_t=min(figure.layout.margin.t or 30, 50))
    return [save(bare, path, WIDE_PX), save(bare, phone_path(path), PHONE_PX)]


def phone_path(path: Path) -> Path:
    """Name the picture for a phone that belongs to a wide one."""
    return path.with_name(f"{path.stem}{_PHONE}{path.suffix}")


def picture_html(path: Path, words: str) -> str:
    """Embed a picture, whole, with words for those who do not see it."""
    narrow = phone_path(path)
    source = f'<source media="(max-width: 600px)" srcset="{_embedded(narrow)}">' if narrow.exists() else ""
    image = f'<img src="{_embedded(path)}" alt="{escape(words)}">'
    return f"<figure><picture>{source}{image}</picture></figure>"


def _embedded(path: Path) -> str:
    return f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}"
