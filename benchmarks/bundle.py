"""How much a deployed bundle needs: time of one decision and memory, in a fresh process.

Trains a small policy on the embedded household first: how good it is does not change what a decision costs. A
round that another process disturbs says nothing of the bundle, so the quietest one counts.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from _record import record

DECISIONS = 20_000

WORKER = """
import json, re, sys, time
from pathlib import Path
import numpy as np
import meterveil
from meterveil.core.battery import BatteryState
from meterveil.core.rollout import View

bundle = meterveil.load_bundle(sys.argv[1])
rng, took = np.random.default_rng(0), []
for number in range(int(sys.argv[2])):
    state = BatteryState(rng.uniform(0.1, 0.9, 1), rng.uniform(0.0, 8.0, 1))
    load_w, clock = rng.gamma(2.0, 200.0, 1), np.array([number % 1440])
    price, waits = bundle.tariff.price(clock, clock), np.ones(1, dtype=np.bool_)
    now = (state, load_w, load_w, clock, price, rng.random((1, 2)), waits)
    view = View(bundle.battery, bundle.library, *now)
    began, worked = time.perf_counter(), time.thread_time()
    bundle.policy.decide(view, None)
    took.append((time.perf_counter() - began, time.thread_time() - worked))
wall_s, cpu_s = np.array(took).T
peak = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())
figures = {
    "p99_ms": float(np.percentile(wall_s.reshape(10, -1), 99, axis=1).min()) * 1e3,
    "p99_cpu_ms": float(np.percentile(cpu_s, 99)) * 1e3,
    "median_ms": float(np.median(wall_s)) * 1e3,
    "rss_mb": int(peak.group(1)) / 1024,
    "heavy": sorted({"torch", "pandas", "pyarrow", "gymnasium"} & set(sys.modules)),
}
print(json.dumps(figures))
"""


def exported(folder: Path) -> Path:
    """Train for a moment, and export."""
    import numpy as np  # noqa: PLC0415  nothing of this may be in the measured process

    from meterveil.data import synthetic  # noqa: PLC0415
    from meterveil.data.simulation import Setup  # noqa: PLC0415
    from meterveil.defenders.bundle_export import card_of, export_bundle  # noqa: PLC0415
    from meterveil.defenders.manager.manager_training import learn  # noqa: PLC0415
    from meterveil.defenders.training_settings import manager_settings  # noqa: PLC0415

    home = synthetic.household(np.random.default_rng(0), days=2)
    settings = manager_settings(budget_days=10, probe="identity")
    setup = Setup(synthetic.decoy_library())
    run = learn(home, home.days(), setup, settings, folder / "run")
    return export_bundle(run.policy, setup, card_of("manager", run.document), folder / "bundle")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        command = [sys.executable, "-c", WORKER, str(exported(Path(name))), str(DECISIONS)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    figures = json.loads(done.stdout)
    assert not figures["heavy"], figures["heavy"]
    table = Table("what", "value", "unit", "target", title="A deployed bundle")
    for key, words, unit, target in (
        ("p99_ms", "one decision, 99th percentile of the quietest of ten rounds", "ms", "< 1"),
        ("p99_cpu_ms", "one decision, 99th percentile of processor time", "ms", "< 1"),
        ("median_ms", "one decision, median", "ms", ""),
        ("rss_mb", "resident memory, at most", "MB", "< 150"),
    ):
        record(f"bundle: {words}", figures[key], unit, target)
        table.add_row(words, f"{figures[key]:.3g}", unit, target)
    Console().print(table)


if __name__ == "__main__":
    main()
