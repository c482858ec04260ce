"""The evaluate stage: a model and a split of a dataset into metrics."""

from __future__ import annotations

import os
import time

from pipeline import (
    checkpoints,
    damage,
    estimators,
    files,
    hooks,
    hooks_stall,
    train_inputs,
)
from pipeline import manifest as manifests
from pipeline.console import Console
from pipeline.dataset import Dataset
from pipeline.diagnostics import collecting, details, summaries
from pipeline.diagnostics import plots as drawing
from pipeline.diagnostics.details import Details
from pipeline.estimator_options import DEFAULT_OPTIONS, EstimatorOptions
from pipeline.flags.input import DEFAULT as DEFAULT_INPUT
from pipeline.flags.input import InputFlags
from pipeline.flags.slicing import DEFAULT as DEFAULT_SLICING
from pipeline.flags.slicing import SlicingFlags
from pipeline.manifest import Manifest
from pipeline.model_dir import TrainedModel

_STAGE = "evaluate"
METRICS_FILE = "metrics.json"
_STALL_SECONDS = 60


def _find_finished(directory: str, fingerprint: str) -> Manifest | None:
    finished = manifests.read(directory)
    if finished is None or finished.fingerprint != fingerprint:
        return None
    whole = os.path.exists(os.path.join(directory, METRICS_FILE))
    return finished if whole else None


def _rows(dataset: Dataset, split: str, reading: InputFlags) -> int:
    """Returns how many rows of a split are evaluated."""
    rows = dataset.shards(split).rows
    if not reading.drop_remainder:
        return rows
    return rows - rows % train_inputs.EVAL_BATCH_SIZE


def _hooks(console: Console, rows: int) -> list:
    return [
        hooks.RowsHook(console, _STAGE, rows, train_inputs.EVAL_BATCH_SIZE),
        hooks_stall.StallHook(console, _STAGE, _STALL_SECONDS, None),
    ]


def _show(
    pinned: estimators.PinnedCheckpoint, made: Details, split: str, plots: bool
) -> None:
    """Adds details to what the Estimator wrote for TensorBoard."""
    content = details.as_json(made, pinned.step, split)
    images = drawing.draw(content) if plots else {}
    run = os.path.join(pinned.model.directory, f"eval_{split}")
    summaries.write(run, made, pinned.step, images)


def run(
    directory: str,
    model: TrainedModel,
    dataset: Dataset,
    split: str,
    console: Console,
    which: str = "latest",
    options: EstimatorOptions = DEFAULT_OPTIONS,
    reading: InputFlags = DEFAULT_INPUT,
    slicing: SlicingFlags = DEFAULT_SLICING,
) -> Manifest:
    """Evaluates a checkpoint on every row of a split, once.

    Training may go on meanwhile: the checkpoint stays until it is evaluated.

    Args:
      directory: Gets metrics.json, details.json, slices.csv and a manifest.
      model: The trained model.
      dataset: Where the rows are; may be another one than the model was trained on.
      split: Name of the split.
      console: Where to print.
      which: The checkpoint: "latest", "best" or a step.
      options: Further metrics, and how numbers are computed.
      reading: The input flags.
      slicing: By which columns metrics are given as well.

    Raises:
      UserError: The model does not fit the dataset, a file is damaged (BAD_DATA), or
        `directory` is in use (LOCKED).
    """
    dataset.check_fits(model.declaration, model.directory)
    rows = _rows(dataset, split, reading)
    input_fn = train_inputs.eval_input_fn(dataset, split, model.declaration, reading)
    with estimators.pinned_checkpoint(model, which) as pinned:
        started = time.monotonic()
        inputs = {
            "checkpoint": checkpoints.digest(pinned.path),
            "training": pinned.model.training.as_json(),
            "dataset": dataset.manifest.fingerprint,
        }
        configuration = {"split": split, **options.as_json(), **slicing.as_json()}
        if reading.drop_remainder:
            configuration["drop_remainder"] = True
        wanted = manifests.fingerprint(_STAGE, inputs, configuration)
        with files.locked(directory):
            finished = _find_finished(directory, wanted)
            if finished:
                console.progress(f"evaluate: reused, {directory} is up to date")
                return finished
            console.progress(
                f"evaluate: step {pinned.step:,} on {rows:,} rows of the {split} split"
            )
            trained, collected = collecting.collecting(
                estimators.make_estimator(pinned.model, options), model.declaration
            )
            with damage.explained(dataset, pinned.path):
                found = trained.evaluate(
                    input_fn,
                    hooks=_hooks(console, rows),
                    checkpoint_path=pinned.path,
                    name=split,
                )
                seen = collected and collected.rows()
                texts = {}
                if seen is not None:
                    texts = collecting.texts(dataset, split, slicing.columns)
            metrics = estimators.plain_metrics(found)
            results = {"rows": rows, "metrics": metrics}
            with files.staged_directory(directory) as aside:
                files.write_json(os.path.join(aside, METRICS_FILE), metrics)
                if seen is not None:
                    made = details.make(seen, texts, slicing.min_rows)
                    details.write(aside, made, pinned.step, split)
                    _show(pinned, made, split, slicing.plots)
                return manifests.write(
                    aside, _STAGE, inputs, configuration, results, started
                )
