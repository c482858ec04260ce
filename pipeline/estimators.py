"""From a model directory to the Estimator in it."""

from __future__ import annotations

import os

from input_fns import records
from model_fns import registry
from pipeline import files
from pipeline.compat import estimator, tf
from pipeline.dataset import Shards
from pipeline.model_dir import TrainedModel
from pipeline.types import UserError


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


def to_records(shards: Shards) -> records.Records:
    """Returns a split's shards as the input functions take them."""
    return records.Records(shards.files, shards.rows, shards.form)


def latest_checkpoint(model: TrainedModel) -> tuple[str, int]:
    """Returns path prefix and global step of the newest checkpoint.

    Raises:
      UserError: There is none that can be read.
    """
    path = tf.train.latest_checkpoint(model.directory)
    if path is None:
        raise UserError(f"--model_dir: {model.directory} holds no checkpoint; train")
    return path, int(tf.train.load_variable(path, "global_step"))


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
    """Returns an Estimator's metrics as plain numbers."""
    return {
        name: int(value) if name == "global_step" else float(value)
        for name, value in sorted(metrics.items())
    }
