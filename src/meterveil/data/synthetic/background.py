"""Models of background loads: fridge, lamps, screens, standby and heating."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meterveil.data.household import FloatArray
from meterveil.data.synthetic.routine import HOUR_S, Day
from meterveil.data.synthetic.segments import MINUTE_S, Segments, join, levels, segments, wander

_DECAY_S = np.array([90.0, 240.0, 480.0])
_DECAY_SHARE = np.array([0.07, 0.05, 0.04])


@dataclass(frozen=True)
class Fridge:
    """Fridge-freezer with compressor cycles, longer in a busy kitchen, and a defrost heater."""

    watts: float
    on_s: float
    off_s: float
    irregular: float
    defrost_cycles: int
    """Compressor cycles between two defrosts; 0 for a model that never defrosts."""
    defrost_w: float
    idle_w: float

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Fridge:
        """Draw the fridge-freezer of one household."""
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

    def run(self, rng: np.random.Generator, busy: FloatArray) -> Segments:
        """Draw the cycles of the whole trace; `busy` (minute,) is 1 while people are about.

        Each cycle draws the same number of values, so a longer trace begins with the shorter one.
        """
        count = int(busy.size * MINUTE_S / (0.5 * (self.on_s + self.off_s))) + 2
        draws = rng.standard_normal((count, 5))
        defrost = np.zeros(count, dtype=bool)
        if self.defrost_cycles:
            defrost = np.arange(count) % self.defrost_cycles == self.defrost_cycles // 2
        recovery = np.roll(defrost, 1)
        on_s = self.on_s * np.exp(self.irregular * draws[:, 0]) * (1 + 0.7 * recovery)
        on_s *= np.where(draws[:, 2] > 1.9 - 4 * self.irregular, 1.8, 1.0)
        off_s = self.off_s * np.exp(0.7 * self.irregular * draws[:, 1])
        defrost_s = np.where(defrost, 660 * np.exp(0.15 * draws[:, 3]), 0.0)
        start_s, on_s = _warm_kitchen(on_s, off_s + defrost_s, busy)
        draws, defrost_s = draws[: start_s.size], defrost_s[: start_s.size]
        compressor = self._compressor(start_s, start_s + on_s, draws)
        heater = segments(start_s + on_s, start_s + on_s + defrost_s, self.defrost_w)
        return join([compressor, heater, levels([busy.size * MINUTE_S], [self.idle_w])])

    def _compressor(self, start_s: FloatArray, stop_s: FloatArray, draws: FloatArray) -> Segments:
        """Add the slow decay of a starting compressor and the surge that a 6 s meter sometimes catches."""
        watts = self.watts * (1 + 0.01 * draws[:, 1])
        surge_w = np.where(draws[:, 4] > 0.5, watts * (1 + 6 * np.abs(draws[:, 3])), 0.0)
        decays = [
            segments(start_s, np.minimum(start_s + after_s, stop_s), share * watts)
            for after_s, share in zip(_DECAY_S, _DECAY_SHARE, strict=True)
        ]
        return join([segments(start_s, stop_s, watts), segments(start_s, start_s + 6.0, surge_w), *decays])


def _warm_kitchen(on_s: FloatArray, off_s: FloatArray, busy: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Place the cycles one after another; the compressor runs longer while people are about."""
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
    def draw(cls, rng: np.random.Generator, rooms: int, scale: float = 1.0) -> Lamps:
        """Draw the lamps of a household: the first half light living rooms, the rest passages."""
        lived_in = np.arange(rooms) < (rooms + 1) // 2
        watts = scale * np.where(lived_in, rng.uniform(40, 110, rooms), rng.uniform(9, 45, rooms))
        stay_h = np.where(lived_in, rng.uniform(0.7, 2.2, rooms), rng.uniform(0.05, 0.2, rooms))
        per_hour = np.where(lived_in, rng.uniform(0.35, 0.8, rooms), rng.uniform(0.3, 0.9, rooms))
        return cls(watts, stay_h, per_hour)

    def day(self, rng: np.random.Generator, day: Day) -> Segments:
        """Switch lamps before dawn, after dusk and, rarely, on a dull day."""
        evening = (max(day.dusk_h, day.return_h, day.wake_h), day.sleep_h, 1.0)
        morning = (day.wake_h, min(day.dawn_h, day.leave_h), 1.0)
        noon = (day.dawn_h, min(day.dusk_h, day.leave_h), 0.12)
        windows = [] if day.away else [window for window in (morning, noon, evening) if window[1] > window[0]]
        parts = []
        for from_h, to_h, rate in windows:
            for watts, stay_h, per_hour in zip(self.watts, self.stay_h, self.per_hour, strict=True):
                visits = rng.poisson(rate * per_hour * (to_h - from_h) + 0.3 * rate)
                start_h = np.sort(rng.uniform(from_h, to_h, visits))
                stop_h = np.minimum(start_h + stay_h * np.exp(0.6 * rng.standard_normal(visits)), to_h)
                stop_h = np.minimum(stop_h, np.append(start_h[1:], to_h))
                parts.append(segments(day.at_s(start_h), day.at_s(stop_h), watts))
        return join(parts)


