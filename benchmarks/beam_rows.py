"""The same work as Beam's own examples do it: one element a row.

Text lines become dicts, are checked value by value, go to a split by a hash of the
row, are counted in a CombineFn row by row, and become one protobuf object each. A
DoFn writes them with TensorFlow's writer, which is faster than WriteToTFRecord.

Arguments: OUTPUT PATH
"""

from __future__ import annotations

import collections
import csv
import hashlib
import itertools
import json
import math
import os
import random

from benchmarks import measure
from benchmarks.ours import DECLARATION

with measure.stopwatch() as _elapsed:
    from pipeline import environment

    environment.set_verbosity(0)
    environment.load_tensorflow(0)
    import apache_beam as beam

    from pipeline import declaration as declarations
    from pipeline.compat import tf
    from pipeline.types import ColumnType, Declaration

    IMPORT_SECONDS = _elapsed()

_SAMPLE = 10_000


class ParseRow(beam.DoFn):
    """A line of text to its split and checked values."""

    def __init__(self, declaration: Declaration, names: list[str]):
        self._columns = declaration.columns
        self._fractions = declaration.split.fractions
        self._names = names

    def process(self, line: str):
        fields = next(csv.reader([line]))
        if len(fields) != len(self._names):
            raise ValueError(line)
        row = {}
        for name, text in zip(self._names, fields, strict=True):
            column = self._columns[name]
            text = text.strip()
            if text in column.missing:
                if column.required:
                    raise ValueError(f"{name} is missing in {line}")
                row[name] = None
            elif column.type is ColumnType.INT:
                row[name] = int(text)
            elif column.type is ColumnType.FLOAT:
                row[name] = float(text)
            else:
                row[name] = text.encode()
        digest = hashlib.blake2b(line.encode(), digest_size=8).digest()
        point = int.from_bytes(digest, "little") / 2**64
        ends = itertools.accumulate(self._fractions.values())
        number = sum(point >= end for end in ends)
        yield list(self._fractions)[min(number, len(self._fractions) - 1)], row


class Statistics(beam.CombineFn):
    """Counts, moments, a sample for quantiles, and how often each string occurs."""

    def create_accumulator(self):
        return {}

    def add_input(self, splits, element):
        split, row = element
        columns = splits.setdefault(split, {})
        for name, value in row.items():
            c = columns.get(name)
            if c is None:
                c = columns[name] = {
                    "count": 0, "missing": 0, "sum": 0.0, "squares": 0.0,
                    "log_sum": 0.0, "log_squares": 0.0, "zeros": 0,
                    "sample": [], "values": collections.Counter(),
                }  # fmt: skip
            c["count"] += 1
            if value is None:
                c["missing"] += 1
            elif isinstance(value, bytes):
                c["values"][value] += 1
            else:
                log = math.copysign(math.log1p(abs(value)), value)
                c["sum"] += value
                c["squares"] += value * value
                c["log_sum"] += log
                c["log_squares"] += log * log
                c["zeros"] += value == 0
                if len(c["sample"]) < _SAMPLE:
                    c["sample"].append(value)
                elif (place := random.randrange(c["count"])) < _SAMPLE:
                    c["sample"][place] = value
        return splits

    def merge_accumulators(self, accumulators):
        merged = {}
        for splits in accumulators:
            for split, columns in splits.items():
                mine = merged.setdefault(split, {})
                for name, other in columns.items():
                    if name not in mine:
                        mine[name] = other
                        continue
                    for key, value in other.items():
                        mine[name][key] += value
        return merged

    def extract_output(self, splits):
        found = {}
        for split, columns in splits.items():
            for name, c in columns.items():
                sample = sorted(c.pop("sample"))
                values = c.pop("values").most_common()
                step = max(1, len(sample) // 20)
                c["quantiles"] = sample[::step]
                c["values"] = [[v.decode(), n] for v, n in values]
                found[f"{split}/{name}"] = c
        return found


def to_example(element):
    """A split and a row to the split and a serialized tf.train.Example."""
    split, row = element
    feature = {}
    for name, value in row.items():
        if value is None:
            continue
        if isinstance(value, bytes):
            kind = {"bytes_list": tf.train.BytesList(value=[value])}
        elif isinstance(value, int):
            kind = {"int64_list": tf.train.Int64List(value=[value])}
        else:
            kind = {"float_list": tf.train.FloatList(value=[value])}
        feature[name] = tf.train.Feature(**kind)
    example = tf.train.Example(features=tf.train.Features(feature=feature))
    return split, example.SerializeToString()


class WriteRecords(beam.DoFn):
    """Serialized rows to a file a split."""

    def __init__(self, directory: str):
        self._directory = directory

    def start_bundle(self):
        self._writers = {}

    def process(self, element):
        split, record = element
        if split not in self._writers:
            path = os.path.join(self._directory, f"{split}-{id(self)}.tfrecord")
            self._writers[split] = tf.io.TFRecordWriter(path)
        self._writers[split].write(record)

    def finish_bundle(self):
        for writer in self._writers.values():
            writer.close()


def _write_json(value, path: str) -> None:
    with open(path, "w", encoding="utf-8") as f:
        json.dump(value, f)


def _work(output: str, path: str) -> int:
    declaration = declarations.load(DECLARATION)
    os.mkdir(output)
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        rows = (
            pipeline
            | beam.io.ReadFromText(path, skip_header_lines=1)
            | beam.ParDo(ParseRow(declaration, list(declaration.columns)))
        )
        _ = rows | beam.Map(to_example) | beam.ParDo(WriteRecords(output))
        _ = (
            rows
            | beam.CombineGlobally(Statistics())
            | beam.Map(_write_json, os.path.join(output, "statistics.json"))
        )
    with open(os.path.join(output, "statistics.json"), encoding="utf-8") as f:
        found = json.load(f)
    return sum(c["count"] for name, c in found.items() if name.endswith("/year"))


def main(output: str, path: str) -> None:
    with measure.stopwatch() as elapsed:
        rows = _work(output, path)
        seconds = elapsed()
    measure.report(rows, seconds, IMPORT_SECONDS, measure.size_of(output))
