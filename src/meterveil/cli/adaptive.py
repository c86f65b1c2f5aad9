"""The part of `meterveil attack` that lets attackers adapt to a defence."""

# ruff: noqa: PLC0415  heavy imports wait for the verb

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from meterveil.errors import InputError

if TYPE_CHECKING:
    from meterveil.bench.adaptive_curve import Curve, OnDone, Point
    from meterveil.bench.cards import Card
    from meterveil.bench.strength import Houses, Trial


def numbers(text: str, option: str, least: int) -> tuple[int, ...]:
    """Read numbers separated by commas."""
    try:
        found = tuple(sorted({int(part) for part in text.split(",") if part.strip()}))
    except ValueError as error:
        raise InputError(f"{option} {text!r} is no list of numbers; write it as 1,3,6") from error
    if not found or found[0] < least:
        raise InputError(f"{option} {text!r} is not allowed; give numbers from {least} on, such as 1,3,6")
    return found


def points(copies: str, epochs: str) -> tuple[str, list[Point]]:
    """Return what the curve runs along, and its points."""
    from meterveil.attackers.threat import COPIES
    from meterveil.bench.adaptive_curve import DEFAULT_COPIES, Point

    if not epochs:
        several = numbers(copies, "--copies", 0) if copies else DEFAULT_COPIES
        return "copies", [Point(number) for number in several]
    fixed = numbers(copies, "--copies", 0) if copies else (COPIES,)
    if len(fixed) > 1:
        raise InputError(f"--copies {copies} with --epochs would be two curves; give one number of copies")
    return "epochs", [Point(fixed[0], number) for number in numbers(epochs, "--epochs", 1)]


def curve_of(trial: Trial, defence: str) -> Curve:
    """Put a defence with its documented settings between the house and the attackers."""
    from meterveil.bench.adaptive_curve import Curve
    from meterveil.data import settings
    from meterveil.data.simulation import Setup
    from meterveil.defenders import defender

    return Curve(trial, defence, defender(defence), Setup(settings.library()))


def measured_points(
    curve: Curve, asked: Sequence[Point], houses: Houses, names: Sequence[str], workers: int, on_done: OnDone
) -> Iterator[list[Card]]:
    """Measure the references, then point after point."""
    from meterveil.bench.adaptive_curve import measure_point, references

    yield references(curve, houses, names, workers, on_done)
    for point in asked:
        yield measure_point(curve, point, houses, names, workers, on_done)


def write_page(cards: Sequence[Card], steps: str, out: Path, pictures: Path | None) -> Path:
    """Write the page, and the picture where it is asked for; return the page."""
    from meterveil.bench.attack_page import curve_chart, write_curve
    from meterveil.plots import save

    if pictures:
        save(curve_chart(cards, steps), pictures / f"{cards[0].table}-{cards[0].dataset}-{steps}.png")
    return write_curve(cards, steps, out)
