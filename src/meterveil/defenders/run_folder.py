"""Folder of a training: its document, weights and checkpoint, and how a finished run is loaded.

Weights are safetensors, everything else is JSON (D13). Reading executes nothing and needs NumPy only.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from meterveil import __version__
from meterveil.core.battery import Battery
from meterveil.core.decoys import Library
from meterveil.core.rollout import Policy
from meterveil.core.tariff import Tariff
from meterveil.data import outputs, settings
from meterveil.data.household import Household
from meterveil.data.simulation import Setup
from meterveil.defenders.bundle import Arrays, battery_from, hash_of, read_tensors, tariff_document, tariff_from
from meterveil.defenders.trained_policies import ManagerPolicy, Mlp, QPolicy
from meterveil.defenders.training_settings import LEARNED_VEIL, MANAGER, Settings, deciding
from meterveil.defenders.veil.learned import Learned
from meterveil.defenders.veil.policy import Veil
from meterveil.errors import InputError, how_to_install

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

RUN, POLICY, LIBRARY = "run.json", "policy.safetensors", "library.json"
CHECKPOINT = "checkpoint.safetensors"
FINISHED, UNFINISHED = "finished", "unfinished"
MANAGER_FORMAT, DDQL_FORMAT, VEIL_FORMAT = "meterveil-run-1", "meterveil-ddql-1", "meterveil-veil-1"
_FORMATS = {MANAGER: MANAGER_FORMAT, LEARNED_VEIL: VEIL_FORMAT}
"""Method -> format of its run folder; the others are DDQL's."""


class TrainedRun(NamedTuple):
    """Finished training that was read from a run folder or a bundle."""

    policy: Policy
    library: Library | None  # signatures that the policy replays; None where it replays none
    document: dict[str, Any]  # contents of `run.json`, or of the bundle's card

    @property
    def method(self) -> str:
        """Training method: `manager`, `ddql_flat`, `ddql_mi` or `veil_manager`."""
        return str(self.document["options"].get("method", MANAGER))

    @property
    def battery(self) -> Battery:
        return battery_from(self.document["battery"])

    @property
    def tariff(self) -> Tariff:
        return tariff_from(self.document["tariff"])

    def seen(self, household: str, days: Sequence[date]) -> list[date]:
        """List the days of a household that the training used."""
        if self.document["household"] != household:
            return []
        return [day for day in days if str(day) in self.document["days"]]


