"""The Beam pipeline: files to record batches to shards, statistics and rejects.

What travels through Beam are batches of thousands of rows; no element and no
protobuf object exists per row. No DoFn raises, see `reports`: failures travel as
elements.
"""

from __future__ import annotations

import collections
import dataclasses
import os
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.pvalue import TaggedOutput
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import WindowedValue

from pipeline.preprocess import (
    beam_options,
    constants,
    constants_files,
    rejects,
    reports,
    splits,
    statistics_files,
    typed,
)
from pipeline.preprocess.job import JobSettings
from pipeline.preprocess.progress import Counter, Done
from pipeline.preprocess.rejects import Reject
from pipeline.preprocess.shards import ShardInfo
from pipeline.preprocess.sources import planning
from pipeline.preprocess.sources.base import FilePiece, RawBatch, Source
from pipeline.preprocess.sources.planning import Place, order_key
from pipeline.preprocess.split_writer import SplitWriter
from pipeline.preprocess.statistics import DatasetStatistics
from pipeline.types import Column, Declaration, ExitCode, UserError, WindowSplit

# Beam's DirectRunner would first look for another engine in the network.
_DEFAULT_RUNNER = "FnApiRunner"
_FAILURES = "failures"
_REJECTS = "rejects"
_LOSSES = "losses"


@dataclasses.dataclass(frozen=True, eq=False)
class _Raw:
    """A batch as it was read, and its place in the input."""

    place: Place
    batch: RawBatch


@dataclasses.dataclass(frozen=True, eq=False)
class _Rows:
    """Checked rows of a piece."""

    place: Place
    divided: splits.DividedRows


@dataclasses.dataclass(frozen=True, eq=False)
class _Rejected:
    """Rejected rows of a batch."""

    place: Place
    rejects: tuple[Reject, ...]


def _failure(error: Exception) -> TaggedOutput:
    return TaggedOutput(_FAILURES, reports.failure(error))


def _global(value: Any) -> WindowedValue:
    """Wraps what a DoFn yields when its bundle ends."""
    window = GlobalWindow()
    return WindowedValue(value, window.max_timestamp(), [window])


class _Read(beam.DoFn):
    """Pieces of files to their raw batches."""

    def __init__(self, columns: Sequence[Column], parts: str):
        self._columns = tuple(columns)
        self._names = tuple(column.name for column in columns)
        self._parts = parts

    def setup(self):
        self._counter = Counter(self._parts)

    def process(self, element: tuple[int, Source, FilePiece]) -> Iterator[_Raw]:
        index, source, piece = element
        position = piece.start
        try:
            for batch in source.read(piece, self._names, self._columns):
                read = max(batch.position - position, 0)
                position += read
                self._counter.add(Done(rows=batch.rows_read, bytes=read))
                if batch.loss is not None:
                    loss = dataclasses.asdict(batch.loss)
                    yield TaggedOutput(_LOSSES, (index, loss))
                yield _Raw((index, piece.index), batch)
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
                element.batch, self._columns, declaration.label, declaration.split
            )
            rejected = (*element.batch.rejects, *rejected)
            if rejected:
                self._counter.add(Done(rejected=len(rejected)))
                in_order = tuple(sorted(rejected, key=lambda reject: reject.line))
                yield TaggedOutput(_REJECTS, _Rejected(element.place, in_order))
            if batch.table.num_rows:
                divided = splits.divide(batch.table, declaration.split)
                yield _Rows(element.place, divided)
        except Exception as error:
            yield _failure(error)


