"""Steps one CityLearn building with a battery; run by `citylearn.py` in an environment of its own.

CityLearn's data sets are downloads, so the files of one building are generated: a week of minutes, a load,
a price, and zeros for the heat and weather that a lone battery does not use.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from citylearn.citylearn import CityLearnEnv

MINUTES = 7 * 1440
OBSERVED = (
    "hour",
    "non_shiftable_load",
    "electricity_pricing",
    "electrical_storage_soc",
    "net_electricity_consumption",
)


def write_files(folder: Path) -> Path:
    """Write CSV files and schema of one building; return the schema's path."""
    rng, minute = np.random.default_rng(0), np.arange(MINUTES)
    zeros = np.zeros(MINUTES)
    load_kwh = rng.gamma(2.0, 0.2, MINUTES) / 60.0
    pd.DataFrame(
        {
            "month": 4,
            "hour": minute // 60 % 24 + 1,
            "minutes": minute % 60,
            "day_type": minute // 1440 % 7 + 1,
            "indoor_dry_bulb_temperature": 20.0,
            "non_shiftable_load": load_kwh,
            **{f"{use}_demand": zeros for use in ("dhw", "cooling", "heating")},
            "solar_generation": zeros,
        }
    ).to_csv(folder / "building.csv", index=False)
    ahead = [""] + [f"_predicted_{n}" for n in (1, 2, 3)]
    weather = ("outdoor_dry_bulb_temperature", "outdoor_relative_humidity")
    sun = ("diffuse_solar_irradiance", "direct_solar_irradiance")
    columns = {f"{name}{later}": zeros for name in (*weather, *sun) for later in ahead}
    pd.DataFrame(columns).to_csv(folder / "weather.csv", index=False)
    price = np.where(minute % 1440 < 420, 0.1317, 0.3075)
    pd.DataFrame({f"electricity_pricing{later}": price for later in ahead}).to_csv(folder / "pricing.csv", index=False)
    (folder / "schema.json").write_text(json.dumps(schema(folder)))
    return folder / "schema.json"


def schema(folder: Path) -> dict:
    """Describe one building whose only device is a battery."""
    battery = {
        "type": "citylearn.energy_model.Battery",
        "autosize": False,
        "attributes": {"capacity": 8.0, "nominal_power": 4.0, "efficiency": 1.0, "initial_soc": 0.5},
    }
    return {
        "root_directory": str(folder),
        "random_seed": 0,
        "central_agent": True,
        "seconds_per_time_step": 60,
        "simulation_start_time_step": 0,
        "simulation_end_time_step": MINUTES - 1,
        "episode_time_steps": 1440,
        "rolling_episode_split": False,
        "random_episode_split": False,
        "observations": {name: {"active": True, "shared_in_central_agent": True} for name in OBSERVED},
        "actions": {"electrical_storage": {"active": True}},
        "reward_function": {"type": "citylearn.reward_function.RewardFunction", "attributes": {}},
        "buildings": {
            "home": {
                "include": True,
                "energy_simulation": "building.csv",
                "weather": "weather.csv",
                "pricing": "pricing.csv",
                "type": "citylearn.building.Building",
                "electrical_storage": battery,
            }
        },
    }


def steps_per_second(env: CityLearnEnv) -> float:
    """Step one day with random actions."""
    actions = np.random.default_rng(1).uniform(-1.0, 1.0, (1440, 1))
    env.reset()
    steps, done, began = 0, False, time.perf_counter()
    while not done:
        _, _, terminated, truncated, _ = env.step([actions[steps]])
        done, steps = terminated or truncated, steps + 1
    return steps / (time.perf_counter() - began)


if __name__ == "__main__":
    env = CityLearnEnv(str(write_files(Path(sys.argv[1]))))
    print(json.dumps(max(steps_per_second(env) for _ in range(5))))
