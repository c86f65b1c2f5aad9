"""Outer loop: once a minute the defence decides what the meter is to show, with the same function as simulations."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from meterveil.core.battery import Battery, BatteryState
from meterveil.core.decoys import Library
from meterveil.core.rollout import Control, Minute, Policy, advance, begin


class Plan(NamedTuple):
    """What the inner loop does in the coming minute."""

    hold: bool  # keep the meter at `profile_w`; otherwise the battery takes this power itself
    profile_w: float
    why: str
    decoy: str = ""  # name of the signature that is shown
    level_w: float = math.nan  # logged by the veil, whether it could follow or not
    decoy_w: float = math.nan

    @property
    def target_w(self) -> float:
        """Meter reading to hold, NaN where none is held."""
        return self.profile_w if self.hold else math.nan


class OuterLoop:
    """Policy of one home and what it remembers."""

    def __init__(self, policy: Policy, library: Library, rng: np.random.Generator) -> None:
        self.control = begin(policy, library, 1)
        self._policy, self._library, self._rng = policy, library, rng

    def decide(
        self, battery: Battery, soc: float, moved_kwh: float, load_w: float, minute_of_day: int, price: float
    ) -> Plan:
        """Decide on the minute that begins; `load_w` is that of the minute that has just ended, NaN for unknown."""
        load_w = load_w if math.isfinite(soc) else math.nan
        state = BatteryState(np.array([soc if math.isfinite(soc) else 0.5]), np.array([moved_kwh]))
        minute = Minute(
            np.array([load_w]),
            np.array([minute_of_day]),
            np.array([price]),
            np.zeros(1, dtype=np.bool_),
            self._rng.random((1, 2)),
        )
        control = self.control._replace(state=state)
        self.control, _ = advance(self._policy, battery, self._library, control, minute)
        return self._plan(is_unknown=math.isnan(load_w))

    def saw(self, meter_w: float) -> None:
        """Remember what the meter showed in the minute that has just ended."""
        self.control = self.control._replace(meter_w=np.array([meter_w]))

    def memory(self) -> tuple[Any, ...]:
        """Return what has to survive a restart: nested tuples of arrays."""
        return self.control.replay, self.control.memory, self.control.meter_w

    def restore(self, document: Any) -> None:
        """Continue with the memory of an earlier process; one of another defence is ignored."""
        try:
            replay, memory, meter_w = _like(self.memory(), document)
        except (TypeError, ValueError):
            return
        self.control = Control(self.control.state, replay, memory, meter_w)

    def _plan(self, is_unknown: bool) -> Plan:
        """Read the command of the coming minute out of the controller's state, and say why."""
        command, elapsed, _ = self.control.replay
        signature, library = int(command.signature[0]), self._library
        minute = min(max(int(elapsed[0]) - 1, 0), library.watts.shape[1] - 1)
        profile_w = float(command.level_w[0] + command.sign[0] * library.watts[signature, minute])
        named = library.names[signature] if signature < library.size else ""
        hold, log = bool(command.hold[0]), self.control.memory
        planned = (float(log.level_w[0]), float(log.decoy_w[0])) if hasattr(log, "decoy_w") else (math.nan, math.nan)
        if is_unknown:
            return Plan(False, 0.0, "idle: the load of the last minute is not known", named, *planned)
        if hold:
            why = f"hold the meter at {profile_w:.0f} W" + (f" with a {named}" if named else "")
        else:
            why = f"add {profile_w:+.0f} W" + (f" of a {named}" if named else "")
        return Plan(hold, profile_w, why, named, *planned)


def _like(template: Any, document: Any) -> Any:
    """Turn lists back into what `template` is made of; raise ValueError where they do not fit."""
    if isinstance(template, np.ndarray):
        array = np.array(document, dtype=template.dtype)
        if array.shape != template.shape:
            raise ValueError(f"shape {array.shape} is not {template.shape}")
        return array
    if isinstance(template, tuple):
        parts = [_like(part, value) for part, value in zip(template, document, strict=True)]
        return type(template)(*parts) if hasattr(template, "_fields") else tuple(parts)
    return document
