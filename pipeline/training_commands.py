"""What the commands about training do: they check, then run their stage."""

from __future__ import annotations

import os

from model_fns import registry
from pipeline import (
    data_choice,
    environment,
    files,
    model_dir,
    train_plan,
    training_checks,
)
from pipeline import manifest as manifests
from pipeline.cluster import choice as cluster_choice
from pipeline.cluster import command as cluster_command
from pipeline.dataset import Dataset
from pipeline.diagnostics import plots, rows
from pipeline.invocation import Invocation
from pipeline.types import UserError

# As in commands.py, what imports TensorFlow is imported after all checks.

_MAIN_METRICS = ("accuracy", "auc", "average_loss", "loss")


def _report(call: Invocation) -> None:
    """Writes the page about a model, where there can be one, and says where."""
    paths = call.paths
    if manifests.read(paths.model) is None or not os.access(paths.model, os.W_OK):
        return
    from pipeline import report_page

    path = os.path.join(paths.model, report_page.FILE_NAME)
    page = report_page.render(paths.model, paths.evaluation, paths.dataset)
    files.write_atomically(path, page)
    call.console.result(f"report:     {path}")


def check_flags(call: Invocation) -> None:
    """Checks the flags of a training that need no dataset to be checked."""
    training = call.training
    cluster_choice.choose(call.cluster, call.tf_config)
    registry.find(training.model)
    model_dir.parse_hparams(training.model, training.hparams)
    train_plan.check_flags(training, call.paths.model)


def train(call: Invocation) -> None:
    """Trains a model on the dataset, where that is needed."""
    choice = cluster_choice.choose(call.cluster, call.tf_config)
    dataset, flagfile = data_choice.open_data(call)
    plan = train_plan.plan(
        call.paths.model, call.training, dataset, call.input, call.options
    )
    cluster_command.check_plan(choice, plan)
    # The stage checks again, under its lock; here the answer comes at once.
    if not training_checks.must_restart(
        plan.model.training, call.training, call.paths.model, plan.model
    ):
        training_checks.check_same_structure(plan.model)
    call.options.prepare()
    environment.load_tensorflow(call.console.verbosity)
    result = cluster_command.train(choice, plan, dataset, flagfile, call.console)
    if result is None:
        return
    results = result.manifest.results
    best = results["best"]
    call.console.result(
        f"model:      {call.paths.model}\n"
        f"            step {results['global_step']:,} ({result.steps:,} now); look at"
        f" it with `monitor`, or with tensorboard --logdir={call.paths.model}"
    )
    if best:
        call.console.result(
            f"            best checkpoint: step {best['global_step']:,},"
            f" {best['metric']} {best['value']:.6f} on the eval split"
        )
    _report(call)


def _check_slicing(call: Invocation, dataset: Dataset) -> None:
    slicing, label = call.slicing, dataset.declaration.label
    slicing.check(dataset.declaration)
    if slicing.plots:
        plots.check()
    if (slicing.plots or slicing.columns) and not rows.is_possible(label):
        raise UserError(
            "--slices and --plots are for models of one label, with one class or number"
            " a row; leave them out"
        )


def evaluate(call: Invocation) -> None:
    """Evaluates a model once, or follows its training."""
    paths, serving = call.paths, call.serving
    if not serving.eval_only_once and serving.checkpoint != "latest":
        raise UserError("--checkpoint has no effect with --noeval_only_once")
    # A training that is followed may have yet to begin.
    model = model_dir.open_model(paths.model) if serving.eval_only_once else None
    manifests.check_replaceable("evaluation_dir", paths.evaluation, "evaluate")
    dataset, _ = data_choice.open_data(call)
    trained = model_dir.read_training(paths.model)
    if trained is not None:
        call.options.check(registry.find(trained.model), dataset.declaration)
    _check_slicing(call, dataset)
    call.options.prepare()
    environment.load_tensorflow(call.console.verbosity)
    from pipeline import evaluate as stage
    from pipeline import follow

    place, split, console = paths.evaluation, serving.eval_split, call.console
    how = (call.options, call.input, call.slicing)
    if model is None:
        manifest = follow.run(place, paths.model, dataset, serving, console, *how)
    else:
        manifest = stage.run(
            place,
            model,
            dataset,
            split,
            console,
            serving.checkpoint,
            *how,
        )
    metrics = manifest.results["metrics"]
    asked = [n for n in metrics if n.split("/")[0] in map(str, call.options.metrics)]
    shown = [n for n in dict.fromkeys([*_MAIN_METRICS, *asked]) if n in metrics]
    main = ", ".join(f"{n} {metrics[n]:.6f}" for n in shown)
    call.console.result(
        f"evaluation: {call.paths.evaluation}\n"
        f"            {manifest.configuration['split']} split,"
        f" {manifest.results['rows']:,} rows: {main}"
    )
    _report(call)
