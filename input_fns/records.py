"""The TFRecord shards of a dataset as a source of rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from input_fns import blocks, parsing
from input_fns.options import Reading as Reading
from input_fns.options import TrainInput as TrainInput
from input_fns.order import InputFn as InputFn
from input_fns.order import eval_input_fn as eval_input_fn
from input_fns.order import train_input_fn as train_input_fn
from input_fns.shares import Share
from pipeline.compat import tf
from pipeline.types import BLOCK_ROWS, Column, RecordForm

_READ_BUFFER_BYTES = 1 << 20
# A run of rows from each file keeps the file reads long.
RUN_ROWS = {RecordForm.ROWS: 64, RecordForm.BLOCKS: BLOCK_ROWS}
_BLOCKS_AT_ONCE = 16
# What is read ahead in parallel is counted in runs, so large ones are read in turn.
_LARGE_RUN_BYTES = 4 << 20


@dataclasses.dataclass(frozen=True)
class Records:
    """The shards of one split.

    Attributes:
      files: TFRecord files of serialized tf.Examples, in order.
      rows: Number of rows in all of them.
      form: What an Example holds.
      file_rows: Rows of each file; needed where workers share the rows.
      bytes: Size of all files; 0 where it is not known.
    """

    files: tuple[str, ...]
    rows: int
    form: RecordForm = RecordForm.ROWS
    file_rows: tuple[int, ...] | None = None
    bytes: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        return self.files

    @property
    def part_rows(self) -> tuple[int, ...]:
        if self.file_rows is None:
            raise ValueError("workers share the rows, and file_rows is not given")
        return self.file_rows

    def chunks(
        self,
        parts: tf.Tensor,
        share: Share,
        columns: Sequence[Column],
        reading: Reading,
        at_most: int,
    ) -> tf.data.Dataset:
        """See `order.RowSource`.

        Rows of blocks come as columns; others stay serialized, since moving one
        string a row costs less than moving its values.
        """
        files = tf.data.Dataset.from_tensor_slices(
            (
                tf.gather(tf.constant(self.files), parts),
                tf.gather(tf.constant(share.first, tf.int64), parts),
            )
        )

        def read(file, first):
            records = tf.data.TFRecordDataset(file, buffer_size=_READ_BUFFER_BYTES)
            if self.form is RecordForm.ROWS:
                records = records.batch(RUN_ROWS[self.form])
            elif share.stride > 1:
                records = records.map(
                    lambda block: blocks.parse(block[tf.newaxis], columns)
                )
            if share.stride > 1:
                records = _every_nth(records, first, share.stride)
            return records

        parallel = self._parallel(reading)
        chunks = files.interleave(
            read, cycle_length=reading.files_at_once, block_length=1, **parallel
        )
        if self.form is RecordForm.ROWS or share.stride > 1:
            return chunks
        return chunks.batch(max(1, min(at_most // BLOCK_ROWS, _BLOCKS_AT_ONCE))).map(
            lambda some: blocks.parse(some, columns), **parallel
        )

    def _parallel(self, reading: Reading) -> dict[str, Any]:
        """Returns how much is read at a time; the order is the same either way."""
        run_bytes = self.bytes / max(self.rows, 1) * RUN_ROWS[self.form]
        if run_bytes > _LARGE_RUN_BYTES:
            return {}
        return {
            "num_parallel_calls": tf.data.AUTOTUNE,
            "deterministic": reading.deterministic,
        }

    def columns_of(
        self, chunks: tf.data.Dataset, columns: Sequence[Column], reading: Reading
    ) -> tf.data.Dataset:
        if self.form is RecordForm.BLOCKS:
            return chunks
        return chunks.map(
            lambda rows: parsing.parse(rows, columns),
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=reading.deterministic,
        )

    def serialized(self, columns: Sequence[Column]) -> Iterator[bytes]:
        for record in _in_order(self).as_numpy_iterator():
            if self.form is RecordForm.ROWS:
                yield record
            else:
                yield from blocks.to_rows(record, columns)


def _every_nth(
    chunks: tf.data.Dataset, first: tf.Tensor, stride: int
) -> tf.data.Dataset:
    """Keeps each `stride`-th row of a file, from `first` on."""

    def keep(skip, chunk):
        rows = tf.size(tf.nest.flatten(chunk)[0], tf.int64)
        kept = tf.nest.map_structure(lambda value: value[skip::stride], chunk)
        return (skip - rows) % stride, kept

    return chunks.scan(first, keep)


def _in_order(records: Records) -> tf.data.Dataset:
    return tf.data.TFRecordDataset(list(records.files), buffer_size=_READ_BUFFER_BYTES)


def serialized_rows(source, columns: Sequence[Column]) -> Iterator[bytes]:
    """Yields each row, in file order, as a serialized tf.Example of its own.

    Args:
      source: Where the rows are: Records or `arrays.Table`.
      columns: What an Example has to hold; it may hold more.
    """
    return source.serialized(columns)
