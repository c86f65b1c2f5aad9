"""For orientation: how fast CityLearn steps a single building with a battery, in minutes, on this machine.

CityLearn goes into a throw-away environment, since it wants older versions than this package. Its step
does more than a minute of this package (heat, occupants, key figures): the ratio compares tools, not code.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from rich.console import Console
from rich.table import Table

from _record import record
from simulate import BATCH, adapter_rate, parallel_rate

CITYLEARN = "CityLearn==3.0.2"
NEEDS = (
    "gymnasium==0.28.1",
    "numpy==1.26.4",
    "pandas==3.0.6",
    "platformdirs==4.14.5",
    "pyyaml==6.0.3",
    "requests==2.34.2",
    "scikit-learn==1.9.1",
    "simplejson==4.3.0",
    "torch==2.13.0",
)
"""What one building without a thermal model imports; its further requirements build EnergyPlus models."""


def citylearn_rate(folder: Path) -> float:
    """Install CityLearn into a folder and let it step a generated building; minutes per second."""
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / "bin" / "python"
    surroundings = {key: value for key, value in os.environ.items() if "CONSTRAINT" not in key}
    install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    for packages in (["--no-deps", CITYLEARN], NEEDS):
        subprocess.run([*install, *packages], check=True, env=surroundings, capture_output=True, text=True)
    worker = [python, "-P", Path(__file__).parent / "citylearn_worker.py", folder]  # -P: this file's name
    done = subprocess.run(worker, check=True, env=surroundings, capture_output=True, text=True)
    return float(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        try:
            theirs = citylearn_rate(Path(folder))
        except subprocess.CalledProcessError as error:
            sys.exit(f"CityLearn was not measured: it could not be installed or run here.\n{error.stderr}")
    single, batch = adapter_rate(), parallel_rate(BATCH)
    figures = [
        ("steps_per_second", "CityLearn, one building", theirs, "minutes/s"),
        ("adapter_over_citylearn", "Gymnasium adapter / CityLearn", single / theirs, "x"),
        ("batch_over_citylearn", f"core at batch {BATCH}, 2 processes / CityLearn", batch / theirs, "x"),
    ]
    table = Table("what", "value", "unit", title="Beside CityLearn")
    for name, words, value, unit in figures:
        record(f"citylearn.{name}", value, unit, "")
        table.add_row(words, f"{value:,.1f}", unit)
    Console().print(table)


if __name__ == "__main__":
    main()
