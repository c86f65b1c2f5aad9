"""Settings of a guard: one TOML file, checked completely before anything is connected.

Passwords and tokens are never in the file: it names an environment variable or another file.
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from meterveil.core.battery import Battery
from meterveil.defenders.bundle import Bundle, load_bundle
from meterveil.errors import InputError
from meterveil.live.certified import READERS
from meterveil.live.controller import Home
from meterveil.live.follower import FollowerSettings
from meterveil.live.health import HealthSettings


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Secret(_Table):
    """Place of a password or token: `{env = "NAME"}` or `{file = "path"}`."""

    env: str = ""
    file: str = ""

    @model_validator(mode="after")
    def _one_place(self) -> Secret:
        if bool(self.env) == bool(self.file):
            raise ValueError('give one place, {env = "NAME"} or {file = "path"}')
        return self

    def read(self) -> str:
        """Return the secret; an error names its place only."""
        if self.env:
            value = os.environ.get(self.env, "")
            if not value:
                raise InputError(f"the environment variable {self.env} is empty; set it to the secret")
            return value
        try:
            return Path(self.file).expanduser().read_text(encoding="utf-8").strip()
        except OSError as error:
            raise InputError(f"the secret in {self.file} cannot be read: {error.strerror}") from error


class BrokerTable(_Table):
    """MQTT broker."""

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=1, le=65535)] = 1883
    username: str = ""
    password: Secret | None = None
    tls: bool = False
    ca_file: str = ""


class Topic(_Table):
    """Number on a topic: the whole payload, or a place in its JSON such as "battery.soc"."""

    topic: str
    path: str = ""
    factor: float = 1.0
    """Turns the payload into W (or SoC 0..1); negative where the sign differs."""

    @field_validator("topic")
    @classmethod
    def _one_topic(cls, topic: str) -> str:
        if not topic or set("+#") & set(topic):
            raise ValueError("name one topic, without + and #")
        return topic


class SimulatedTable(_Table):
    """Simulated house; `load` is a NumPy file with one value per second."""

    driver: Literal["simulated"]
    load: str
    dead_time_s: Annotated[float, Field(ge=0, le=60)] = 2.0
    own_loop: bool = False
    soc: Annotated[float, Field(ge=0, le=1)] = 0.5
    """State of charge at the start."""


class MqttMeterTable(_Table):
    """Meter on an MQTT broker; `export` where power to the grid has a topic of its own."""

    driver: Literal["mqtt"]
    broker: BrokerTable = BrokerTable()
    power: Topic
    export: Topic | None = None


class MqttSensorTable(_Table):
    """State of a battery on an MQTT broker."""

    driver: Literal["mqtt"]
    broker: BrokerTable = BrokerTable()
    soc: Topic
    power: Topic


class MqttBatteryTable(MqttSensorTable):
    """Battery on an MQTT broker.

    `{power}` in the payload becomes the power in W times `command_factor`. The release payload is also the last will
    of the connection, so that the broker releases the battery when this process dies.
    """

    command_topic: str
    command_payload: str = "{power}"
    command_factor: float = 1.0
    release_topic: str
    release_payload: str
    timeout_s: Annotated[float, Field(gt=0, le=3600)] = 60.0


class SunSpecTable(_Table):
    """Inverter with SunSpec registers over Modbus TCP: storage model 124, or 704 where it exists."""

    driver: Literal["sunspec"]
    host: str
    port: Annotated[int, Field(ge=1, le=65535)] = 502
    unit: Annotated[int, Field(ge=0, le=247)] = 1
    model: Literal["auto", "124", "704"] = "auto"
    timeout_s: Annotated[float, Field(ge=2, le=3600)] = 60.0
    """Written to the device's revert timer, never 0."""


class P1Table(_Table):
    """P1 port of a smart meter (DSMR) on TCP, as ser2net or a P1 bridge serves it."""

    driver: Literal["p1"]
    host: str
    port: Annotated[int, Field(ge=1, le=65535)] = 23


