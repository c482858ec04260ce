"""The commands of the program, and those of them that look at what is there."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence

from export import versions
from pipeline import (
    environment,
    exec_script,
    files,
    monitor,
    predict,
    show,
    show_models,
    stage_commands,
)
from pipeline import manifest as manifests
from pipeline.cluster import command as cluster_command
from pipeline.dataset import open_dataset
from pipeline.invocation import Invocation
from pipeline.preprocess.sources import registry as sources_registry
from pipeline.retraining import commands as retraining
from pipeline.tuning import command as tuning_command
from pipeline.types import ExitCode, UserError


def run_predict(call: Invocation) -> None:
    if not call.data.input:
        raise UserError("--input is needed: the files to predict")
    wanted = call.predicting
    if not call.output and not wanted.output_dir:
        raise UserError(
            "--output is needed, the file to write, e.g. out.jsonl; or --output_dir"
        )
    if call.output and wanted.output_dir:
        raise UserError("--output and --output_dir: give one of them")
    sources = sources_registry.open_inputs(call.data)
    settings = predict.Settings(
        wanted.output_format,
        wanted.rows_per_file,
        wanted.key_columns,
        wanted.signature,
        call.data.beam_options,
        call.data.beam_stall_seconds,
    )
    if call.output:
        output = os.path.expanduser(call.output.strip())
        predict.check_output(output, sources)
        version = versions.find(call.paths.export, call.serving.version)
        result = predict.run(sources, version, output, call.console, settings)
    else:
        directory = _path(wanted.output_dir)
        predict.check_directory(directory, sources)
        version = versions.find(call.paths.export, call.serving.version)
        result = predict.run_directory(
            sources, version, directory, call.console, settings, call.data.reading()
        )
    reused = ", reused" if result.reused else ""
    call.console.result(f"predictions: {result.output}, {result.rows:,} rows{reused}")
    if result.rejected:
        call.console.result(
            f"             {result.rejected:,} rows could not be read: {result.rejects}"
        )
    for loss in result.losses:
        call.console.result(f"             left out: {loss.path}: {loss.reason}")


def run_serve(call: Invocation) -> None:
    from pipeline.serving import server

    server.start(call.paths.export, call.serving.version, call.serve, call.console)


def run_monitor(call: Invocation) -> None:
    chosen = "model_dir" in call.given
    directory = call.paths.model if chosen else call.paths.work_dir
    monitor.check(directory)
    monitor.start(directory, call.monitoring, call.console)


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


def _render(directory: str) -> str:
    # Arrow takes a moment to import.
    from pipeline import report_page, show_page

    found = manifests.read(directory)
    if found is not None and found.stage == "train":
        return report_page.render(os.path.abspath(directory))
    return show_page.render(directory)


def run_show(call: Invocation) -> None:
    if len(call.arguments) != 1:
        raise UserError(
            "show needs one directory: a dataset, model, evaluation, export version"
            " or work directory"
        )
    directory = call.arguments[0].rstrip(os.sep) or os.sep
    if call.showing.format == "html":
        output = _path(call.output or f"{directory}.html")
        files.write_atomically(output, _render(directory))
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


def run_models(call: Invocation) -> None:
    for line in show_models.describe(call.arguments):
        call.console.result(line)


@dataclasses.dataclass(frozen=True)
class Command:
    """A command of the program.

    Attributes:
      summary: One line for people.
      topics: Modules of pipeline.flags whose flags it takes.
      run: What it does; it may return an exit code.
      example: A command line that works.
      takes_arguments: Whether words that are no flags are allowed.
      execute: Does it instead of `run` where all that follows the command, flags
        included, is meant for another program.
    """

    summary: str
    topics: tuple[str, ...]
    run: Callable[[Invocation], ExitCode | None] | None
    example: str
    takes_arguments: bool = False
    execute: Callable[[Sequence[str]], None] | None = None


_TRAIN_ALONE = (
    "training",
    "evaluation",
    "warm_start",
    "watching",
    "metrics",
    "compute",
)
_TRAIN = (*_TRAIN_ALONE, "cluster")

COMMANDS: Mapping[str, Command] = {
    "run": Command(
        "the whole job: preprocess, train, evaluate, export, verify",
        (
            "paths",
            "data",
            "schema",
            "writing",
            "workers",
            "input",
            *_TRAIN,
            "serving",
            "slicing",
            "exporting",
            "general",
        ),
        stage_commands.run_all,
        "run --input=data.csv --label=income --work_dir=work/census",
    ),
    "preprocess": Command(
        "raw files to a dataset: checked rows, statistics, vocabularies",
        ("paths", "data", "schema", "writing", "workers", "general"),
        stage_commands.run_preprocess,
        "preprocess --input='data/*.csv' --features=features.yaml",
    ),
    "check": Command(
        "a dataset against a schema, and against an earlier dataset",
        ("paths", "schema", "checks", "output", "general"),
        run_check,
        "check --dataset_dir=work/today --against=work/yesterday",
    ),
    "train": Command(
        "a dataset, or raw files, to a trained model",
        ("paths", "data", "schema", "input", *_TRAIN, "general"),
        stage_commands.run_train,
        "train --work_dir=work/census --model=wide_deep --epochs=10",
    ),
    "tune": Command(
        "trains with several hyper-parameters, and says which are the best",
        ("paths", "input", *_TRAIN_ALONE, "tuning", "general"),
        tuning_command.run_tune,
        "tune --work_dir=work/census --search='learning_rate=0.001..0.1:log'",
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
        (
            "paths",
            "data",
            "schema",
            "input",
            "training",
            "serving",
            "slicing",
            "metrics",
            "compute",
            "general",
        ),
        stage_commands.run_evaluate,
        "evaluate --work_dir=work/census --eval_split=test",
    ),
    "export": Command(
        "a trained model to a SavedModel that is loaded again and compared",
        (
            "paths",
            "data",
            "schema",
            "input",
            "training",
            "serving",
            "exporting",
            "general",
        ),
        stage_commands.run_export,
        "export --work_dir=work/census",
    ),
    "retrain": Command(
        "a night: the last days to a candidate, which is published if it is better",
        (
            "paths",
            "data",
            "schema",
            "writing",
            "workers",
            "checks",
            "input",
            "training",
            "evaluation",
            "watching",
            "metrics",
            "compute",
            "serving",
            "exporting",
            "retraining",
            "blessing",
            "publishing",
            "notices",
            "general",
        ),
        retraining.run_retrain,
        "retrain --input={date}.csv --features=f.yaml --run_date=2013-06-01",
    ),
    "status": Command(
        "the champion of scheduled retraining, its last runs, lock and next window",
        (
            "paths",
            "data",
            "schema",
            "training",
            "retraining",
            "publishing",
            "history",
            "general",
        ),
        retraining.run_status,
        "status --work_dir=work/flights",
    ),
    "rollback": Command(
        "an earlier published version becomes the champion again, at once",
        ("paths", "training", "publishing", "history", "general"),
        retraining.run_rollback,
        "rollback --work_dir=work/flights --reason=complaints",
    ),
    "lineage": Command(
        "which rows, flags, code and champion made a published version",
        ("paths", "training", "publishing", "output", "general"),
        retraining.run_lineage,
        "lineage champion --work_dir=work/flights",
        takes_arguments=True,
    ),
    "predict": Command(
        "predictions of an exported model for raw files",
        (
            "paths",
            "data",
            "workers",
            "training",
            "serving",
            "output",
            "predicting",
            "general",
        ),
        run_predict,
        "predict --work_dir=work/census --input=new.csv --output=out.jsonl",
    ),
    "serve": Command(
        "a local HTTP server that speaks TensorFlow Serving's REST API",
        ("paths", "training", "serving", "serve", "general"),
        run_serve,
        "serve --work_dir=work/census --port=8501",
    ),
    "monitor": Command(
        "TensorBoard on the models of a work directory, or on a model directory",
        ("paths", "monitoring", "general"),
        run_monitor,
        "monitor --work_dir=work/census",
    ),
    "show": Command(
        "what a dataset, model, evaluation or export directory holds",
        ("showing", "output", "general"),
        run_show,
        "show work/census/dataset",
        takes_arguments=True,
    ),
    "models": Command(
        "the models there are, with their hyper-parameters",
        ("general",),
        run_models,
        "models wide_deep",
        takes_arguments=True,
    ),
    "exec": Command(
        "a program written for tf.estimator, unchanged, on today's TensorFlow",
        ("general",),
        None,
        "exec train.py --steps=100",
        takes_arguments=True,
        execute=exec_script.run,
    ),
}
