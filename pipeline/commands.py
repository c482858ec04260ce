"""The commands: each checks what it is asked, then runs its stages."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence

from export import versions
from model_fns import registry
from pipeline import (
    data_choice,
    environment,
    files,
    model_dir,
    predict,
    show,
    training_checks,
)
from pipeline import manifest as manifests
from pipeline.cluster import choice as cluster_choice
from pipeline.cluster import command as cluster_command
from pipeline.dataset import open_dataset
from pipeline.flags import input as input_flags
from pipeline.flags.training import TrainingFlags
from pipeline.invocation import Invocation as Invocation
from pipeline.manifest import Manifest
from pipeline.model_dir import TrainedModel
from pipeline.preprocess import stage as preprocess_stage
from pipeline.preprocess.sources import registry as sources_registry
from pipeline.types import ExitCode, UserError

# Stages import TensorFlow or Beam, which takes seconds. So a command first checks
# everything that can be checked without them, and imports its stages then.


_MAIN_METRICS = ("accuracy", "auc", "average_loss", "loss")


def _check_model(training: TrainingFlags) -> None:
    registry.find(training.model)
    model_dir.parse_hparams(training.model, training.hparams)


def _check_dataset_dir(dataset: str, inputs: Sequence[str]) -> None:
    """Checks that replacing the dataset directory removes nothing of the user's."""
    manifests.check_replaceable("dataset_dir", dataset, "preprocess")
    inside = os.path.join(os.path.realpath(dataset), "")
    for path in inputs:
        if os.path.realpath(path).startswith(inside):
            raise UserError(
                f"--dataset_dir: {dataset} holds {path}, which is an --input, and"
                " would be replaced with it; choose another directory"
            )


def _preprocess(call: Invocation, plan: preprocess_stage.Plan) -> Manifest:
    manifest = preprocess_stage.run(call.paths.dataset, plan, call.console)
    results = manifest.results
    written = ", ".join(f"{s} {n:,}" for s, n in results["rows_written"].items())
    call.console.result(
        f"dataset:    {call.paths.dataset}\n"
        f"            {results['rows_read']:,} rows read = {written} written"
        f" + {results['rows_rejected']:,} rejected"
    )
    if results["missing_values"]:
        missing = ", ".join(f"{c} {n:,}" for c, n in results["missing_values"].items())
        call.console.result(f"            missing values: {missing}")
    for loss in results["lost"]:
        call.console.result(
            f"            left out: {loss['path']} from record {loss['record']:,} on:"
            f" {loss['reason']}"
        )
    for column in plan.declaration.columns.values():
        rows = sum(results["rows_written"].values())
        present = 1 - results["missing_values"].get(column.name, 0) / max(rows, 1)
        if column.min_fraction is not None and present < column.min_fraction:
            call.console.result(
                f"            anomaly: {present:.1%} of the rows have a value of"
                f" {column.name}, below its min_fraction {column.min_fraction:.1%}"
            )
    if plan.inferred:
        call.console.result(
            "            features were inferred; edit a copy of"
            f" {os.path.join(call.paths.dataset, 'features.yaml')} and pass it as"
            " --features"
        )
    return manifest


def _train(call: Invocation) -> None:
    choice = cluster_choice.choose(call.cluster, call.tf_config)
    dataset, flagfile = data_choice.open_data(call)
    registry.check_task(
        registry.find(call.training.model), dataset.declaration, dataset.directory
    )
    planned = TrainedModel(
        call.paths.model,
        model_dir.asked_training(
            call.training, dataset.manifest.fingerprint, call.input
        ),
        dataset.declaration,
        dataset.constants(),
    )
    # The stage checks again, under its lock; here the answer comes at once.
    if not training_checks.must_restart(
        planned.training, call.training, planned.directory, planned
    ):
        training_checks.check_same_structure(planned)
    environment.load_tensorflow(call.console.verbosity)
    result = cluster_command.train(call, choice, dataset, flagfile)
    if result is None:
        return
    call.console.result(
        f"model:      {call.paths.model}\n"
        f"            step {result.manifest.results['global_step']:,}"
        f" ({result.steps:,} now); look at it with"
        f" tensorboard --logdir={call.paths.model}"
    )