class HomeAssistantTable(_Table):
    """Entities of a Home Assistant."""

    driver: Literal["home_assistant"]
    url: str = "ws://homeassistant.local:8123/api/websocket"
    token: Secret
    power: str = ""
    """Sensor of power, in W or kW: of the meter, or of the battery."""
    power_factor: float = 1.0
    soc: str = ""
    command: str = ""
    """Number entity that takes the battery's power."""
    command_factor: float = 1.0
    mode: str = ""
    """Select entity of the battery's mode, where it has one."""
    mode_remote: str = ""
    mode_auto: str = ""
    timeout_s: Annotated[float, Field(gt=0, le=3600)] = 60.0
    """Dead-man of the device behind Home Assistant; Home Assistant itself has none."""


class VictronMqttTable(_Table):
    """Victron GX with ESS on its own MQTT broker (LAN, 1883, or 8883 with TLS)."""

    driver: Literal["victron_mqtt"]
    broker: BrokerTable = BrokerTable(host="venus.local")
    portal_id: str = ""
    """VRM portal id; the first one that the broker tells where it is empty."""
    timeout_s: Annotated[float, Field(gt=0, le=60)] = 60.0
    """The set-point is repeated at half of it. How long a GX keeps the last one is not documented; users saw one to
    five minutes."""


class VictronModbusTable(_Table):
    """Victron GX with ESS on Modbus TCP."""

    driver: Literal["victron_modbus"]
    host: str = "venus.local"
    port: Annotated[int, Field(ge=1, le=65535)] = 502
    timeout_s: Annotated[float, Field(gt=0, le=60)] = 60.0


class ShellyMeterTable(_Table):
    """Plug-in battery that follows a Shelly meter, which the guard emulates; `sensor` tells the battery's state."""

    driver: Literal["shelly_meter"]
    sensor: Annotated[MqttSensorTable | HomeAssistantTable, Field(discriminator="driver")]
    host: str = "0.0.0.0"  # noqa: S104  the battery is another device
    port: Annotated[int, Field(ge=0, le=65535)] = 80
    udp_port: Annotated[int, Field(ge=0, le=65535)] = 1010
    timeout_s: Annotated[float, Field(gt=0, le=3600)] = 60.0


MeterTable = Annotated[
    SimulatedTable
    | MqttMeterTable
    | SunSpecTable
    | P1Table
    | HomeAssistantTable
    | VictronMqttTable
    | VictronModbusTable,
    Field(discriminator="driver"),
]
BatteryTable = Annotated[
    SimulatedTable
    | MqttBatteryTable
    | SunSpecTable
    | HomeAssistantTable
    | VictronMqttTable
    | VictronModbusTable
    | ShellyMeterTable,
    Field(discriminator="driver"),
]


class LimitsTable(_Table):
    """Limits that replace those of the defence's battery, and the cap on register writes."""

    capacity_kwh: float | None = None
    charge_w: float | None = None
    discharge_w: float | None = None
    soc_min: float | None = None
    soc_max: float | None = None
    budget_kwh: float | None = None
    export_limit_w: float | None = None
    import_limit_w: float | None = None
    most_writes: Annotated[float, Field(ge=10)] = float("inf")
    """Commands a civil day; set it (such as 270) where the device stores them in memory that wears."""


class InnerLoopTable(_Table):
    """What `meterveil guard check --step` measured, and how the meter is read by others."""

    dead_time_s: Annotated[float, Field(ge=0, le=120)] = 2.0
    ramp_w_per_s: Annotated[float, Field(gt=0)] = 1000.0
    deadband_w: Annotated[float, Field(ge=1)] = 20.0
    interval_s: Annotated[float, Field(ge=10, le=3600)] = 60.0
    billing_s: Annotated[float, Field(ge=60, le=3600)] = 900.0
    gap_s: Annotated[float, Field(ge=0, le=600)] = 0.0


class ReadingsTable(_Table):
    """Bounds of believable readings."""

    meter_stale_s: Annotated[float, Field(gt=0, le=600)] = 15.0
    battery_stale_s: Annotated[float, Field(gt=0, le=600)] = 30.0
    nominal_hz: float = 50.0
    nominal_v: float = 230.0


