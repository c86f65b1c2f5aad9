"""Read one large channel file with pandas and with meterveil, each in a process of its own, in turns.

Both get the same file, warm in the page cache, and the time is that of the call alone, imports excluded. The
figure of each is its median over the turns, so that a disturbed turn counts for neither. That of meterveil
includes writing its cache; its fallback is what reads where the extension was not built. A further file has
one line out of order, at its end: only its memory counts.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

from _record import record

PIECE_LINES = 500_000

MEASURE = """
import json, resource, sys, time
{imports}
path = sys.argv[1]
began, cpu = time.perf_counter(), time.process_time()
{read}
seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu
peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps(dict(seconds=seconds, cpu_seconds=cpu_seconds, peak_mb=peak_mb, total=total)))
"""
PANDAS = MEASURE.format(
    imports="import pandas as pd",
    read="""
frame = pd.read_csv(path, sep=" ", names=["time", "watts"])
frame["time"] = pd.to_datetime(frame["time"], unit="s", utc=True)
total = frame.set_index("time")["watts"].resample("1min").mean().sum()
""",
)
METERVEIL = MEASURE.format(
    imports="from meterveil.data import channels\nassert channels.add_up is not None",
    read="total = channels.read_channel(path).watts.sum()",
)
FALLBACK = MEASURE.format(
    imports="from meterveil.data import channels\nchannels.add_up = None",
    read="total = channels.read_channel(path).watts.sum()",
)
SCRIPTS = {"pandas": PANDAS, "meterveil": METERVEIL, "meterveil, cached": METERVEIL, "meterveil, fallback": FALLBACK}


def generate(path: Path, lines: int) -> None:
    """Write integer watts every six seconds, give or take one, with a gap every few thousand lines.

    A piece at a time: a child process inherits its parent's peak of memory, which is measured below.
    """
    rng = np.random.default_rng(0)
    schema = pa.schema({"seconds": pa.int64(), "watts": pa.int64()})
    options = csv.WriteOptions(include_header=False, delimiter=" ")
    second = 1_352_500_095
    with csv.CSVWriter(path, schema, write_options=options) as writer:
        for begin in range(0, lines, PIECE_LINES):
            count = min(PIECE_LINES, lines - begin)
            step = rng.choice([5, 6, 6, 6, 6, 6, 6, 6, 6, 7], size=count)
            gaps = rng.integers(0, count, size=count // 5_000)
            step[gaps] = rng.integers(60, 7_200, size=len(gaps))
            base, peak = rng.integers(80, 600, size=count), rng.integers(600, 4_000, size=count)
            seconds = second + np.cumsum(step)
            second = int(seconds[-1])
            watts = np.where(rng.random(count) < 0.9, base, peak)
            writer.write_table(pa.table({"seconds": seconds, "watts": watts}, schema=schema))


def measure(script: str, path: Path, cache: Path) -> dict[str, float]:
    environment = {**os.environ, "METERVEIL_CACHE": str(cache)}
    result = subprocess.run(
        [sys.executable, "-c", script, path], env=environment, capture_output=True, text=True, check=True
    )
    return json.loads(result.stdout)


def run(lines: int, turns: int) -> dict[str, list[dict[str, float]]]:
    results: dict[str, list[dict[str, float]]] = {who: [] for who in SCRIPTS}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "channel_1.dat"
        generate(path, lines)
        for turn in range(turns):
            for who, script in SCRIPTS.items():
                cache = Path(folder) / f"cache_{turn}{'_fallback' * (script is FALLBACK)}"
                results[who].append(measure(script, path, cache))
    return results


def disordered_peak_mb(lines: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "channel_1.dat"
        generate(path, lines)
        with path.open("a") as file:
            file.write("1352600000 50\n")
        return measure(METERVEIL, path, Path(folder) / "cache")["peak_mb"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=20_000_000)
    parser.add_argument("--turns", type=int, default=5)
    arguments = parser.parse_args()
    results = run(arguments.lines, arguments.turns)
    totals = [result["total"] for turns in results.values() for result in turns]
    np.testing.assert_allclose(totals, totals[0], rtol=1e-9)
    seconds = {who: statistics.median(turn["seconds"] for turn in turns) for who, turns in results.items()}
    print(f"{arguments.lines:,} lines, median of {arguments.turns} turns (range)")
    for who, turns in results.items():
        spread = f"{min(t['seconds'] for t in turns):.2f}-{max(t['seconds'] for t in turns):.2f}"
        cpu = statistics.median(turn["cpu_seconds"] for turn in turns)
        peak = max(turn["peak_mb"] for turn in turns)
        ratio = seconds["pandas"] / seconds[who]
        print(f"{who:19s} {seconds[who]:6.2f} s ({spread}) {cpu:6.2f} s cpu {peak:6.0f} MB {ratio:6.1f} x")
    speedup, cached, fallback = (seconds["pandas"] / seconds[who] for who in list(SCRIPTS)[1:])
    peak = max(turn["peak_mb"] for turn in results["meterveil"])
    record("read_channel.speedup_over_pandas", round(speedup, 2), "x", ">= 5")
    record("read_channel.cached_speedup_over_pandas", round(cached, 2), "x", ">= 5")
    record("read_channel.fallback_speedup_over_pandas", round(fallback, 2), "x", "")
    record("read_channel.peak_memory_mb", round(peak), "MB", "<= 1500")
    disordered = disordered_peak_mb(arguments.lines)
    print(f"one line out of order: {disordered:.0f} MB")
    record("read_channel.disordered_peak_memory_mb", round(disordered), "MB", "<= 1500")


if __name__ == "__main__":
    main()
