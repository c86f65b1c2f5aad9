"""The signature library: power curves of appliance uses that the battery replays.

All K signatures are in one zero-padded array, so that each household of a batch can replay another one with
a single look-up. Row K is the empty signature: zero watts for one minute.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from meterveil.core.arrays import FloatArray, IntArray
from meterveil.errors import InputError


@dataclass(frozen=True)
class Library:
    """K signatures; built with `Library.of`."""

    watts: FloatArray  # (K + 1, longest + 1), zero after each signature's end; the last row is empty
    lengths: IntArray  # (K + 1,) minutes; the empty signature lasts one
    names: tuple[str, ...]  # (K,) appliance of each signature
    source: str
    """Where the curves were recorded."""

    @classmethod
    def of(cls, signatures: Iterable[tuple[str, Sequence[float] | FloatArray]], source: str) -> Library:
        """Pad (name, watts per minute) pairs into one array and check them."""
        pairs = [(name, np.asarray(watts, dtype=np.float64)) for name, watts in signatures]
        if not pairs:
            raise InputError("a signature library is empty; give at least one signature")
        for number, (name, watts) in enumerate(pairs):
            _check_signature(f"signature {number} ({name})", watts)
        lengths = np.array([*(len(watts) for _, watts in pairs), 1], dtype=np.int64)
        padded = np.zeros((len(pairs) + 1, int(lengths.max()) + 1))
        for row, (_, watts) in zip(padded, pairs, strict=False):
            row[: len(watts)] = watts
        return cls(padded, lengths, tuple(name for name, _ in pairs), source)

    @property
    def size(self) -> int:
        """K, the number of signatures."""
        return len(self.names)

    @property
    def n_actions(self) -> int:
        """Idle, K to charge and K to discharge: the manager's actions of section 5."""
        return 2 * self.size + 1

    @cached_property
    def by_action(self) -> tuple[IntArray, FloatArray, IntArray]:
        """Row, sign and minutes of each action, (2K+1,): 0 idles, 1..K charge, K+1..2K discharge."""
        k = self.size
        signature = np.concatenate([[k], np.arange(k), np.arange(k)])
        sign = np.where(np.arange(self.n_actions) > k, -1.0, 1.0)
        return signature, sign, self.lengths[signature]

    def mean_w(self, rate: float) -> float:
        """Return the mean power of decoys of random signatures that start at this rate in minutes without one."""
        decoy_w_minutes = self.watts.sum() / self.size
        return float(rate * decoy_w_minutes / (1.0 + rate * (self.lengths[:-1].mean() - 1.0)))

    def signatures(self) -> list[tuple[str, FloatArray]]:
        """Return the (name, watts per minute) pairs without padding."""
        return [(name, self.watts[k, : self.lengths[k]]) for k, name in enumerate(self.names)]

    def to_json(self) -> str:
        """Write the library as JSON text, watts rounded to a milliwatt."""
        rows = [{"name": name, "watts": [round(float(w), 3) for w in watts]} for name, watts in self.signatures()]
        return json.dumps({"format": _FORMAT, "source": self.source, "signatures": rows}, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Library:
        """Read the text of `to_json`; reject any other with a reason."""
        try:
            document = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(f"a signature library must be JSON; {error}") from error
        if not isinstance(document, dict) or document.get("format") != _FORMAT:
            raise InputError(f'a signature library must be a JSON object with "format": "{_FORMAT}"')
        try:
            pairs = [(_text(row["name"]), row["watts"]) for row in document["signatures"]]
            return cls.of(pairs, _text(document["source"]))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(
                'a signature library needs "source" and "signatures" with "name" and "watts" (numbers) each; '
                f"{type(error).__name__}: {error}"
            ) from error

    def digest(self) -> str:
        """Return the hash of the content; libraries with the same digest act alike."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()


_FORMAT = "meterveil-signatures-1"


def _text(value: object) -> str:
    """Return text that can be written again; JSON can escape half characters, which cannot."""
    return str(value).encode().decode()


def _check_signature(what: str, watts: FloatArray) -> None:
    if watts.ndim != 1 or not 1 <= len(watts) <= 1440:
        raise InputError(f"{what} has shape {watts.shape}; allowed are 1 to 1440 minutes of watts")
    if not np.all(np.isfinite(watts)) or np.any(watts < 0.0):
        raise InputError(f"{what} has negative or missing watts; a signature is what an appliance draws")
    if watts[0] <= 0.0:
        raise InputError(f"{what} starts with zero watts; cut the minutes before the appliance switches on")
