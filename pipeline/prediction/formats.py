"""Files of predictions in each format; a file is written by one worker alone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from pipeline.prediction.answers import Answers
from pipeline.preprocess import example_encoder
from pipeline.types import UserError


class File(Protocol):
    """An open file of one format."""

    def write(self, answers: Answers) -> None: ...

    def close(self) -> None: ...


class JsonLines:
    """One JSON object a row."""

    def __init__(self, path: str):
        self._file = open(path, "w", encoding="utf-8", errors="backslashreplace")  # noqa: SIM115

    def write(self, answers: Answers) -> None:
        self._file.writelines(
            json.dumps(row, ensure_ascii=False) + "\n" for row in answers.rows()
        )

    def close(self) -> None:
        self._file.close()

    @staticmethod
    def join(paths: Sequence[str], names: Sequence[str], output: str) -> None:
        del names
        _concatenate(paths, output)


def _concatenate(paths: Sequence[str], output: str, skipped: int = 0) -> None:
    """Writes files one after the other; of all but the first, without a beginning."""
    with open(output, "wb") as out:
        for i, path in enumerate(paths):
            with open(path, "rb") as f:
                f.seek(skipped if i else 0)
                shutil.copyfileobj(f, out, 1 << 20)


def _csv_header(names: Sequence[str]) -> bytes:
    quoted = ['"' + name.replace('"', '""') + '"' for name in names]
    return (",".join(quoted) + "\n").encode()


class Csv:
    """A line of names, and a line a row; a list stands as JSON."""

    def __init__(self, path: str):
        self._file = open(path, "wb")  # noqa: SIM115
        self._writer: pa.csv.CSVWriter | None = None

    def write(self, answers: Answers) -> None:
        table = answers.table()
        plain = [
            pa.array(map(json.dumps, column.to_pylist()), pa.string())
            if pa.types.is_list(column.type)
            else column
            for column in table.columns
        ]
        table = pa.record_batch(plain, table.schema.names)
        if self._writer is None:
            self._file.write(_csv_header(table.schema.names))
            options = pa.csv.WriteOptions(include_header=False)
            self._writer = pa.csv.CSVWriter(
                self._file, table.schema, write_options=options
            )
        self._writer.write_batch(table)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._file.close()

    @staticmethod
    def join(paths: Sequence[str], names: Sequence[str], output: str) -> None:
        _concatenate(paths, output, len(_csv_header(names)))


class Parquet:
    """A column a value; a list stays one."""

    def __init__(self, path: str):
        self._path = path
        self._writer: pq.ParquetWriter | None = None

    def write(self, answers: Answers) -> None:
        table = answers.table()
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._path, table.schema)
        self._writer.write_batch(table)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()

    @staticmethod
    def join(paths: Sequence[str], names: Sequence[str], output: str) -> None:
        del names
        # Without a row there are no types of columns either.
        schema = pq.read_schema(paths[0]) if paths else pa.schema([])
        with pq.ParquetWriter(output, schema) as writer:
            for path in paths:
                with pq.ParquetFile(path) as part:
                    for batch in part.iter_batches():
                        writer.write_batch(batch)


class TfRecord:
    """A tf.Example a row, with int64, float32 and bytes."""

    def __init__(self, path: str):
        from pipeline.compat import tf

        self._writer = tf.io.TFRecordWriter(path)

    def write(self, answers: Answers) -> None:
        table = answers.table()
        columns = [
            _for_example(name, column)
            for name, column in zip(table.schema.names, table.columns, strict=True)
        ]
        for record in example_encoder.encode(
            pa.record_batch(columns, table.schema.names)
        ):
            self._writer.write(record)

    def close(self) -> None:
        self._writer.close()

    @staticmethod
    def join(paths: Sequence[str], names: Sequence[str], output: str) -> None:
        del names
        _concatenate(paths, output)


def _for_example(name: str, column: pa.Array) -> pa.Array:
    kind = column.type
    if pa.types.is_list(kind):
        raise UserError(
            f"--output_format=tfrecord takes one value a row, and {name} is a list; take"
            " jsonl, csv or parquet"
        )
    if pa.types.is_string(kind):
        return pc.cast(column, pa.binary())
    return pc.cast(column, pa.float32() if pa.types.is_floating(kind) else pa.int64())


FORMATS = {"jsonl": JsonLines, "csv": Csv, "parquet": Parquet, "tfrecord": TfRecord}
