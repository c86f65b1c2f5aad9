"""Read pickles of plain data without ever running what they name (D13).

NILMTK keeps its metadata as pickled dictionaries in HDF5 attributes. A pickle can name any function and call
it, so only dates and ordered dictionaries may be named here; everything else is refused before it is found.
"""

from __future__ import annotations

import io
import pickle
from collections import OrderedDict
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from typing import Any

from meterveil.errors import InputError


def _encode(text: str, encoding: str = "latin-1") -> bytes:
    """Stand in for `_codecs.encode`, by which old protocols spell bytes."""
    return text.encode("latin-1")


ALLOWED: dict[tuple[str, str], Callable[..., Any]] = {
    ("datetime", "date"): date,
    ("datetime", "datetime"): datetime,
    ("datetime", "timedelta"): timedelta,
    ("datetime", "timezone"): timezone,
    ("collections", "OrderedDict"): OrderedDict,
    ("_codecs", "encode"): _encode,
}


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ALLOWED:
            raise pickle.UnpicklingError(f"it names {module}.{name}")
        return ALLOWED[module, name]


def load_plain(where: str, data: bytes) -> Any:
    """Read a pickle of dictionaries, lists, texts, numbers and dates; refuse any other."""
    try:
        return _PlainUnpickler(io.BytesIO(data), encoding="latin-1").load()
    except Exception as error:  # a broken pickle may raise anything
        reason = " ".join(str(error).split())[:100]
        raise InputError(f"{where} is not plain metadata ({reason}); nothing of it was run") from None
