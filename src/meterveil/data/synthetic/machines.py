"""Models of appliances that people start, and the shipped signatures drawn from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from meterveil.core.decoys import Library
from meterveil.data.household import FloatArray
from meterveil.data.synthetic.segments import (
    MINUTE_S,
    Segments,
    chain,
    join,
    levels,
    minute_means,
    pulses,
    wander,
)  # fmt: skip


class Machine(Protocol):
    """Appliance that people switch on."""

    def use(self, rng: np.random.Generator) -> Segments:
        """Return the power of one use."""
        ...


def _lognormal(rng: np.random.Generator, median: float, spread: float, low: float, high: float) -> float:
    return float(np.clip(median * np.exp(spread * rng.standard_normal()), low, high))


@dataclass(frozen=True)
class Kettle:
    """Kettle: one flat block, longer for more water."""

    watts: float
    fill_s: float

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Kettle:
        """Draw one of them."""
        return cls(rng.uniform(2350, 2950), rng.uniform(95, 150))

    def use(self, rng: np.random.Generator) -> Segments:
        """Boil once; now and then again for what was forgotten."""
        boils = [self.boil(rng, self.fill_s)]
        if rng.random() < 0.06:
            boils += [levels([rng.uniform(15, 90)], [0.0]), self.boil(rng, 0.5 * self.fill_s)]
        return chain(boils)

    def boil(self, rng: np.random.Generator, median_s: float) -> Segments:
        """Boil about so long; the mains voltage moves the power by a percent or so."""
        duration_s = _lognormal(rng, median_s, 0.35, 40, 290)
        return levels([duration_s], [self.watts * (1 + 0.012 * rng.standard_normal())])


@dataclass(frozen=True)
class Microwave:
    """Microwave oven: full power, or the magnetron pulsed at a lower setting."""

    watts: float
    idle_w: float
    median_s: float

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Microwave:
        """Draw one of them."""
        return cls(rng.uniform(1150, 1700), rng.uniform(25, 60), rng.uniform(50, 85))

    def use(self, rng: np.random.Generator) -> Segments:
        """Heat once, or stir and heat again."""
        stages = [self.heat(rng, self.median_s)]
        if rng.random() < 0.2:
            pause = levels([rng.uniform(10, 60)], [0.5 * self.idle_w])
            stages += [pause, self.heat(rng, 0.7 * self.median_s)]
        return chain(stages)

    def heat(self, rng: np.random.Generator, median_s: float) -> Segments:
        """Run one stage; a warm magnetron draws a little less."""
        duration_s = _lognormal(rng, median_s, 0.65, 15, 480)
        if rng.random() < 0.22:
            on_share, period_s = rng.uniform(0.25, 0.75), rng.uniform(20, 32)
            on_s, off_s = on_share * period_s, (1 - on_share) * period_s
            return pulses(rng, 1.3 * duration_s, on_s, off_s, self.watts, self.idle_w)
        return wander(rng, duration_s, self.watts * (1 - 0.03 * min(duration_s / 300, 1)), 0.01, 20)


@dataclass(frozen=True)
class Toaster:
    """Toaster with a usual time, sometimes two rounds."""

    watts: float
    round_s: float

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Toaster:
        """Draw the toaster of one household: two slices or four."""
        watts = rng.uniform(800, 1000) if rng.random() < 0.5 else rng.uniform(1450, 1900)
        return cls(watts, rng.uniform(110, 190))

    def use(self, rng: np.random.Generator) -> Segments:
        """Toast one round, or two."""
        rounds = [self.round(rng)]
        if rng.random() < 0.3:
            rounds += [levels([rng.uniform(10, 50)], [0.0]), self.round(rng)]
        return chain(rounds)

    def round(self, rng: np.random.Generator) -> Segments:
        """Toast one round; a cold filament draws more."""
        duration_s = self.round_s * rng.uniform(0.85, 1.15)
        return levels([6.0, duration_s - 6.0], [1.05 * self.watts, self.watts * rng.normal(1.0, 0.01)])


@dataclass(frozen=True)
class WashingMachine:
    """Washing machine: fill, heat while the drum turns, tumble, rinse with short spins, spin."""

    heater_w: float
    motor_w: float
    spin_w: float
    wash_min: float
    rinses: int

    @classmethod
    def draw(cls, rng: np.random.Generator) -> WashingMachine:
        """Draw one of them."""
        ranges = ((1800, 2100), (90, 190), (280, 560), (16, 42))
        heater_w, motor_w, spin_w, wash_min = (rng.uniform(low, high) for low, high in ranges)
        return cls(heater_w, motor_w, spin_w, wash_min, int(rng.integers(2, 4)))

    def use(self, rng: np.random.Generator) -> Segments:
        """Run one programme; every fifth washes for longer."""
        fill = levels([rng.uniform(60, 240)], [rng.uniform(6, 14)])
        thorough = 1.9 if rng.random() < 0.2 else 1.0
        wash = self.tumble(rng, 60 * self.wash_min * thorough * rng.uniform(0.85, 1.15))
        rinses = [part for _ in range(self.rinses) for part in self.rinse(rng)]
        return chain([fill, self.heating(rng), wash, *rinses, self.spin(rng, 1.0), levels([90.0], [4.0])])

    def heating(self, rng: np.random.Generator) -> Segments:
        """Heat to 30, 40 or 60 degrees, with a dip where water is topped up."""
        duration_s = 60 * rng.choice([7.0, 13.0, 25.0], p=[0.35, 0.45, 0.2]) * rng.uniform(0.85, 1.2)
        heater_w = self.heater_w * (1 + 0.01 * rng.standard_normal())
        top_up_s, dip_s = rng.uniform(0.1, 0.5) * duration_s, rng.uniform(15, 100)
        heater = levels([top_up_s, dip_s, duration_s - top_up_s], [heater_w, 0.0, heater_w])
        return join([heater, self.tumble(rng, heater.end_s)])

    def tumble(self, rng: np.random.Generator, duration_s: float) -> Segments:
        """Turn the drum to and fro: each turn loads the motor differently."""
        turns = pulses(rng, duration_s, 14.0, 8.0, self.motor_w, 6.0)
        return Segments(turns.start_s, turns.stop_s, turns.watts * rng.uniform(0.6, 1.4, turns.watts.size))

    def rinse(self, rng: np.random.Generator) -> list[Segments]:
        """Drain, spin briefly, fill and tumble."""
        drain = levels([rng.uniform(50, 100)], [30.0])
        fill = levels([rng.uniform(50, 90)], [8.0])
        return [drain, self.spin(rng, 0.5), fill, self.tumble(rng, rng.uniform(180, 360))]

    def spin(self, rng: np.random.Generator, strength: float) -> Segments:
        """Spin up in stages; the first attempts balance the load."""
        stages = np.array([0.35, 0.2, 0.6, 0.8, 1.0, 0.9, 0.1]) * self.spin_w * rng.uniform(0.85, 1.15, 7)
        return levels(strength * np.array([60, 30, 80, 60, 90, 60, 20]) * rng.uniform(0.8, 1.3, 7), stages)


@dataclass(frozen=True)
class Dishwasher:
    """Dishwasher: pump, heat, pump, heat again to rinse; stages hardly vary between days."""

    heater_w: float
    pump_w: float
    heats_min: tuple[float, ...]
    pumps_min: tuple[float, ...]

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Dishwasher:
        """Draw the dishwasher of one household; one in four heats three times."""
        heats = 3 if rng.random() < 0.25 else 2
        return cls(
            rng.uniform(1800, 2250),
            rng.uniform(65, 130),
            tuple(rng.uniform(9, 17, heats)),
            (rng.uniform(5, 16), *rng.uniform(22, 40, heats - 1)),
        )

    def use(self, rng: np.random.Generator) -> Segments:
        """Run one programme; colder water takes longer to heat."""
        parts = [levels([rng.uniform(30, 90)], [8.0])]
        for pump_min, heat_min in zip(self.pumps_min, self.heats_min, strict=True):
            parts += [self.pump(rng, 60 * pump_min * rng.normal(1, 0.04)), self.drain(rng)]
            parts.append(self.heating(rng, 60 * heat_min * rng.uniform(0.9, 1.12)))
        parts += [self.pump(rng, rng.uniform(60, 240)), self.drain(rng)]
        return chain([*parts, levels([rng.uniform(300, 900)], [3.0])])

    def pump(self, rng: np.random.Generator, duration_s: float) -> Segments:
        """Circulate the water."""
        return wander(rng, duration_s, self.pump_w, 0.03, 15)

    def drain(self, rng: np.random.Generator) -> Segments:
        """Pump the water out, wait, and take in fresh water."""
        return levels(rng.uniform([40, 20, 30], [80, 90, 70]), [25.0, 2.0, 8.0])

    def heating(self, rng: np.random.Generator, duration_s: float) -> Segments:
        """Heat while the pump runs."""
        heater_w = self.heater_w * (1 + 0.01 * rng.standard_normal())
        return join([levels([duration_s], [heater_w]), self.pump(rng, duration_s)])


@dataclass(frozen=True)
class Thermostatic:
    """Heater with a thermostat: an oven, an iron, a hob."""

    watts: float
    hold_w: float
    preheat_s: float
    on_s: float
    off_s: float
    median_s: float

    def use(self, rng: np.random.Generator) -> Segments:
        """Heat up and hold for as long as the dish takes."""
        watts = self.watts * (1 + 0.01 * rng.standard_normal())
        preheat_s = self.preheat_s * rng.uniform(0.7, 1.3)
        hold_s = _lognormal(rng, self.median_s, 0.4, 60, 6000)
        heater = chain([levels([preheat_s], [watts]), pulses(rng, hold_s, self.off_s, self.on_s, 0.0, watts)])
        return join([heater, levels([heater.end_s], [self.hold_w])])


def oven(rng: np.random.Generator) -> Thermostatic:
    """Draw the oven of one household."""
    ranges = ((1900, 2500), (30, 60), (350, 700), (30, 80), (90, 200), (1200, 2200))
    return Thermostatic(*(rng.uniform(low, high) for low, high in ranges))


@dataclass(frozen=True)
class Plugged:
    """Appliance without a thermostat: a hair dryer, a vacuum cleaner."""

    watts: float
    median_s: float

    def use(self, rng: np.random.Generator) -> Segments:
        """Run it once."""
        return wander(rng, _lognormal(rng, self.median_s, 0.5, 30, 2700), self.watts, 0.03, 15)


SHORTEST_MIN, LONGEST_MIN = 5, 35
MEDIAN_RANGE_W = (300.0, 2500.0)
TYPICAL_LONGEST_MIN, TYPICAL_LOWEST_W = 10, 1500.0
PER_APPLIANCE = 2
SHIPPED_SEED = 0


def decoy_library() -> Library:
    """Return the library that ships with the package: always the same ten signatures."""
    return Library.of(decoy_signatures(np.random.default_rng(SHIPPED_SEED)), source="synthetic")


def decoy_signatures(rng: np.random.Generator) -> list[tuple[str, FloatArray]]:
    """Draw ten (appliance, watts per minute) pairs: two units each of five appliances, one use per unit.

    A use that the paper's filter would refuse (5 to 35 minutes, median 300 to 2,500 W) is drawn again, and so
    is a library of which most are not 5 to 10 minutes long or not between 1,500 and 2,500 W.
    """
    while True:
        drawn = [
            (name, _signature(rng, draw)) for name, draw in _LONG_USES.items() for _ in range(PER_APPLIANCE)
        ]
        short = np.mean([watts.size <= TYPICAL_LONGEST_MIN for _, watts in drawn])
        strong = np.mean([np.median(watts) >= TYPICAL_LOWEST_W for _, watts in drawn])
        if min(short, strong) > 0.5:
            return drawn


def suits_library(watts: FloatArray) -> bool:
    """Apply the paper's filter of length and median power to one use."""
    low_w, high_w = MEDIAN_RANGE_W
    return SHORTEST_MIN <= watts.size <= LONGEST_MIN and bool(low_w <= np.median(watts) <= high_w)


