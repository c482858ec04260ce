"""The Beam pipeline: files to record batches to shards, statistics and rejects.

What travels through Beam are batches of thousands of rows; no element and no
protobuf object exists per row. No DoFn raises: with several worker processes an
exception in one makes Beam's local runner hang, so failures travel as elements and
the caller raises them.
"""

from __future__ import annotations

import collections
import dataclasses
import os
import traceback
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.pvalue import TaggedOutput
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import WindowedValue

from pipeline import files
from pipeline.dataset import STATISTICS_FILE
from pipeline.preprocess import (
    constants,
    constants_files,
    csv_source,
    job,
    rejects,
    splits,
    typed,
)
from pipeline.preprocess.csv_pieces import Reject
from pipeline.preprocess.job import JobSettings
from pipeline.preprocess.progress import Counter, Done
from pipeline.preprocess.shards import ShardInfo
from pipeline.preprocess.split_writer import SplitWriter
from pipeline.preprocess.statistics import DatasetStatistics
from pipeline.types import (
    ColumnType,
    Declaration,
    ExitCode,
    UserError,
    Vocabulary,
)

# Beam's DirectRunner would first look for another engine in the network.
_DEFAULT_RUNNER = "FnApiRunner"
_FAILURES = "failures"
_REJECTS = "rejects"


@dataclasses.dataclass(frozen=True, eq=False)
class _Raw:
    """A batch as it was read, and the place of its file in the input."""

    file_index: int
    batch: csv_source.RawBatch


@dataclasses.dataclass(frozen=True, eq=False)
class _Rows:
    """Checked rows of a file."""

    file_index: int
    divided: splits.DividedRows


@dataclasses.dataclass(frozen=True, eq=False)
class _Rejected:
    """Rejected rows of a batch."""

    file_index: int
    rejects: tuple[Reject, ...]


def _failure(error: Exception) -> TaggedOutput:
    by_user = isinstance(error, UserError)
    return TaggedOutput(
        _FAILURES,
        {
            "message": str(error) if by_user else traceback.format_exc(),
            "exit_code": int(error.exit_code) if by_user else None,
        },
    )


def _global(value: Any) -> WindowedValue:
    """Wraps what a DoFn yields when its bundle ends."""
    window = GlobalWindow()
    return WindowedValue(value, window.max_timestamp(), [window])


class _Read(beam.DoFn):
    """(index, path) of a file to its raw batches."""

    def __init__(self, columns: Sequence[str], parts: str):
        self._columns = tuple(columns)
        self._parts = parts

    def setup(self):
        self._counter = Counter(self._parts)

    def process(self, element: tuple[int, str]) -> Iterator[_Raw]:
        index, path = element
        position = 0
        try:
            for batch in csv_source.read_batches(path, self._columns):
                self._counter.add(
                    Done(rows=batch.rows_read, bytes=batch.position - position)
                )
                position = batch.position
                yield _Raw(index, batch)
        except Exception as error:
            yield _failure(error)

    def finish_bundle(self):
        self._counter.flush()


class _Check(beam.DoFn):
    """Raw batches to typed rows by split; rejected rows go to their own output."""

    def __init__(self, declaration: Declaration, parts: str):
        self._declaration = declaration
        self._columns = tuple(declaration.columns.values())
        self._parts = parts

    def setup(self):
        self._counter = Counter(self._parts)

    def process(self, element: _Raw) -> Iterator[_Rows]:
        declaration = self._declaration
        try:
            batch, rejected = typed.convert(
                element.batch, self._columns, declaration.label
            )
            rejected = (*element.batch.rejects, *rejected)
            if rejected:
                self._counter.add(Done(rejected=len(rejected)))
                in_order = tuple(sorted(rejected, key=lambda reject: reject.line))
                yield TaggedOutput(_REJECTS, _Rejected(element.file_index, in_order))
            if batch.table.num_rows:
                divided = splits.divide(batch.table, declaration.split)
                yield _Rows(element.file_index, divided)
        except Exception as error:
            yield _failure(error)


class _WriteShards(beam.DoFn):
    """Rows to shards; the rows of one file and split stay in order."""

    def __init__(self, settings: JobSettings):
        self._settings = settings

    def start_bundle(self):
        self._writers: dict[int, SplitWriter] = {}

    def process(self, element: _Rows) -> Iterator[ShardInfo]:
        try:
            index = element.file_index
            if index not in self._writers:
                # Files come one after the other, so those before are done.
                yield from self._close_all()
                settings = self._settings
                self._writers[index] = SplitWriter(
                    settings.directory,
                    f"{index:08d}",
                    settings.shard_bytes,
                    settings.record_form,
                )
            self._writers[index].write(element.divided)
        except Exception as error:
            yield _failure(error)

    def _close_all(self) -> Iterator[ShardInfo]:
        while self._writers:
            yield from self._writers.popitem()[1].close()

    def finish_bundle(self):
        try:
            for shard in self._close_all():
                yield _global(shard)
        except Exception as error:
            yield TaggedOutput(_FAILURES, _global(_failure(error).value))