class DashboardTable(_Table):
    """Web page; anything but this computer needs a password."""

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8765
    password: Secret | None = None

    @model_validator(mode="after")
    def _guarded(self) -> DashboardTable:
        if self.host not in {"127.0.0.1", "::1", "localhost"} and self.password is None:
            raise ValueError("a page that other computers reach needs a password; add password = {file = ...}")
        return self


class Config(_Table):
    """Content of guard.toml."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9_]{1,32}$")] = "home"
    timezone: str = "Europe/London"
    defence: str = "defence"
    """Folder of a bundle (`meterveil export`)."""
    state: str = "state"
    """Folder of the store."""
    armed: bool = False
    """Allows --live to command the battery."""
    meter: MeterTable
    battery: BatteryTable
    limits: LimitsTable = LimitsTable()
    inner_loop: InnerLoopTable = InnerLoopTable()
    readings: ReadingsTable = ReadingsTable()
    dashboard: DashboardTable | None = DashboardTable()
    reader: str = "half hours in 1 Wh"
    """Whose certificate is shown first: what your supplier gets."""
    home_assistant_discovery: BrokerTable | None = None
    """Broker of Home Assistant, where its entities of this guard appear by themselves."""

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (KeyError, ValueError, OSError) as error:
            raise ValueError("write a time zone such as Europe/London") from error
        return name

    @field_validator("reader")
    @classmethod
    def _known_reader(cls, name: str) -> str:
        names = [reader.name for reader in READERS]
        if name not in names:
            raise ValueError(f"write one of: {'; '.join(names)}")
        return name


def read_config(path: Path) -> Config:
    """Read and check a settings file; folders and files of secrets in it are relative to it."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); write one with meterveil guard init") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not TOML: {error}") from error
    base = path.resolve().parent
    config = parse_config(_with_places(document, base), str(path))
    moved: dict[str, Any] = {name: str(base / getattr(config, name)) for name in ("defence", "state")}
    for name in ("meter", "battery"):
        table = getattr(config, name)
        if isinstance(table, SimulatedTable):
            moved[name] = table.model_copy(update={"load": str(base / table.load)})
    return config.model_copy(update=moved)


def _with_places(value: Any, base: Path) -> Any:
    """Make the files of secrets absolute."""
    if isinstance(value, dict):
        if set(value) == {"file"} and isinstance(value["file"], str):
            return {"file": str(base / Path(value["file"]).expanduser())}
        return {name: _with_places(part, base) for name, part in value.items()}
    return [_with_places(part, base) for part in value] if isinstance(value, list) else value


def parse_config(document: dict[str, Any], source: str) -> Config:
    """Check the content of a settings file; the error names the key, what came and what is allowed."""
    try:
        return Config.model_validate(document)
    except ValidationError as error:
        problem = error.errors()[0]
    key = ".".join(str(part) for part in problem["loc"])
    shown = problem["input"] if isinstance(problem["input"], str | int | float | bool) else "a table"
    raise InputError(f"{source}: {key or 'settings'} is {shown!r}: {problem['msg']}")


def home_of(config: Config, live: bool) -> Home:
    """Load the defence and join it with the settings; control needs both `armed` and `live`."""
    if live and not config.armed:
        raise InputError("--live needs armed = true in the settings; try shadow mode and guard check first")
    bundle: Bundle = load_bundle(config.defence)
    known = {field.name for field in fields(Battery)}
    changes = {name: value for name, value in config.limits.model_dump().items() if name in known and value is not None}
    battery = replace(bundle.battery, **changes)
    loop = config.inner_loop
    rated_w = max(float(battery.charge_w), float(battery.discharge_w))
    return Home(
        bundle.policy,
        battery,
        bundle.library,
        bundle.tariff,
        config.timezone,
        FollowerSettings(**loop.model_dump()),
        HealthSettings(**config.readings.model_dump(), most_battery_w=2 * rated_w),
        getattr(config.battery, "timeout_s", 60.0),
        config.limits.most_writes,
        may_command=live,
    )
