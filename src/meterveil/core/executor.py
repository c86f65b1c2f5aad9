"""Execution of commands, a minute at a time, for all households of a batch at once.

A command shapes the meter for one or more minutes. Its profile is a level plus, optionally, a signature
of the library; the profile either is *added* as battery power (signature mimicry, the paper) or the meter
is *held* at it (load replacement). Both kinds end in the same `battery.step`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from meterveil.core import battery as bt
from meterveil.core.arrays import BoolArray, FloatArray, IntArray
from meterveil.core.battery import Battery, BatteryState, Connection
from meterveil.core.decoys import Library


class Command(NamedTuple):
    """Profile to follow until `minutes` have passed or the battery cannot go on; one entry per household."""

    hold: BoolArray  # (batch,) False: add the profile as battery power; True: hold the meter at the profile
    level_w: FloatArray  # (batch,) constant part of the profile
    signature: IntArray  # (batch,) row of the library; K for none
    sign: FloatArray  # (batch,) +1 adds the signature to the profile, -1 subtracts it
    minutes: IntArray  # (batch,) how long the command lasts at most


class Replay(NamedTuple):
    """Running command."""

    command: Command
    elapsed: IntArray  # (batch,) minutes already carried out
    running: BoolArray  # (batch,) False where the household waits for its next command


def idle(library: Library, batch: int) -> Command:
    """Do nothing for one minute."""
    return add_power(library, np.zeros(batch))


def add_power(library: Library, power_w: FloatArray) -> Command:
    """Request this battery power for one minute."""
    return _constant(library, np.zeros(len(power_w), dtype=np.bool_), power_w)


def hold_meter(library: Library, target_w: FloatArray) -> Command:
    """Request this meter reading for one minute."""
    return _constant(library, np.ones(len(target_w), dtype=np.bool_), target_w)


def hold_meter_with_decoy(library: Library, level_w: FloatArray, signature: IntArray) -> Command:
    """Request a meter level with an appliance on top, for as long as the signature lasts."""
    hold = np.ones(len(level_w), dtype=np.bool_)
    return Command(hold, level_w, signature, np.ones(len(level_w)), library.lengths[signature])


def replay_signature(library: Library, action: IntArray) -> Command:
    """Turn the manager's action into a command: 0 idles, 1..K charge, K+1..2K discharge (section 5)."""
    signature, sign, minutes = library.by_action
    add = np.zeros(len(action), dtype=np.bool_)
    return Command(add, np.zeros(len(action)), signature[action], sign[action], minutes[action])


def nothing_running(library: Library, batch: int) -> Replay:
    """Start with every household waiting for a command."""
    return Replay(idle(library, batch), np.zeros(batch, dtype=np.int64), np.zeros(batch, dtype=np.bool_))


def issue(replay: Replay, command: Command) -> Replay:
    """Give the command to the households that wait for one; the others keep theirs."""
    keep = replay.running
    if not np.count_nonzero(keep):  # faster than `any`, as in other places that every minute passes
        return Replay(command, np.zeros(len(keep), dtype=np.int64), ~keep)
    merged = Command(*(np.where(keep, old, new) for old, new in zip(replay.command, command, strict=True)))
    return Replay(merged, np.where(keep, replay.elapsed, 0), np.ones_like(keep))


def tick(
    battery: Battery,
    library: Library,
    state: BatteryState,
    replay: Replay,
    load_w: FloatArray,
    allowed: Connection | None = None,
    room: tuple[FloatArray, FloatArray] | None = None,
) -> tuple[BatteryState, Replay, FloatArray]:
    """Carry every running command on by one minute; return the battery power, (batch,).

    A command of which nothing can be delivered in its first minute is infeasible and ends with it (D4).
    `allowed` is `battery.connection` of this load, for callers that know a whole day's loads at once, and `room` is
    `battery.room_w` of this state.
    """
    command, elapsed, running = replay
    past_end = library.watts.shape[1] - 1
    signature_w = library.watts[command.signature, np.minimum(elapsed, past_end)]
    profile_w = command.level_w + command.sign * signature_w
    request_w = (profile_w - command.hold * load_w) * running
    allowed = bt.connection(battery, load_w) if allowed is None else allowed
    state, delivery = bt.deliver(battery, state, request_w, allowed, room)
    elapsed = elapsed + running
    running = running & (elapsed < command.minutes)
    if np.count_nonzero(running):
        stillborn = (replay.elapsed == 0) & (delivery.power_w == 0.0) & (request_w != 0.0)
        running = running & ~(delivery.ended | stillborn)
    return state, Replay(command, elapsed, running), delivery.power_w


def feasible(battery: Battery, library: Library, state: BatteryState, load_w: FloatArray) -> BoolArray:
    """Tell which of the 2K+1 actions would move energy in their first minute, (batch, action).

    Idling is always feasible. The answer comes from `battery.step` itself, so mask and physics agree.
    """
    first_w = library.watts[: library.size, 0]
    request_w = np.repeat(np.concatenate([first_w, -first_w])[:, None], len(load_w), axis=1)  # (2K, batch)
    _, delivery = bt.step(battery, state, request_w, load_w)
    return np.vstack([np.ones_like(load_w, dtype=np.bool_), delivery.power_w != 0.0]).T


def _constant(library: Library, hold: BoolArray, level_w: FloatArray) -> Command:
    return Command(hold, level_w, *_no_signature(library.size, len(level_w)))


@lru_cache(maxsize=16)
def _no_signature(size: int, batch: int) -> tuple[IntArray, FloatArray, IntArray]:
    """Return signature, sign and minutes of a command for one minute; they are shared, so nobody may write to them."""
    parts = np.full(batch, size, dtype=np.int64), np.ones(batch), np.ones(batch, dtype=np.int64)
    for part in parts:
        part.flags.writeable = False
    return parts
