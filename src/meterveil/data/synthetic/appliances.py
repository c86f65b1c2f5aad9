"""Models of the loads of a household: appliances that people start, and those that run by themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from meterveil.data.household import FloatArray
from meterveil.data.synthetic.routine import HOUR_S, Day
from meterveil.data.synthetic.segments import MINUTE_S, Rng, Segments, chain, join, levels, pulses, wander

DECAY = ((90.0, 0.07), (240.0, 0.05), (480.0, 0.04))
"""Seconds after its start until which a compressor draws an additional share of its power."""
SPIN_STAGES = np.array([(0.35, 60), (0.2, 30), (0.6, 80), (0.8, 60), (1.0, 90), (0.9, 60), (0.1, 20)])
"""Share of the spin power and seconds of each stage; the first stages balance the load."""


def pause(rng: Rng, low_s: float, high_s: float, watts: float = 0.0) -> Segments:
    """Hold a power for a random time."""
    return levels([rng.uniform(low_s, high_s)], [watts])


def _lognormal(rng: Rng, median: float, spread: float, low: float, high: float) -> float:
    return float(np.clip(median * np.exp(spread * rng.standard_normal()), low, high))


class Drawn:
    """Appliance with parameters that are drawn uniformly from `RANGES`, in the order of its fields."""

    RANGES: ClassVar[tuple[tuple[float, float], ...]]

    @classmethod
    def draw(cls, rng: Rng) -> Self:
        """Draw the appliance of one household."""
        return cls(*(rng.uniform(low, high) for low, high in cls.RANGES))


@dataclass(frozen=True)
class Kettle(Drawn):
    """Kettle: one flat block, longer for more water."""

    watts: float
    fill_s: float
    RANGES = ((2350, 2950), (95, 150))

    def use(self, rng: Rng) -> Segments:
        boils = [self.boil(rng, self.fill_s)]
        if rng.random() < 0.06:
            boils += [pause(rng, 15, 90), self.boil(rng, 0.5 * self.fill_s)]
        return chain(boils)

    def boil(self, rng: Rng, median_s: float) -> Segments:
        """Boil once; the mains voltage moves the power by about a percent."""
        duration_s = _lognormal(rng, median_s, 0.35, 40, 290)
        return levels([duration_s], [self.watts * (1 + 0.012 * rng.standard_normal())])


@dataclass(frozen=True)
class Microwave(Drawn):
    """Microwave oven: full power, or the magnetron pulsed at a lower setting."""

    watts: float
    idle_w: float
    median_s: float
    RANGES = ((1150, 1700), (25, 60), (50, 85))

    def use(self, rng: Rng) -> Segments:
        stages = [self.heat(rng, self.median_s)]
        if rng.random() < 0.2:
            stages += [pause(rng, 10, 60, 0.5 * self.idle_w), self.heat(rng, 0.7 * self.median_s)]
        return chain(stages)

    def heat(self, rng: Rng, median_s: float) -> Segments:
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
    def draw(cls, rng: Rng) -> Toaster:
        """Draw the toaster of one household, for two slices or four."""
        watts = rng.uniform(800, 1000) if rng.random() < 0.5 else rng.uniform(1450, 1900)
        return cls(watts, rng.uniform(110, 190))

    def use(self, rng: Rng) -> Segments:
        rounds = [self.round(rng)]
        if rng.random() < 0.3:
            rounds += [pause(rng, 10, 50), self.round(rng)]
        return chain(rounds)

    def round(self, rng: Rng) -> Segments:
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
    def draw(cls, rng: Rng) -> WashingMachine:
        heater_w, motor_w, spin_w = rng.uniform(1800, 2100), rng.uniform(90, 190), rng.uniform(280, 560)
        return cls(heater_w, motor_w, spin_w, rng.uniform(16, 42), int(rng.integers(2, 4)))

    def use(self, rng: Rng) -> Segments:
        """Run one programme; every fifth washes for longer."""
        fill = levels([rng.uniform(60, 240)], [rng.uniform(6, 14)])
        thorough = 1.9 if rng.random() < 0.2 else 1.0
        wash = self._tumble(rng, 60 * self.wash_min * thorough * rng.uniform(0.85, 1.15))
        rinses = [part for _ in range(self.rinses) for part in self._rinse(rng)]
        return chain([fill, self.heating(rng), wash, *rinses, self._spin(rng, 1.0), levels([90.0], [4.0])])

    def heating(self, rng: Rng) -> Segments:
        """Heat to 30, 40 or 60 degrees, with a dip where water is topped up."""
        duration_s = 60 * rng.choice([7.0, 13.0, 25.0], p=[0.35, 0.45, 0.2]) * rng.uniform(0.85, 1.2)
        heater_w = self.heater_w * (1 + 0.01 * rng.standard_normal())
        top_up_s, dip_s = rng.uniform(0.1, 0.5) * duration_s, rng.uniform(15, 100)
        heater = levels([top_up_s, dip_s, duration_s - top_up_s], [heater_w, 0.0, heater_w])
        return join([heater, self._tumble(rng, heater.end_s)])

    def _tumble(self, rng: Rng, duration_s: float) -> Segments:
        turns = pulses(rng, duration_s, 14.0, 8.0, self.motor_w, 6.0)
        return Segments(turns.start_s, turns.stop_s, turns.watts * rng.uniform(0.6, 1.4, turns.watts.size))

    def _rinse(self, rng: Rng) -> list[Segments]:
        drain, fill = pause(rng, 50, 100, 30.0), pause(rng, 50, 90, 8.0)
        return [drain, self._spin(rng, 0.5), fill, self._tumble(rng, rng.uniform(180, 360))]

    def _spin(self, rng: Rng, strength: float) -> Segments:
        share, seconds = SPIN_STAGES.T
        watts = share * self.spin_w * rng.uniform(0.85, 1.15, share.size)
        return levels(strength * seconds * rng.uniform(0.8, 1.3, share.size), watts)


@dataclass(frozen=True)
class Dishwasher:
    """Dishwasher: pump, heat, pump, heat again to rinse; stages hardly vary between days."""

    heater_w: float
    pump_w: float
    heats_min: tuple[float, ...]
    pumps_min: tuple[float, ...]

    @classmethod
    def draw(cls, rng: Rng) -> Dishwasher:
        """Draw the dishwasher of one household; one in four heats three times."""
        heats = 3 if rng.random() < 0.25 else 2
        heater_w, pump_w = rng.uniform(1800, 2250), rng.uniform(65, 130)
        heats_min = tuple(rng.uniform(9, 17, heats))
        return cls(heater_w, pump_w, heats_min, (rng.uniform(5, 16), *rng.uniform(22, 40, heats - 1)))

    def use(self, rng: Rng) -> Segments:
        """Run one programme; colder water takes longer to heat."""
        parts = [pause(rng, 30, 90, 8.0)]
        for pump_min, heat_min in zip(self.pumps_min, self.heats_min, strict=True):
            parts += [self._pump(rng, 60 * pump_min * rng.normal(1, 0.04)), self._drain(rng)]
            parts.append(self.heating(rng, 60 * heat_min * rng.uniform(0.9, 1.12)))
        parts += [self._pump(rng, rng.uniform(60, 240)), self._drain(rng), pause(rng, 300, 900, 3.0)]
        return chain(parts)

    def heating(self, rng: Rng, duration_s: float) -> Segments:
        """Heat while the pump runs."""
        heater_w = self.heater_w * (1 + 0.01 * rng.standard_normal())
        return join([levels([duration_s], [heater_w]), self._pump(rng, duration_s)])

    def _pump(self, rng: Rng, duration_s: float) -> Segments:
        return wander(rng, duration_s, self.pump_w, 0.03, 15)

    def _drain(self, rng: Rng) -> Segments:
        """Pump the water out, wait, and take in fresh water."""
        return levels(rng.uniform([40, 20, 30], [80, 90, 70]), [25.0, 2.0, 8.0])


@dataclass(frozen=True)
class Thermostatic(Drawn):
    """Heater with a thermostat: an oven, an iron, a hob; the ranges are those of ovens."""

    watts: float
    hold_w: float
    preheat_s: float
    on_s: float
    off_s: float
    median_s: float
    RANGES = ((1900, 2500), (30, 60), (350, 700), (30, 80), (90, 200), (1200, 2200))

    def use(self, rng: Rng) -> Segments:
        watts = self.watts * (1 + 0.01 * rng.standard_normal())
        preheat_s = self.preheat_s * rng.uniform(0.7, 1.3)
        hold_s = _lognormal(rng, self.median_s, 0.4, 60, 6000)
        heater = chain([levels([preheat_s], [watts]), pulses(rng, hold_s, self.off_s, self.on_s, 0.0, watts)])
        return join([heater, levels([heater.end_s], [self.hold_w])])


def run_motor(watts: float, median_s: float, rng: Rng) -> Segments:
    """Run an appliance without a thermostat once: a hair dryer, a vacuum cleaner."""
    return wander(rng, _lognormal(rng, median_s, 0.5, 30, 2700), watts, 0.03, 15)


@dataclass(frozen=True)
class Fridge:
    """Fridge-freezer with compressor cycles, longer in a busy kitchen, and a defrost heater."""

    watts: float
    on_s: float
    off_s: float
    irregular: float
    defrost_cycles: int = 0
    """Compressor cycles between two defrosts; 0 for a model that never defrosts."""
    defrost_w: float = 0.0
    idle_w: float = 0.0

    @classmethod
    def draw(cls, rng: Rng) -> Fridge:
        watts, cycle_s, duty = rng.uniform(80, 160), rng.uniform(2000, 3400), rng.uniform(0.30, 0.40)
        return cls(
            watts=watts,
            on_s=duty * cycle_s,
            off_s=(1 - duty) * cycle_s,
            irregular=rng.choice([0.04, 0.12, 0.25]),
            defrost_cycles=int(rng.integers(14, 45)) if rng.random() < 0.7 else 0,
            defrost_w=rng.uniform(220, 420),
            idle_w=rng.choice([0.0, 3.0, 8.0]),
        )

    def run(self, rng: Rng, busy: FloatArray) -> Segments:
        """Draw the cycles of the whole trace; `busy` (minute,) is 1 while people are home and awake.

        Each cycle draws the same number of values, so a longer trace begins with the shorter one.
        """
        count = int(busy.size * MINUTE_S / (0.5 * (self.on_s + self.off_s))) + 2
        draws = rng.standard_normal((count, 5))
        defrost = np.zeros(count, dtype=bool)
        if self.defrost_cycles:
            defrost = np.arange(count) % self.defrost_cycles == self.defrost_cycles // 2
        on_s = self.on_s * np.exp(self.irregular * draws[:, 0]) * (1 + 0.7 * np.roll(defrost, 1))
        on_s *= np.where(draws[:, 2] > 1.9 - 4 * self.irregular, 1.8, 1.0)
        off_s = self.off_s * np.exp(0.7 * self.irregular * draws[:, 1])
        defrost_s = np.where(defrost, 660 * np.exp(0.15 * draws[:, 3]), 0.0)
        start_s, on_s = _place_cycles(on_s, off_s + defrost_s, busy)
        draws, defrost_s = draws[: start_s.size], defrost_s[: start_s.size]
        compressor = self._compressor(start_s, start_s + on_s, draws)
        heater = Segments.of(start_s + on_s, start_s + on_s + defrost_s, self.defrost_w)
        return join([*compressor, heater, levels([busy.size * MINUTE_S], [self.idle_w])])

    def _compressor(self, start_s: FloatArray, stop_s: FloatArray, draws: FloatArray) -> list[Segments]:
        """Add the slow decay of a starting compressor and the surge that a 6 s meter sometimes catches."""
        watts = self.watts * (1 + 0.01 * draws[:, 1])
        surge_w = np.where(draws[:, 4] > 0.5, watts * (1 + 6 * np.abs(draws[:, 3])), 0.0)
        parts = [Segments.of(start_s, stop_s, watts), Segments.of(start_s, start_s + 6.0, surge_w)]
        for after_s, share in DECAY:
            parts.append(Segments.of(start_s, np.minimum(start_s + after_s, stop_s), share * watts))
        return parts


def _place_cycles(on_s: FloatArray, off_s: FloatArray, busy: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return start and length of the runs; the compressor runs longer while people are home."""
    starts, runs, now_s = [], [], 0.0
    for run_s, rest_s in zip(on_s.tolist(), off_s.tolist(), strict=True):
        minute = int(now_s / MINUTE_S)
        if minute >= busy.size:
            break
        starts.append(now_s)
        runs.append(run_s * (1 + 0.25 * busy[minute]))
        now_s += runs[-1] + rest_s * (1 - 0.12 * busy[minute])
    return np.array(starts), np.array(runs)


