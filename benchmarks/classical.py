"""How fast the classical attackers decode, beside the straightforward ways, in one run.

CO beside a search over all combinations, minute by minute; the factorial decoder beside hmmlearn's Viterbi on
the same joint model. hmmlearn is used if it is importable, else it goes into a throw-away environment. Times
are those of one core, so that what else runs on the machine does not count.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from _record import record
from meterveil.attackers.co import nearest_combination
from meterveil.attackers.fhmm.decoding import Chain, Observation, viterbi

HMMLEARN = "hmmlearn==0.3.3"
DAYS, MINUTES = 14, 1440
VARIANCE_W2 = 5.0
REPEATS = 3
MODELS = {
    "2_states": ([2] * 5, DAYS),
    "3_states": ([3] * 5, DAYS),
    "3_states_one_day": ([3] * 5, 1),
    "3_states_and_rest": ([3] * 5 + [8], 1),
}
"""Name -> states of each chain, days decoded: five appliances as in REDD house 2.

The last is what the attacker decodes by default but with half the states for the rest of the home: hmmlearn
needs the whole joint matrix, which grows with the square of the joint states.
"""

WORKER = """
import sys, time
import numpy as np
from hmmlearn.hmm import GaussianHMM
model = np.load(sys.argv[1])
hmm = GaussianHMM(len(model["start"]), "diag", init_params="")
hmm.startprob_, hmm.transmat_ = model["start"], model["transition"]
hmm.means_, hmm.covars_ = model["mean_w"][:, None], model["variance_w2"][:, None]
readings = model["reading_w"]
seconds = []
for _ in range(int(model["repeats"])):
    begin = time.process_time()
    path = hmm.predict(readings.reshape(-1, 1), [readings.shape[1]] * len(readings))
    seconds.append(time.process_time() - begin)
np.savez(sys.argv[2], path=path.reshape(readings.shape), seconds=min(seconds))
"""


def chains_of(rng: np.random.Generator, sizes: list[int]) -> list[Chain]:
    """Draw chains that stay in a state for a quarter of an hour or so."""
    found = []
    for size in sizes:
        transition = 0.93 * np.eye(size) + 0.07 * rng.dirichlet(np.ones(size), size)
        mean_w = np.append(0.0, np.sort(rng.uniform(30, 2000, size - 1)))
        found.append(Chain(mean_w, np.zeros(size), np.full(size, 1.0 / size), transition))
    return found


def readings_of(rng: np.random.Generator, chains: list[Chain], days: int) -> np.ndarray:
    """Sample what the chains draw together."""
    total_w = rng.normal(0.0, VARIANCE_W2**0.5, (days, MINUTES))
    for chain in chains:
        state = np.zeros(days, dtype=np.int64)
        for minute in range(MINUTES):
            total_w[:, minute] += chain.mean_w[state]
            steps = chain.transition[state].cumsum(axis=1)
            state = np.minimum((rng.random((days, 1)) > steps).sum(axis=1), len(chain.mean_w) - 1)
    return total_w


def seconds_of(work: Callable[[], object]) -> float:
    times = []
    for _ in range(REPEATS):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times)


def co_speedup() -> float:
    rng = np.random.default_rng(0)
    levels_w = [np.append(0.0, np.sort(rng.integers(20, 2500, 2))).astype(float) for _ in range(5)]
    reading_w = rng.uniform(0, 4000, (DAYS, MINUTES))
    combinations = np.array(list(product(*levels_w)))
    sums_w = combinations.sum(axis=1)

    def straightforward() -> np.ndarray:
        return np.array([combinations[np.abs(sums_w - watts).argmin()] for watts in reading_w.ravel()])

    ours = np.stack(nearest_combination(levels_w, reading_w))
    theirs = straightforward().T.reshape(ours.shape)
    if not np.allclose(ours.sum(axis=0), theirs.sum(axis=0)):
        sys.exit("CO and the straightforward search disagree")
    return seconds_of(straightforward) / seconds_of(lambda: nearest_combination(levels_w, reading_w))


def hmmlearn_seconds(python: str, folder: Path, joint: dict[str, np.ndarray]) -> tuple[float, np.ndarray]:
    np.savez(folder / "model.npz", repeats=np.asarray(REPEATS), **joint)
    (folder / "worker.py").write_text(WORKER)
    command = [python, folder / "worker.py", folder / "model.npz", folder / "answer.npz"]
    subprocess.run(command, check=True, env=surroundings())
    answer = np.load(folder / "answer.npz")
    return float(answer["seconds"]), answer["path"]


def fhmm_speedup(python: str, folder: Path, sizes: list[int], days: int) -> float:
    rng = np.random.default_rng(1)
    chains = chains_of(rng, sizes)
    seen = Observation(readings_of(rng, chains, days), np.full((days, MINUTES), VARIANCE_W2))
    joint = {"start": np.ones(1), "transition": np.ones((1, 1)), "mean_w": np.zeros(1)}
    for chain in chains:
        joint["start"] = np.kron(joint["start"], chain.start)
        joint["transition"] = np.kron(joint["transition"], chain.transition)
        joint["mean_w"] = np.add.outer(joint["mean_w"], chain.mean_w).ravel()
    joint["start"] /= joint["start"].sum()
    joint["transition"] /= joint["transition"].sum(axis=1, keepdims=True)
    variance_w2 = np.full(len(joint["mean_w"]), VARIANCE_W2)
    theirs, path = hmmlearn_seconds(python, folder, {**joint, "variance_w2": variance_w2, "reading_w": seen.reading_w})
    same = np.mean(np.ravel_multi_index(tuple(viterbi(chains, seen)), sizes) == path)
    if same < 0.999:
        sys.exit(f"the decoders agree on {same:.2%} of the minutes only")
    return theirs / seconds_of(lambda: viterbi(chains, seen))


def surroundings() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if "CONSTRAINT" not in key}


def python_with_hmmlearn(folder: Path) -> str:
    if importlib.util.find_spec("hmmlearn"):
        return sys.executable
    venv.create(folder / "venv", with_pip=True)
    python = str(folder / "venv" / "bin" / "python")
    install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", HMMLEARN]
    subprocess.run(install, check=True, env=surroundings(), capture_output=True, text=True)
    return python


def main() -> None:
    table = Table("classical attackers", "speed-up", "target")
    figures = [("co_over_search_per_minute", co_speedup(), ">= 10")]
    with tempfile.TemporaryDirectory() as name:
        python = python_with_hmmlearn(Path(name))
        for model, (sizes, days) in MODELS.items():
            target = ">= 5" if model == "3_states_and_rest" else "for orientation"
            figures.append((f"fhmm_over_hmmlearn.{model}", fhmm_speedup(python, Path(name), sizes, days), target))
    for name, value, target in figures:
        record(f"classical.{name}", round(value, 2), "x", target)
        table.add_row(name, f"{value:.1f} x", target)
    Console().print(table)


if __name__ == "__main__":
    main()
