"""Kills roles of clusters at random moments, many times; no test, run it by hand.

    python tests/distributed/kill_roles.py DATASET_DIR WORK_DIR [KILLS] [SEED]

Each try starts a cluster on the same model directory and kills one of its processes, or
the launcher, or sends SIGTERM. Then nothing may be left running, the newest checkpoint
must be readable, and its step may not be lower than before. At the end the job must
come to its end. A line a try, then a table.
"""

from __future__ import annotations

import collections
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import helpers_cluster  # noqa: E402

from pipeline import damage  # noqa: E402
from pipeline.compat import tf  # noqa: E402

_SHAPES = {
    "ps": ["--workers=1", "--ps=1", "--evaluator"],
    "in step": ["--workers=1"],
}
_VICTIMS = {
    "ps": ["chief", "worker", "ps", "evaluator", "launcher", "SIGTERM"],
    "in step": ["chief", "worker", "launcher", "SIGTERM"],
}
_LONGEST_SECONDS = 45
_END_SECONDS = 90


def _flags(dataset: str, directory: Path, steps: int) -> list[str]:
    return [
        f"--dataset_dir={dataset}",
        f"--model_dir={directory}",
        "--hparams=hidden_units=[8]",
        "--batch_size=32",
        "--checkpoint_steps=100",
        f"--max_steps={steps}",
    ]


def _start(shape: list[str], flags: list[str]) -> subprocess.Popen:
    return subprocess.Popen(
        helpers_cluster.command("cluster", *shape, "--", "train", *flags),
        cwd=ROOT,
        env=helpers_cluster.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def _task(directory: Path, kind: str) -> int | None:
    for number in helpers_cluster.processes_of(directory):
        try:
            variables = Path(f"/proc/{number}/environ").read_bytes().decode()
        except OSError:
            continue
        match = re.search(r"TF_CONFIG=([^\0]+)", variables)
        if match and json.loads(match.group(1))["task"]["type"] == kind:
            return number
    return None


def _step(directory: Path) -> int:
    newest = tf.train.latest_checkpoint(str(directory))
    if newest is None:
        return 0
    damage.check_checkpoint(newest)
    return int(tf.train.load_variable(newest, "global_step"))


def _hit(process: subprocess.Popen, directory: Path, victim: str) -> bool:
    """Kills; returns whether there was anybody to kill."""
    if victim == "SIGTERM":
        process.send_signal(signal.SIGTERM)
        return True
    number = process.pid if victim == "launcher" else _task(directory, victim)
    if number is None:
        return False
    os.kill(number, signal.SIGKILL)
    return True


def main(dataset: str, work: str, kills: int = 50, seed: int = 1) -> None:
    draw = random.Random(seed)
    outcomes: collections.Counter = collections.Counter()
    steps = dict.fromkeys(_SHAPES, 0)
    for number in range(kills):
        name = draw.choice(list(_SHAPES))
        directory = Path(work) / name.replace(" ", "_")
        victim, moment = (
            draw.choice(_VICTIMS[name]),
            draw.uniform(0.2, _LONGEST_SECONDS),
        )
        process = _start(_SHAPES[name], _flags(dataset, directory, 10_000_000))
        time.sleep(moment)
        hit = _hit(process, directory, victim)
        began = time.monotonic()
        if not hit:
            process.send_signal(signal.SIGTERM)
        try:
            _, said = process.communicate(timeout=_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            said = "HANGS"
        took = time.monotonic() - began
        end = time.monotonic() + 20
        while helpers_cluster.processes_of(directory) and time.monotonic() < end:
            time.sleep(0.1)
        left = len(helpers_cluster.processes_of(directory))
        step = _step(directory)
        fine = not left and step >= steps[name] and said != "HANGS"
        fine = fine and "Traceback" not in said
        steps[name] = step
        outcomes[name, victim if hit else "too early", "fine" if fine else "BAD"] += 1
        print(
            f"{number + 1} {name}: {victim} at {moment:.1f} s, code"
            f" {process.returncode} after {took:.1f} s, step {step},"
            f" {left} left{'' if fine else ' BAD ' + said[-1500:]}",
            flush=True,
        )
    for key, count in sorted(outcomes.items()):
        print(*key, count)
    for name, shape in _SHAPES.items():
        directory = Path(work) / name.replace(" ", "_")
        flags = _flags(dataset, directory, steps[name] + 100)
        process = _start(shape, flags)
        process.communicate(timeout=300)
        print(f"{name}: the rest ends with {process.returncode}, {_step(directory)}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