def _evaluate(call: Invocation) -> None:
    model = model_dir.open_model(call.paths.model)
    manifests.check_replaceable("evaluation_dir", call.paths.evaluation, "evaluate")
    dataset, _ = data_choice.open_data(call)
    environment.load_tensorflow(call.console.verbosity)
    from pipeline import evaluate

    manifest = evaluate.run(
        call.paths.evaluation,
        model,
        dataset,
        call.serving.eval_split,
        call.console,
        call.input,
    )
    metrics = manifest.results["metrics"]
    main = ", ".join(f"{n} {metrics[n]:.6f}" for n in _MAIN_METRICS if n in metrics)
    call.console.result(
        f"evaluation: {call.paths.evaluation}\n"
        f"            {manifest.configuration['split']} split,"
        f" {manifest.results['rows']:,} rows: {main}"
    )


def _export(call: Invocation) -> None:
    model = model_dir.open_model(call.paths.model)
    dataset, _ = data_choice.open_data(call)
    environment.load_tensorflow(call.console.verbosity)
    from pipeline import export_model

    result = export_model.run(
        call.paths.export, model, dataset, call.serving, call.console
    )
    verified = result.manifest.results["verification"]
    call.console.result(
        f"export:     {result.directory}\n"
        f"            verified in a fresh process: {verified['rows']:,} rows, largest"
        f" difference {verified['largest_difference']:.2g}"
    )


def run_preprocess(call: Invocation) -> None:
    plan = preprocess_stage.plan(call.data, call.schema)
    _check_dataset_dir(call.paths.dataset, plan.paths)
    _preprocess(call, plan)


def run_train(call: Invocation) -> None:
    cluster_choice.choose(call.cluster, call.tf_config)
    _check_model(call.training)
    data_choice.check_training(call.input, call.training, call.console.verbosity)
    _train(call)


def run_evaluate(call: Invocation) -> None:
    data_choice.check_not_training(call.input, call.given, "evaluate")
    _evaluate(call)


def run_export(call: Invocation) -> None:
    data_choice.check_not_training(call.input, call.given, "export")
    _export(call)


def run_all(call: Invocation) -> None:
    """preprocess, train, evaluate, export, verify; each only where needed."""
    _check_model(call.training)
    cluster_choice.check_alone(call.cluster, call.tf_config)
    data_choice.check_training(call.input, call.training, call.console.verbosity)
    if call.input.input_fn == input_flags.DIRECT:
        raise UserError(
            "--input_fn=direct has no effect on run, which writes a dataset; leave it"
            " out, or give train, evaluate and export one by one"
        )
    # What --input names is in the dataset, which the other stages read.
    call = dataclasses.replace(call, given=frozenset())
    plan = preprocess_stage.plan(call.data, call.schema)
    registry.check_task(
        registry.find(call.training.model),
        plan.declaration,
        call.data.features or "the inferred declaration (give --label=COLUMN)",
    )
    _check_dataset_dir(call.paths.dataset, plan.paths)
    manifests.check_replaceable("evaluation_dir", call.paths.evaluation, "evaluate")
    # Known before the data is read, so said before: hours may lie between.
    old = model_dir.read_training(call.paths.model)
    if old is not None:
        asked = model_dir.asked_training(call.training, old.dataset, call.input)
        training_checks.must_restart(asked, call.training, call.paths.model)
    _preprocess(call, plan)
    _train(call)
    _evaluate(call)
    _export(call)


def run_predict(call: Invocation) -> None:
    if not call.data.input:
        raise UserError("--input is needed: the files to predict")
    if not call.output:
        raise UserError("--output is needed: the file to write, e.g. out.jsonl")
    sources = sources_registry.open_inputs(call.data)
    output = os.path.expanduser(call.output.strip())
    if not os.path.isdir(os.path.dirname(os.path.abspath(output))):
        raise UserError(f"--output: there is no directory for {output}")
    if os.path.isdir(output):
        raise UserError(f"--output: {output} is a directory; give a file")
    if os.path.realpath(output) in [
        os.path.realpath(source.path) for source in sources
    ]:
        raise UserError(f"--output: {output} is an --input, and would be overwritten")
    version = versions.find(call.paths.export, call.serving.version)
    result = predict.run(sources, version, output, call.console)
    call.console.result(f"predictions: {result.output}, {result.rows:,} rows")
    if result.rejected:
        call.console.result(
            f"             {result.rejected:,} rows could not be read: {result.rejects}"
        )
    for loss in result.losses:
        call.console.result(f"             left out: {loss.path}: {loss.reason}")


def _path(given: str) -> str:
    return os.path.abspath(os.path.expanduser(given.strip()))


