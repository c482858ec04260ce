"""The train stage: a dataset into a model directory, through train_and_evaluate."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable

from pipeline import (
    after_evaluation,
    best,
    checkpoints,
    damage,
    done,
    estimators,
    evaluations,
    event_files,
    files,
    hparams_summaries,
    model_dir,
    projector,
    recovery,
    saving_hooks,
    train_inputs,
    train_spec,
    training_checks,
    transient,
)
from pipeline import manifest as manifests
from pipeline.cluster import running
from pipeline.cluster.running import Runner
from pipeline.compat import tf
from pipeline.console import Console
from pipeline.dataset import Dataset
from pipeline.manifest import Manifest
from pipeline.model_dir import TrainedModel
from pipeline.train_plan import Plan
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


@dataclasses.dataclass(frozen=True)
class _Ending:
    """Where a training has arrived.

    Attributes:
      step: Global step.
      metrics: Metrics of the eval split there.
      stopped_early: Why early stopping ended it, if it did.
      paused: Whether its time was used up before it was complete.
    """

    step: int
    metrics: dict[str, float | int]
    stopped_early: str | None
    paused: bool


def _current_step(model: TrainedModel) -> int:
    if not model_dir.has_checkpoint(model.directory):
        return 0
    return estimators.latest_checkpoint(model)[1]


def _stop_reason(plan: Plan) -> str | None:
    if plan.stopping is None:
        return None
    return plan.stopping.reason(evaluations.read(plan.model.directory))


def _recorded(plan: Plan, step: int) -> dict[str, float] | None:
    """Returns the metrics of an evaluation that was done at a step."""
    for evaluation in evaluations.read(plan.model.directory):
        if evaluation.global_step == step:
            return {**evaluation.metrics, "global_step": step}
    return None


def _evaluation_is_missing(plan: Plan, step: int) -> bool:
    """Whether a kill came between a checkpoint and the end of its evaluation."""
    is_due = step > 0 and step % plan.eval_steps == 0
    return is_due and _recorded(plan, step) is None


def _train_and_evaluate(
    plan: Plan, dataset: Dataset, start_step: int, runner: Runner, console: Console
) -> _Ending:
    """Trains until max_steps, or until something else ends it."""
    model = plan.model
    job = train_spec.make_job(plan, dataset, start_step, console, runner)
    trained, spec = job.local, job.evaluation
    has_evaluator = runner.distribution.choice.cluster.has_evaluator
    metrics = None
    if start_step < plan.max_steps:
        if _evaluation_is_missing(plan, start_step) and not has_evaluator:
            checkpoint = estimators.latest_checkpoint(model)[0]
            metrics = after_evaluation.evaluate(trained, spec, checkpoint)
            after_evaluation.export(trained, spec, checkpoint, metrics, is_final=False)
        if _stop_reason(plan) is None:
            metrics = runner.train_and_evaluate(job)
    checkpoint, step = estimators.latest_checkpoint(model)
    if metrics is None and step > start_step:
        # In a cluster train_and_evaluate returns nothing.
        metrics = _recorded(plan, step)
    if metrics is None:
        metrics = after_evaluation.evaluate(trained, spec, checkpoint)
    stopped = _stop_reason(plan) if step < plan.max_steps else None
    paused = (
        stopped is None
        and step < plan.max_steps
        and job.time_budget is not None
        and job.time_budget.used_up
    )
    plain = estimators.plain_metrics(metrics)
    if not paused:
        after_evaluation.export(trained, spec, checkpoint, metrics, is_final=True)
    # The process keeps event writers by directory; they would go on after a restart.
    tf.compat.v1.summary.FileWriterCache.clear()
    return _Ending(step, plain, stopped, paused)


def _prepare(plan: Plan, flagfile: str, console: Console) -> int:
    """Makes the directory ready; returns the step at which training goes on."""
    model, directory = plan.model, plan.model.directory
    done.remove(directory)
    before = model_dir.read_training(directory)
    model_dir.write(model)
    files.write_atomically(os.path.join(directory, _FLAGS_FILE), flagfile)
    recovery.fall_back(directory, console)
    checkpoints.limit(directory, plan.settings.keep_checkpoints)
    start_step = _current_step(model)
    if start_step == 0:
        best.forget_another(model)
    valid = start_step
    if before is not None and model_dir.differences(before, model.training):
        # Patience counts evaluations of one training; of others only the best lasts.
        valid = -1
    eval_directory = os.path.join(directory, "eval")
    event_files.wait_for_a_new_name(directory, eval_directory)
    if evaluations.drop_after(directory, valid):
        last = start_step if valid == start_step else start_step - 1
        saving_hooks.mark_start(eval_directory, last)
    return start_step


def _say_start(plan: Plan, start_step: int, console: Console) -> None:
    if start_step:
        ignored = "" if plan.warm_start is None else "; the warm start is ignored"
        console.progress(
            f"train: goes on from step {start_step:,} in {plan.model.directory}"
            f"{ignored}"
        )
    if start_step < plan.max_steps < start_step + plan.eval_steps:
        asked = plan.settings.evaluation.eval_steps
        if asked is not None:
            console.progress(
                f"train: --eval_steps={asked} is more than the"
                f" {plan.max_steps - start_step:,} steps to run: evaluated at the end"
                " only"
            )


def _say_end(plan: Plan, start_step: int, ending: _Ending, console: Console) -> None:
    directory, steps = plan.model.directory, ending.step - start_step
    if ending.stopped_early:
        console.progress(f"train: stopped early: {ending.stopped_early}")
    elif ending.paused:
        console.progress(
            f"train: paused after --max_train_seconds="
            f"{plan.settings.max_train_seconds} at step {ending.step:,} of"
            f" {plan.max_steps:,}; the same command goes on from there"
        )
    if steps:
        console.progress(
            f"train: ran {steps:,} steps, now at step {ending.step:,}, in {directory}"
        )
        return
    beyond = ""
    if ending.step != plan.max_steps:
        beyond = f" (asked for {plan.max_steps:,})"
    console.progress(
        f"train: ran 0 steps, since {directory} is already at step {ending.step:,}"
        f"{beyond}; metrics are recomputed. For more training raise --epochs or"
        " --max_steps"
    )


def _inputs(dataset: Dataset) -> dict[str, str]:
    return {"dataset": dataset.manifest.fingerprint}


def find_finished(plan: Plan, dataset: Dataset) -> Manifest | None:
    """Returns the manifest of a directory where nothing is left to do, else None."""
    directory = plan.model.directory
    finished = manifests.read(directory)
    wanted = manifests.fingerprint(_STAGE, _inputs(dataset), plan.configuration())
    if finished is None or finished.fingerprint != wanted:
        return None
    if finished.results.get("paused") or not model_dir.has_checkpoint(directory):
        return None
    return finished


def _results(plan: Plan, dataset: Dataset, ending: _Ending) -> dict:
    found = best.read(plan.model.directory)
    return {
        "global_step": ending.step,
        "metrics": ending.metrics,
        "train_rows": dataset.shards("train").rows,
        "best": found
        and {
            "global_step": found.global_step,
            "metric": found.metric,
            "value": found.value,
        },
        "stopped_early": ending.stopped_early,
        "paused": ending.paused,
    }


def _train_through_faults(
    plan: Plan, dataset: Dataset, start_step: int, runner: Runner, console: Console
) -> _Ending:
    """Trains, and goes on where a file could not be read or written for a moment.

    Not in a cluster, where the others would wait: it ends then, and is started again.
    """
    may_go_on = not runner.distribution.choice.cluster.is_cluster
    for seconds in transient.PAUSES:
        try:
            return _train_and_evaluate(plan, dataset, start_step, runner, console)
        except tf.errors.OpError as error:
            fault = transient.in_message(str(error))
            if fault is None or not may_go_on:
                raise
        start_step = _current_step(plan.model)
        console.progress(
            f"train: {fault}; goes on from step {start_step:,} in {seconds:g} seconds"
        )
        transient.pause(seconds)
    return _train_and_evaluate(plan, dataset, start_step, runner, console)


def _describe(plan: Plan) -> None:
    """Writes what TensorBoard shows of the model beside its curves."""
    hparams_summaries.write(plan.model, plan.max_steps)
    projector.write(plan.model, estimators.latest_checkpoint(plan.model)[0])


def _train(
    plan: Plan, dataset: Dataset, start_step: int, runner: Runner, console: Console
) -> _Ending:
    """Trains, and turns what a user can act on into one line."""
    model = plan.model
    checkpoint = estimators.latest_checkpoint(model)[0] if start_step else None
    try:
        with (
            damage.explained(dataset, checkpoint),
            recovery.explained_writes(model.directory),
        ):
            return _train_through_faults(plan, dataset, start_step, runner, console)
    except tf.compat.v1.train.NanLossDuringTrainingError:
        raise UserError(
            f"train: the loss became NaN; the last checkpoint in {model.directory} is"
            " from before it. Try a lower learning_rate in --hparams, and look for"
            " extreme values with `show`",
            ExitCode.BAD_DATA,
        ) from None


def run(
    plan: Plan,
    dataset: Dataset,
    flagfile: str,
    console: Console,
    runner: Runner | None = None,
    prepared: Callable[[int], None] = lambda start_step: None,
) -> TrainResult:
    """Trains up to the asked step, or reuses a model that is complete.

    Where the directory has a checkpoint of the same settings, training goes on from
    it, at the next row of the data.

    Args:
      plan: What to train.
      dataset: What to train on.
      flagfile: Text of a flagfile that repeats this run; kept for the user.
      console: Where to print.
      runner: How to train; by default alone, with what devices there are.
      prepared: Called with the first step once the directory is ready.

    Raises:
      UserError: The directory was trained with other settings, is in use, or the loss
        became NaN.
    """
    started = time.monotonic()
    directory = plan.model.directory
    # Says what is wrong with it before the directory is touched.
    train_inputs.eval_input_fn(dataset, "eval", plan.model.declaration, plan.reading)
    with files.locked(directory):
        if training_checks.must_restart(plan.model.training, plan.settings, directory):
            aside = f"{directory}.old-{time.strftime('%Y%m%d-%H%M%S')}"
            os.rename(directory, aside)
            console.progress(f"train: starts afresh; what was there is now {aside}")
        finished = find_finished(plan, dataset)
        if finished:
            step = finished.results["global_step"]
            done.write(directory, done.Done(step))
            console.progress(
                f"train: reused, {directory} is complete at step {step:,}; ran 0 steps"
            )
            return TrainResult(finished, 0)
        configuration = plan.configuration()
        model = training_checks.check_same_structure(plan.model)
        plan = dataclasses.replace(plan, model=model)
        start_step = _prepare(plan, flagfile, console)
        _say_start(plan, start_step, console)
        prepared(start_step)
        try:
            ending = _train(
                plan, dataset, start_step, runner or running.alone(), console
            )
            _say_end(plan, start_step, ending, console)
            _describe(plan)
            manifest = manifests.write(
                directory,
                _STAGE,
                _inputs(dataset),
                configuration,
                _results(plan, dataset, ending),
                started,
            )
        except Exception as error:
            # After SIGTERM the same command goes on, so that it has not ended.
            code = error.exit_code if isinstance(error, UserError) else None
            if code is not ExitCode.PREEMPTED:
                done.write(directory, done.Done(start_step, str(error) or repr(error)))
            raise
        done.write(directory, done.Done(ending.step))
    return TrainResult(manifest, ending.step - start_step)
