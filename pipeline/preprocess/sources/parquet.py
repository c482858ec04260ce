"""Parquet files, a row group at a time and only the wanted columns."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.preprocess import typed_values
from pipeline.preprocess.sources.base import (
    FilePiece,
    Header,
    RawBatch,
    row_as_json,
)
from pipeline.types import Column, ExitCode, UserError

_BATCH_ROWS = 16_384
_MAGIC = b"PAR1"


@dataclasses.dataclass(frozen=True, eq=False)
class _RowTexts:
    """Rows of a row group as JSON with all columns, read anew when asked for.

    Attributes:
      path: The file.
      row_group: The row group.
      batch: Number of the batch in the row group.
    """

    path: str
    row_group: int
    batch: int

    def __call__(self, row: int) -> bytes:
        (values,) = self._table.slice(row, 1).to_pylist()
        return row_as_json(values)

    @functools.cached_property
    def _table(self) -> pa.RecordBatch:
        with _opened(self.path) as file:
            batches = file.iter_batches(
                _BATCH_ROWS, row_groups=[self.row_group], use_threads=False
            )
            for _ in range(self.batch):
                next(batches)
            return next(batches)


@contextlib.contextmanager
def _opened(path: str) -> Iterator[pq.ParquetFile]:
    try:
        with pq.ParquetFile(path) as file:
            yield file
    except OSError as error:
        damaged = error.strerror is None
        reason = str(error) if damaged else error.strerror
        code = ExitCode.BAD_DATA if damaged else ExitCode.USER_ERROR
        raise UserError(f"{path} cannot be read: {reason}", code) from error
    except pa.ArrowInvalid as error:
        with open(path, "rb") as raw:
            if raw.read(4) != _MAGIC:
                raise UserError(f"{path} is no Parquet file") from error
        raise UserError(
            f"{path} is cut off or damaged: {error}", ExitCode.BAD_DATA
        ) from error


@dataclasses.dataclass(frozen=True)
class ParquetSource:
    """A Parquet file.

    Attributes:
      path: The file.
    """

    path: str

    def header(self) -> Header:
        with _opened(self.path) as file:
            schema = file.schema_arrow
        for i, name in enumerate(schema.names):
            if name in schema.names[:i]:
                raise UserError(f"{self.path}: the column name {name!r} occurs twice")
        return Header(
            tuple(schema.names), dict(zip(schema.names, schema.types, strict=True))
        )

    def pieces(self, piece_bytes: int) -> Sequence[FilePiece]:
        with _opened(self.path) as file:
            groups = [
                file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)
            ]
        starts, row, size = [(0, 1)], 1, 0
        for i, group in enumerate(groups):
            if size >= piece_bytes:
                starts.append((i, row))
                size = 0
            size += group.total_byte_size
            row += group.num_rows
        ends = [start for start, _ in starts[1:]] + [None]
        return tuple(
            FilePiece(index, start, end, first)
            for index, ((start, first), end) in enumerate(
                zip(starts, ends, strict=True)
            )
        )

    def read(
        self,
        piece: FilePiece,
        columns: Sequence[str],
        declared: Sequence[Column] = (),
    ) -> Iterator[RawBatch]:
        del declared  # The file knows its types.
        types = self.header().types
        for column in columns:
            if column not in types:
                raise UserError(
                    f"{self.path} has no column {column!r}; its columns are"
                    f" {', '.join(types)}"
                )
            typed_values.check_type(self.path, column, types[column])
        row = piece.first
        with _opened(self.path) as file:
            end = file.metadata.num_row_groups if piece.end is None else piece.end
            for group in range(piece.start, end):
                batches = file.iter_batches(
                    _BATCH_ROWS,
                    row_groups=[group],
                    columns=list(columns),
                    use_threads=False,
                )
                for number, batch in enumerate(batches):
                    yield RawBatch(
                        self.path,
                        batch,
                        np.arange(row, row + batch.num_rows),
                        (),
                        batch.num_rows,
                        _RowTexts(self.path, group, number),
                    )
                    row += batch.num_rows