def _signature(rng: np.random.Generator, draw: Callable[[np.random.Generator], Segments]) -> FloatArray:
    while True:
        use = draw(rng).delayed(rng.uniform(0, MINUTE_S))
        watts = np.round(minute_means(use, int(np.ceil(use.end_s / MINUTE_S))), 1)
        if suits_library(watts):
            return watts


def _long_boil(rng: np.random.Generator) -> Segments:
    """Boil a full kettle, or twice in a row: an ordinary boil is too short for the library."""
    kettle = Kettle.draw(rng)
    if rng.random() < 0.5:
        return kettle.boil(rng, 270.0)
    pause = levels([rng.uniform(5, 25)], [0.0])
    return chain([kettle.boil(rng, 160.0), pause, kettle.boil(rng, 160.0)])


def _two_rounds(rng: np.random.Generator) -> Segments:
    toaster = Toaster.draw(rng)
    return chain([toaster.round(rng), levels([rng.uniform(5, 25)], [0.0]), toaster.round(rng)])


def _dishwashing(rng: np.random.Generator) -> Segments:
    dishwasher = Dishwasher.draw(rng)
    return dishwasher.heating(rng, MINUTE_S * min(dishwasher.heats_min))


_LONG_USES: dict[str, Callable[[np.random.Generator], Segments]] = {
    "kettle": _long_boil,
    "toaster": _two_rounds,
    "microwave": lambda rng: Microwave.draw(rng).heat(rng, 360.0),
    "washing_machine": lambda rng: WashingMachine.draw(rng).heating(rng),
    "dishwasher": _dishwashing,
}
