"""`meterveil export`: turn a finished training into a bundle that a controller can run."""

# ruff: noqa: PLC0415  heavy imports wait for the verb

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from meterveil.cli import options as opt
from meterveil.errors import InputError, how_to_install


def export(
    run: Annotated[Path, typer.Argument(help="Folder that meterveil train wrote.")],
    *,
    out: opt.Out = Path("out/bundle"),
) -> None:
    """Write a bundle: policy.onnx, library, battery and tariff, a card, and the hashes of all of them."""
    missing = [name for name in ("onnx", "safetensors") if find_spec(name) is None]
    if missing:
        raise InputError(f"exporting needs {', '.join(missing)}; get it with {how_to_install('train')}")
    from meterveil.cli.tables import show_file
    from meterveil.defenders.bundle_export import export as write_bundle

    show_file("bundle", write_bundle(run, out))
