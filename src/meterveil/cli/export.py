"""`meterveil export`: write a defence as a bundle that a controller can run."""

# ruff: noqa: PLC0415  heavy imports wait for the verb

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from meterveil.cli import options as opt


def export(
    defence: Annotated[
        str, typer.Argument(help="Name of a defence, random_equal:7.5, or a folder of meterveil train.")
    ],
    *,
    library: opt.Library = None,
    battery: opt.BatteryFile = None,
    tariff: opt.Tariff = None,
    out: opt.Out = Path("out/bundle"),
) -> None:
    """Write a bundle: policy and its weights, library, battery, tariff, a card, and the hashes of all files.

    A bundle acts with NumPy only. Signatures, battery and tariff of a training are kept unless given.
    """
    from meterveil.bench.simulation import defence_for
    from meterveil.cli.tables import show_file
    from meterveil.data import settings
    from meterveil.defenders.bundle_export import card_of, export_bundle
    from meterveil.defenders.defence import common_setup

    exported = defence_for(defence)
    own_battery = settings.battery(battery) if battery else None
    own_tariff = settings.tariff(tariff) if tariff else None
    setup = common_setup([exported], library, own_battery, own_tariff)
    document = exported.trainings[0].document if exported.trainings else None
    card = card_of(exported.method, document)
    show_file("bundle", export_bundle(exported.policies[0], setup, card, out))
