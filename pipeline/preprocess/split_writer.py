"""Rows of all splits to record shards, in either form of records."""

from __future__ import annotations

import pyarrow as pa

from pipeline.preprocess import block_encoder, example_encoder
from pipeline.preprocess.shards import ShardInfo, ShardWriter
from pipeline.preprocess.splits import DividedRows
from pipeline.types import BLOCK_ROWS, RecordForm


class SplitWriter:
    """Writes consecutive rows to shards of their splits; their order is kept.

    Args:
      directory: Where to write; it must exist.
      order_key: See ShardWriter.
      shard_bytes: Size at which a shard is closed.
      form: What a record holds.
    """

    def __init__(
        self, directory: str, order_key: str, shard_bytes: int, form: RecordForm
    ):
        self._settings = directory, order_key, shard_bytes
        self._form = form
        self._writers: dict[str, ShardWriter] = {}
        self._waiting: dict[str, list[pa.RecordBatch]] = {}

    def write(self, rows: DividedRows) -> None:
        """Appends rows."""
        if self._form is RecordForm.BLOCKS:
            for split, table in rows.by_split():
                self._write_blocks(split, table)
            return
        # Encoding has a cost a call, so all splits are encoded together.
        records = example_encoder.encode(rows.table)
        for split, start, stop in rows.parts:
            self._writer(split).write(records[start:stop])

    def close(self) -> tuple[ShardInfo, ...]:
        """Writes what is held back and returns all shards."""
        for split, tables in self._waiting.items():
            self._encode_blocks(split, _joined(tables))
        self._waiting = {}
        return tuple(s for w in self._writers.values() for s in w.close())

    def _writer(self, split: str) -> ShardWriter:
        if split not in self._writers:
            directory, order_key, shard_bytes = self._settings
            self._writers[split] = ShardWriter(directory, split, order_key, shard_bytes)
        return self._writers[split]

    def _write_blocks(self, split: str, table: pa.RecordBatch) -> None:
        waiting = self._waiting.setdefault(split, [])
        waiting.append(table)
        rows = sum(t.num_rows for t in waiting)
        whole = rows - rows % BLOCK_ROWS
        if whole:
            joined = _joined(waiting)
            # Copied, since a slice would keep all the rows in memory.
            rest = joined.take(pa.array(range(whole, rows), pa.int64()))
            self._waiting[split] = [rest] if rest.num_rows else []
            self._encode_blocks(split, joined.slice(0, whole))

    def _encode_blocks(self, split: str, table: pa.RecordBatch) -> None:
        counts = [
            min(BLOCK_ROWS, table.num_rows - start)
            for start in range(0, table.num_rows, BLOCK_ROWS)
        ]
        self._writer(split).write(block_encoder.encode(table, BLOCK_ROWS), counts)


def _joined(tables: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(tables) == 1:
        return tables[0]
    return pa.Table.from_batches(tables).combine_chunks().to_batches()[0]
