"""The parts of `make bench` that train: against Keras `fit`, and against memory."""

from __future__ import annotations

import os

from benchmarks import measure, ours
from benchmarks.measure import Program

# Network, rows in a batch, steps: a network whose step costs no more than the call that
# runs it, a common one, and one whose embeddings cost most.
_CASES = (("small", 64, 6000), ("small", 512, 4000), ("large", 512, 500))
_MODELS = ("keras_wide_deep", "wide_deep")
_JOB_STEPS = "1500"
# A column that no feature reads.
_LABEL = "sched_arr_time"


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
    """A dataset's records, read and shuffled, against rows held in memory."""
    labelled = os.path.join(directory, "labelled.yaml")
    with open(ours.DECLARATION, encoding="utf-8") as f:
        text = f.read()
    with open(labelled, "w", encoding="utf-8") as f:
        f.write(f"{text}label: {{column: {_LABEL}}}\n")
    dataset = os.path.join(directory, "training-dataset")
    measure.preprocess(dataset, "blocks", path, labelled)
    for model in _MODELS:
        programs = [
            Program(rows, "train_job", (dataset, model, rows, _JOB_STEPS))
            for rows in ("dataset", "memory", "synthetic")
        ]
        found = measure.run_side_by_side(programs, arguments.runs)
        measure.print_table(f"Training {model}, by where the rows come from", found)
        measure.print_ratio(found, "dataset", "memory", 0.9)
        measure.print_ratio(found, "dataset", "synthetic")
