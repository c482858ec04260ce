"""From the flags and a dataset to the input functions of training and evaluation."""

from __future__ import annotations

import math

from input_fns import arrays, options, order, records, synthetic
from input_fns.shares import Shard
from pipeline import estimators, user_input
from pipeline.console import Console
from pipeline.dataset import Dataset, Shards, Tables
from pipeline.flags import input as input_flags
from pipeline.flags.input import InputFlags
from pipeline.flags.training import TrainingFlags
from pipeline.model_dir import TrainedModel
from pipeline.types import Column, ColumnType, Declaration, RecordForm, UserError

_MIB = 1 << 20
_ALONE = Shard()
EVAL_BATCH_SIZE = 1024
# What TensorFlow holds for a value; a string's bytes come on top.
_VALUE_BYTES = {ColumnType.INT: 8, ColumnType.FLOAT: 4, ColumnType.STRING: 24}


def row_bytes(rows: Shards | Tables, columns: tuple[Column, ...]) -> float:
    """Estimates the memory of a row while it is shuffled.

    What a row takes in its files, and the fixed part of its tensors: so it is a little
    too high for numbers.
    """
    stored = rows.bytes / max(rows.rows, 1)
    if isinstance(rows, Shards) and rows.form is RecordForm.ROWS:
        return stored + _VALUE_BYTES[ColumnType.STRING]
    return stored + sum(_VALUE_BYTES[column.type] for column in columns)


def shuffle_rows(
    settings: InputFlags, rows: Shards | Tables, columns: tuple[Column, ...]
) -> int:
    """Returns the size of the shuffle window; it depends on nothing else."""
    if settings.shuffle_rows == input_flags.ALL_ROWS:
        return rows.rows
    if settings.shuffle_rows is not None:
        return int(settings.shuffle_rows)
    fitting = int(settings.shuffle_mb * _MIB / row_bytes(rows, columns))
    return max(1, min(fitting, rows.rows))


def _reading(settings: InputFlags) -> options.Reading:
    return options.Reading(
        files_at_once=settings.read_files_at_once,
        prefetch_batches=settings.prefetch_batches,
        threads=settings.input_threads,
        deterministic=settings.deterministic,
    )


def _source(dataset: Dataset, split: str, settings: InputFlags) -> order.RowSource:
    source = estimators.to_records(dataset.shards(split))
    in_memory = settings.cache == input_flags.MEMORY_CACHE
    if in_memory and isinstance(source, records.Records):
        return arrays.cached(source)
    return source


def _epochs(settings: InputFlags, training: TrainingFlags) -> int | None:
    """Returns after how many passes the training data end; None for never."""
    return None if settings.repeat else math.ceil(training.epochs)


def _say_memory(
    settings: InputFlags, rows: Shards | Tables, window: int, size: float, console
) -> None:
    mib = size * rows.rows / _MIB
    if settings.shuffle_rows == input_flags.ALL_ROWS and isinstance(rows, Shards):
        held = "once" if settings.cache == input_flags.MEMORY_CACHE else "three times"
        console.progress(
            f"input: --shuffle_rows=all holds {window:,} rows in memory, about"
            f" {mib:,.0f} MiB, up to {held} at a time; --shuffle_mb bounds it"
        )
    elif settings.cache == input_flags.MEMORY_CACHE and isinstance(rows, Shards):
        console.progress(
            f"input: --cache=memory holds {rows.rows:,} rows, about {mib:,.0f} MiB"
        )


def train_input_fn(
    dataset: Dataset,
    model: TrainedModel,
    training: TrainingFlags,
    settings: InputFlags,
    start_step: int,
    console: Console,
    shard: Shard = _ALONE,
) -> order.InputFn:
    """Returns the input_fn that the flags ask for.

    Args:
      dataset: Gives the rows of its train split.
      model: What is trained.
      training: The training flags.
      settings: The input flags.
      start_step: Steps taken by earlier training.
      console: Where to print.
      shard: This worker's share, where each of several takes steps of its own.

    Raises:
      UserError: The split has no rows, or the function cannot be had.
    """
    name = settings.input_fn
    if name is not None and ":" in name:
        console.progress(
            f"input: training rows come from {name}; where training is resumed, it"
            " is not told"
        )
        return user_input.find(name)
    rows = dataset.shards("train")
    columns = tuple(dataset.declaration.columns.values())
    window = shuffle_rows(settings, rows, columns)
    drawn = options.TrainInput(
        batch_size=training.batch_size,
        shuffle_rows=window,
        seed=training.seed,
        start_step=start_step,
        epochs=_epochs(settings, training),
        drop_remainder=settings.drop_remainder,
        shard=shard,
        reading=_reading(settings),
    )
    if name == input_flags.SYNTHETIC:
        console.progress(
            "input: training rows are synthetic: only the speed means anything"
        )
        return synthetic.synthetic_input_fn(model.declaration, model.constants, drawn)
    _say_memory(settings, rows, window, row_bytes(rows, columns), console)
    source = _source(dataset, "train", settings)
    return order.train_input_fn(source, model.declaration, drawn)


def eval_input_fn(
    dataset: Dataset, split: str, declaration: Declaration, settings: InputFlags
) -> order.InputFn:
    """Returns an input_fn of one pass over a split.

    Raises:
      UserError: The split has no rows, or none that are evaluated.
    """
    rows = dataset.shards(split).rows
    if settings.drop_remainder and rows < EVAL_BATCH_SIZE:
        raise UserError(
            f"--drop_remainder leaves out all {rows:,} rows of the {split} split, which"
            f" do not fill an evaluation batch of {EVAL_BATCH_SIZE}"
        )
    return order.eval_input_fn(
        _source(dataset, split, settings),
        declaration,
        EVAL_BATCH_SIZE,
        _reading(settings),
        settings.drop_remainder,
    )
