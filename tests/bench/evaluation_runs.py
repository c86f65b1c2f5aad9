"""Run folders as a training leaves them, with weights that nobody trained: quick, and without torch."""

import hashlib
import json
from itertools import pairwise

import numpy as np
from safetensors.numpy import save

from meterveil.core.battery import Battery
from meterveil.core.tariff import PAPER_TARIFF
from meterveil.data import settings
from meterveil.defenders.bundle import tariff_document
from meterveil.defenders.run_folder import LIBRARY, MANAGER_FORMAT, POLICY, RUN
from meterveil.defenders.trained_policies import Mlp


def write_run(folder, household, days, seed=0, library=None, **changes):
    """Write a finished run of a manager and return its folder."""
    library = library or settings.library()
    rng, sizes = np.random.default_rng(seed), (6, 64, 64, library.n_actions)
    weights = tuple(rng.normal(0.0, 0.3, shape).astype(np.float32) for shape in pairwise(sizes))
    network = Mlp(weights, tuple(np.zeros(size, dtype=np.float32) for size in sizes[1:]))
    content = save(network.arrays())
    document = {
        "format": MANAGER_FORMAT,
        "status": "finished",
        "household": household,
        "days": [str(day) for day in days],
        "seed": seed,
        "battery": settings.battery_values(Battery()),
        "tariff": tariff_document(PAPER_TARIFF),
        "library": library.digest(),
        "options": {"masked": False, "probe": "identity", "weight": 1.0, "choice": "sampled"},
        "weights": hashlib.sha256(content).hexdigest(),
        "figures": {"training_seconds": 60.0 + seed},
        **changes,
    }
    folder.mkdir(parents=True)
    (folder / POLICY).write_bytes(content)
    (folder / LIBRARY).write_text(library.to_json())
    (folder / RUN).write_text(json.dumps(document))
    return folder
