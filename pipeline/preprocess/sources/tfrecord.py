"""TFRecord files of tf.Examples, plain or gzip, told apart by content."""

from __future__ import annotations

import dataclasses
import os
import zlib
from collections.abc import Iterator, Sequence

import numpy as np

from pipeline.preprocess.rejects import Reject
from pipeline.preprocess.sources import example_message, record_framing
from pipeline.preprocess.sources.base import (
    WHOLE,
    FilePiece,
    Header,
    Loss,
    RawBatch,
)
from pipeline.preprocess.sources.example_columns import (
    Columns,
    ExampleParser,
    ExampleTexts,
    as_json,
)
from pipeline.types import Column, ExitCode, UserError

_HEADER_RECORDS = 1000
_HEADER_BYTES = 4 << 20
_BATCH_BYTES = 4 << 20
_MAX_BATCH_ROWS = 4096


@dataclasses.dataclass(frozen=True, eq=False)
class _Chunk:
    """Consecutive records; or what is wrong behind the last good one."""

    records: np.ndarray
    damage: str | None = None


@dataclasses.dataclass(frozen=True)
class TFRecordSource:
    """A TFRecord file of tf.Examples.

    Attributes:
      path: The file.
      skip_bad_records: Whether a damaged record ends the file quietly, its rest being
        reported as lost, instead of being an error.
    """

    path: str
    skip_bad_records: bool = False

    def header(self) -> Header:
        names: dict[str, None] = {}
        seen = 0
        for record in self._first_records():
            seen += 1
            for name in sorted(example_message.parse(record) or {}):
                names.setdefault(name)
        if seen and not names:
            raise UserError(
                f"{self.path}: its records are no tf.Examples; nothing else can be read"
                " from a TFRecord file"
            )
        return Header(tuple(names), complete=False)

    def pieces(self, piece_bytes: int) -> Sequence[FilePiece]:
        del piece_bytes  # Where records begin is known only from those before.
        return (WHOLE,)

    def read(
        self,
        piece: FilePiece,
        columns: Sequence[str],
        declared: Sequence[Column] = (),
    ) -> Iterator[RawBatch]:
        del piece, declared
        parser = ExampleParser(columns)
        count = 0
        for chunk in self._chunks():
            loss = None
            if chunk.damage is not None:
                if not self.skip_bad_records:
                    raise UserError(
                        f"{self.path}: {chunk.damage}; repair the file, or give"
                        " --skip_bad_records to use the records before it",
                        ExitCode.BAD_DATA,
                    )
                loss = Loss(self.path, count + 1, chunk.damage)
            for found in parser.parse(chunk.records):
                yield self._batch(chunk.records, found, count + 1, loss)
            count += len(chunk.records)

    def _first_records(self) -> Iterator[bytes]:
        try:
            yield from record_framing.first_records(
                self.path, _HEADER_RECORDS, _HEADER_BYTES
            )
        except OSError as error:
            raise UserError(f"{self.path} cannot be read: {error.strerror}") from error

    def _batch_rows(self) -> int:
        """Returns how many records make a batch of moderate size."""
        sizes = [len(record) for record in self._first_records()]
        if not sizes:
            return 1
        return max(
            1, min(_MAX_BATCH_ROWS, _BATCH_BYTES * len(sizes) // max(1, sum(sizes)))
        )

    def _chunks(self) -> Iterator[_Chunk]:
        """Yields all records up to the first damaged one, and what is wrong with it."""
        from pipeline.compat import tf

        compression = "GZIP" if record_framing.is_gzip(self.path) else ""
        records = tf.data.TFRecordDataset(self.path, compression)
        count = size = 0
        try:
            for batch in records.batch(self._batch_rows()).as_numpy_iterator():
                yield _Chunk(batch)
                count += len(batch)
                size += _framed_bytes(batch)
        except tf.errors.DataLossError:
            # The good records at the begin of the batch went down with it.
            last = []
            try:
                for record in records.skip(count).as_numpy_iterator():
                    last.append(record)
            except tf.errors.DataLossError:
                pass
            if last:
                batch = _as_objects(last)
                yield _Chunk(batch)
                count += len(batch)
                size += _framed_bytes(batch)
            yield _Chunk(_as_objects([]), self._damage(count, size))
            return
        # TensorFlow takes a file that ends inside a record's length for a whole one.
        try:
            whole = record_framing.content_bytes(self.path) == size
        except (OSError, EOFError, zlib.error):
            whole = False
        if not whole:
            yield _Chunk(_as_objects([]), self._damage(count, size))

    def _damage(self, count: int, offset: int) -> str:
        where = f"byte {offset:,}"
        if record_framing.is_gzip(self.path):
            where += " of its decompressed content"
        return (
            f"record {count + 1:,}, at {where}, is cut off or damaged (the file has"
            f" {os.path.getsize(self.path):,} bytes)"
        )

    def _batch(
        self, records: np.ndarray, found: Columns, first: int, loss: Loss | None
    ) -> RawBatch:
        rejects = tuple(
            Reject(self.path, first + row, column, reason, as_json(records[row]))
            for row, (column, reason) in sorted(found.failed.items())
        )
        return RawBatch(
            self.path,
            found.table,
            found.rows + first,
            rejects,
            len(found.rows) + len(rejects),
            ExampleTexts(records[found.rows].tolist()),
            loss,
        )


def _as_objects(records: list[bytes]) -> np.ndarray:
    array = np.empty(len(records), object)
    array[:] = records
    return array


def _framed_bytes(records: np.ndarray) -> int:
    return sum(map(len, records)) + record_framing.FRAMING_BYTES * len(records)
