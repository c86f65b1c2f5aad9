"""Where a training stands, in one file that is replaced whole: a kill costs what came after it, no more.

Arrays are tensors in groups, all else is JSON in the file's header: reading one executes nothing (D13).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as tensor_bytes

from meterveil.data.outputs import write_whole
from meterveil.defenders.runs import Arrays
from meterveil.errors import InputError


def save(path: Path, document: Mapping[str, Any], groups: Mapping[str, Arrays], between: str = "/") -> None:
    """Write a document and groups of arrays; `between` stands between a group's name and an array's."""
    flat = {
        f"{group}{between}{name}": np.ascontiguousarray(part)
        for group, parts in groups.items()
        for name, part in parts.items()
    }
    content = tensor_bytes(flat, {"state": json.dumps(document)})
    write_whole(path, lambda half: half.write_bytes(content))


def read(path: Path, kind: str, key: str, between: str = "/") -> tuple[dict[str, Any], dict[str, Arrays]]:
    """Read what `save` wrote, if its document is of this format and of the training with this key."""
    document, groups = _read(path, between)
    if document.get("format") != kind or document.get("key") != key:
        raise InputError(
            f"{path} belongs to another training; resume with the same data, settings and version, or give "
            "--out another folder"
        )
    return document, groups


def _read(path: Path, between: str) -> tuple[dict[str, Any], dict[str, Arrays]]:
    groups: dict[str, Arrays] = {}
    try:
        with safe_open(path, framework="numpy") as file:
            document = json.loads((file.metadata() or {}).get("state", "{}"))
            for name in file.keys():  # noqa: SIM118  it is no mapping
                group, _, rest = name.partition(between)
                groups.setdefault(group, {})[rest] = file.get_tensor(name)
    except (OSError, SafetensorError, ValueError) as error:
        raise InputError(f"{path} is no checkpoint, or damaged ({error}); train anew") from error
    return document, groups
