"""Small simulated homes for the tests of live control."""

import json
import math

import numpy as np

from meterveil.core.battery import Battery
from meterveil.core.decoys import Library
from meterveil.core.executor import hold_meter
from meterveil.core.tariff import PAPER_TARIFF
from meterveil.live.controller import Controller, Home
from meterveil.live.ports import PortError, Ports
from meterveil.live.simulated import ManualClock, Plant, SimulatedHouse

LIBRARY = Library.of([("kettle", [2000.0, 2000.0, 500.0])], "test")
TARGET_W = 500.0


class Level:
    """Policy that holds the meter at one level."""

    def __init__(self, level_w=TARGET_W):
        self.level_w = level_w

    def initial(self, batch):
        return np.zeros(batch)

    def decide(self, view, memory):
        return hold_meter(view.library, np.full(len(view.load_w), self.level_w)), memory + 1.0


def day_load(seconds=7200):
    """Base load with a kettle every ten minutes."""
    load_w = np.full(seconds, 300.0)
    for start in range(300, seconds, 600):
        load_w[start : start + 150] += 2500.0
    return load_w


class World:
    """Simulated house, controller and everything that it told."""

    def __init__(self, live=True, plant=None, policy=None, battery=None, load_w=None, soc=0.5, utc_s=None, **home):
        self.clock = ManualClock() if utc_s is None else ManualClock(utc_s=utc_s)
        self.house = SimulatedHouse(day_load() if load_w is None else load_w, self.clock, plant or Plant(), soc=soc)
        self.meter = Faulty(self.house)
        self.minutes, self.events, self.seconds = [], [], []
        self.house.on_second = lambda load_w, power_w: self.seconds.append((load_w, power_w))
        self.home = Home(
            policy or Level(), battery or Battery(), LIBRARY, PAPER_TARIFF, "Europe/London", may_command=live, **home
        )
        self.start()

    def start(self):
        """Begin with a new controller, as a restarted process does."""
        target = self.meter if self.house.plant.own_loop else None
        ports = Ports(self.clock, self.meter, self.meter, self.meter, target)
        self.controller = Controller(
            self.home, ports, np.random.default_rng(0), self.minutes.append, self.events.append
        )

    def run(self, seconds, step_s=1.0):
        for _ in range(int(seconds / step_s)):
            self.clock.move(step_s)
            self.controller.tick()
        return self.controller.status

    @property
    def named(self):
        return [event.name for event in self.events]


class Faulty:
    """Ports of a simulated house between which a test puts a fault."""

    def __init__(self, house):
        self.house = house
        self.meter_fault = self.battery_fault = self.command_fault = None
        self.commanded = []

    def read_meter(self):
        if self.meter_fault is fails:
            fails()
        return self.meter_fault(self.house.read_meter()) if self.meter_fault else self.house.read_meter()

    def read_battery(self):
        return self.battery_fault(self.house.read_battery()) if self.battery_fault else self.house.read_battery()

    def command_battery(self, power_w):
        self._command(power_w, self.house.command_battery)

    def command_meter(self, target_w):
        self._command(target_w, self.house.command_meter)

    def _command(self, value, deliver):
        if self.command_fault:
            self.command_fault(value)
        else:
            self.commanded.append(value)
            deliver(value)


def as_stored(memory):
    """Return a controller's memory as it comes back from the disk."""
    return json.loads(json.dumps(memory, default=np.ndarray.tolist))


def fails(*_):
    raise PortError("the test says no")


def frozen(reading):
    """Repeat one value with fresh stamps."""
    return lambda now: now._replace(power_w=reading.power_w)


def not_a_number(reading):
    return reading._replace(power_w=math.nan)