def run_check(call: Invocation) -> None:
    output = call.output and _path(call.output)
    schema = call.schema and _path(call.schema)
    settings = call.checks
    if settings.against:
        settings = dataclasses.replace(settings, against=_path(settings.against))
    # Arrow and protobuf take a moment to import; other commands need neither.
    from pipeline.checks import report
    from pipeline.checks import run as check

    check.check_output(output)
    result = check.check(call.paths.dataset, settings, schema)
    for line in report.to_lines(result):
        call.console.result(line)
    if output:
        check.write(result, output)
        call.console.result(f"report: {output}")
    if result.anomalies:
        raise UserError(
            f"{len(result.anomalies)} anomalies in {call.paths.dataset}; the first:"
            f" {result.anomalies[0].column or 'dataset'}:"
            f" {result.anomalies[0].message}",
            ExitCode.ANOMALIES,
        )


def run_show(call: Invocation) -> None:
    if len(call.arguments) != 1:
        raise UserError(
            "show needs one directory: a dataset, model, evaluation, export version"
            " or work directory"
        )
    directory = call.arguments[0].rstrip(os.sep) or os.sep
    if call.showing.format == "html":
        # Arrow takes a moment to import.
        from pipeline import show_page

        output = _path(call.output or f"{directory}.html")
        files.write_atomically(output, show_page.render(directory))
        call.console.result(f"page: {output}")
    elif call.output:
        raise UserError("--output is for --format=html")
    elif call.showing.rows:
        dataset = open_dataset(directory)
        environment.load_tensorflow(call.console.verbosity)
        from pipeline import show_rows

        rows = show_rows.first_rows(dataset, call.showing.split, call.showing.rows)
        for line in rows:
            call.console.result(line)
    else:
        for line in show.describe(directory):
            call.console.result(line)


@dataclasses.dataclass(frozen=True)
class Command:
    """A command of the program.

    Attributes:
      summary: One line for people.
      topics: Modules of pipeline.flags whose flags it takes.
      run: What it does.
      example: A command line that works.
      takes_arguments: Whether words that are no flags are allowed.
    """

    summary: str
    topics: tuple[str, ...]
    run: Callable[[Invocation], None]
    example: str
    takes_arguments: bool = False


COMMANDS: Mapping[str, Command] = {
    "run": Command(
        "the whole job: preprocess, train, evaluate, export, verify",
        (
            "paths",
            "data",
            "schema",
            "writing",
            "input",
            "training",
            "cluster",
            "serving",
            "general",
        ),
        run_all,
        "run --input=data.csv --label=income --work_dir=work/census",
    ),
    "preprocess": Command(
        "raw files to a dataset: checked rows, statistics, vocabularies",
        ("paths", "data", "schema", "writing", "general"),
        run_preprocess,
        "preprocess --input='data/*.csv' --features=features.yaml",
    ),
    "check": Command(
        "a dataset against a schema, and against an earlier dataset",
        ("paths", "schema", "checks", "output", "general"),
        run_check,
        "check --dataset_dir=work/today --against=work/yesterday",
    ),
    "train": Command(
        "a dataset to a trained model",
        ("paths", "data", "schema", "input", "training", "cluster", "general"),
        run_train,
        "train --work_dir=work/census --model=wide_deep --epochs=10",
    ),
    "cluster": Command(
        "train in a local cluster of processes, from start to end",
        ("launcher", "general"),
        cluster_command.run_cluster,
        "cluster --workers=2 --ps=1 --evaluator -- train --work_dir=work/census",
        takes_arguments=True,
    ),
    "evaluate": Command(
        "metrics of a trained model on a split",
        ("paths", "data", "schema", "input", "training", "serving", "general"),
        run_evaluate,
        "evaluate --work_dir=work/census --eval_split=test",
    ),
    "export": Command(
        "a trained model to a SavedModel that is loaded again and compared",
        ("paths", "data", "schema", "input", "training", "serving", "general"),
        run_export,
        "export --work_dir=work/census",
    ),
    "predict": Command(
        "predictions of an exported model for raw files",
        ("paths", "data", "training", "serving", "output", "general"),
        run_predict,
        "predict --work_dir=work/census --input=new.csv --output=out.jsonl",
    ),
    "show": Command(
        "what a dataset, model, evaluation or export directory holds",
        ("showing", "output", "general"),
        run_show,
        "show work/census/dataset",
        takes_arguments=True,
    ),
}
