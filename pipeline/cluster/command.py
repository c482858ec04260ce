"""What commands have to do with clusters."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any

from pipeline import training_checks
from pipeline.cluster import launcher
from pipeline.cluster.choice import Choice
from pipeline.console import Console
from pipeline.dataset import Dataset
from pipeline.invocation import Invocation
from pipeline.train_plan import Plan
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


def check_plan(choice: Choice, plan: Plan) -> None:
    """Checks that what is planned can be done in a cluster.

    Raises:
      UserError: It cannot.
    """
    if not choice.cluster.is_cluster:
        return
    settings = plan.settings
    if settings.steps_per_run > 1:
        raise UserError(
            f"--steps_per_run={settings.steps_per_run}: in a cluster a call runs one"
            " step; leave it out"
        )
    if settings.max_train_seconds is not None:
        raise UserError(
            "--max_train_seconds is for one machine: the tasks of a cluster would not"
            " stop together; send SIGTERM instead"
        )
    if settings.checkpoint_secs is not None and choice.is_in_step:
        raise UserError(
            "--checkpoint_secs: workers in step save all at the same step; give"
            " --checkpoint_steps"
        )
    if plan.stopping is not None and choice.is_in_step:
        raise UserError(
            "--early_stopping_metric: workers in step cannot stop early, since each"
            " would wait for the others; use parameter servers or one machine"
        )


def train(
    choice: Choice, plan: Plan, dataset: Dataset, flagfile: str, console: Console
) -> Any:
    """Trains, as the task that this process is.

    Returns:
      A `train.TrainResult`; None in a task that does not lead.
    """
    from pipeline import damage, recovery, train, train_spec
    from pipeline.cluster import tasks

    directory = plan.model.directory

    @contextlib.contextmanager
    def explained():
        with damage.explained(dataset, None), recovery.explained_writes(directory):
            yield

    def make_job(runner, start_step):
        model = training_checks.check_same_structure(plan.model)
        made = dataclasses.replace(plan, model=model)
        return train_spec.make_job(made, dataset, start_step, console, runner)

    return tasks.run(
        choice,
        directory,
        lambda: train.find_finished(plan, dataset) is not None,
        lambda runner, prepared: train.run(
            plan, dataset, flagfile, console, runner, prepared
        ),
        make_job,
        explained,
        console,
    )
