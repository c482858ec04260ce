"""Rows in memory as a source: columns that are loaded once for each iterator.

What travels are the numbers of rows, which cost nothing to shuffle; a batch's values
are gathered at the end. The order of rows is that of record files whose parts hold as
many rows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from input_fns import parsing, records
from input_fns.options import Reading
from input_fns.shares import Share, whole_share
from pipeline.compat import tf
from pipeline.types import BLOCK_ROWS, Column, ColumnType

Loader = Callable[[Sequence[Column]], Mapping[str, np.ndarray]]
"""Columns to arrays of shape [rows] (int64, float32, bytes objects), in all parts'
order. A missing value is masked (numpy.ma) and stands as the column's default."""

_LISTS = {
    ColumnType.INT: "int64_list",
    ColumnType.FLOAT: "float_list",
    ColumnType.STRING: "bytes_list",
}


@dataclasses.dataclass(frozen=True, eq=False)
class Table:
    """Rows of one split in memory.

    Attributes:
      names: A name of each part, such as a file that it was read from.
      part_rows: Rows of each part.
      load: Given columns and how to read, a tf.data.Dataset of one element: all rows
        of all parts, by column.
      serialized: Given columns, yields each row as a serialized tf.Example.
      run_rows: Rows of a part that stand together where several are read at once.
    """

    names: tuple[str, ...]
    part_rows: tuple[int, ...]
    load: Callable[[Sequence[Column], Reading], tf.data.Dataset]
    serialized: Callable[[Sequence[Column]], Iterator[bytes]]
    run_rows: int = BLOCK_ROWS

    @property
    def rows(self) -> int:
        return sum(self.part_rows)

    def chunks(
        self,
        parts: tf.Tensor,
        share: Share,
        columns: Sequence[Column],
        reading: Reading,
        at_most: int,
    ) -> tf.data.Dataset:
        """See `order.RowSource`: the chunks are row numbers, int64."""
        del columns, at_most
        ends = np.cumsum(np.array(self.part_rows, np.int64))
        starts = ends - np.array(self.part_rows, np.int64)

        def numbers(start, end, first):
            runs = tf.data.Dataset.range(start, end).batch(self.run_rows)
            if share.stride == 1:
                return runs
            return runs.map(
                lambda run: run[(start + first - run[0]) % share.stride :: share.stride]
            )

        return tf.data.Dataset.from_tensor_slices(
            tuple(
                tf.gather(tf.constant(value, tf.int64), parts)
                for value in (starts, ends, share.first)
            )
        ).interleave(
            numbers,
            cycle_length=reading.files_at_once,
            block_length=1,
        )

    def columns_of(
        self, chunks: tf.data.Dataset, columns: Sequence[Column], reading: Reading
    ) -> tf.data.Dataset:
        return self.load(columns, reading).flat_map(
            lambda values: chunks.map(
                lambda rows: {n: tf.gather(v, rows) for n, v in values.items()},
                num_parallel_calls=tf.data.AUTOTUNE,
                deterministic=reading.deterministic,
            )
        )


def from_arrays(
    part_rows: Sequence[int], load: Loader, names: Sequence[str] = ()
) -> Table:
    """Returns a source of arrays.

    Args:
      part_rows: Rows of each part.
      load: Gives the columns; called once for each iterator.
      names: Of the parts; by default their numbers.
    """
    rows = sum(part_rows)

    def whole(columns: Sequence[Column], reading: Reading) -> tf.data.Dataset:
        del reading
        types = [parsing.dtype(column) for column in columns]

        def values(_):
            loaded = load(columns)
            return [np.ma.getdata(loaded[column.name]) for column in columns]

        def named(number):
            found = tf.numpy_function(values, [number], types)
            for value in found:
                value.set_shape([rows])
            return {c.name: v for c, v in zip(columns, found, strict=True)}

        return tf.data.Dataset.range(1).map(named)

    def serialized(columns: Sequence[Column]) -> Iterator[bytes]:
        loaded = load(columns)
        values = [np.ma.getdata(loaded[column.name]) for column in columns]
        missing = [np.ma.getmaskarray(loaded[column.name]) for column in columns]
        for row in range(rows):
            example = tf.train.Example()
            for column, value, absent in zip(columns, values, missing, strict=True):
                if not absent[row]:
                    feature = example.features.feature[column.name]
                    getattr(feature, _LISTS[column.type]).value.append(value[row])
            yield example.SerializeToString()

    names = tuple(names) or tuple(f"{part:05d}" for part in range(len(part_rows)))
    return Table(names, tuple(part_rows), whole, serialized)


def cached(source: records.Records) -> Table:
    """Returns a source that reads records once for each iterator, into memory.

    The order of its rows is that of the records.
    """

    def whole(columns: Sequence[Column], reading: Reading) -> tf.data.Dataset:
        in_order = dataclasses.replace(reading, files_at_once=1, deterministic=True)
        share = whole_share(len(source.files), source.rows)
        parts = tf.constant(share.parts, tf.int64)
        read = source.chunks(parts, share, columns, in_order, source.rows)
        read = source.columns_of(read, columns, in_order)
        return read.rebatch(source.rows)

    return Table(
        source.names,
        source.part_rows,
        whole,
        source.serialized,
        records.RUN_ROWS[source.form],
    )
