"""The train stage: a dataset into a model directory, through train_and_evaluate."""

from __future__ import annotations

import dataclasses
import math
import os
import time
from collections.abc import Callable

from model_fns import registry
from pipeline import (
    damage,
    estimators,
    files,
    hooks,
    model_dir,
    recovery,
    train_inputs,
    training_checks,
)
from pipeline import manifest as manifests
from pipeline.cluster import strategies
from pipeline.cluster.choice import ALONE
from pipeline.cluster.preemption import Preemption
from pipeline.cluster.running import Job, Runner
from pipeline.compat import estimator, tf
from pipeline.console import Console
from pipeline.dataset import Dataset
from pipeline.flags.input import DEFAULT as DEFAULT_INPUT
from pipeline.flags.input import InputFlags
from pipeline.flags.training import TrainingFlags
from pipeline.manifest import Manifest
from pipeline.model_dir import TrainedModel
from pipeline.types import ExitCode, UserError

_STAGE = "train"
_FLAGS_FILE = "flags.txt"


@dataclasses.dataclass(frozen=True)
class TrainResult:
    """What train did.

    Attributes:
      manifest: The model directory's manifest.
      steps: Steps run now; 0 where nothing was left to do.
    """

    manifest: Manifest
    steps: int


def _max_steps(settings: TrainingFlags, rows: int) -> int:
    if settings.max_steps is not None:
        return settings.max_steps
    return math.ceil(settings.epochs * rows / settings.batch_size)


def _planned(
    directory: str, settings: TrainingFlags, dataset: Dataset, options: InputFlags
) -> TrainedModel:
    registry.check_task(
        registry.find(settings.model), dataset.declaration, dataset.directory
    )
    training = model_dir.asked_training(settings, dataset.manifest.fingerprint, options)
    return TrainedModel(directory, training, dataset.declaration, dataset.constants())


def _inputs(dataset: Dataset) -> dict[str, str]:
    return {"dataset": dataset.manifest.fingerprint}


def _configuration(model: TrainedModel, max_steps: int) -> dict:
    return {**model.training.as_json(), "max_steps": max_steps}


def find_finished(
    directory: str, settings: TrainingFlags, dataset: Dataset, options: InputFlags
) -> Manifest | None:
    """Returns the manifest of a directory where nothing is left to do, else None."""
    finished = manifests.read(directory)
    if finished is None or not model_dir.has_checkpoint(directory):
        return None
    model = _planned(directory, settings, dataset, options)
    max_steps = _max_steps(settings, dataset.shards("train").rows)
    configuration = _configuration(model, max_steps)
    wanted = manifests.fingerprint(_STAGE, _inputs(dataset), configuration)
    return finished if finished.fingerprint == wanted else None


def _current_step(model: TrainedModel) -> int:
    if not os.path.exists(os.path.join(model.directory, "checkpoint")):
        return 0
    return estimators.latest_checkpoint(model)[1]


def _make_job(
    model: TrainedModel,
    dataset: Dataset,
    settings: TrainingFlags,
    options: InputFlags,
    start_step: int,
    max_steps: int,
    runner: Runner,
    console: Console,
) -> Job:
    epoch_steps = math.ceil(dataset.shards("train").rows / settings.batch_size)
    with runner.environment():
        trained = estimators.make_estimator(
            model,
            save_checkpoints_steps=settings.checkpoint_steps or epoch_steps,
            keep_checkpoint_max=settings.keep_checkpoints,
            save_summary_steps=settings.summary_steps,
            log_step_count_steps=settings.summary_steps,
            **runner.distribution.run_config(),
        )
    train_input = train_inputs.train_input_fn(
        dataset,
        model,
        settings,
        options,
        runner.own_steps(start_step),
        console,
        runner.shard(),
    )
    eval_input = train_inputs.eval_input_fn(dataset, "eval", model.declaration, options)
    progress = hooks.ProgressHook(console, settings.batch_size, max_steps)
    leads = runner.distribution.choice.cluster.is_leader
    return Job(
        trained,
        estimators.make_estimator(model, **runner.distribution.local_run_config()),
        estimator.TrainSpec(train_input, max_steps, hooks=[progress] if leads else []),
        # Every row at every checkpoint: the defaults are 100 steps, late.
        estimator.EvalSpec(eval_input, steps=None, start_delay_secs=0, throttle_secs=0),
    )


