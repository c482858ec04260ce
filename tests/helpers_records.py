"""Declarations, constants and record files for tests, made from plain rows."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from input_fns.records import Records
from pipeline.compat import tf
from pipeline.preprocess import block_encoder, example_encoder
from pipeline.types import (
    BLOCK_ROWS,
    Bucketized,
    Column,
    ColumnType,
    Constants,
    Declaration,
    Feature,
    Label,
    RecordForm,
    Scaling,
    Split,
    is_looked_up,
    is_number,
)

Row = Mapping[str, Any]

_ARROW = {
    ColumnType.INT: pa.int64(),
    ColumnType.FLOAT: pa.float32(),
    ColumnType.STRING: pa.binary(),
}


def column(name: str, kind: str, **settings) -> Column:
    return Column(name, ColumnType(kind), **settings)


def declare(
    columns: Sequence[Column],
    features: Sequence[Feature],
    label: Label | None = None,
    weight: str | None = None,
) -> Declaration:
    return Declaration(
        {c.name: c for c in columns},
        {f.name: f for f in features},
        Split({"train": 0.8, "eval": 0.1, "test": 0.1}),
        label,
        weight,
    )


def constants_for(
    declaration: Declaration,
    vocabularies: Mapping[str, Sequence[bytes]] | None = None,
    scalings: Mapping[str, Scaling] | None = None,
    boundaries: Mapping[str, Sequence[float]] | None = None,
) -> Constants:
    """Returns constants; what is not given is the identity or stands declared."""
    features = declaration.features.values()
    return Constants(
        scalings={
            f.name: (scalings or {}).get(f.name, Scaling(0.0, 1.0))
            for f in features
            if is_number(f)
        },
        boundaries={
            f.name: tuple((boundaries or {}).get(f.name, f.boundaries))
            for f in features
            if isinstance(f, Bucketized)
        },
        vocabularies={
            f.name: tuple((vocabularies or {})[f.name])
            for f in features
            if is_looked_up(f)
        },
    )


def examples(rows: Sequence[Row], columns: Sequence[Column]) -> list[bytes]:
    """Encodes rows as preprocess does; an absent or None value is missing."""
    return example_encoder.encode(_as_batch(rows, columns))


def _as_batch(rows: Sequence[Row], columns: Sequence[Column]) -> pa.RecordBatch:
    arrays = []
    for each in columns:
        values = [row.get(each.name) for row in rows]
        encoded = [v.encode() if isinstance(v, str) else v for v in values]
        arrays.append(pa.array(encoded, _ARROW[each.type]))
    return pa.record_batch(arrays, [c.name for c in columns])


def write_records(
    directory: os.PathLike | str,
    rows: Sequence[Row],
    columns: Sequence[Column],
    shards: int = 1,
) -> Records:
    """Writes rows to so many files, in order and as evenly as can be."""
    serialized = examples(rows, columns)
    files, file_rows = [], []
    for shard in range(shards):
        path = os.path.join(directory, f"records-{shard:05d}-of-{shards:05d}")
        begin, end = (len(rows) * i // shards for i in (shard, shard + 1))
        with tf.io.TFRecordWriter(path) as writer:
            for record in serialized[begin:end]:
                writer.write(record)
        files.append(path)
        file_rows.append(end - begin)
    return Records(tuple(files), len(rows), file_rows=tuple(file_rows))


def write_blocks(
    directory: os.PathLike | str,
    parts: Sequence[Sequence[Row]],
    columns: Sequence[Column],
    block_rows: int = BLOCK_ROWS,
) -> Records:
    """Writes the rows of each part to a file of blocks."""
    files = []
    for number, rows in enumerate(parts):
        path = os.path.join(directory, f"blocks-{number:05d}-of-{len(parts):05d}")
        with tf.io.TFRecordWriter(path) as writer:
            for block in block_encoder.encode(_as_batch(rows, columns), block_rows):
                writer.write(block)
        files.append(path)
    sizes = tuple(map(len, parts))
    return Records(tuple(files), sum(sizes), RecordForm.BLOCKS, sizes)
