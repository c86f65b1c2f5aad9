"""An interrupted training continues with the same result, bit for bit."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from safetensors.numpy import load_file
from small import lesson

from meterveil.defenders.manager.manager_training import CHECKPOINT, train
from meterveil.errors import InputError


class StoppedError(Exception):
    """Interruption of a training."""


def stop_after(updates):
    seen = []

    def listen(update):
        seen.append(update)
        if len(seen) == updates:
            raise StoppedError

    return listen


@pytest.mark.parametrize("changes", [{}, {"masked": False, "discount": "minute"}], ids=["masked", "by minutes"])
def test_a_stopped_training_ends_with_the_weights_of_one_that_was_not(tmp_path, changes):
    whole = train(*lesson(**changes))
    assert len(whole.curve) > 4
    for updates in (1, 2):
        with pytest.raises(StoppedError):
            train(*lesson(**changes), tmp_path, stop_after(updates))
    resumed = train(*lesson(**changes), tmp_path)
    assert resumed.curve == whole.curve
    heard = []
    again = train(*lesson(**changes), tmp_path, heard.append)
    assert not heard, "a finished training is not trained again"
    for name, part in whole.policy.network.arrays().items():
        np.testing.assert_array_equal(resumed.policy.network.arrays()[name], part)
        np.testing.assert_array_equal(again.policy.network.arrays()[name], part)


def test_a_checkpoint_of_another_training_and_a_damaged_one_are_refused(tmp_path):
    with pytest.raises(StoppedError):
        train(*lesson(), tmp_path, stop_after(2))
    (events,) = (tmp_path / "tensorboard").iterdir()
    assert b"train/entropy_loss" in events.read_bytes()
    with pytest.raises(InputError, match="belongs to another training"):
        train(*lesson(seed=5), tmp_path)
    (tmp_path / CHECKPOINT).write_bytes(b"\x80\x04 a pickle, say")
    with pytest.raises(InputError, match="is not a checkpoint, or damaged"):
        train(*lesson(), tmp_path)


def command(out, *more):
    verb = [sys.executable, "-m", "meterveil", "train", "synthetic", "--probe", "identity", "--days", "2"]
    return [*verb, "--budget-days", "30", "--seed", "4", "--out", str(out), *more]


@pytest.mark.slow
def test_a_killed_training_resumes_and_ends_with_the_same_weights(tmp_path):
    world = {**os.environ, "OMP_NUM_THREADS": "1"}
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    process = subprocess.Popen(command(killed), env=world, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not (killed / CHECKPOINT).exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert json.loads((killed / "run.json").read_text())["status"] == "unfinished"
    resume = [sys.executable, "-m", "meterveil", "train", "--resume", "--out", str(killed)]
    subprocess.run(resume, env=world, check=True, capture_output=True)
    subprocess.run(command(whole), env=world, check=True, capture_output=True)
    mine, theirs = (load_file(folder / "policy.safetensors") for folder in (killed, whole))
    assert mine.keys() == theirs.keys()
    for name, part in mine.items():
        np.testing.assert_array_equal(part, theirs[name])
    documents = [json.loads((folder / "run.json").read_text()) for folder in (killed, whole)]
    assert documents[0]["curve"] == documents[1]["curve"]
