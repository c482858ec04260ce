"""From a model directory to the Estimator in it."""

from __future__ import annotations

import math
import os

from input_fns import arrays, records
from model_fns import registry
from pipeline import damage, files, table_arrays
from pipeline.compat import estimator, tf
from pipeline.dataset import Shards, Tables
from pipeline.model_dir import TrainedModel
from pipeline.types import ExitCode, UserError


def make_estimator(model: TrainedModel, **run_config) -> estimator.Estimator:
    """Returns the Estimator of a model directory.

    Args:
      run_config: Further settings of `RunConfig`, e.g. save_checkpoints_steps.
    """
    config = estimator.RunConfig(
        model_dir=model.directory,
        tf_random_seed=model.training.seed,
        **run_config,
    )
    build = registry.find(model.training.model).builder()
    return build(model.declaration, model.constants, model.settings(), config)


def to_records(rows: Shards | Tables) -> records.Records | arrays.Table:
    """Returns a split's rows as the input functions take them."""
    if isinstance(rows, Shards):
        return records.Records(
            rows.files, rows.rows, rows.form, rows.file_rows, rows.bytes
        )
    sizes = [table.num_rows for table in rows.tables]
    return arrays.from_arrays(sizes, table_arrays.loader(rows.tables), rows.files)


def latest_checkpoint(model: TrainedModel) -> tuple[str, int]:
    """Returns path prefix and global step of the newest checkpoint.

    Raises:
      UserError: There is none that can be read.
    """
    try:
        path = tf.train.latest_checkpoint(model.directory)
    except ValueError:  # Its list of checkpoints is empty.
        path = None
    if path is None:
        raise UserError(
            f"--model_dir: {model.directory} holds no checkpoint, or not the one that"
            f" its file `checkpoint` names; train again or restore the files"
        )
    try:
        return path, int(tf.train.load_variable(path, "global_step"))
    except Exception:
        damage.check_checkpoint(path)
        raise


def digest_checkpoint(path: str) -> str:
    """Returns a digest of a checkpoint's content."""
    directory, prefix = os.path.split(path)
    parts = sorted(
        name for name in os.listdir(directory) if name.startswith(f"{prefix}.")
    )
    return files.digest_value(
        [
            files.digest_file(os.path.join(directory, name))
            for name in parts
            if not name.endswith(".meta")
        ]
    )


def plain_metrics(metrics: dict) -> dict[str, float | int]:
    """Returns an Estimator's metrics as plain numbers.

    Raises:
      UserError: One is not finite.
    """
    for name, value in sorted(metrics.items()):
        if not math.isfinite(value):
            raise UserError(
                f"the metric {name} is {float(value)}: the model has diverged; train"
                " again with a lower learning_rate in --hparams, and look for extreme"
                " values with `show`",
                ExitCode.BAD_DATA,
            )
    return {
        name: int(value) if name == "global_step" else float(value)
        for name, value in sorted(metrics.items())
    }
