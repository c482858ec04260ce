"""The parts of `make bench` that train: against Keras `fit`, against memory, by strategy."""

from __future__ import annotations

import os
import statistics

from benchmarks import measure, ours, strategy_steps
from benchmarks.measure import Program

# Network, rows in a batch, steps: a network whose step costs no more than the call that
# runs it, a common one, and one whose embeddings cost most.
_CASES = (("small", 64, 6000), ("small", 512, 8000), ("large", 512, 500))
_MODELS = ("keras_wide_deep", "wide_deep")
_JOB_STEPS = "1500"
_WATCHED_STEPS = "4000"
# On one machine, whose cores they share: what is measured is what they cost.
_NONE = "none"
_STRATEGIES = {
    _NONE: "train",
    "one_device": "train --strategy=one_device",
    "mirrored, 2 devices": "train --strategy=mirrored --logical_cpus=2",
    "central_storage, 2 devices": "train --strategy=central_storage --logical_cpus=2",
    "in step, 2 workers": "cluster --nochief --workers=2 -- train",
    "ps, 1 worker": "cluster --workers=0 --ps=1 -- train",
    "ps, 2 workers": "cluster --workers=1 --ps=1 -- train",
}
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


def _labelled_dataset(path: str, directory: str) -> str:
    dataset = os.path.join(directory, "training-dataset")
    if os.path.exists(dataset):
        return dataset
    labelled = os.path.join(directory, "labelled.yaml")
    with open(ours.DECLARATION, encoding="utf-8") as f:
        text = f.read()
    with open(labelled, "w", encoding="utf-8") as f:
        f.write(f"{text}label: {{column: {_LABEL}}}\n")
    measure.preprocess(dataset, "blocks", path, labelled)
    return dataset


def job(arguments, path: str, directory: str) -> None:
    """A dataset's records, read and shuffled, against rows held in memory."""
    dataset = _labelled_dataset(path, directory)
    for model in _MODELS:
        programs = [
            Program(rows, "train_job", (dataset, model, rows, _JOB_STEPS))
            for rows in ("dataset", "memory", "synthetic")
        ]
        found = measure.run_side_by_side(programs, arguments.runs)
        measure.print_table(f"Training {model}, by where the rows come from", found)
        measure.print_ratio(found, "dataset", "memory", 0.9)
        measure.print_ratio(found, "dataset", "synthetic")


def strategies(arguments, path: str, directory: str) -> None:
    """The step of each strategy, and of one and two workers, over that of none."""
    dataset = _labelled_dataset(path, directory)
    programs = [
        Program(name, "strategy_steps", (dataset, command))
        for name, command in _STRATEGIES.items()
    ]
    found = measure.run_side_by_side(programs, arguments.runs)
    batch = strategy_steps.BATCH_SIZE
    measure.print_table(f"Strategies: wide_deep, {batch} rows a step", found)
    for name, runs in found.items():
        times = [1000 * batch / run.speed for run in runs]
        print(
            f"  {name}: {statistics.median(times):.1f} ms a step"
            f" ({min(times):.1f} to {max(times):.1f})"
        )
    for name in _STRATEGIES:
        if name != _NONE:
            measure.print_ratio(found, name, _NONE)
    measure.print_ratio(found, "ps, 2 workers", "ps, 1 worker")


def monitoring(arguments, path: str, directory: str) -> None:
    """The train command's curves, histograms and watching, against none of them."""
    dataset = _labelled_dataset(path, directory)
    for model in _MODELS:
        programs = [
            Program(way, "train_watched", (dataset, model, way, _WATCHED_STEPS))
            for way in ("watched", "unwatched")
        ]
        found = measure.run_side_by_side(programs, arguments.runs)
        measure.print_table(
            f"Training {model}, with its curves and without: processor time", found
        )
        measure.print_ratio(found, "watched", "unwatched", 0.97)