def run_document(
    training: Settings, household: Household, days: Sequence[date], setup: Setup, notes: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Describe a training that is about to begin."""
    document = {
        "format": _FORMATS.get(training.method, DDQL_FORMAT),
        "version": __version__,
        "status": UNFINISHED,
        **(notes or {}),
        "household": household.name,
        "aggregate": household.aggregate,
        "days": [str(day) for day in days],
        "seed": setup.seed,
        "battery": settings.battery_values(setup.battery),
        "tariff": tariff_document(setup.tariff),
        "options": asdict(training),
    }
    return document | ({"library": setup.library.digest()} if training.method == MANAGER else {})


def write_run(folder: Path, document: Mapping[str, Any], library: Library | None = None) -> None:
    """Write the document of a training and, if it replays signatures, its library."""
    texts = {LIBRARY: library.to_json()} if library else {}
    texts[RUN] = json.dumps(document, indent=1) + "\n"
    outputs.write_all({folder / name: outputs.text_writer(text) for name, text in texts.items()})


def finish_run(
    folder: Path, document: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]], **results: Any
) -> TrainedRun:
    """Write weights and results, mark the training as finished, and load it."""
    weights = tensor_bytes(arrays)
    finished = {**document, "status": FINISHED, "weights": hash_of(weights), **results}
    outputs.write_whole(folder / POLICY, lambda path: path.write_bytes(weights))
    write_run(folder, finished)
    return load_trained(folder)


def load_trained(folder: Path) -> TrainedRun:
    """Read a finished run of any method; a missing, foreign or altered file is refused."""
    document = read_document(folder)
    if document["status"] != FINISHED:
        raise InputError(f"the training in {folder} is not finished; continue it with `resume`")
    replays = document["format"] == MANAGER_FORMAT
    try:
        weights = (folder / POLICY).read_bytes()
        signatures = (folder / LIBRARY).read_text(encoding="utf-8") if replays else ""
    except OSError as error:
        raise InputError(f"the run {folder} lacks a file: {error}; train again") from error
    if hash_of(weights) != document["weights"]:
        raise InputError(f"{POLICY} in {folder} was altered since the training; train again")
    arrays, _ = read_tensors(weights)
    if document["format"] == VEIL_FORMAT:
        return TrainedRun(Veil(decider=Learned(Mlp.of(arrays))), None, document)
    if not replays:
        return TrainedRun(QPolicy.of(arrays), None, document)
    library = Library.from_json(signatures)
    if library.digest() != document["library"]:
        raise InputError(f"{LIBRARY} in {folder} was altered since the training; train again")
    options = document["options"]
    return TrainedRun(
        ManagerPolicy(Mlp.of(arrays), library.n_actions, options["masked"], options["choice"]), library, document
    )


def format_of(folder: Path) -> str:
    """Return the format of the run in a folder; "" without one."""
    try:
        document = json.loads((folder / RUN).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    return str(document.get("format", "")) if isinstance(document, dict) else ""


def read_document(folder: Path) -> dict[str, Any]:
    """Read the document of a run, finished or not."""
    known = (MANAGER_FORMAT, DDQL_FORMAT, VEIL_FORMAT)
    if format_of(folder) not in known:
        raise InputError(f"{folder} holds no training ({RUN} of {' or '.join(known)}); write one with meterveil train")
    document: dict[str, Any] = json.loads((folder / RUN).read_text(encoding="utf-8"))
    return document


def make_room(folder: Path, method: str, *, replace_unfinished: bool = False) -> None:
    """Remove a finished run of the same method; refuse to overwrite anything else.

    `replace_unfinished` also removes an unfinished run.
    """
    outputs.folder(folder, (RUN, LIBRARY, "probe.json"))
    if not (folder / RUN).exists():
        return
    document = read_document(folder)
    own_format = _FORMATS.get(method, DDQL_FORMAT)
    if document["format"] != own_format:
        raise InputError(
            f"{folder} holds a training by another method ({document['format']}); "
            "give `out` another folder, or remove this one"
        )
    if document["status"] != FINISHED and not replace_unfinished:
        raise InputError(f"{folder} holds an unfinished training; add `resume`, or give `out` another folder")
    for name in (CHECKPOINT, LIBRARY, "probe.json", RUN):
        (folder / name).unlink(missing_ok=True)


def save_checkpoint(path: Path, document: Mapping[str, Any], groups: Mapping[str, Arrays]) -> None:
    """Replace a checkpoint: groups of arrays, and a document in the file's header."""
    flat = {
        f"{group}:{name}": np.ascontiguousarray(array)
        for group, arrays in groups.items()
        for name, array in arrays.items()
    }
    content = tensor_bytes(flat, {"state": json.dumps(document)})
    outputs.write_whole(path, lambda half: half.write_bytes(content))


def read_checkpoint(path: Path, key: str) -> tuple[dict[str, Any], dict[str, Arrays]]:
    """Read a checkpoint of the training with this key."""
    try:
        flat, metadata = read_tensors(path.read_bytes())
        document = json.loads(metadata.get("state", "{}"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is not a checkpoint, or damaged ({error}); train again") from error
    if document.get("key") != key:
        raise InputError(
            f"{path} belongs to another training; resume with the same data, settings and version, or give "
            "`out` another folder"
        )
    groups: dict[str, Arrays] = {}
    for name, array in flat.items():
        group, _, rest = name.partition(":")
        groups.setdefault(group, {})[rest] = array
    return document, groups


def network_arrays(network: nn.Module, optimiser: Optimizer | None = None) -> Arrays:
    """Return the weights of a network and the moments of its optimiser."""
    weights = {f"weights/{name}": part.detach().numpy() for name, part in network.state_dict().items()}
    moments = optimiser.state_dict()["state"] if optimiser else {}
    return weights | {
        f"moments/{number}/{name}": value.numpy() for number, parts in moments.items() for name, value in parts.items()
    }


def restore_network(network: nn.Module, optimiser: Optimizer | None, arrays: Arrays) -> None:
    """Restore what `network_arrays` returned."""
    from torch import from_numpy  # noqa: PLC0415  only a training needs torch

    state = optimiser.state_dict() if optimiser else {"state": {}}
    weights = {}
    for name, array in arrays.items():
        kind, _, rest = name.partition("/")
        if kind == "weights":
            weights[rest] = from_numpy(array)
        else:
            number, key = rest.split("/")
            state["state"].setdefault(int(number), {})[key] = from_numpy(array)
    network.load_state_dict(weights)
    if optimiser:
        optimiser.load_state_dict(state)


@contextmanager
def own_randomness(seed: int | None = None) -> Iterator[None]:
    """Keep the global generators of torch and NumPy, and use one thread; restore all of them afterwards.

    The matrix products of a training are small, and with one thread their sums round alike.
    """
    import torch  # noqa: PLC0415  only a training needs torch

    before: Any = np.random.get_state()  # noqa: NPY002  seeded by SB3
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            if seed is not None:
                torch.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(threads)
        np.random.set_state(before)  # noqa: NPY002  seeded by SB3


def training_key(training: Settings, setup: Setup, parts: Iterable[bytes | npt.NDArray[Any]]) -> str:
    """Hash everything that can change what is learned: settings, version, setup and data."""
    values = [training.method, deciding(training), training.VERSION, setup.seed, repr(setup.battery)]
    digest = hashlib.sha256(json.dumps(values).encode())
    for part in parts:
        digest.update(part if isinstance(part, bytes) else np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


def tensor_bytes(arrays: Mapping[str, npt.NDArray[Any]], metadata: dict[str, str] | None = None) -> bytes:
    """Write arrays as a safetensors file."""
    try:
        from safetensors.numpy import save  # noqa: PLC0415  an optional part
    except ImportError as error:
        raise InputError(f"weights need safetensors; get it with {how_to_install('train')}") from error
    content: bytes = save(dict(arrays), metadata)
    return content
