"""What commands have to do with clusters."""

from __future__ import annotations

from typing import Any

from pipeline.cluster import launcher
from pipeline.cluster.choice import Choice
from pipeline.dataset import Dataset
from pipeline.invocation import Invocation
from pipeline.types import UserError


def run_cluster(call: Invocation) -> None:
    """Runs the command `cluster`."""
    if call.arguments[:1] != ("train",):
        raise UserError(
            "cluster needs the command that its processes run, after --, and that is"
            " train: cluster --workers=2 --ps=1 -- train --work_dir=work/census"
        )
    if call.tf_config is not None:
        raise UserError("TF_CONFIG is set, and cluster sets it for its processes")
    launcher.run(call.launcher, call.arguments, call.console)


def train(call: Invocation, choice: Choice, dataset: Dataset, flagfile: str) -> Any:
    """Trains, as the task that this process is.

    Returns:
      A `train.TrainResult`; None in a task that does not lead.
    """
    from pipeline import train
    from pipeline.cluster import tasks

    given = (call.paths.model, call.training, dataset)
    return tasks.run(
        choice,
        call.paths.model,
        lambda: train.find_finished(*given, call.input) is not None,
        lambda runner, prepared: train.run(
            *given, flagfile, call.console, call.input, runner, prepared
        ),
        lambda runner, start_step: train.make_job(
            *given, start_step, runner, call.console, call.input
        ),
        call.console,
    )