@dataclass(frozen=True)
class Lamps:
    """Lamps of a household, on while people are home and it is dark."""

    watts: FloatArray  # (lamp,)
    stay_h: FloatArray  # (lamp,) median stay in the room
    per_hour: FloatArray  # (lamp,) visits per hour

    @classmethod
    def draw(cls, rng: Rng, rooms: int, scale: float = 1.0) -> Lamps:
        """Draw the lamps of a household: the first half light living rooms, the rest passages."""
        lived_in = np.arange(rooms) < (rooms + 1) // 2
        watts = scale * np.where(lived_in, rng.uniform(40, 110, rooms), rng.uniform(9, 45, rooms))
        stay_h = np.where(lived_in, rng.uniform(0.7, 2.2, rooms), rng.uniform(0.05, 0.2, rooms))
        per_hour = np.where(lived_in, rng.uniform(0.35, 0.8, rooms), rng.uniform(0.3, 0.9, rooms))
        return cls(watts, stay_h, per_hour)

    def day(self, rng: Rng, day: Day) -> Segments:
        """Switch lamps before dawn, after dusk and, rarely, in daylight."""
        windows = (
            (day.wake_h, min(day.dawn_h, day.leave_h), 1.0),
            (day.dawn_h, min(day.dusk_h, day.leave_h), 0.12),
            (max(day.dusk_h, day.return_h, day.wake_h), day.sleep_h, 1.0),
        )
        parts = []
        for from_h, to_h, rate in windows:
            if day.away or to_h <= from_h:
                continue
            for watts, stay_h, per_hour in zip(self.watts, self.stay_h, self.per_hour, strict=True):
                visits = rng.poisson(rate * per_hour * (to_h - from_h) + 0.3 * rate)
                start_h = np.sort(rng.uniform(from_h, to_h, visits))
                stop_h = np.minimum(start_h + stay_h * np.exp(0.6 * rng.standard_normal(visits)), to_h)
                stop_h = np.minimum(stop_h, np.append(start_h[1:], to_h))
                parts.append(Segments.of(day.at_s(start_h), day.at_s(stop_h), watts))
        return join(parts)


