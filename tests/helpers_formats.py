"""One table of rows, written in every format that is read."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.compat import tf
from pipeline.types import ColumnType

Table = Mapping[str, tuple[ColumnType, Sequence[Any]]]
"""Column name to its type and its values: int, float, str, or None."""

_ARROW = {
    ColumnType.INT: pa.int64(),
    ColumnType.FLOAT: pa.float32(),
    ColumnType.STRING: pa.string(),
}


def rows_of(table: Table) -> list[dict[str, Any]]:
    values = [column for _, column in table.values()]
    return [dict(zip(table, row, strict=True)) for row in zip(*values, strict=True)]


def write_delimited(path: Path, table: Table, delimiter: str = ",") -> Path:
    # Python's writer quotes no carriage return unless lines end with one.
    returns = any("\r" in str(v) for row in rows_of(table) for v in row.values())
    quoting = csv.QUOTE_ALL if returns else csv.QUOTE_MINIMAL
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(
            file, delimiter=delimiter, lineterminator="\n", quoting=quoting
        )
        writer.writerow(table)
        for row in rows_of(table):
            writer.writerow(["" if v is None else v for v in row.values()])
    return path


def write_tsv(path: Path, table: Table) -> Path:
    return write_delimited(path, table, "\t")


def write_json_lines(path: Path, table: Table) -> Path:
    lines = []
    for row in rows_of(table):
        present = {k: v for k, v in row.items() if v is not None}
        lines.append(json.dumps(present, ensure_ascii=False) + "\n")
    path.write_text("".join(lines), encoding="utf-8", newline="")
    return path


def write_parquet(path: Path, table: Table, row_group_size: int = 7) -> Path:
    arrays = [pa.array(values, _ARROW[kind]) for kind, values in table.values()]
    pq.write_table(pa.table(arrays, list(table)), path, row_group_size=row_group_size)
    return path


def example(row: Mapping[str, Any]) -> bytes:
    """Serializes a row; a list is a feature of several values."""
    result = tf.train.Example()
    for name, value in row.items():
        feature = result.features.feature[name]
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, int):
                feature.int64_list.value.append(item)
            elif isinstance(item, float):
                feature.float_list.value.append(item)
            elif item is not None:
                data = item if isinstance(item, bytes) else item.encode()
                feature.bytes_list.value.append(data)
    return result.SerializeToString()


def write_records(path: Path, records: Sequence[bytes]) -> Path:
    options = "GZIP" if path.name.endswith(".gz") else ""
    with tf.io.TFRecordWriter(str(path), options) as writer:
        for record in records:
            writer.write(record)
    return path


def write_tfrecord(path: Path, table: Table) -> Path:
    return write_records(path, [example(row) for row in rows_of(table)])


def compressed(path: Path) -> Path:
    """Writes a gzip twin beside a file."""
    twin = path.with_name(path.name + ".gz")
    twin.write_bytes(gzip.compress(path.read_bytes()))
    return twin


WRITERS: Mapping[str, Callable[[Path, Table], Path]] = {
    "csv": write_delimited,
    "tsv": write_tsv,
    "jsonl": write_json_lines,
    "parquet": write_parquet,
    "tfrecord": write_tfrecord,
}
