"""Kills roles of clusters at random moments, many times; no test, run it by hand.

    python tests/distributed/kill_roles.py DATASET_DIR WORK_DIR [KILLS] [SEED]

Each try starts a cluster on the same model directory and sends SIGKILL or SIGTERM to one of
its processes, or to the launcher: while the cluster starts, or once it takes steps. Then all must
have ended by themselves with the code that belongs to the signal, without a traceback;
the newest checkpoint must be readable, and its step may not be lower than before. At the
end each job must come to its end. A line a try, then a table.
"""

from __future__ import annotations

import collections
import dataclasses
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import helpers_cluster  # noqa: E402

from pipeline import checkpoints, damage  # noqa: E402
from pipeline.compat import tf  # noqa: E402

_SHAPES = {
    "ps": (["--workers=1", "--ps=1", "--evaluator"], "wide_deep"),
    "in step": (["--workers=1", "--evaluator"], "keras_wide_deep"),
}
_VICTIMS = {
    "ps": ["chief", "worker", "ps", "evaluator", "launcher"],
    "in step": ["chief", "worker", "evaluator", "launcher"],
}
_SIGNALS = (signal.SIGKILL, signal.SIGTERM)
_START_SECONDS = 25
"""Importing and making graphs take about so long here."""
_TRAINING_SECONDS = 10
_APPEAR_SECONDS = 200
_END_SECONDS = 90
_LEFT_SECONDS = 20
_KEPT_CHECKPOINTS = 3


@dataclasses.dataclass(frozen=True)
class _Try:
    """What is done to a cluster.

    Attributes:
      shape: Name of the cluster's shape.
      victim: "launcher", or the task type of the process that gets the signal.
      number: The signal.
      trains: Whether to wait for the first checkpoint, which is that of the start.
      seconds: When to send it, from the start or the beginning of training.
    """

    shape: str
    victim: str
    number: signal.Signals
    trains: bool
    seconds: float

    def __str__(self):
        since = "the first checkpoint" if self.trains else "start"
        return (
            f"{self.shape}: {self.number.name} to {self.victim},"
            f" {self.seconds:.1f} s after {since}"
        )

    @property
    def code(self) -> int:
        """The code with which the launcher must end."""
        if self.victim == "launcher" and self.number is signal.SIGKILL:
            return -signal.SIGKILL
        return 128 + self.number


def _draw(random_: random.Random) -> _Try:
    shape = random_.choice(list(_SHAPES))
    trains = random_.random() < 0.7
    longest = _TRAINING_SECONDS if trains else _START_SECONDS
    return _Try(
        shape,
        random_.choice(_VICTIMS[shape]),
        random_.choice(_SIGNALS),
        trains,
        random_.uniform(0, longest),
    )


def _place(work: str, shape: str) -> Path:
    return Path(work) / shape.replace(" ", "_")


def _start(shape: str, dataset: str, directory: Path, steps: int) -> subprocess.Popen:
    roles, model = _SHAPES[shape]
    flags = [
        f"--model={model}",
        f"--dataset_dir={dataset}",
        f"--model_dir={directory}",
        "--hparams=hidden_units=[8]",
        "--batch_size=32",
        "--checkpoint_steps=100",
        f"--keep_checkpoints={_KEPT_CHECKPOINTS}",
        f"--max_steps={steps}",
    ]
    return subprocess.Popen(
        helpers_cluster.command("cluster", *roles, "--", "train", *flags),
        cwd=ROOT,
        env=helpers_cluster.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def _step(directory: Path) -> int:
    newest = tf.train.latest_checkpoint(str(directory))
    if newest is None:
        return 0
    damage.check_checkpoint(newest)
    return int(tf.train.load_variable(newest, "global_step"))


def _await_training(directory: Path, began: float, process: subprocess.Popen) -> None:
    """Waits until this cluster has saved a checkpoint."""
    said = directory / checkpoints.STATE_FILE
    end = time.monotonic() + _APPEAR_SECONDS
    while time.monotonic() < end and process.poll() is None:
        if said.exists() and said.stat().st_mtime > began:
            return
        time.sleep(0.05)


def _send(planned: _Try, process: subprocess.Popen, directory: Path) -> bool:
    """Sends the signal; returns whether its process was there."""
    target: int | None = process.pid
    if planned.victim != "launcher":
        target = helpers_cluster.task_process(directory, planned.victim)
    if target is None:
        return False
    os.kill(target, planned.number)
    return True


def _run(planned: _Try, dataset: str, directory: Path, before: int) -> tuple[str, int]:
    """Makes a try; returns what came of it and the step of the newest checkpoint."""
    began = time.time()
    process = _start(planned.shape, dataset, directory, 10_000_000)
    if planned.trains:
        _await_training(directory, began, process)
    time.sleep(planned.seconds)
    hit = _send(planned, process, directory)
    if not hit:
        process.send_signal(signal.SIGTERM)
    sent = time.monotonic()
    wrong = []
    try:
        _, said = process.communicate(timeout=_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        _, said = process.communicate()
        wrong.append(f"still there after {_END_SECONDS} s")
    took = time.monotonic() - sent
    end = time.monotonic() + _LEFT_SECONDS
    while (left := helpers_cluster.processes_of(directory)) and time.monotonic() < end:
        time.sleep(0.1)
    if left:
        wrong.append(f"{len(left)} processes are left")
    if hit and process.returncode != planned.code:
        wrong.append(f"code {process.returncode} instead of {planned.code}")
    if "Traceback" in said:
        wrong.append("a traceback")
    step = _step(directory)
    kept = collections.Counter(path.parent for path in directory.glob("**/*.index"))
    # One more where the kill came between saving one and removing the oldest.
    if any(count > _KEPT_CHECKPOINTS + 1 for count in kept.values()):
        wrong.append(f"checkpoints are left: {kept}")
    if step < before:
        wrong.append(f"step {before} was lost")
    outcome = "BAD" if wrong else "fine" if hit else "too early"
    print(f"  code {process.returncode} after {took:.1f} s, step {step}: {outcome}")
    if wrong:
        _, traceback, rest = said.partition("Traceback")
        print(f"  {'; '.join(wrong)}\n{traceback}{rest[:4000]}\n...\n{said[-3000:]}")
    sys.stdout.flush()
    return outcome, step


def main(dataset: str, work: str, kills: int = 50, seed: int = 1) -> None:
    random_ = random.Random(seed)
    outcomes: collections.Counter = collections.Counter()
    steps = dict.fromkeys(_SHAPES, 0)
    for number in range(kills):
        planned = _draw(random_)
        print(f"{number + 1} {time.strftime('%H:%M:%S')} {planned}", flush=True)
        directory = _place(work, planned.shape)
        outcome, step = _run(planned, dataset, directory, steps[planned.shape])
        steps[planned.shape] = step
        key = (planned.shape, planned.number.name, planned.victim, outcome)
        outcomes[key] += 1
    for key, count in sorted(outcomes.items()):
        print(*key, count)
    for shape in _SHAPES:
        directory = _place(work, shape)
        process = _start(shape, dataset, directory, steps[shape] + 100)
        _, said = process.communicate(timeout=300)
        print(f"{shape}: the rest ends with {process.returncode}, {_step(directory)}")
        if process.returncode:
            print(said[-3000:])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