class _WriteShards(beam.DoFn):
    """Rows to shards; the rows of one piece and split stay in order."""

    def __init__(self, settings: JobSettings):
        self._settings = settings

    def start_bundle(self):
        self._writers: dict[Place, SplitWriter] = {}

    def process(self, element: _Rows) -> Iterator[ShardInfo]:
        try:
            place = element.place
            if place not in self._writers:
                # Pieces come one after the other, so those before are done.
                yield from self._close_all()
                settings = self._settings
                self._writers[place] = SplitWriter(
                    settings.directory,
                    order_key(place),
                    settings.shard_bytes,
                    settings.record_form,
                )
            self._writers[place].write(element.divided)
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
    """Rejected rows to JSON-lines files, one for each piece of a file and bundle.

    A bundle that is tried again writes to another file, so no row stands twice.
    """

    def __init__(self, directory: str):
        self._directory = directory

    def start_bundle(self):
        self._bundle = uuid.uuid4().hex
        self._counts: dict[Place, collections.Counter[str]] = {}
        self._reasons: dict[Place, dict[str, str]] = {}

    def process(self, element: _Rejected) -> Iterator[Any]:
        place = element.place
        counts = self._counts.setdefault(place, collections.Counter())
        reasons = self._reasons.setdefault(place, {})
        try:
            with open(self._path(place), "a", encoding="utf-8") as f:
                for reject in element.rejects:
                    f.write(rejects.to_json(reject) + "\n")
                    counts[reject.column or ""] += 1
                    reasons.setdefault(reject.column or "", reject.reason)
        except Exception as error:
            yield _failure(error)

    def _path(self, place: Place) -> str:
        name = f"rejects-{order_key(place)}-{self._bundle}.jsonl"
        return os.path.join(self._directory, name)

    def finish_bundle(self):
        for place, counts in self._counts.items():
            reasons = self._reasons[place]
            yield _global((place, self._path(place), dict(counts), reasons))


class _CombineStatistics(beam.CombineFn):
    """Rows of all batches into DatasetStatistics."""

    def __init__(self, declaration: Declaration):
        self._declaration = declaration

    def create_accumulator(self) -> DatasetStatistics:
        return DatasetStatistics.of(self._declaration)

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
    """The statistics of everything to files, and the constants made from them."""

    def __init__(self, declaration: Declaration, directory: str):
        self._declaration = declaration
        self._directory = directory

    def process(self, statistics: DatasetStatistics) -> Iterator[Any]:
        try:
            statistics_files.write(self._directory, statistics)
            if isinstance(self._declaration.split, WindowSplit):
                return
            if "train" not in statistics:
                raise UserError(
                    "the train split has no rows, so there is nothing to compute"
                    " statistics from",
                    ExitCode.BAD_DATA,
                )
            constants_files.write_constants(
                self._directory,
                constants.compute_constants(
                    self._declaration, statistics["train"], statistics.derived("train")
                ),
            )
        except Exception as error:
            yield _failure(error)


class _WriteReport(beam.DoFn):
    """Everything that the pipeline has to report to one file of JSON lines."""

    def __init__(self, path: str):
        self._path = path

    def process(self, report: list[tuple[str, Any]]) -> None:
        reports.write(self._path, report)


def _build(pipeline: beam.Pipeline, settings: JobSettings) -> None:
    declaration = settings.declaration
    workers = beam_options.parse(settings.beam_options).workers
    pieces = pipeline | "Pieces" >> beam.Create(
        planning.pieces(settings.sources, workers, settings.piece_bytes)
    )
    if workers != 1:
        # Without it one worker would get all pieces.
        pieces |= "Distribute" >> beam.Reshuffle()
    raw = pieces | "Read" >> beam.ParDo(
        _Read(tuple(declaration.columns.values()), settings.parts)
    ).with_outputs(_FAILURES, _LOSSES, main="rows")
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
    failures = [output[_FAILURES] for output in (raw, checked, written, rejected)]
    ways = {
        "rows_read": raw.rows | beam.Map(lambda element: element.batch.rows_read),
        "shard": written.shards | beam.Map(dataclasses.asdict),
        "rejects": rejected.files,
        "loss": raw[_LOSSES],
        reports.FAILURE: failures | beam.Flatten(),
        "statistics_failure": statistics[_FAILURES],
    }
    # Each way to a file of its own would cost a quarter of a second.
    _ = (
        [
            values
            | f"Report_{kind}" >> beam.Map(lambda value, kind: (kind, value), kind)
            for kind, values in ways.items()
        ]
        | "Reports" >> beam.Flatten()
        | "ListReports" >> beam.combiners.ToList()
        | "WriteReport" >> beam.ParDo(_WriteReport(settings.report))
    )


def run(settings: JobSettings) -> None:
    """Runs the pipeline; what it made and what went wrong stands in the report."""
    options = PipelineOptions(list(settings.beam_options))
    asked = beam_options.parse(settings.beam_options).runner
    chosen = None if asked else _DEFAULT_RUNNER
    with beam.Pipeline(runner=chosen, options=options) as pipeline:
        _build(pipeline, settings)
