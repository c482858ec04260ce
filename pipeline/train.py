"""The train stage: a dataset into a model directory, through train_and_evaluate."""

from __future__ import annotations

import dataclasses
import math
import os
import time

from model_fns import registry
from pipeline import (
    damage,
    estimators,
    files,
    hooks,
    model_dir,
    train_inputs,
    training_checks,
)
from pipeline import manifest as manifests
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


def _current_step(model: TrainedModel) -> int:
    if not os.path.exists(os.path.join(model.directory, "checkpoint")):
        return 0
    return estimators.latest_checkpoint(model)[1]


def _train_and_evaluate(
    model: TrainedModel,
    dataset: Dataset,
    settings: TrainingFlags,
    options: InputFlags,
    start_step: int,
    max_steps: int,
    console: Console,
) -> dict[str, float | int]:
    """Trains to max_steps and returns metrics of the eval split there."""
    epoch_steps = math.ceil(dataset.shards("train").rows / settings.batch_size)
    trained = estimators.make_estimator(
        model,
        save_checkpoints_steps=settings.checkpoint_steps or epoch_steps,
        keep_checkpoint_max=settings.keep_checkpoints,
        save_summary_steps=settings.summary_steps,
        log_step_count_steps=settings.summary_steps,
    )
    train_input = train_inputs.train_input_fn(
        dataset, model, settings, options, start_step, console
    )
    eval_input = train_inputs.eval_input_fn(dataset, "eval", model.declaration, options)
    metrics = None
    if start_step < max_steps:
        progress = hooks.ProgressHook(console, settings.batch_size, max_steps)
        metrics, _ = estimator.train_and_evaluate(
            trained,
            estimator.TrainSpec(train_input, max_steps, hooks=[progress]),
            # Every row at every checkpoint: the defaults are 100 steps, late.
            estimator.EvalSpec(
                eval_input, steps=None, start_delay_secs=0, throttle_secs=0
            ),
        )
    if metrics is None:
        metrics = trained.evaluate(eval_input)
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

    Raises:
      UserError: The dataset lacks a label or rows, the directory was trained with
        other settings, is in use, or the loss became NaN.
    """
    started = time.monotonic()
    model = _planned(directory, settings, dataset, options)
    max_steps = _max_steps(settings, dataset.shards("train").rows)
    dataset.shards("eval")
    inputs = {"dataset": dataset.manifest.fingerprint}
    configuration = {**model.training.as_json(), "max_steps": max_steps}
    with files.locked(directory):
        if training_checks.must_restart(model.training, settings, directory):
            aside = f"{directory}.old-{time.strftime('%Y%m%d-%H%M%S')}"
            os.rename(directory, aside)
            console.progress(f"train: starts afresh; what was there is now {aside}")
        finished = manifests.read(directory)
        wanted = manifests.fingerprint(_STAGE, inputs, configuration)
        complete = finished is not None and finished.fingerprint == wanted
        if complete and model_dir.has_checkpoint(directory):
            console.progress(
                f"train: reused, {directory} is complete at step {max_steps:,}"
            )
            return TrainResult(finished, 0)
        model = training_checks.check_same_structure(model)
        model_dir.write(model)
        files.write_atomically(os.path.join(directory, _FLAGS_FILE), flagfile)
        start_step = _current_step(model)
        if start_step:
            console.progress(f"train: goes on from step {start_step:,} in {directory}")
        checkpoint = estimators.latest_checkpoint(model)[0] if start_step else None
        try:
            with damage.explained(dataset, checkpoint):
                metrics = _train_and_evaluate(
                    model, dataset, settings, options, start_step, max_steps, console
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
