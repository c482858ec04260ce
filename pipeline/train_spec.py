"""From a plan to what train_and_evaluate takes."""

from __future__ import annotations

from collections.abc import Sequence

from model_fns.step_loop import StepLoop
from pipeline import (
    after_evaluation,
    computing,
    environment,
    estimators,
    hooks,
    hooks_curves,
    hooks_profile,
    hooks_stall,
    saving_hooks,
    train_inputs,
    warm_start,
)
from pipeline.cluster import running
from pipeline.cluster.evaluating import Evaluate, EvaluateNewCheckpoints
from pipeline.cluster.running import Job, Runner
from pipeline.compat import estimator
from pipeline.console import Console
from pipeline.dataset import Dataset
from pipeline.hooks_nan import NanWeightsListener
from pipeline.stopping_hooks import EarlyStoppingHook, LastStepHook, TimeBudgetHook
from pipeline.train_plan import Plan


def _step_loop(plan: Plan) -> StepLoop:
    """Returns which steps a call runs: it ends where something is to be saved."""
    settings = plan.settings
    if settings.steps_per_run == 1:
        return StepLoop((1,), plan.max_steps)
    saved = (plan.eval_steps, settings.checkpoint_steps, settings.summary_steps)
    return StepLoop((settings.steps_per_run, *filter(None, saved)), plan.max_steps)


def _estimator(
    plan: Plan, loop: StepLoop, runner: Runner, console: Console
) -> estimator.Estimator:
    settings = plan.settings
    further = runner.distribution.run_config()
    if runner.distribution.choice.is_in_step:
        # Else TensorFlow saves as well, beside our hooks.
        further |= {"save_checkpoints_secs": None, "save_checkpoints_steps": None}
    else:
        further["save_checkpoints_steps"] = plan.eval_steps
    if settings.keep_checkpoint_every_hours is not None:
        further["keep_checkpoint_every_n_hours"] = settings.keep_checkpoint_every_hours
    trained = estimators.make_estimator(
        plan.model,
        plan.options,
        keep_checkpoint_max=settings.keep_checkpoints,
        save_summary_steps=settings.summary_steps,
        log_step_count_steps=settings.summary_steps,
        **further,
    )
    if loop.longest > 1:
        trained = computing.in_loops(trained, loop)
    if plan.warm_start is None:
        return trained
    return warm_start.warm_started(trained, plan.model, plan.warm_start, console)


def _saving_hooks(
    plan: Plan,
    loop: StepLoop,
    directory: str,
    start_step: int,
    guard: NanWeightsListener,
    evaluating: Sequence,
) -> list:
    settings = plan.settings
    further = list(evaluating)
    # Others save aside, for nobody to look at.
    if settings.watch.curves and directory == plan.model.directory:
        further.insert(0, hooks_curves.HistogramsListener(directory))
    found = [
        saving_hooks.CheckpointHook(
            directory,
            plan.eval_steps,
            loop.longest,
            start_step,
            [guard, *further],
        )
    ]
    every = settings.checkpoint_steps
    if settings.checkpoint_secs or (every and every != plan.eval_steps):
        found.append(
            saving_hooks.IntermediateCheckpointHook(
                directory,
                every,
                settings.checkpoint_secs,
                [guard],
                loop.longest,
            )
        )
    return found


def _watching_hooks(
    plan: Plan, loop: StepLoop, runner: Runner, console: Console
) -> list:
    """Returns the leader's hooks that only look at the training.

    They stand before those that save and evaluate, whose time is not a step's.
    """
    settings, directory = plan.settings, plan.model.directory
    watch = settings.watch
    # In loops and over replicas batches are taken where nobody can look.
    sees_input = runner.is_plain and loop.longest == 1
    found: list = [hooks.ProgressHook(console, settings.batch_size, loop)]
    if watch.profile_steps is not None:
        found.append(
            hooks_profile.ProfileHook(
                directory, *watch.profile_steps, loop, sees_input, console
            )
        )
    if watch.curves:
        found.append(
            hooks_curves.SpeedHook(
                directory,
                settings.batch_size,
                settings.summary_steps,
                loop,
                sees_input,
            )
        )
    if watch.stall_seconds:
        waits_for = None
        if not sees_input:
            waits_for = hooks_stall.waits_for(runner.distribution.choice)
        found.append(
            hooks_stall.StallHook(console, "train", watch.stall_seconds, waits_for)
        )
    return found


def _evaluation_hooks(plan: Plan, runner: Runner, console: Console) -> list:
    found = runner.evaluation_hooks()
    seconds = plan.settings.watch.stall_seconds
    if seconds:
        # An evaluation is on one replica, whatever the training is on.
        found.append(hooks_stall.StallHook(console, "evaluation", seconds, None))
    return found


def _evaluate_new(local: estimator.Estimator, spec: estimator.EvalSpec) -> Evaluate:
    def evaluate(checkpoint: str, is_last: bool) -> None:
        # What exporters make is no part of the cluster.
        with environment.tf_config({}):
            metrics = after_evaluation.evaluate(local, spec, checkpoint)
            after_evaluation.export(local, spec, checkpoint, metrics, is_last)

    return evaluate


def make_job(
    plan: Plan,
    dataset: Dataset,
    start_step: int,
    console: Console,
    runner: Runner | None = None,
) -> Job:
    """Builds the Estimator, its inputs, hooks and exporters.

    Args:
      plan: What to train, or to evaluate.
      dataset: What to train on.
      start_step: Steps that earlier training has done.
      console: Where to print.
      runner: How to train; by default alone.
    """
    runner = runner or running.alone()
    settings, directory = plan.settings, plan.model.directory
    loop = _step_loop(plan)
    with runner.environment():
        trained = _estimator(plan, loop, runner, console)
    local = trained
    if not runner.is_plain:
        local = estimators.make_estimator(
            plan.model, plan.options, **runner.distribution.local_run_config()
        )
    train_input = train_inputs.train_input_fn(
        dataset,
        plan.model,
        settings,
        plan.reading,
        runner.own_steps(start_step),
        console,
        runner.shard(),
    )
    eval_input = train_inputs.eval_input_fn(
        dataset, "eval", plan.model.declaration, plan.reading
    )
    evaluation = estimator.EvalSpec(
        eval_input,
        # Every row at every checkpoint: the defaults are 100 steps, late.
        steps=None,
        start_delay_secs=0,
        throttle_secs=0,
        hooks=_evaluation_hooks(plan, runner, console),
        exporters=after_evaluation.make_exporters(plan, console),
    )
    # They run in this order: a checkpoint is evaluated before it is decided whether to
    # stop, so that training stops at that step.
    found: list = []
    guard = NanWeightsListener()
    if runner.distribution.choice.cluster.is_leader:
        found += _watching_hooks(plan, loop, runner, console)
    place = runner.saves_to(directory)
    if place is not None:
        listeners = []
        if runner.evaluates:
            evaluate = _evaluate_new(local, evaluation)
            listeners.append(EvaluateNewCheckpoints(directory, evaluate))
        found += _saving_hooks(plan, loop, place, start_step, guard, listeners)
    if loop.longest > 1:
        found.append(LastStepHook(loop.last_step))
    if plan.stopping is not None:
        found.append(EarlyStoppingHook(directory, plan.stopping))
    time_budget = None
    if settings.max_train_seconds is not None:
        time_budget = TimeBudgetHook(settings.max_train_seconds)
        found.append(time_budget)
    return Job(
        trained,
        local,
        estimator.TrainSpec(train_input, plan.max_steps, hooks=found),
        evaluation,
        guard,
        time_budget,
    )