@dataclass(frozen=True)
class Screens(Drawn):
    """Television in the evening and computer in between; both vary with their content."""

    tv_w: float
    computer_w: float
    idle_w: float
    evening_h: float
    RANGES = ((55, 140), (40, 130), (2, 12), (1.5, 3.5))

    def day(self, rng: Rng, day: Day) -> Segments:
        """Draw the sessions of a day, and standby power day and night."""
        parts = [levels([day.length_s], [self.idle_w]).delayed(day.start_s)]
        if day.away:
            return join(parts)
        sofa_h = day.sleep_h - self.evening_h * rng.uniform(0.6, 1.4)
        parts.append(self._session(rng, day, max(sofa_h, day.return_h), day.sleep_h - 0.3, self.tv_w))
        for _ in range(rng.poisson(1.6 if day.weekend else 0.9)):
            start_h = rng.uniform(day.wake_h, day.sleep_h - 1)
            if day.home(np.array(start_h)):
                stop_h = min(start_h + rng.lognormal(0.0, 0.6), day.sleep_h)
                parts.append(self._session(rng, day, start_h, stop_h, self.computer_w))
        return join(parts)

    def _session(self, rng: Rng, day: Day, from_h: float, to_h: float, watts: float) -> Segments:
        start_s, stop_s = day.second(from_h), day.second(to_h)
        if stop_s <= start_s:
            return join([])
        return wander(rng, stop_s - start_s, watts, 0.06, 40).delayed(start_s)


def standby_day(watts: float, charger_w: float, rng: Rng, day: Day) -> Segments:
    """Draw the standby load of a day, and chargers from bedtime on."""
    base = wander(rng, day.length_s, watts, 0.02, 900).delayed(day.start_s)
    if day.away:
        return base
    charge = levels([rng.uniform(1, 3) * HOUR_S], [charger_w])
    return join([base, charge.delayed(day.second(day.sleep_h))])


def heating_day(watts: float, rng: Rng, day: Day) -> Segments:
    """Run the heating pump in the morning and the evening, more in the cold season."""
    parts = []
    for from_h, to_h in ((day.wake_h - 0.7, day.wake_h + 1.2), (day.dinner_h - 1.5, day.sleep_h - 0.7)):
        need = 0.0 if day.away else day.cold * rng.uniform(0.6, 1.2)
        start_h = from_h
        while start_h < to_h and need > 0.1:
            spell_h = rng.uniform(0.2, 0.6) * (0.3 + need)
            parts.append(levels([spell_h * HOUR_S], [watts]).delayed(day.second(start_h)))
            start_h += spell_h + rng.uniform(0.2, 0.6)
    return join(parts)
