"""What a data set of several houses holds, without reading any of them."""

from __future__ import annotations

from pathlib import Path

from meterveil.data.load import describe
from meterveil.data.redd import redd_houses
from meterveil.data.refit import APPLIANCES, UNUSED
from meterveil.data.ukdale import ukdale_houses


def houses(path: str | Path) -> dict[int, tuple[str, ...]]:
    """List the houses of a data set and the sub-meters of each, as far as they are known unread.

    A source that is one household has none.
    """
    source = describe(path)
    if source.kind in ("ukdale", "redd"):
        found = ukdale_houses(path) if source.kind == "ukdale" else redd_houses(path)
        channels = {name: tuple(house.appliances) for name, house in found.items()}
        return {number: channels.get(f"house_{number}", ()) for number in source.houses}
    if source.kind == "refit":
        listed = {number: APPLIANCES.get(number, "").split() for number in source.houses}
        return {number: tuple(name for name in names if name != UNUSED) for number, names in listed.items()}
    return dict.fromkeys(source.houses, ())
