"""Input functions over the TFRecord shards of a dataset."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence

from input_fns import blocks, labels, parsing
from pipeline.compat import tf
from pipeline.types import BLOCK_ROWS, Column, Declaration, RecordForm

InputFn = Callable[[], "tf.data.Dataset"]

_READ_BUFFER_BYTES = 1 << 20
# Shards read side by side; a run of rows from each keeps the file reads long.
_CYCLE_LENGTH = 4
_BLOCK_LENGTH = 64
_BLOCKS_AT_ONCE = 16


@dataclasses.dataclass(frozen=True)
class Records:
    """The shards of one split.

    Attributes:
      files: TFRecord files of serialized tf.Examples, in order.
      rows: Number of rows in all of them.
      form: What an Example holds.
    """

    files: tuple[str, ...]
    rows: int
    form: RecordForm = RecordForm.ROWS


@dataclasses.dataclass(frozen=True)
class TrainInput:
    """How training rows are drawn.

    Attributes:
      batch_size: Rows in a batch.
      shuffle_rows: Rows that are held and permuted at a time.
      seed: Decides the order; together with the row's position nothing else does.
      start_step: Batches already consumed by earlier training.
    """

    batch_size: int
    shuffle_rows: int
    seed: int
    start_step: int = 0


def _columns(declaration: Declaration) -> tuple[Column, ...]:
    wanted = {column.name for column in declaration.input_columns}
    wanted |= labels.columns(declaration)
    if declaration.weight:
        wanted.add(declaration.weight)
    return tuple(c for c in declaration.columns.values() if c.name in wanted)


def _labelled(records: Records, declaration: Declaration) -> Callable:
    """Returns a function from rows as `_windows` gives them to (features, label)."""
    columns = _columns(declaration)

    def parse(rows):
        features = rows
        if records.form is RecordForm.ROWS:
            features = parsing.parse(rows, columns)
        if declaration.label is None:
            return features
        found = labels.take(features, declaration)
        return features, found

    return parse


def _interleaved(files: tf.Tensor, form: RecordForm) -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices(files).interleave(
        lambda file: tf.data.TFRecordDataset(file, buffer_size=_READ_BUFFER_BYTES),
        cycle_length=_CYCLE_LENGTH,
        block_length=_BLOCK_LENGTH if form is RecordForm.ROWS else 1,
        num_parallel_calls=tf.data.AUTOTUNE,
        deterministic=True,
    )


def _windows(
    serialized: tf.data.Dataset,
    form: RecordForm,
    declaration: Declaration,
    rows: int,
) -> tf.data.Dataset:
    """Returns rows so many at a time, the last time the rest.

    Rows of blocks come as columns; others stay serialized, since moving one string
    a row costs less than moving its values.
    """
    if form is RecordForm.ROWS:
        return serialized.batch(rows)
    columns = _columns(declaration)
    return (
        serialized.batch(max(1, min(rows // BLOCK_ROWS, _BLOCKS_AT_ONCE)))
        .map(
            lambda some: blocks.parse(some, columns),
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=True,
        )
        .rebatch(rows)
    )


def train_input_fn(
    records: Records, declaration: Declaration, options: TrainInput
) -> InputFn:
    """Returns an endless, shuffled input_fn whose order is a function of the seed.

    Each epoch holds every row once. Its rows are permuted within windows of
    `shuffle_rows`, by a permutation that depends on seed, epoch and window alone, so
    that training which resumes at `start_step` sees exactly the rows that an
    uninterrupted run would have seen next. Batches run across the ends of windows
    and epochs, so none is short.

    Returns:
      An input_fn; its dataset yields (features, label) with tensors of shape
      [batch].
    """
    if not records.rows:
        raise ValueError("no training rows")

    def epoch_windows(epoch, skip_windows):
        seed = tf.random.experimental.stateless_fold_in([options.seed, 0], epoch)
        files = tf.random.experimental.stateless_shuffle(
            tf.constant(records.files), seed
        )

        def permute(window, rows):
            count = tf.shape(tf.nest.flatten(rows)[0])[0]
            order = tf.random.experimental.stateless_shuffle(
                tf.range(count),
                tf.random.experimental.stateless_fold_in(seed, window),
            )
            return tf.nest.map_structure(lambda value: tf.gather(value, order), rows)

        serialized = _interleaved(files, records.form)
        return (
            _windows(serialized, records.form, declaration, options.shuffle_rows)
            .enumerate()
            .skip(skip_windows)
            .map(permute)
        )

    def input_fn() -> tf.data.Dataset:
        position = options.start_step * options.batch_size
        epoch, skip_rows = divmod(position, records.rows)
        skip_windows, skip_in_window = divmod(skip_rows, options.shuffle_rows)

        def windows(index):
            first = tf.equal(index, epoch)
            return epoch_windows(
                index, tf.where(first, tf.cast(skip_windows, tf.int64), 0)
            )

        def cut_first(index, rows):
            start = tf.where(tf.equal(index, 0), skip_in_window, 0)
            return tf.nest.map_structure(lambda value: value[start:], rows)

        return (
            tf.data.Dataset.range(epoch, tf.int64.max)
            .flat_map(windows)
            .enumerate()
            .map(cut_first)
            .prefetch(1)
            .rebatch(options.batch_size)
            .map(
                _labelled(records, declaration),
                num_parallel_calls=tf.data.AUTOTUNE,
                deterministic=True,
            )
            .prefetch(tf.data.AUTOTUNE)
        )

    return input_fn


def _in_order(records: Records) -> tf.data.Dataset:
    return tf.data.TFRecordDataset(list(records.files), buffer_size=_READ_BUFFER_BYTES)


def serialized_rows(records: Records, columns: Sequence[Column]) -> Iterator[bytes]:
    """Yields each row, in file order, as a serialized tf.Example of its own.

    Args:
      records: Where the rows are.
      columns: What an Example has to hold; it may hold more.
    """
    for record in _in_order(records).as_numpy_iterator():
        if records.form is RecordForm.ROWS:
            yield record
        else:
            yield from blocks.to_rows(record, columns)


def eval_input_fn(
    records: Records, declaration: Declaration, batch_size: int
) -> InputFn:
    """Returns an input_fn of one pass in file order; the last batch may be short."""

    def input_fn() -> tf.data.Dataset:
        return (
            _windows(_in_order(records), records.form, declaration, batch_size)
            .map(
                _labelled(records, declaration),
                num_parallel_calls=tf.data.AUTOTUNE,
                deterministic=True,
            )
            .prefetch(tf.data.AUTOTUNE)
        )

    return input_fn