@dataclass(frozen=True)
class Screens:
    """Television in the evening and computer in between; both vary with their content."""

    tv_w: float
    computer_w: float
    idle_w: float
    evening_h: float

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Screens:
        """Draw the screens of one household."""
        return cls(rng.uniform(55, 140), rng.uniform(40, 130), rng.uniform(2, 12), rng.uniform(1.5, 3.5))

    def day(self, rng: np.random.Generator, day: Day) -> Segments:
        """Draw the day's sessions; equipment on standby draws its share day and night."""
        parts = [levels([day.length_s], [self.idle_w]).delayed(day.start_s)]
        if not day.away:
            sofa_h = day.sleep_h - self.evening_h * rng.uniform(0.6, 1.4)
            parts.append(self._session(rng, day, max(sofa_h, day.return_h), day.sleep_h - 0.3, self.tv_w))
            for _ in range(rng.poisson(1.6 if day.weekend else 0.9)):
                start_h = rng.uniform(day.wake_h, day.sleep_h - 1)
                if day.home(np.array([start_h]))[0]:
                    stop_h = start_h + rng.lognormal(0.0, 0.6)
                    parts.append(self._session(rng, day, start_h, min(stop_h, day.sleep_h), self.computer_w))
        return join(parts)

    def _session(
        self, rng: np.random.Generator, day: Day, from_h: float, to_h: float, watts: float
    ) -> Segments:
        start_s, stop_s = day.between(from_h, to_h)
        if stop_s <= start_s:
            return join([])
        return wander(rng, stop_s - start_s, watts, 0.06, 40).delayed(start_s)


@dataclass(frozen=True)
class Standby:
    """Standby load that never stops, and chargers overnight."""

    watts: float
    charger_w: float

    @classmethod
    def draw(cls, rng: np.random.Generator, low_w: float, high_w: float) -> Standby:
        """Draw the standby load of one household between two powers."""
        return cls(rng.uniform(low_w, high_w), rng.uniform(5, 18))

    def day(self, rng: np.random.Generator, day: Day) -> Segments:
        """Vary slowly through the day; charge from bedtime on."""
        base = wander(rng, day.length_s, self.watts, 0.02, 900).delayed(day.start_s)
        if day.away:
            return base
        charge = levels([rng.uniform(1, 3) * HOUR_S], [self.charger_w])
        return join([base, charge.delayed(day.between(day.sleep_h, day.sleep_h)[0])])


@dataclass(frozen=True)
class HeatingPump:
    """Heating pump in the morning and the evening, more in the cold season."""

    watts: float

    def day(self, rng: np.random.Generator, day: Day) -> Segments:
        """Run in spells of the thermostat."""
        parts = []
        for from_h, to_h in ((day.wake_h - 0.7, day.wake_h + 1.2), (day.dinner_h - 1.5, day.sleep_h - 0.7)):
            need = 0.0 if day.away else day.cold * rng.uniform(0.6, 1.2)
            start_h = from_h
            while start_h < to_h and need > 0.1:
                spell_h = rng.uniform(0.2, 0.6) * (0.3 + need)
                spell = levels([spell_h * HOUR_S], [self.watts])
                parts.append(spell.delayed(day.between(start_h, start_h)[0]))
                start_h += spell_h + rng.uniform(0.2, 0.6)
        return join(parts)
