"""Files of the demo house and default bundles, made by a process of its own: `python -m meterveil.live.demo_files`.

Drawing a household and exporting a bundle needs pandas, which the guard process does without.
"""

from __future__ import annotations

import math
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from meterveil.core.arrays import KWH_PER_W_MINUTE
from meterveil.core.battery import Battery
from meterveil.core.rollout import rollout
from meterveil.core.scenario import Scenario
from meterveil.core.tariff import DEGRADATION_PER_KWH, PAPER_TARIFF
from meterveil.data import synthetic
from meterveil.data.simulation import Setup
from meterveil.defenders import DEFAULT_DEFENCE, defender
from meterveil.defenders.bundle_export import card_of, export_bundle
from meterveil.defenders.veil.policy import Logged, Veil
from meterveil.live.records import MinuteRecord
from meterveil.live.store import Store

LOAD, DEFENCE, STATE = "load.npy", "defence", "state"
SEED, DAYS = 0, 7

SETTINGS = f"""# The demo house: everything is simulated.
name = "demo"
timezone = "UTC"
defence = "{DEFENCE}"
state = "{STATE}"
armed = true

[meter]
driver = "simulated"
load = "{LOAD}"
soc = 0.5

[battery]
driver = "simulated"
load = "{LOAD}"
soc = 0.5
"""


def write_bundle(folder: Path, defence: str = DEFAULT_DEFENCE) -> Path:
    """Export the bundle of an untrained defence with the shipped signatures."""
    return export_bundle(defender(defence), Setup(synthetic.decoy_library()), card_of(defence), folder)


def write_demo(folder: Path) -> None:
    """Write settings, bundle, load by second, and what the demo house did since yesterday."""
    folder.mkdir(parents=True, exist_ok=True)
    write_bundle(folder / DEFENCE)
    load_w = synthetic.load_by_second(np.random.default_rng(SEED), DAYS, timezone="UTC")
    np.save(folder / LOAD, load_w.astype(np.float32))
    soc = _write_past(folder, load_w.reshape(-1, 60).mean(axis=1))
    (folder / "guard.toml").write_text(SETTINGS.replace("soc = 0.5", f"soc = {soc:.3f}"), encoding="utf-8")


def _write_past(folder: Path, load_w: np.ndarray) -> float:
    """Simulate the day before this minute, so that the dashboard begins with a picture; return the SoC after it."""
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    last = int(now.timestamp()) // 60
    stamps = np.arange(last - 1440, last)
    minute_of_day = stamps % 1440
    scenario = Scenario(
        load_w[minute_of_day + 1440 * (DAYS - 1)][None],
        minute_of_day[None],
        (stamps // 1440)[None],
        PAPER_TARIFF.price(minute_of_day, stamps)[None],
        np.array([1440]),
    )
    logged = Logged(Veil())
    trace = rollout(logged, Battery(), synthetic.decoy_library(), scenario, [np.random.default_rng(SEED)])
    store, moved_kwh = Store(folder / STATE / "demo.sqlite"), dict[str, float]()
    for number, utc_minute in enumerate(stamps.tolist()):
        load, power = float(trace.load_w[0, number]), float(trace.power_w[0, number])
        day = (now - timedelta(minutes=last - utc_minute)).date().isoformat()
        moved_kwh[day] = moved_kwh.get(day, 0.0) + abs(power) * KWH_PER_W_MINUTE
        price = float(scenario.price[0, number])
        cost = (power * price + abs(power) * DEGRADATION_PER_KWH) * KWH_PER_W_MINUTE
        soc, meter = float(trace.soc[0, number]), load + power
        choice, decoy, spike, _ = (part[0] for part in logged.log[number])
        level, decoy_w = math.nan if spike else float(logged.veil.levels_w[choice]), float(decoy)
        why = "simulated before the demo began"
        store.put_minute(
            MinuteRecord(utc_minute, day, load, meter, power, meter, level, soc, 60.0, 60.0, cost, why, decoy_w),
            {"ledger": {"moved_kwh": moved_kwh}} if utc_minute == last - 1 else None,
        )
    store.close()
    return float(trace.soc[0, -1])


if __name__ == "__main__":
    target = Path(sys.argv[1])
    if "--bundle" in sys.argv:
        write_bundle(target)
    else:
        write_demo(target)
