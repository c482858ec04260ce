"""From a model directory to the Estimator in it."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
from collections.abc import Iterator

from input_fns import arrays, records
from model_fns import registry
from pipeline import best, checkpoints, computing, damage, table_arrays
from pipeline.compat import estimator, tf
from pipeline.dataset import Shards, Tables
from pipeline.estimator_options import DEFAULT_OPTIONS, EstimatorOptions
from pipeline.model_dir import TrainedModel
from pipeline.types import ExitCode, UserError


def _check_strategy(strategy: tf.distribute.Strategy | None) -> None:
    v2 = (
        tf.distribute.ParameterServerStrategy,
        tf.distribute.experimental.ParameterServerStrategy,
    )
    if isinstance(strategy, v2):
        raise UserError(
            "Estimators cannot use tf.distribute.ParameterServerStrategy of TensorFlow"
            " 2; use tf.compat.v1.distribute.experimental.ParameterServerStrategy"
        )


def make_estimator(
    model: TrainedModel,
    options: EstimatorOptions = DEFAULT_OPTIONS,
    session_config: tf.compat.v1.ConfigProto | None = None,
    **run_config,
) -> estimator.Estimator:
    """Returns the Estimator of a model directory.

    Args:
      options: Further metrics, and how numbers are computed.
      session_config: How its sessions use devices; None for TensorFlow's default.
      run_config: Further settings of `RunConfig`, e.g. save_checkpoints_steps.

    Raises:
      UserError: A distribution strategy is one that Estimators cannot use.
    """
    for strategy in ("train_distribute", "eval_distribute"):
        _check_strategy(run_config.get(strategy))
    config = estimator.RunConfig(
        model_dir=model.directory,
        tf_random_seed=model.training.seed,
        session_config=computing.session_config(options, session_config),
        **run_config,
    )
    build = registry.find(model.training.model).builder()
    trained = build(model.declaration, model.constants, model.settings(), config)
    return computing.apply(trained, options, model.declaration)


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
    return path, step_of(path)


def step_of(checkpoint: str) -> int:
    """Returns the global step of a checkpoint.

    Raises:
      UserError: It is damaged.
    """
    try:
        return int(tf.train.load_variable(checkpoint, "global_step"))
    except Exception:
        damage.check_checkpoint(checkpoint)
        raise


@dataclasses.dataclass(frozen=True)
class PinnedCheckpoint:
    """A checkpoint that nobody removes while it is read.

    Attributes:
      model: The model it belongs to, as it was trained.
      path: Its path prefix.
      step: Its global step.
    """

    model: TrainedModel
    path: str
    step: int


def _find_checkpoint(model: TrainedModel, which: str) -> str:
    if which == "latest":
        return latest_checkpoint(model)[0]
    if which == "best":
        found = best.read(model.directory)
        if found is None:
            raise UserError(
                f"--checkpoint=best: {model.directory} keeps no best checkpoint"
            )
        return found.path
    there = checkpoints.listed(model.directory)
    for checkpoint in there:
        if checkpoint.step == int(which):
            return checkpoint.path
    steps = ", ".join(str(checkpoint.step) for checkpoint in there)
    raise UserError(
        f"--checkpoint={which} is not in {model.directory}; there are {steps or 'none'}"
    )


@contextlib.contextmanager
def pinned_checkpoint(model: TrainedModel, which: str) -> Iterator[PinnedCheckpoint]:
    """Gives the checkpoint that a flag asks for.

    Args:
      model: A model directory, in which training may go on.
      which: "latest", "best" or a step.

    Raises:
      UserError: There is none that can be read.
    """
    find = functools.partial(_find_checkpoint, model, which)
    with checkpoints.pinned(find, model.directory) as path:
        if which == "best":
            # An earlier training may have had other constants.
            kept = best.open_model(model.directory)
            model = dataclasses.replace(kept, directory=model.directory)
        yield PinnedCheckpoint(model, path, step_of(path))


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
