"""Trains a model as the train command does, with its curves or without.

Arguments: OUTPUT DATASET MODEL WAY STEPS; WAY is watched or unwatched. The time is that
of the processors for the whole training: graph, steps, two checkpoints with their
evaluations, event files. Wall time differs far more between two runs of one way than
between the ways.
"""

from __future__ import annotations

import dataclasses
import time

from benchmarks import flags, measure

_BATCH_SIZE = 512


def main(output: str, dataset_dir: str, model: str, way: str, steps: str) -> None:
    with measure.stopwatch() as elapsed:
        from pipeline import environment

        environment.set_verbosity(0)
        environment.load_tensorflow(0)
        from pipeline import train, train_plan
        from pipeline.console import Console
        from pipeline.dataset import open_dataset
        from pipeline.flags.watching import WatchFlags

        import_seconds = elapsed()

    settings = flags.training(
        f"--model={model}",
        f"--batch_size={_BATCH_SIZE}",
        f"--max_steps={steps}",
        f"--eval_steps={int(steps) // 2}",
    )
    if way == "unwatched":
        watch = WatchFlags(curves=False, stall_seconds=0)
        settings = dataclasses.replace(settings, watch=watch)
    dataset = open_dataset(dataset_dir)

    plan = train_plan.plan(output, settings, dataset)
    began = time.process_time()
    train.run(plan, dataset, "", Console(-1))
    seconds = time.process_time() - began
    measure.report(int(steps) * _BATCH_SIZE, seconds, import_seconds, 0)
