"""Runs the program in processes of its own, alone or as a cluster, with a time limit."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from pipeline import checkpoints
from pipeline.cluster.launcher import free_addresses as free_addresses
from pipeline.compat import tf

ROOT = Path(__file__).parents[2]
SECONDS = 300
"""Far more than anything takes here, on a busy machine, too."""


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "pipeline", *map(str, arguments)]


def environment(**variables: str) -> dict[str, str]:
    clean = {name: v for name, v in os.environ.items() if name != "TF_CONFIG"}
    return {**clean, "PYTHONPATH": str(ROOT), **variables}


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess:
    """Runs a command to its end, which must come within SECONDS."""
    return subprocess.run(
        command(*arguments),
        cwd=ROOT,
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )


@contextlib.contextmanager
def launched(*arguments: str, **variables: str) -> Iterator[subprocess.Popen]:
    """Starts a command, and in the end kills it if it still runs."""
    process = subprocess.Popen(
        command(*arguments),
        cwd=ROOT,
        env=environment(**variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def await_checkpoint(process: subprocess.Popen, directory: Path, step: int) -> None:
    """Waits until a process has saved a checkpoint of at least that step.

    Fails with what the process says if it ends before.
    """
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        if any(saved.step >= step for saved in checkpoints.listed(str(directory))):
            return
        if process.poll() is not None:
            said, _ = process.communicate()
            raise AssertionError(said[-3000:])
        time.sleep(0.1)
    raise AssertionError("no checkpoint came")


def await_nobody(directory: Path) -> None:
    """Waits until no process works on a model directory any more."""
    end = time.monotonic() + 20
    while (left := processes_of(directory)) and time.monotonic() < end:
        time.sleep(0.1)
    assert left == []


def train_flags(job, directory: Path, model: str, **changes) -> list[str]:
    """Returns the flags of a small training, the same alone and in a cluster."""
    settings = {
        "model": model,
        "hparams": "hidden_units=[8]",
        "batch_size": 32,
        "max_steps": 50,
        "checkpoint_steps": 25,
        "dataset_dir": job.dataset_dir,
        "model_dir": directory,
        **changes,
    }
    return [f"--{name}={value}" for name, value in settings.items()]


def weights(directory: Path) -> dict[str, np.ndarray]:
    """Returns the variables of a model directory's newest checkpoint."""
    reader = tf.train.load_checkpoint(str(directory))
    return {
        name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()
    }


def processes_of(directory: Path) -> list[int]:
    """Returns the processes whose command line names a directory."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            line = (entry / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if "-m\0pipeline\0" in line and str(directory) in line:
            found.append(int(entry.name))
    return found


def task_process(directory: Path, task_type: str, index: int = 0) -> int | None:
    """Returns the process of a task that trains a model directory, if there is one."""
    for number in processes_of(directory):
        try:
            variables = Path(f"/proc/{number}/environ").read_bytes().decode()
        except OSError:
            continue
        match = re.search(r"TF_CONFIG=([^\0]+)", variables)
        if match:
            task = json.loads(match.group(1))["task"]
            if (task["type"], task["index"]) == (task_type, index):
                return number
    return None