class _WriteRejects(beam.DoFn):
    """Rejected rows to JSON-lines files, one for each source file and bundle.

    A bundle that is tried again writes to another file, so no row stands twice.
    """

    def __init__(self, directory: str):
        self._directory = directory

    def start_bundle(self):
        self._bundle = uuid.uuid4().hex
        self._counts: dict[int, collections.Counter[str]] = {}
        self._reasons: dict[int, dict[str, str]] = {}

    def process(self, element: _Rejected) -> Iterator[Any]:
        index = element.file_index
        counts = self._counts.setdefault(index, collections.Counter())
        reasons = self._reasons.setdefault(index, {})
        try:
            with open(self._path(index), "a", encoding="utf-8") as f:
                for reject in element.rejects:
                    f.write(rejects.to_json(reject) + "\n")
                    counts[reject.column or ""] += 1
                    reasons.setdefault(reject.column or "", reject.reason)
        except Exception as error:
            yield _failure(error)

    def _path(self, file_index: int) -> str:
        name = f"rejects-{file_index:08d}-{self._bundle}.jsonl"
        return os.path.join(self._directory, name)

    def finish_bundle(self):
        for index, counts in self._counts.items():
            found = (index, self._path(index), dict(counts), self._reasons[index])
            yield _global(found)


class _CombineStatistics(beam.CombineFn):
    """Rows of all batches into DatasetStatistics."""

    def __init__(self, declaration: Declaration):
        self._types = {c.name: c.type for c in declaration.columns.values()}
        self._counted = {
            f.column for f in declaration.features.values() if isinstance(f, Vocabulary)
        } | {n for n, t in self._types.items() if t is ColumnType.STRING}

    def create_accumulator(self) -> DatasetStatistics:
        return DatasetStatistics(self._types, self._counted)

    def add_input(self, statistics: DatasetStatistics, rows: _Rows):
        for split, table in rows.divided.by_split():
            statistics.add(split, table)
        return statistics

    def merge_accumulators(self, accumulators):
        merged = self.create_accumulator()
        for statistics in accumulators:
            merged.merge(statistics)
        return merged

    def extract_output(self, statistics: DatasetStatistics) -> DatasetStatistics:
        return statistics


class _WriteStatistics(beam.DoFn):
    """The statistics of everything to files: statistics.json and the constants."""

    def __init__(self, declaration: Declaration, directory: str):
        self._declaration = declaration
        self._directory = directory

    def process(self, statistics: DatasetStatistics) -> Iterator[Any]:
        try:
            files.write_json(
                os.path.join(self._directory, STATISTICS_FILE),
                statistics.summary().to_json(),
            )
            if "train" not in statistics:
                raise UserError(
                    "the train split has no rows, so there is nothing to compute"
                    " statistics from",
                    ExitCode.BAD_DATA,
                )
            constants_files.write_constants(
                self._directory,
                constants.compute_constants(self._declaration, statistics["train"]),
            )
        except Exception as error:
            yield _failure(error)


class _WriteReport(beam.DoFn):
    """Everything that the pipeline has to report to one file of JSON lines."""

    def __init__(self, path: str):
        self._path = path

    def process(self, report: list[tuple[str, Any]]) -> None:
        lines = [files.canonical_json(entry) + "\n" for entry in report]
        files.write_atomically(self._path, "".join(lines))


def _build(pipeline: beam.Pipeline, settings: JobSettings) -> None:
    declaration = settings.declaration
    raw = (
        pipeline
        | "Files" >> beam.Create(list(enumerate(settings.paths)))
        | "Read"
        >> beam.ParDo(_Read(tuple(declaration.columns), settings.parts)).with_outputs(
            _FAILURES, main="rows"
        )
    )
    checked = raw.rows | "Check" >> beam.ParDo(
        _Check(declaration, settings.parts)
    ).with_outputs(_FAILURES, _REJECTS, main="rows")
    written = checked.rows | "Shards" >> beam.ParDo(
        _WriteShards(settings)
    ).with_outputs(_FAILURES, main="shards")
    statistics = (
        checked.rows
        | "Statistics" >> beam.CombineGlobally(_CombineStatistics(declaration))
        | "WriteStatistics"
        >> beam.ParDo(_WriteStatistics(declaration, settings.directory)).with_outputs(
            _FAILURES, main="none"
        )
    )
    rejected = checked[_REJECTS] | "Rejects" >> beam.ParDo(
        _WriteRejects(settings.parts)
    ).with_outputs(_FAILURES, main="files")
    failures = [
        output[_FAILURES] for output in (raw, checked, written, statistics, rejected)
    ]
    reports = {
        "rows_read": raw.rows | beam.Map(lambda element: element.batch.rows_read),
        "shard": written.shards | beam.Map(dataclasses.asdict),
        "rejects": rejected.files,
        "failure": failures | beam.Flatten(),
    }
    # Each way to a file of its own would cost a quarter of a second.
    _ = (
        [
            values
            | f"Report_{kind}" >> beam.Map(lambda value, kind: (kind, value), kind)
            for kind, values in reports.items()
        ]
        | "Reports" >> beam.Flatten()
        | "ListReports" >> beam.combiners.ToList()
        | "WriteReport" >> beam.ParDo(_WriteReport(settings.report))
    )


def run(settings: JobSettings) -> None:
    """Runs the pipeline; what it made and what went wrong stands in the report."""
    options = PipelineOptions(list(settings.beam_options))
    chosen = None if job.runner(settings.beam_options) else _DEFAULT_RUNNER
    with beam.Pipeline(runner=chosen, options=options) as pipeline:
        _build(pipeline, settings)
