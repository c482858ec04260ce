"""The commands that make a model, from raw files to an export, and all in one."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence

from model_fns import registry
from pipeline import (
    data_choice,
    environment,
    model_dir,
    training_checks,
    training_commands,
    warm_start_plan,
)
from pipeline import manifest as manifests
from pipeline.cluster import choice as cluster_choice
from pipeline.flags import input as input_flags
from pipeline.invocation import Invocation
from pipeline.manifest import Manifest
from pipeline.preprocess import stage as preprocess_stage
from pipeline.types import UserError

# Stages import TensorFlow or Beam, which takes seconds. So a command first checks
# everything that can be checked without them, and imports its stages then.


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


def _export(call: Invocation) -> None:
    model = model_dir.open_model(call.paths.model)
    dataset, _ = data_choice.open_data(call)
    environment.load_tensorflow(call.console.verbosity)
    from pipeline import export_model

    result = export_model.run(
        call.paths.export,
        model,
        dataset,
        call.serving,
        call.console,
        call.exporting,
        call.paths.evaluation,
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
    training_commands.check_flags(call)
    data_choice.check_training(call.input, call.training, call.console.verbosity)
    training_commands.train(call)


def run_evaluate(call: Invocation) -> None:
    data_choice.check_not_training(call.input, call.given, "evaluate")
    training_commands.evaluate(call)


def run_export(call: Invocation) -> None:
    data_choice.check_not_training(call.input, call.given, "export")
    _export(call)


def run_all(call: Invocation) -> None:
    """preprocess, train, evaluate, export, verify; each only where needed."""
    cluster_choice.check_alone(call.cluster, call.tf_config)
    training_commands.check_flags(call)
    data_choice.check_training(call.input, call.training, call.console.verbosity)
    if call.input.input_fn == input_flags.DIRECT:
        raise UserError(
            "--input_fn=direct has no effect on run, which writes a dataset; leave it"
            " out, or give train, evaluate and export one by one"
        )
    # What --input names is in the dataset, which the other stages read.
    call = dataclasses.replace(call, given=frozenset())
    plan = preprocess_stage.plan(call.data, call.schema)
    model = registry.find(call.training.model)
    registry.check_export(model, call.exporting.formats, call.exporting.embeddings)
    registry.check_task(
        model,
        plan.declaration,
        call.data.features or "the inferred declaration (give --label=COLUMN)",
    )
    _check_dataset_dir(call.paths.dataset, plan.paths)
    manifests.check_replaceable("evaluation_dir", call.paths.evaluation, "evaluate")
    # Known before the data is read, so said before: hours may lie between.
    old = model_dir.read_training(call.paths.model)
    if old is not None:
        begin = warm_start_plan.plan(call.training.warm_start, call.paths.model)
        asked = model_dir.asked_training(
            call.training, old.dataset, call.input, begin and begin.as_json()
        )
        training_checks.must_restart(asked, call.training, call.paths.model)
    _preprocess(call, plan)
    training_commands.train(call)
    training_commands.evaluate(call)
    _export(call)
