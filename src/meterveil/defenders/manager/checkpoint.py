"""Where a manager's training stands: weights, optimiser, households, counters and generators.

A file is written after every update; what goes on from it is bit for bit what would have been.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from stable_baselines3 import PPO

from meterveil.defenders import checkpoints
from meterveil.defenders.manager.env import TrainingHouseholds
from meterveil.defenders.runs import Arrays

FORMAT = "meterveil-checkpoint-1"


def save(
    path: Path, model: PPO, households: TrainingHouseholds, key: str, curve: list[dict[str, Any]]
) -> None:
    """Write down everything that the next update depends on; `key` says what is being learned."""
    arrays, counters = households.snapshot()
    weights = {name: part.detach().numpy() for name, part in model.policy.state_dict().items()}
    generators, randomness = _generators()
    document = {
        "format": FORMAT,
        "key": key,
        "decisions": model.num_timesteps,
        "passes": model._n_updates,
        "households": counters,
        "numpy": randomness,
        "curve": curve,
    }
    groups = {
        "policy": weights,
        "optimiser": _moments(model),
        "households": {**arrays, "starts": model._last_episode_starts},
        "random": generators,
    }
    checkpoints.save(path, document, groups)


def restore(path: Path, model: PPO, households: TrainingHouseholds, key: str) -> list[dict[str, Any]]:
    """Put model, households and generators where they were; return the curve up to there."""
    document, arrays = checkpoints.read(path, FORMAT, key)
    model.policy.load_state_dict({name: torch.from_numpy(part) for name, part in arrays["policy"].items()})
    _restore_moments(model, arrays["optimiser"])
    model.num_timesteps, model._n_updates = document["decisions"], document["passes"]
    households.reset()
    model._last_obs = households.restore(arrays["households"], document["households"])
    model._last_episode_starts = arrays["households"]["starts"]
    _restore_generators(arrays["random"], document["numpy"])
    curve: list[dict[str, Any]] = document["curve"]
    return curve


def _moments(model: PPO) -> Arrays:
    state = model.policy.optimizer.state_dict()["state"]
    return {f"{n}/{key}": value.numpy() for n, parts in state.items() for key, value in parts.items()}


def _restore_moments(model: PPO, arrays: Arrays) -> None:
    document = model.policy.optimizer.state_dict()
    for name, value in arrays.items():
        number, key = name.split("/")
        document["state"].setdefault(int(number), {})[key] = torch.from_numpy(value)
    model.policy.optimizer.load_state_dict(document)


def _generators() -> tuple[Arrays, dict[str, Any]]:
    """Return the states of the two global generators that SB3 draws from."""
    _, keys, position, has_gauss, gauss = np.random.get_state(legacy=True)  # noqa: NPY002  what SB3 draws from
    arrays = {"torch": torch.get_rng_state().numpy(), "numpy": np.asarray(keys)}
    return arrays, {"position": int(position), "has_gauss": int(has_gauss), "gauss": float(gauss)}


def _restore_generators(arrays: Arrays, numbers: dict[str, Any]) -> None:
    torch.set_rng_state(torch.from_numpy(arrays["torch"]))
    rest = (numbers["position"], numbers["has_gauss"], numbers["gauss"])
    np.random.set_state(("MT19937", arrays["numpy"], *rest))  # noqa: NPY002  what SB3 draws from
