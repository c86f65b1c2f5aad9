"""Controller of one home: a tick reads, checks, decides once a minute, clamps, commands once and records.

Without control (shadow mode, paused, or a fault) it decides and records all the same, and commands nothing.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, NamedTuple

import numpy as np

from meterveil.core.battery import Battery, BatteryState
from meterveil.core.decoys import Library
from meterveil.core.rollout import Control, Minute, Policy, advance, begin
from meterveil.core.tariff import DEGRADATION_PER_KWH, Tariff
from meterveil.live import follower, health
from meterveil.live.follower import FollowerSettings, FollowerState, Seen
from meterveil.live.health import Health, HealthSettings
from meterveil.live.limits import KWH_PER_WS, RESERVED_WRITES, Hysteresis, Ledger, clamp
from meterveil.live.ports import (
    BatteryCommand,
    BatteryReading,
    BatterySensor,
    Clock,
    Instant,
    Meter,
    MeterReading,
    MeterTarget,
    PortError,
)
from meterveil.live.records import LIVE, MODES, SHADOW, Event, MinuteRecord, Status

LONGEST_STEP_S = 5.0
"""A longer pause between two ticks is a gap: its energy is not known."""
KNOWN_SHARE = 0.5
"""Least part of a minute that must be known for its mean load to count; of the first minute, what is left of it."""
JUMP_S = 5.0
"""A wall clock that gains or loses so much between two ticks has jumped."""
CALM_TICKS = 2
"""Good ticks in a row before we take control again."""
CLAMPED_W = 5.0
"""A limit that changes a command by more is obeyed at once, whatever the deadband."""
ALIGN_S = 30.0
"""How far back battery readings are kept, to find the one at the time of a meter reading."""
IDLE_ALERT_S, ALERT_AGAIN_S = 2 * 86_400.0, 86_400.0


@dataclass(frozen=True)
class Home:
    """Everything that does not change while a home is controlled."""

    policy: Policy
    battery: Battery
    library: Library
    tariff: Tariff
    timezone: str = "Europe/London"
    follower: FollowerSettings = field(default_factory=FollowerSettings)
    health: HealthSettings = field(default_factory=HealthSettings)
    device_timeout_s: float = 60.0
    """Dead-man of the device; commands are repeated at half of it."""
    most_writes: float = math.inf
    """Register writes a civil day, for devices whose registers wear."""
    may_command: bool = False
    """Armed in the settings and started with --live."""


class Ports(NamedTuple):
    """Devices of a home; exactly one of the last two is used."""

    clock: Clock
    meter: Meter
    sensor: BatterySensor
    battery: BatteryCommand | None = None
    target: MeterTarget | None = None


@dataclass
class _Sums:
    """Sums over the running minute."""

    utc_minute: int
    begun_s: float  # monotonic
    known_s: float = 0.0
    control_s: float = 0.0
    load_ws: float = 0.0
    meter_ws: float = 0.0
    battery_ws: float = 0.0
    moved_ws: float = 0.0


class Controller:
    """One home under control; `tick` is called about once a second."""

    def __init__(
        self,
        home: Home,
        ports: Ports,
        rng: np.random.Generator,
        on_minute: Callable[[MinuteRecord], None] = lambda record: None,
        on_event: Callable[[Event], None] = lambda event: None,
    ) -> None:
        self.home, self.ports = home, ports
        self.status = Status(mode=LIVE if home.may_command else SHADOW, budget_kwh=float(home.battery.budget_kwh))
        self.ledger = Ledger(home.timezone)
        self.control = begin(home.policy, home.library, 1)
        self._battery = home.battery
        self._rng = rng
        self._on_minute, self._on_event = on_minute, on_event
        self._health = Health(home.health)
        self._hysteresis = Hysteresis()
        self._follower = FollowerState()
        self._before: Instant | None = None
        self._sums: _Sums | None = None
        self._hold, self._profile_w = True, math.nan
        self._plan_w = (math.nan, math.nan)  # level and decoy of the running minute
        self._shown_w = math.nan  # newest reading of the meter, as it is
        self._known_load_w = math.nan
        self._written_s = -math.inf
        self._calm = 0
        self._stepped_back_until_s = -math.inf
        self._controlled_s = ports.clock.now().monotonic_s
        self._alerted_s = -math.inf
        self._batteries: deque[tuple[float, float]] = deque()  # (time, power)
        self._paired_s = -math.inf
        self._aim_w = math.nan  # meter reading that the present command leads to

    @property
    def day(self) -> Any:
        """Local civil day."""
        return self.ledger.local(self.ports.clock.now().utc_s).date()

    def set_mode(self, mode: str) -> bool:
        """Pause, watch or control; live is refused unless armed. Return whether the mode is in force."""
        if mode not in MODES or (mode == LIVE and not self.home.may_command):
            self._say(self.ports.clock.now(), "mode_refused", f"{mode!r} is refused; live needs `armed` and --live")
            return False
        if mode != self.status.mode:
            self.status.mode = mode
            self._say(self.ports.clock.now(), "mode", f"mode is now {mode}")
            if mode != LIVE:
                self.release(f"mode {mode}")
        return True

    def set_budget(self, kwh: float) -> bool:
        """Lower or restore the daily budget; more than the settings allow is refused."""
        if not 0.0 <= kwh <= float(self.home.battery.budget_kwh):
            self._say(self.ports.clock.now(), "budget_refused", f"{kwh!r} kWh is refused; it is above the settings'")
            return False
        self._battery = replace(self.home.battery, budget_kwh=kwh)
        self.status.budget_kwh = kwh
        return True

    def tick(self) -> Status:
        """Let one step of the inner loop pass."""
        now = self.ports.clock.now()
        if self.status.in_control and now.monotonic_s - self._written_s > self.home.device_timeout_s:
            self.release("no command within the device's timeout; it has released itself")
        fault, meter, battery = self._read(now)
        if meter is None or battery is None or fault:
            self._account(now, is_good=False)
            self._fail(now, fault or health.METER_FAILED)
        else:
            self._account(now, is_good=True)
            self._calm += 1
            if now.monotonic_s >= self._stepped_back_until_s:
                self.status.fault = ""
            self._act(now, meter, battery)
        self._before = now
        return self.status

    def release(self, why: str) -> None:
        """Hand the battery back to its own automatic mode, if we hold it."""
        now = self.ports.clock.now()
        self._follower = FollowerState()
        if not self.status.in_control:
            return
        try:
            self._send(now, None, None)
        except PortError as error:
            self._say(now, health.COMMAND_FAILED, f"release failed, the device's own timer has to act: {error}")
        self.status.in_control = False
        self.status.command_w = math.nan
        self._say(now, "released", f"battery handed back: {why}")

    def memory(self) -> dict[str, Any]:
        """Return what has to survive a restart, as JSON values."""
        kept = (self.control.replay, self.control.memory, self.control.meter_w)
        held_utc_s = self.ports.clock.now().utc_s if self.status.in_control else None
        return {
            "ledger": self.ledger.document(),
            "control": _plain(kept),
            "budget_kwh": self.status.budget_kwh,
            "held_utc_s": held_utc_s,
        }

    def restore(self, document: dict[str, Any]) -> None:
        """Continue where an earlier process stopped; a memory of another defence is ignored."""
        self.ledger.restore(document.get("ledger", {}))
        self._count_unseen(document.get("held_utc_s"))
        budget_kwh = document.get("budget_kwh")
        if budget_kwh is not None:
            self.set_budget(min(float(budget_kwh), float(self.home.battery.budget_kwh)))
        template = (self.control.replay, self.control.memory, self.control.meter_w)
        try:
            replay, memory, meter_w = _like(template, document["control"])
        except (KeyError, TypeError, ValueError):
            return
        self.control = Control(self.control.state, replay, memory, meter_w)

    def _count_unseen(self, held_utc_s: float | None) -> None:
        """Count what a killed process may have moved after its last minute, at full power, so that the budget holds."""
        if held_utc_s is None:
            return
        utc_s, battery = self.ports.clock.now().utc_s, self.home.battery
        unseen_s = min(max(utc_s - held_utc_s, 0.0), 60.0 + self.home.device_timeout_s)
        rated_w = max(float(battery.charge_w), float(battery.discharge_w))
        self.ledger.move(self.ledger.local(utc_s).date(), rated_w, unseen_s)

    def _read(self, now: Instant) -> tuple[str | None, MeterReading | None, BatteryReading | None]:
        """Read everything anew and name the first fault."""
        try:
            meter = self.ports.meter.read_meter()
        except PortError:
            return health.METER_FAILED, None, None
        try:
            battery = self.ports.sensor.read_battery()
        except PortError:
            return health.BATTERY_FAILED, meter, None
        wanted_w = self._aim_w if self.status.in_control and not math.isnan(self._aim_w) else None
        fault = self._health.meter_fault(meter, now, wanted_w, battery.power_w)
        fault = fault or self._health.battery_fault(battery, now)
        if fault is None and self.status.in_control:
            fault = self._health.obedience_fault(battery, now, of_power=self.ports.target is None)
        if fault is None:
            self._pair(meter, battery)
        self.status.utc_s = now.utc_s
        return fault, meter, battery

    def _pair(self, meter: MeterReading, battery: BatteryReading) -> None:
        """Find the load: a new meter reading minus the battery's power at that time; between readings it stands."""
        status, seen = self.status, self._batteries
        if not seen or battery.at_s > seen[-1][0]:
            seen.append((battery.at_s, battery.power_w))
        while seen[0][0] < battery.at_s - ALIGN_S:
            seen.popleft()
        if meter.at_s != self._paired_s or math.isnan(status.load_w):
            self._paired_s = meter.at_s
            at_s, power_w = zip(*seen, strict=True)
            status.load_w = meter.power_w - float(np.interp(meter.at_s, at_s, power_w))
        status.battery_w, status.soc = battery.power_w, battery.soc
        self._shown_w = meter.power_w
        status.meter_w = status.load_w + battery.power_w

    def _account(self, now: Instant, is_good: bool) -> None:
        """Add the time since the last tick to the running minute; finish the minute where another one began."""
        utc_minute = int(now.utc_s // 60)
        if self._sums is None or self._before is None:
            self._sums = _Sums(utc_minute, now.monotonic_s)
            self._known_load_w = self.status.load_w if is_good else math.nan
            self._decide(now)
            return
        passed_s = now.monotonic_s - self._before.monotonic_s
        jumped_s = (now.utc_s - self._before.utc_s) - passed_s
        if abs(jumped_s) > JUMP_S:
            self._say(now, "clock_jumped", f"the wall clock jumped by {jumped_s:+.0f} s")
        if is_good and passed_s <= LONGEST_STEP_S:
            sums, status = self._sums, self.status
            sums.known_s += passed_s
            sums.load_ws += status.load_w * passed_s
            sums.meter_ws += self._shown_w * passed_s
            sums.battery_ws += status.battery_w * passed_s
            if status.in_control:
                sums.control_s += passed_s
                sums.moved_ws += abs(status.battery_w) * passed_s
                self._controlled_s = now.monotonic_s
                self.ledger.move(self.ledger.local(now.utc_s).date(), status.battery_w, passed_s)
        if utc_minute != self._sums.utc_minute:
            self._finish_minute(self._sums, now.monotonic_s - self._sums.begun_s)
            self._alert_if_idle(now)
            self._sums = _Sums(utc_minute, now.monotonic_s)
            self._decide(now)

    def _finish_minute(self, sums: _Sums, passed_s: float) -> None:
        local = self.ledger.local(sums.utc_minute * 60)
        known_s = sums.known_s
        load_w, meter_w, battery_w = (
            total / known_s if known_s else math.nan for total in (sums.load_ws, sums.meter_ws, sums.battery_ws)
        )
        self._known_load_w = load_w if known_s >= KNOWN_SHARE * min(passed_s, 60.0) else math.nan
        price = self._price(local.hour * 60 + local.minute, sums.utc_minute)
        cost = sums.battery_ws * KWH_PER_WS * price + sums.moved_ws * KWH_PER_WS * DEGRADATION_PER_KWH
        target_w = self._profile_w if self._hold else math.nan
        record = MinuteRecord(
            sums.utc_minute,
            local.date().isoformat(),
            load_w,
            meter_w,
            battery_w,
            target_w,
            self._plan_w[0],
            self.status.soc,
            known_s,
            sums.control_s,
            cost if sums.control_s else 0.0,
            self.status.why,
            self._plan_w[1],
        )
        self.control = self.control._replace(meter_w=np.array([meter_w]))
        self.ledger.forget(local.date() - timedelta(days=3))
        self._on_minute(record)

    def _alert_if_idle(self, now: Instant) -> None:
        idle_s = now.monotonic_s - self._controlled_s
        if self.status.mode != LIVE or idle_s < IDLE_ALERT_S or now.monotonic_s - self._alerted_s < ALERT_AGAIN_S:
            return
        self._alerted_s = now.monotonic_s
        self._say(now, "idle_for_days", f"nothing was protected for {idle_s / 86_400:.0f} days; see the last faults")

    def _decide(self, now: Instant) -> None:
        """Let the policy decide on the minute that begins, with the minute that has just ended as its load."""
        local = self.ledger.local(now.utc_s)
        minute_of_day = local.hour * 60 + local.minute
        moved_kwh = self.ledger.moved_kwh.get(local.date(), 0.0)
        soc = self.status.soc
        load_w = self._known_load_w if math.isfinite(soc) else math.nan
        state = BatteryState(np.array([soc if math.isfinite(soc) else 0.5]), np.array([moved_kwh]))
        minute = Minute(
            np.array([load_w]),
            np.array([minute_of_day]),
            np.array([self._price(minute_of_day, int(now.utc_s // 60))]),
            np.zeros(1, dtype=np.bool_),
            self._rng.random((1, 2)),
        )
        control = self.control._replace(state=state)
        try:
            self.control, _ = advance(self.home.policy, self._battery, self.home.library, control, minute)
        except Exception as error:  # a defence of any origin must not stop the tick
            self._say(now, health.POLICY_FAILED, f"{type(error).__name__}: {error}")
            self._hold, self._profile_w, self.status.why = False, 0.0, health.WORDS[health.POLICY_FAILED]
            return
        self._take_command(math.isnan(load_w))

    def _take_command(self, unknown: bool) -> None:
        """Read the command of the coming minute out of the controller's state, and say why."""
        command, elapsed, _ = self.control.replay
        signature, library = int(command.signature[0]), self.home.library
        minute = min(max(int(elapsed[0]) - 1, 0), library.watts.shape[1] - 1)
        decoy_w = float(command.sign[0] * library.watts[signature, minute])
        self._hold = bool(command.hold[0]) and not unknown
        self._profile_w = 0.0 if unknown else float(command.level_w[0]) + decoy_w
        log = self.control.memory
        if hasattr(log, "decoy_w"):  # the veil logs what it planned, also where it could not follow
            self._plan_w = (float(log.level_w[0]), float(log.decoy_w[0]))
        named = library.names[signature] if signature < library.size else ""
        self.status.decoy = named
        if unknown:
            self.status.why = "idle: the load of the last minute is not known"
        elif self._hold:
            self.status.why = f"hold the meter at {self._profile_w:.0f} W" + (f" with a {named}" if named else "")
        else:
            self.status.why = f"add {self._profile_w:+.0f} W" + (f" of a {named}" if named else "")

    def _act(self, now: Instant, meter: MeterReading, battery: BatteryReading) -> None:
        """Hold the target: find the power, clamp it, command it once."""
        load_w = self.status.load_w
        target_w = self._profile_w if self._hold else load_w + self._profile_w
        self.status.target_w = target_w
        day = self.ledger.local(now.utc_s).date()
        self.status.moved_kwh = self.ledger.moved_kwh.get(day, 0.0)
        self.status.writes = self.ledger.writes.get(day, 0)
        if self.status.mode != LIVE or not self._may_take_control(now, day):
            return
        request_w = target_w - load_w
        if self._hold and self.ports.target is None:
            seen = Seen(self.status.meter_w, self.status.battery_w, meter.at_s, now.utc_s)
            self._follower, changed_w = follower.follow(self.home.follower, self._follower, seen, target_w)
            request_w = self._follower.command_w if changed_w is None else changed_w
        on_its_way_kwh = abs(self.status.battery_w) * self.home.follower.dead_time_s * KWH_PER_WS
        moved_kwh = self.status.moved_kwh + on_its_way_kwh
        allowed_w = clamp(self._battery, battery.soc, moved_kwh, request_w, load_w)
        power_w = self._hysteresis.clamp(self._battery, battery.soc, allowed_w)
        power_w = power_w if abs(power_w) >= CLAMPED_W else 0.0
        is_clamped = power_w != request_w
        self._aim_w = load_w + power_w if is_clamped else target_w
        self._command(now, power_w, self._aim_w, CLAMPED_W if is_clamped else self.home.follower.deadband_w)

    def _may_take_control(self, now: Instant, day: Any) -> bool:
        if self.status.in_control:
            if self.status.writes >= self.home.most_writes - RESERVED_WRITES:
                self._fail(now, health.WRITES_EXHAUSTED)
                return False
            return True
        if self.ledger.writes.get(day, 0) >= self.home.most_writes - RESERVED_WRITES:
            return False
        return self._calm >= CALM_TICKS and now.monotonic_s >= self._stepped_back_until_s

    def _command(self, now: Instant, power_w: float, target_w: float, deadband_w: float) -> None:
        """Send a command where it changed, or where the device's timer needs one."""
        value_w = power_w if self.ports.target is None else target_w
        changed = not abs(value_w - self.status.command_w) <= deadband_w  # true for NaN
        stops = value_w == 0.0 and self.status.command_w != 0.0
        due = now.monotonic_s - self._written_s >= self.home.device_timeout_s / 2
        self._follower = follower.commanded(self._follower, power_w)
        if not (changed or stops or due):
            return
        try:
            self._send(now, power_w, target_w)
        except PortError as error:
            self._say(now, health.COMMAND_FAILED, str(error))
            self._fail(now, health.COMMAND_FAILED)
            return
        if not self.status.in_control:
            self._say(now, "control", f"in control of the battery: {self.status.why}")
        self.status.in_control = True
        self.status.command_w = value_w

    def _send(self, now: Instant, power_w: float | None, target_w: float | None) -> None:
        self._written_s = now.monotonic_s
        self.ledger.write(self.ledger.local(now.utc_s).date())
        if self.ports.target is not None:
            self.ports.target.command_meter(target_w)
        elif self.ports.battery is not None:
            self.ports.battery.command_battery(power_w)
        self._health.command_given(power_w if self.ports.target is None else target_w, now)

    def _fail(self, now: Instant, fault: str) -> None:
        """Name a fault, stop, and hand the battery back."""
        self._calm = 0
        if fault != self.status.fault:
            self._say(now, fault, health.WORDS[fault])
        self.status.fault = fault
        if fault in health.STEP_BACK and self.status.in_control:
            self._stepped_back_until_s = now.monotonic_s + self.home.health.step_back_s
        self.release(health.WORDS[fault])

    def _price(self, minute_of_day: int, utc_minute: int) -> float:
        return float(self.home.tariff.price(np.array([minute_of_day]), np.array([utc_minute]))[0])

    def _say(self, now: Instant, name: str, text: str) -> None:
        self._on_event(Event(now.utc_s, name, text))


def _plain(value: Any) -> Any:
    """Turn nested tuples of arrays into lists."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return value


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
