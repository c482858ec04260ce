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
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.pvalue import TaggedOutput
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import WindowedValue

from pipeline import files
from pipeline.console import Console, Progress
from pipeline.dataset import STATISTICS_FILE
from pipeline.preprocess import (
    constants,
    constants_files,
    csv_source,
    rejects,
    splits,
    typed,
)
from pipeline.preprocess.csv_pieces import Reject
from pipeline.preprocess.shards import ShardInfo
from pipeline.preprocess.split_writer import SplitWriter
from pipeline.preprocess.statistics import DatasetStatistics
from pipeline.types import (
    ColumnType,
    Declaration,
    ExitCode,
    RecordForm,
    UserError,
    Vocabulary,
)

# Beam's DirectRunner would first look for another engine in the network.
_DEFAULT_RUNNER = "FnApiRunner"
_PARTS = ".parts"
_FAILURES = "failures"
_REJECTS = "rejects"


@dataclasses.dataclass(frozen=True)
class JobSettings:
    """What a run of the pipeline needs.

    Attributes:
      paths: The raw files, in order.
      declaration: The features.
      directory: Where everything is written; it exists and is empty.
      shard_bytes: Size at which a shard is closed.
      record_form: What a record holds.
      beam_options: Options of Beam, e.g. `--direct_num_workers=2`.
    """

    paths: tuple[str, ...]
    declaration: Declaration
    directory: str
    shard_bytes: int
    record_form: RecordForm
    beam_options: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class JobOutput:
    """What a run made, besides the files of constants and statistics.

    Attributes:
      shards: Written shards, still under temporary names.
      reject_files: JSON-lines files of rejected rows, in the order of the data.
      rejected: Column to number of rows rejected for it; "" where a row as a whole
        is broken.
      first_reason: The first reason given for each such column.
      rows_read: Records read; blank lines do not count.
      parts: Directory of working files, to be removed by the caller.
    """

    shards: tuple[ShardInfo, ...]
    reject_files: tuple[str, ...]
    rejected: Mapping[str, int]
    first_reason: Mapping[str, str]
    rows_read: int
    parts: str


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

    def __init__(self, columns: Sequence[str], console: Console):
        self._columns = tuple(columns)
        self._console = console

    def setup(self):
        self._progress = Progress(self._console, "preprocess", "rows")
        self._rows = 0

    def process(self, element: tuple[int, str]) -> Iterator[_Raw]:
        index, path = element
        try:
            for batch in csv_source.read_batches(path, self._columns):
                self._rows += batch.rows_read
                self._progress.update(self._rows)
                yield _Raw(index, batch)
        except Exception as error:
            yield _failure(error)

    def teardown(self):
        self._progress.close()


class _Check(beam.DoFn):
    """Raw batches to typed rows by split; rejected rows go to their own output."""

    def __init__(self, declaration: Declaration):
        self._declaration = declaration
        self._columns = tuple(declaration.columns.values())

    def process(self, element: _Raw) -> Iterator[_Rows]:
        declaration = self._declaration
        try:
            batch, rejected = typed.convert(
                element.batch, self._columns, declaration.label
            )
            rejected = (*element.batch.rejects, *rejected)
            if rejected:
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
    """Rejected rows to JSON-lines files, one for each source file."""

    def __init__(self, directory: str):
        self._directory = directory

    def start_bundle(self):
        self._counts: dict[int, collections.Counter[str]] = {}
        self._reasons: dict[str, str] = {}

    def process(self, element: _Rejected) -> None:
        index = element.file_index
        counts = self._counts.setdefault(index, collections.Counter())
        with open(self._path(index), "a", encoding="utf-8") as f:
            for reject in element.rejects:
                f.write(rejects.to_json(reject) + "\n")
                counts[reject.column or ""] += 1
                self._reasons.setdefault(reject.column or "", reject.reason)

    def _path(self, file_index: int) -> str:
        return os.path.join(self._directory, f"rejects-{file_index:08d}.jsonl")

    def finish_bundle(self):
        for index, counts in self._counts.items():
            yield _global((self._path(index), dict(counts), dict(self._reasons)))


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


class _WriteList(beam.DoFn):
    """A list of plain values to one JSON file."""

    def __init__(self, path: str):
        self._path = path

    def process(self, values: list[Any]) -> None:
        files.write_json(self._path, values)


def _to_file(values: beam.PCollection, name: str, parts: str) -> None:
    _ = (
        values
        | f"List{name}" >> beam.combiners.ToList()
        | f"Write{name}" >> beam.ParDo(_WriteList(os.path.join(parts, f"{name}.json")))
    )


def _build(pipeline: beam.Pipeline, settings: JobSettings, parts: str, console) -> None:
    declaration = settings.declaration
    raw = (
        pipeline
        | "Files" >> beam.Create(list(enumerate(settings.paths)))
        | "Read"
        >> beam.ParDo(_Read(tuple(declaration.columns), console)).with_outputs(
            _FAILURES, main="rows"
        )
    )
    checked = raw.rows | "Check" >> beam.ParDo(_Check(declaration)).with_outputs(
        _FAILURES, _REJECTS, main="rows"
    )
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
    rejected = checked[_REJECTS] | "Rejects" >> beam.ParDo(_WriteRejects(parts))
    failures = (
        raw[_FAILURES],
        checked[_FAILURES],
        written[_FAILURES],
        statistics[_FAILURES],
    ) | "Failures" >> beam.Flatten()
    shards = written.shards | "ShardInfo" >> beam.Map(dataclasses.asdict)
    rows_read = (
        raw.rows
        | "CountRead" >> beam.Map(lambda element: element.batch.rows_read)
        | "SumRead" >> beam.CombineGlobally(sum)
    )
    for name, values in (
        ("shards", shards),
        ("rejects", rejected),
        ("failures", failures),
        ("rows_read", rows_read),
    ):
        _to_file(values, name, parts)


def _raise_first(failures: Sequence[Mapping[str, Any]]) -> None:
    """Raises a bug before a user's mistake: it is what needs attention."""
    for failure in sorted(failures, key=lambda f: f["exit_code"] is not None):
        if failure["exit_code"] is None:
            raise RuntimeError(f"in a worker:\n{failure['message']}")
        raise UserError(failure["message"], ExitCode(failure["exit_code"]))


def run(settings: JobSettings, console: Console) -> JobOutput:
    """Runs the pipeline on Beam's local in-memory runner, or the one asked for.

    Raises:
      UserError: The data cannot be used; nothing of ours is broken.
    """
    parts = os.path.join(settings.directory, _PARTS)
    os.mkdir(parts)
    options = PipelineOptions(list(settings.beam_options))
    runner = None
    if not any(option.startswith("--runner") for option in settings.beam_options):
        runner = _DEFAULT_RUNNER
    with beam.Pipeline(runner=runner, options=options) as pipeline:
        _build(pipeline, settings, parts, console)

    def read(name: str) -> Any:
        return files.read_json(os.path.join(parts, f"{name}.json"))

    _raise_first(read("failures"))
    rejected: collections.Counter[str] = collections.Counter()
    first_reason: dict[str, str] = {}
    reject_files = read("rejects")
    for _, counts, reasons in sorted(reject_files):
        rejected.update(counts)
        first_reason = {**reasons, **first_reason}
    return JobOutput(
        shards=tuple(ShardInfo(**shard) for shard in read("shards")),
        reject_files=tuple(sorted({path for path, _, _ in reject_files})),
        rejected=dict(rejected),
        first_reason=first_reason,
        rows_read=sum(read("rows_read")),
        parts=parts,
    )
