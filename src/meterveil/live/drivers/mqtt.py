"""Meter and battery on plain MQTT topics."""

from __future__ import annotations

import math

from meterveil.live.config import MqttBatteryTable, MqttMeterTable, MqttSensorTable
from meterveil.live.drivers.broker import Broker, Newest
from meterveil.live.ports import BatteryReading, Clock, MeterReading

SOC_S = 600.0
"""A state of charge changes slowly; one that is older than this is stale."""


class MqttMeter:
    """Meter whose power arrives on a topic; power to the grid may have a topic of its own."""

    def __init__(self, table: MqttMeterTable, clock: Clock) -> None:
        topics = {"power": table.power} | ({"export": table.export} if table.export else {})
        self._newest = Newest(topics, clock)
        self._has_export = table.export is not None
        self._broker = Broker(table.broker, self._newest.names, self._newest.hear)
        self._broker.start()

    def read_meter(self) -> MeterReading:
        """Return the newest power."""
        power_w, at_s = self._newest.read("power")
        if self._has_export:
            export_w, export_s = self._newest.read("export")
            return MeterReading(power_w - export_w, min(at_s, export_s))
        return MeterReading(power_w, at_s)

    def close(self) -> None:
        """Leave the broker."""
        self._broker.close()


class MqttSensor:
    """Battery that tells its state on topics."""

    def __init__(self, table: MqttSensorTable, clock: Clock, will: tuple[str, str, bool] | None = None) -> None:
        self._newest = Newest({"soc": table.soc, "power": table.power}, clock)
        self._broker = Broker(table.broker, self._newest.names, self._newest.hear, will)
        self._broker.start()

    def read_battery(self) -> BatteryReading:
        """Return the newest SoC and power; a SoC may be retained or some minutes old where the power is fresh."""
        soc, soc_s = self._newest.read("soc")
        power_w, power_s = self._newest.read("power")
        is_known = soc_s == -math.inf or soc_s > power_s - SOC_S
        return BatteryReading(soc, power_w, power_s if is_known else soc_s)

    def close(self) -> None:
        """Leave the broker."""
        self._broker.close()


class MqttBattery(MqttSensor):
    """Battery that takes its power on a topic. Commands are never retained."""

    def __init__(self, table: MqttBatteryTable, clock: Clock) -> None:
        self._table = table
        super().__init__(table, clock, will=(table.release_topic, table.release_payload, False))

    def command_battery(self, power_w: float | None) -> None:
        """Publish a power, or the release."""
        table = self._table
        if power_w is None:
            self._broker.publish(table.release_topic, table.release_payload)
        else:
            value = f"{power_w * table.command_factor:.0f}"
            self._broker.publish(table.command_topic, table.command_payload.replace("{power}", value))