def make_job(
    directory: str,
    settings: TrainingFlags,
    dataset: Dataset,
    start_step: int,
    runner: Runner,
    console: Console,
    options: InputFlags = DEFAULT_INPUT,
) -> Job:
    """Builds what a task of a cluster that does not lead trains or evaluates.

    Args:
      directory: The model directory, which the leader has made ready.
      settings: The training flags.
      dataset: What to train on.
      start_step: Global step at which the leader says that training goes on.
      runner: How to train.
      console: Where to print.
      options: How rows are read.
    """
    model = training_checks.check_same_structure(
        _planned(directory, settings, dataset, options)
    )
    max_steps = _max_steps(settings, dataset.shards("train").rows)
    return _make_job(
        model, dataset, settings, options, start_step, max_steps, runner, console
    )


def _train_and_evaluate(
    model: TrainedModel,
    dataset: Dataset,
    settings: TrainingFlags,
    options: InputFlags,
    start_step: int,
    max_steps: int,
    runner: Runner,
    console: Console,
) -> dict[str, float | int]:
    """Trains to max_steps and returns metrics of the eval split there."""
    job = _make_job(
        model, dataset, settings, options, start_step, max_steps, runner, console
    )
    metrics = None
    if start_step < max_steps:
        metrics = runner.train_and_evaluate(job)
    if metrics is None:
        metrics = job.local.evaluate(job.evaluation.input_fn)
    # The process keeps event writers by directory; they would go on after a restart.
    tf.compat.v1.summary.FileWriterCache.clear()
    return estimators.plain_metrics(metrics)


def _summary_lines(steps: int, reached: int, max_steps: int, directory: str) -> str:
    if steps:
        return f"train: ran {steps:,} steps, now at step {reached:,}, in {directory}"
    beyond = "" if reached == max_steps else f" (asked for {max_steps:,})"
    return (
        f"train: ran 0 steps, since {directory} is already at step {reached:,}{beyond};"
        " metrics are recomputed. For more training raise --epochs or --max_steps"
    )


def run(
    directory: str,
    settings: TrainingFlags,
    dataset: Dataset,
    flagfile: str,
    console: Console,
    options: InputFlags = DEFAULT_INPUT,
    runner: Runner | None = None,
    prepared: Callable[[int], None] = lambda start_step: None,
) -> TrainResult:
    """Trains up to the asked step, or reuses a model that is complete.

    Where the directory has a checkpoint of the same settings, training goes on from
    it, at the next row of the data.

    Args:
      directory: The model directory.
      settings: The training flags.
      dataset: What to train on.
      flagfile: Text of a flagfile that repeats this run; kept for the user.
      console: Where to print.
      options: The input flags.
      runner: How to train; by default alone, with what devices there are.
      prepared: Called with the first step once the directory is ready.

    Raises:
      UserError: The dataset lacks a label or rows, the directory was trained with
        other settings, is in use, or the loss became NaN.
    """
    started = time.monotonic()
    model = _planned(directory, settings, dataset, options)
    max_steps = _max_steps(settings, dataset.shards("train").rows)
    dataset.shards("eval")
    inputs, configuration = _inputs(dataset), _configuration(model, max_steps)
    runner = runner or Runner(strategies.make(ALONE), Preemption())
    with files.locked(directory):
        if training_checks.must_restart(model.training, settings, directory):
            aside = f"{directory}.old-{time.strftime('%Y%m%d-%H%M%S')}"
            os.rename(directory, aside)
            console.progress(f"train: starts afresh; what was there is now {aside}")
        finished = find_finished(directory, settings, dataset, options)
        if finished:
            console.progress(
                f"train: reused, {directory} is complete at step {max_steps:,}"
            )
            return TrainResult(finished, 0)
        model = training_checks.check_same_structure(model)
        model_dir.write(model)
        files.write_atomically(os.path.join(directory, _FLAGS_FILE), flagfile)
        recovery.fall_back(directory, console)
        start_step = _current_step(model)
        if start_step:
            console.progress(f"train: goes on from step {start_step:,} in {directory}")
        prepared(start_step)
        checkpoint = estimators.latest_checkpoint(model)[0] if start_step else None
        try:
            with (
                damage.explained(dataset, checkpoint),
                recovery.explained_writes(directory),
            ):
                metrics = _train_and_evaluate(
                    model,
                    dataset,
                    settings,
                    options,
                    start_step,
                    max_steps,
                    runner,
                    console,
                )
        except tf.compat.v1.train.NanLossDuringTrainingError:
            raise UserError(
                f"train: the loss became NaN; the last checkpoint in {directory} is"
                " from before it. Try a lower learning_rate in --hparams, and look for"
                " extreme values with `show`",
                ExitCode.BAD_DATA,
            ) from None
        reached = _current_step(model)
        console.progress(
            _summary_lines(reached - start_step, reached, max_steps, directory)
        )
        results = {
            "global_step": reached,
            "metrics": metrics,
            "train_rows": dataset.shards("train").rows,
        }
        manifest = manifests.write(
            directory, _STAGE, inputs, configuration, results, started
        )
    return TrainResult(manifest, reached - start_step)
