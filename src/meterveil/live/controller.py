"""Controller of one home: a tick reads, checks, decides once a minute, clamps, commands once and records.

Without control (shadow mode, paused, or a fault) it decides and records all the same, and commands nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import numpy as np

from meterveil.core.battery import Battery
from meterveil.core.decoys import Library
from meterveil.core.rollout import Policy
from meterveil.core.tariff import Tariff
from meterveil.live import follower, health
from meterveil.live.alignment import Alignment
from meterveil.live.follower import FollowerSettings, FollowerState, Seen
from meterveil.live.health import Health, HealthSettings
from meterveil.live.limits import KWH_PER_WS, RESERVED_WRITES, Hysteresis, Ledger, clamp
from meterveil.live.outer_loop import OuterLoop, Plan
from meterveil.live.ports import BatteryReading, Instant, MeterReading, PortError, Ports
from meterveil.live.records import LIVE, MODES, SHADOW, Event, MinuteRecord, MinuteSums, Status

LONGEST_STEP_S = 5.0
"""A longer pause between two ticks is a gap: its energy is not known."""
JUMP_S = 5.0
"""A wall clock that gains or loses so much between two ticks has jumped."""
CALM_TICKS = 2
"""Good ticks in a row before we take control again."""
CLAMPED_W = 5.0
"""A limit that changes a command by more is obeyed at once, whatever the deadband."""
SOC_DRIFT = 0.005
"""A SoC so little outside its range is rounding."""
REMARK_AGAIN_S = 600.0
"""A state that lasts is named when it begins, and again when it was gone for so long."""
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
        self.outer = OuterLoop(home.policy, home.library, rng)
        self._battery = home.battery
        self._rated_w = max(float(home.battery.charge_w), float(home.battery.discharge_w))
        self._on_minute, self._on_event = on_minute, on_event
        self._health = Health(home.health)
        self._hysteresis = Hysteresis()
        self._follower = FollowerState()
        self._before: Instant | None = None
        self._sums: MinuteSums | None = None
        self._plan = Plan(True, math.nan, self.status.why)
        self._shown_w = math.nan  # newest reading of the meter, as it is
        self._known_load_w = math.nan
        self._written_s = -math.inf
        self._held_until_s = -math.inf  # until then the device may follow our last command
        self._calm = 0
        self._stepped_back_until_s = -math.inf
        self._controlled_s = ports.clock.now().monotonic_s
        self._alerted_s = -math.inf
        self._aligned = Alignment(home.follower)
        self._aim_w = math.nan  # meter reading that the present command leads to
        self._said_s: dict[str, float] = {}  # when something that needs no action was named last

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

    def close(self, why: str) -> None:
        """Hand the battery back and record what there is of the running minute."""
        self.release(why)
        if self._sums is not None and self._sums.known_s:
            self._finish_minute(self._sums, self.ports.clock.now())
            self._sums = None

    def memory(self) -> dict[str, Any]:
        """Return what has to survive a restart, as JSON values and arrays."""
        held_utc_s = self.ports.clock.now().utc_s if self.status.in_control else None
        return {
            "ledger": self.ledger.document(),
            "control": self.outer.memory(),
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
        self.outer.restore(document.get("control"))

    def _count_unseen(self, held_utc_s: float | None) -> None:
        """Count what a killed process may have moved after its last minute, at full power, so that the budget holds."""
        if held_utc_s is None:
            return
        now = self.ports.clock.now()
        unseen_s = min(max(now.utc_s - held_utc_s, 0.0), 60.0 + self.home.device_timeout_s)
        self.ledger.move(self.ledger.local(now.utc_s).date(), self._rated_w, unseen_s)
        self._held_until_s = now.monotonic_s + self.home.device_timeout_s
        self._say(now, health.NOT_HANDED_BACK, health.WORDS[health.NOT_HANDED_BACK])

    def _read(self, now: Instant) -> tuple[str | None, MeterReading | None, BatteryReading | None]:
        """Read everything anew and name the first fault."""
        status = self.status
        try:
            meter, is_newest = self._aligned.in_order(
                self.ports.meter.read_meter(), now.monotonic_s - self.home.health.meter_stale_s
            )
        except PortError:
            return health.METER_FAILED, None, None
        if not is_newest:
            self._remark(now, health.OUT_OF_ORDER)
        try:
            battery = self.ports.sensor.read_battery()
        except PortError:
            return health.BATTERY_FAILED, meter, None
        wanted_w = self._aim_w if status.in_control and not math.isnan(self._aim_w) else None
        fault = self._health.meter_fault(meter, now, wanted_w, battery)
        fault = fault or self._health.battery_fault(battery, now)
        if fault is None and status.in_control:
            fault = self._health.obedience_fault(battery, now, of_power=self.ports.target is None)
        if fault is None:
            self._aligned.pair(meter, battery, self._follower)
            self._shown_w = meter.power_w
            status.load_w, status.battery_w, status.soc = self._aligned.load_w, battery.power_w, battery.soc
            status.meter_w = status.load_w + battery.power_w
        status.utc_s = now.utc_s
        return fault, meter, battery

    def _account(self, now: Instant, is_good: bool) -> None:
        """Add the time since the last tick to the running minute; finish the minute where another one began."""
        utc_minute = int(now.utc_s // 60)
        if self._sums is None or self._before is None:
            self._sums = MinuteSums(utc_minute, now.monotonic_s)
            self._known_load_w = self.status.load_w if is_good else math.nan
            self._decide(now)
            return
        status, passed_s = self.status, now.monotonic_s - self._before.monotonic_s
        jumped_s = (now.utc_s - self._before.utc_s) - passed_s
        if abs(jumped_s) > JUMP_S:
            self._say(now, health.CLOCK_JUMPED, f"the wall clock jumped by {jumped_s:+.0f} s")
        is_known = is_good and passed_s <= LONGEST_STEP_S
        if is_known:
            self._sums.add(passed_s, status.load_w, self._shown_w, status.battery_w, status.in_control)
        if status.in_control:
            self._controlled_s = now.monotonic_s
        self._count_moved(now, passed_s, is_known)
        if utc_minute != self._sums.utc_minute:
            self._finish_minute(self._sums, now)
            self._alert_if_idle(now)
            self._sums = MinuteSums(utc_minute, now.monotonic_s)
            self._decide(now)

    def _count_moved(self, now: Instant, passed_s: float, is_known: bool) -> None:
        """Count against the budget what the battery moves for us, also where it follows us and is not seen."""
        held_s = min(passed_s, passed_s + self._held_until_s - now.monotonic_s)
        if held_s <= 0.0:
            return
        told_w = math.nan if self.ports.target else self.status.command_w
        believed = (self.status.battery_w,) if is_known else (self.status.battery_w, told_w)
        power_w = max((abs(power_w) for power_w in believed if not math.isnan(power_w)), default=self._rated_w)
        self.ledger.move(self.ledger.local(now.utc_s).date(), power_w, held_s)

    def _finish_minute(self, sums: MinuteSums, now: Instant) -> None:
        local = self.ledger.local(sums.utc_minute * 60)
        self._known_load_w = sums.known_load_w(now.monotonic_s)
        price = self._price(local.hour * 60 + local.minute, sums.utc_minute)
        plan = (self._plan.target_w, self._plan.level_w, self._plan.decoy_w)
        record = sums.record(local.date().isoformat(), price, self.status.soc, self.status.why, *plan)
        self.outer.saw(record.meter_w)
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
        price = self._price(minute_of_day, int(now.utc_s // 60))
        try:
            self._plan = self.outer.decide(
                self._battery, self.status.soc, moved_kwh, self._known_load_w, minute_of_day, price
            )
        except Exception as error:  # a defence of any origin must not stop the tick
            self._say(now, health.POLICY_FAILED, f"{type(error).__name__}: {error}")
            self._plan = Plan(False, 0.0, health.WORDS[health.POLICY_FAILED])
        self.status.why, self.status.decoy = self._plan.why, self._plan.decoy

    def _act(self, now: Instant, meter: MeterReading, battery: BatteryReading) -> None:
        """Hold the target: find the power, clamp it, command it once."""
        load_w = self.status.load_w
        target_w = self._plan.profile_w if self._plan.hold else load_w + self._plan.profile_w
        self.status.target_w = target_w
        day = self.ledger.local(now.utc_s).date()
        self.status.moved_kwh = self.ledger.moved_kwh.get(day, 0.0)
        self.status.writes = self.ledger.writes.get(day, 0)
        if self.status.mode != LIVE or not self._may_take_control(now, day):
            return
        request_w = target_w - load_w
        if self._plan.hold and self.ports.target is None:
            seen = Seen(meter.power_w, self._aligned.battery_w, meter.at_s, now.utc_s)
            self._follower, changed_w = follower.follow(self.home.follower, self._follower, seen, target_w)
            request_w = self._follower.command_w if changed_w is None else changed_w
        on_its_way_kwh = abs(self.status.battery_w) * self.home.follower.dead_time_s * KWH_PER_WS
        moved_kwh = self.status.moved_kwh + on_its_way_kwh
        if battery.soc < float(self._battery.soc_min) - SOC_DRIFT:
            self._remark(now, health.SOC_LOW)
        elif battery.soc > float(self._battery.soc_max) + SOC_DRIFT:
            self._remark(now, health.SOC_HIGH)
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
        self._follower = self._follower._replace(command_w=power_w)
        if not (changed or stops or due):
            return
        self._follower = follower.commanded(self.home.follower, self._follower, power_w, now.monotonic_s)
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
        if power_w is not None:
            self._held_until_s = now.monotonic_s + self.home.device_timeout_s
        self.ledger.write(self.ledger.local(now.utc_s).date())
        if self.ports.target is not None:
            self.ports.target.command_meter(target_w)
        elif self.ports.battery is not None:
            self.ports.battery.command_battery(power_w)
        if power_w is None:
            self._held_until_s = min(self._held_until_s, now.monotonic_s)
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

    def _remark(self, now: Instant, name: str) -> None:
        """Name something that needs no other action, once in a while."""
        if now.monotonic_s - self._said_s.get(name, -math.inf) >= REMARK_AGAIN_S:
            self._say(now, name, health.WORDS[name])
        self._said_s[name] = now.monotonic_s

    def _say(self, now: Instant, name: str, text: str) -> None:
        self._on_event(Event(now.utc_s, name, text))
