"""The parts of `make bench` that train: against Keras `fit`, and against memory."""

from __future__ import annotations

import os
import subprocess
import sys

from benchmarks import measure
from benchmarks.measure import Program

# Network, rows in a batch, steps: a network whose step costs no more than the call that
# runs it, a common one, and one whose embeddings cost most.
_CASES = (("small", 64, 6000), ("small", 512, 4000), ("large", 512, 500))
_MODELS = ("keras_wide_deep", "wide_deep")


def speed(arguments, path: str, directory: str) -> None:
    """One network from memory, under an Estimator and under `fit`."""
    del path, directory
    for network, batch_size, steps in _CASES:
        ways = ("estimator", "estimator-50", "fit", "fit-50")
        programs = [
            Program(way, "train_speed", (way, network, str(steps), str(batch_size)))
            for way in ways
        ]
        found = measure.run_side_by_side(programs, arguments.runs)
        measure.print_table(
            f"Training from memory: {network} network, batches of {batch_size}", found
        )
        best = max(("fit", "fit-50"), key=lambda way: measure.median_speed(found[way]))
        measure.print_ratio(found, "estimator-50", best, 1.0)
        measure.print_ratio(found, "estimator", "fit", 1.0)


def job(arguments, path: str, directory: str) -> None:
    """A dataset's records, read and shuffled, against the same batches in memory."""
    dataset = os.path.join(directory, "training-dataset")
    program = f"from benchmarks import ours; ours.main({dataset!r}, 'blocks', {path!r})"
    subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        capture_output=True,
        cwd=measure.ROOT,
    )
    for model in _MODELS:
        programs = [
            Program(source, "train_job", (dataset, model, source, "3"))
            for source in ("records", "memory")
        ]
        found = measure.run_side_by_side(programs, arguments.runs)
        measure.print_table(f"Training {model}: from records, from memory", found)
        measure.print_ratio(found, "records", "memory", 0.9)
