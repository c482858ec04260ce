"""The order of training rows, and the input functions made from any source of rows.

Each epoch holds every row once. Its rows are permuted within windows, by a
permutation that depends on seed, epoch and window alone, so that training which
resumes at `start_step` sees exactly the rows that an uninterrupted run would have
seen next; nothing has to be saved with a checkpoint.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from input_fns import labels
from input_fns.options import Reading, TrainInput
from input_fns.shares import Share, share_of, whole_share
from pipeline.compat import tf
from pipeline.types import Column, Declaration

InputFn = Callable[..., "tf.data.Dataset"]
_DEFAULT_READING = Reading()
# A file's rows stand one after the other where one file is read at a time.
_ONE_BY_ONE = Reading(files_at_once=1)


class RowSource(Protocol):
    """Rows that input functions read, in parts (files, say) of a fixed order.

    Rows travel as chunks: tensors of shape [rows of the chunk], one or several by
    column, which stand for so many rows and which `columns_of` makes columns of.

    Attributes:
      rows: Number of rows of all parts.
    """

    @property
    def rows(self) -> int: ...

    @property
    def names(self) -> tuple[str, ...]:
        """A name of each part."""

    @property
    def part_rows(self) -> tuple[int, ...]:
        """Rows of each part; only asked for where workers share the rows."""

    def chunks(
        self,
        parts: tf.Tensor,
        share: Share,
        columns: Sequence[Column],
        reading: Reading,
        at_most: int,
    ) -> tf.data.Dataset:
        """Reads parts, `reading.files_at_once` side by side.

        Args:
          parts: int64, numbers of the parts in the order in which they are begun.
          share: Which rows of them are taken.
          columns: What to read.
          reading: How.
          at_most: Rows of a chunk, where the source can choose.
        """

    def columns_of(
        self, chunks: tf.data.Dataset, columns: Sequence[Column], reading: Reading
    ) -> tf.data.Dataset:
        """Turns chunks into columns: name to tensor of shape [rows]."""


def _share(source: RowSource, options: TrainInput) -> Share:
    if options.shard.workers == 1:
        return whole_share(len(source.names), source.rows)
    return share_of(source.names, source.part_rows, options.shard)


def _permuted(chunks: tf.data.Dataset, seed: tf.Tensor) -> tf.data.Dataset:
    """Permutes the rows of each of the numbered windows."""

    def permute(window, rows):
        count = tf.shape(tf.nest.flatten(rows)[0])[0]
        order = tf.random.experimental.stateless_shuffle(
            tf.range(count), tf.random.experimental.stateless_fold_in(seed, window)
        )
        return tf.nest.map_structure(lambda value: tf.gather(value, order), rows)

    return chunks.map(permute)


def _shuffled(
    source: RowSource, share: Share, columns: Sequence[Column], options: TrainInput
) -> tf.data.Dataset:
    """Returns batches for one replica, from `start_step` on, as chunks."""
    window_rows = options.shuffle_rows

    def epoch_windows(epoch, skip_windows):
        seed = tf.random.experimental.stateless_fold_in([options.seed, 0], epoch)
        parts = tf.random.experimental.stateless_shuffle(
            tf.constant(share.parts, tf.int64), seed
        )
        chunks = source.chunks(parts, share, columns, options.reading, window_rows)
        windows = chunks.rebatch(window_rows).enumerate().skip(skip_windows)
        return _permuted(windows, seed)

    position = options.start_step * options.step_rows
    first_epoch, skip_rows = divmod(position, share.rows)
    skip_windows, skip_in_window = divmod(skip_rows, window_rows)

    def windows(epoch):
        first = tf.equal(epoch, first_epoch)
        return epoch_windows(epoch, tf.where(first, tf.cast(skip_windows, tf.int64), 0))

    def cut_first(index, rows):
        start = tf.where(tf.equal(index, 0), skip_in_window, 0)
        return tf.nest.map_structure(lambda value: value[start:], rows)

    last_epoch = tf.int64.max if options.epochs is None else options.epochs
    return (
        tf.data.Dataset.range(first_epoch, max(first_epoch, last_epoch))
        .flat_map(windows)
        .enumerate()
        .map(cut_first)
        .prefetch(1)
        .rebatch(options.replica_rows, drop_remainder=options.drop_remainder)
    )


def _finished(
    batches: tf.data.Dataset,
    source: RowSource,
    declaration: Declaration,
    reading: Reading,
) -> tf.data.Dataset:
    """Turns batches of chunks into (features, label), made ready ahead."""
    columns = labels.read_columns(declaration)
    settings = tf.data.Options()
    settings.deterministic = reading.deterministic
    if reading.threads is not None:
        settings.threading.private_threadpool_size = reading.threads
    return (
        source.columns_of(batches, columns, reading)
        .map(
            labels.labelled(declaration),
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=reading.deterministic,
        )
        .prefetch(reading.prefetch_batches)
        .with_options(settings)
    )


def train_input_fn(
    source: RowSource, declaration: Declaration, options: TrainInput
) -> InputFn:
    """Returns a shuffled input_fn whose order is a function of the seed.

    Batches run across the ends of windows and epochs, so none is short, but for the
    last one of a run that ends after `options.epochs`.

    Returns:
      An input_fn; its dataset yields (features, label) with tensors of shape
      [batch], batch being `options.batch_size` divided by the replicas in sync.
      Given an `input_context`, as Estimators do under a strategy, it reads the
      worker's share.
    """
    if not source.rows:
        raise ValueError("no training rows")

    def input_fn(input_context: Any | None = None) -> tf.data.Dataset:
        placed = options.placed(input_context)
        columns = labels.read_columns(declaration)
        batches = _shuffled(source, _share(source, placed), columns, placed)
        return _finished(batches, source, declaration, placed.reading)

    return input_fn


def _in_order(
    source: RowSource,
    columns: Sequence[Column],
    batch_size: int,
    reading: Reading,
    drop_remainder: bool = False,
) -> tf.data.Dataset:
    """Returns batches of one pass in the order of the data, as chunks."""
    share = whole_share(len(source.names), source.rows)
    parts = tf.constant(share.parts, tf.int64)
    chunks = source.chunks(parts, share, columns, reading, batch_size)
    return chunks.rebatch(batch_size, drop_remainder=drop_remainder)


def read_in_order(
    source: RowSource, columns: Sequence[Column], batch_size: int
) -> tf.data.Dataset:
    """Returns batches of columns in the order of `eval_input_fn`'s rows.

    Returns:
      A dataset of column name to tensor of shape [batch].
    """
    batches = _in_order(source, columns, batch_size, _ONE_BY_ONE)
    return source.columns_of(batches, columns, _ONE_BY_ONE)


def eval_input_fn(
    source: RowSource,
    declaration: Declaration,
    batch_size: int,
    reading: Reading = _DEFAULT_READING,
    drop_remainder: bool = False,
) -> InputFn:
    """Returns an input_fn of one pass in the order of the data.

    Args:
      drop_remainder: Whether a last batch that is short is left out.
    """
    one_by_one = dataclasses.replace(
        _ONE_BY_ONE,
        prefetch_batches=reading.prefetch_batches,
        threads=reading.threads,
    )

    def input_fn() -> tf.data.Dataset:
        columns = labels.read_columns(declaration)
        batches = _in_order(source, columns, batch_size, one_by_one, drop_remainder)
        return _finished(batches, source, declaration, one_by_one)

    return input_fn
