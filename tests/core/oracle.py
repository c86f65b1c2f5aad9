"""A slow, obviously correct simulator of one household: plain Python floats, one `if` for each rule.

It shares no code with the core and exists to contradict it.
"""

import math
from dataclasses import dataclass

MINUTE_H = 1 / 60


@dataclass
class House:
    capacity_kwh: float
    charge_w: float
    discharge_w: float
    charge_efficiency: float
    discharge_efficiency: float
    soc_min: float
    soc_max: float
    budget_kwh: float
    export_limit_w: float
    import_limit_w: float
    soc: float
    moved_kwh: float = 0.0

    def new_day(self):
        self.moved_kwh = 0.0

    def minute(self, request_w, load_w):
        """Return (power, whether a replay must end here)."""
        if math.isnan(load_w):
            return 0.0, True
        if request_w > 0:
            return self._charge(request_w, load_w)
        if request_w < 0:
            power_w, ends = self._discharge(-request_w, load_w)
            return -power_w, ends
        return 0.0, False

    def _charge(self, power_w, load_w):
        power_w = min(power_w, self.charge_w)
        if load_w + power_w > self.import_limit_w:
            power_w = max(self.import_limit_w - load_w, 0.0)
        room_kwh = min(
            max(self.soc_max - self.soc, 0.0) * self.capacity_kwh / self.charge_efficiency,
            self.budget_kwh - self.moved_kwh,
        )
        power_w, ends = self._within(room_kwh, power_w)
        energy_kwh = power_w / 1000 * MINUTE_H
        self.soc += energy_kwh * self.charge_efficiency / self.capacity_kwh
        self.moved_kwh += energy_kwh
        return power_w, ends

    def _discharge(self, power_w, load_w):
        power_w = min(power_w, self.discharge_w)
        if load_w - power_w < -self.export_limit_w:
            power_w = max(load_w + self.export_limit_w, 0.0)
        room_kwh = min(
            max(self.soc - self.soc_min, 0.0) * self.capacity_kwh * self.discharge_efficiency,
            self.budget_kwh - self.moved_kwh,
        )
        power_w, ends = self._within(room_kwh, power_w)
        energy_kwh = power_w / 1000 * MINUTE_H
        self.soc -= energy_kwh / self.discharge_efficiency / self.capacity_kwh
        self.moved_kwh += energy_kwh
        return power_w, ends

    @staticmethod
    def _within(room_kwh, power_w):
        limit_w = room_kwh / MINUTE_H * 1000
        if limit_w < 1e-6:
            limit_w = 0.0
        return (limit_w, True) if power_w > limit_w else (power_w, False)


def episode(house, signatures, actions, load_w, day):
    """Replay signatures as the manager asks until the load ends; return battery power and SoC by minute.

    `actions` yields the next action whenever the manager is asked; 0 idles, 1..K charge, K+1..2K discharge.
    """
    power, soc, minute = [], [], 0
    while minute < len(load_w):
        action = next(actions)
        if action == 0:
            wanted = [0.0]
        elif action <= len(signatures):
            wanted = list(signatures[action - 1])
        else:
            wanted = [-watts for watts in signatures[action - 1 - len(signatures)]]
        for number, request_w in enumerate(wanted):
            if minute == len(load_w):
                break
            if minute > 0 and day[minute] != day[minute - 1]:
                house.new_day()
            power_w, ends = house.minute(request_w, load_w[minute])
            power.append(power_w)
            soc.append(house.soc)
            minute += 1
            infeasible = number == 0 and request_w != 0 and power_w == 0
            if ends or infeasible:
                break
    return power, soc
