"""Smart-meter privacy with a home battery, simulated on recorded data."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from meterveil.defenders.bundle import Bundle

__version__ = "0.1.0"


def load_bundle(path: str | Path) -> Bundle:
    """Read a defence that `meterveil export` wrote; it acts with NumPy only."""
    from meterveil.defenders import bundle  # noqa: PLC0415  importing the package costs nothing

    return bundle.load_bundle(path)
