"""The evaluate stage: a model and a split of a dataset into metrics."""

from __future__ import annotations

import os
import time
from typing import Any

from pipeline import damage, estimators, files, train_inputs
from pipeline import manifest as manifests
from pipeline.console import Console
from pipeline.dataset import Dataset
from pipeline.flags.input import DEFAULT as DEFAULT_INPUT
from pipeline.flags.input import InputFlags
from pipeline.manifest import Manifest
from pipeline.model_dir import TrainedModel
from pipeline.types import UserError

_STAGE = "evaluate"
METRICS_FILE = "metrics.json"


def _find_finished(directory: str, fingerprint: str) -> Manifest | None:
    finished = manifests.read(directory)
    if finished is None or finished.fingerprint != fingerprint:
        return None
    whole = os.path.exists(os.path.join(directory, METRICS_FILE))
    return finished if whole else None


def run(
    directory: str,
    model: TrainedModel,
    dataset: Dataset,
    split: str,
    console: Console,
    options: InputFlags = DEFAULT_INPUT,
) -> Manifest:
    """Evaluates the newest checkpoint on every row of a split, once.

    Args:
      directory: Gets metrics.json and a manifest.
      model: The trained model.
      dataset: Where the rows are; may be another one than the model was trained on.
      split: Name of the split.
      console: Where to print.
      options: The input flags.

    Raises:
      UserError: The model does not fit the dataset, a file is damaged (BAD_DATA), or
        `directory` is in use (LOCKED).
    """
    started = time.monotonic()
    dataset.check_fits(model.declaration, model.directory)
    shards = dataset.shards(split)
    checkpoint, _ = estimators.latest_checkpoint(model)
    inputs = {
        "checkpoint": estimators.digest_checkpoint(checkpoint),
        "training": model.training.as_json(),
        "dataset": dataset.manifest.fingerprint,
    }
    configuration: dict[str, Any] = {"split": split}
    rows = shards.rows
    if options.drop_remainder:
        configuration["drop_remainder"] = True
        rows -= rows % train_inputs.EVAL_BATCH_SIZE
        if not rows:
            raise UserError(
                f"--drop_remainder leaves out all {shards.rows:,} rows of the {split}"
                f" split, which do not fill a batch of {train_inputs.EVAL_BATCH_SIZE}"
            )
    wanted = manifests.fingerprint(_STAGE, inputs, configuration)
    with files.locked(directory):
        finished = _find_finished(directory, wanted)
        if finished:
            console.progress(f"evaluate: reused, {directory} is up to date")
            return finished
        console.progress(
            f"evaluate: {rows:,} of {shards.rows:,} rows of the {split} split"
        )
        with damage.explained(dataset, checkpoint):
            found = estimators.make_estimator(model).evaluate(
                train_inputs.eval_input_fn(dataset, split, model.declaration, options),
                checkpoint_path=checkpoint,
                name=split,
            )
        metrics = estimators.plain_metrics(found)
        results = {"rows": rows, "metrics": metrics}
        with files.staged_directory(directory) as aside:
            files.write_json(os.path.join(aside, METRICS_FILE), metrics)
            return manifests.write(
                aside, _STAGE, inputs, configuration, results, started
            )
