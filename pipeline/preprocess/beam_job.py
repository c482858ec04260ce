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
import pyarrow as pa
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.pvalue import TaggedOutput
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import WindowedValue

from pipeline import files
from pipeline.console import Console, Progress
from pipeline.preprocess import (
    constants,
    constants_files,
    example_encoder,
    rejects,
    splits,
    statistics_files,
    typed,
)
from pipeline.preprocess.rejects import Reject
from pipeline.preprocess.shards import ShardInfo, ShardWriter
from pipeline.preprocess.sources import planning
from pipeline.preprocess.sources.base import FilePiece, Loss, RawBatch, Source
from pipeline.preprocess.statistics import DatasetStatistics
from pipeline.types import Column, Declaration, ExitCode, UserError

# Beam's DirectRunner would first look for another engine in the network.
_DEFAULT_RUNNER = "FnApiRunner"
_PARTS = ".parts"
_FAILURES = "failures"
_REJECTS = "rejects"
_LOSSES = "losses"


@dataclasses.dataclass(frozen=True)
class JobSettings:
    """What a run of the pipeline needs.

    Attributes:
      sources: The raw files, in order.
      declaration: The features.
      directory: Where everything is written; it exists and is empty.
      shard_bytes: Size at which a shard is closed.
      beam_options: Options of Beam, e.g. `--direct_num_workers=2`.
      piece_bytes: Size of the pieces into which large files are cut, for several
        workers; None chooses it, and leaves files whole for one worker.
    """

    sources: tuple[Source, ...]
    declaration: Declaration
    directory: str
    shard_bytes: int
    beam_options: tuple[str, ...] = ()
    piece_bytes: int | None = None


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
      losses: Damaged files whose rest was left out, in the order of the files.
    """

    shards: tuple[ShardInfo, ...]
    reject_files: tuple[str, ...]
    rejected: Mapping[str, int]
    first_reason: Mapping[str, str]
    rows_read: int
    parts: str
    losses: tuple[Loss, ...] = ()


Place = tuple[int, int]
"""Where rows stand in the input: number of the file, number of the piece in it."""


@dataclasses.dataclass(frozen=True, eq=False)
class _Raw:
    """A batch as it was read, and its place in the input."""

    place: Place
    batch: RawBatch


@dataclasses.dataclass(frozen=True, eq=False)
class _Rows:
    """Checked rows of one split."""

    place: Place
    split: str
    table: pa.RecordBatch


@dataclasses.dataclass(frozen=True, eq=False)
class _Rejected:
    """Rejected rows of a batch."""

    place: Place
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


def _order_key(place: Place) -> str:
    """Sorts like the places themselves."""
    return "{:08d}-{:08d}".format(*place)


def _global(value: Any) -> WindowedValue:
    """Wraps what a DoFn yields when its bundle ends."""
    window = GlobalWindow()
    return WindowedValue(value, window.max_timestamp(), [window])


class _Read(beam.DoFn):
    """Pieces of files to their raw batches."""

    def __init__(self, columns: Sequence[Column], console: Console):
        self._columns = tuple(columns)
        self._names = tuple(column.name for column in columns)
        self._console = console

    def setup(self):
        self._progress = Progress(self._console, "preprocess", "rows")
        self._rows = 0

    def process(self, element: tuple[int, Source, FilePiece]) -> Iterator[_Raw]:
        index, source, piece = element
        try:
            for batch in source.read(piece, self._names, self._columns):
                self._rows += batch.rows_read
                self._progress.update(self._rows)
                if batch.loss is not None:
                    loss = dataclasses.asdict(batch.loss)
                    yield TaggedOutput(_LOSSES, (index, loss))
                yield _Raw((index, piece.index), batch)
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
                element.batch, self._columns, declaration.label, declaration.split
            )
            rejected = (*element.batch.rejects, *rejected)
            if rejected:
                in_order = tuple(sorted(rejected, key=lambda reject: reject.line))
                yield TaggedOutput(_REJECTS, _Rejected(element.place, in_order))
            numbers = splits.assign(batch.table, declaration.split)
            for number, split in enumerate(declaration.split.names):
                rows = batch.table.filter(pa.array(numbers == number))
                if rows.num_rows:
                    yield _Rows(element.place, split, rows)
        except Exception as error:
            yield _failure(error)


class _WriteShards(beam.DoFn):
    """Rows to shards; the rows of one piece and split stay in order."""

    def __init__(self, directory: str, shard_bytes: int):
        self._directory = directory
        self._shard_bytes = shard_bytes

    def start_bundle(self):
        self._writers: dict[tuple[Place, str], ShardWriter] = {}

    def process(self, element: _Rows) -> Iterator[ShardInfo]:
        try:
            key = (element.place, element.split)
            if key not in self._writers:
                yield from self._close_others(element.place)
                self._writers[key] = ShardWriter(
                    self._directory,
                    element.split,
                    _order_key(element.place),
                    self._shard_bytes,
                )
            self._writers[key].write(example_encoder.encode(element.table))
        except Exception as error:
            yield _failure(error)

    def _close_others(self, place: Place | None) -> Iterator[ShardInfo]:
        # Pieces come one after the other, so those before are done.
        for key in [key for key in self._writers if key[0] != place]:
            yield from self._writers.pop(key).close()

    def finish_bundle(self):
        for shard in self._close_others(None):
            yield _global(shard)


class _WriteRejects(beam.DoFn):
    """Rejected rows to JSON-lines files, one for each piece of a source file."""

    def __init__(self, directory: str):
        self._directory = directory

    def start_bundle(self):
        self._counts: dict[Place, collections.Counter[str]] = {}
        self._reasons: dict[Place, dict[str, str]] = {}

    def process(self, element: _Rejected) -> None:
        place = element.place
        counts = self._counts.setdefault(place, collections.Counter())
        reasons = self._reasons.setdefault(place, {})
        with open(self._path(place), "a", encoding="utf-8") as f:
            for reject in element.rejects:
                f.write(rejects.to_json(reject) + "\n")
                counts[reject.column or ""] += 1
                reasons.setdefault(reject.column or "", reject.reason)

    def _path(self, place: Place) -> str:
        return os.path.join(self._directory, f"rejects-{_order_key(place)}.jsonl")

    def finish_bundle(self):
        for place, counts in self._counts.items():
            yield _global((self._path(place), dict(counts), self._reasons[place]))


class _CombineStatistics(beam.CombineFn):
    """Rows of all batches into DatasetStatistics."""

    def __init__(self, declaration: Declaration):
        self._declaration = declaration

    def create_accumulator(self) -> DatasetStatistics:
        return DatasetStatistics.of(self._declaration)

    def add_input(self, statistics: DatasetStatistics, rows: _Rows):
        statistics.add(rows.split, rows.table)
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
    pieces = pipeline | "Pieces" >> beam.Create(
        planning.pieces(settings.sources, settings.beam_options, settings.piece_bytes)
    )
    if planning.workers(settings.beam_options) != 1:
        # Without it one worker would get all pieces.
        pieces |= "Distribute" >> beam.Reshuffle()
    raw = pieces | "Read" >> beam.ParDo(
        _Read(tuple(declaration.columns.values()), console)
    ).with_outputs(_FAILURES, _LOSSES, main="rows")
    checked = raw.rows | "Check" >> beam.ParDo(_Check(declaration)).with_outputs(
        _FAILURES, _REJECTS, main="rows"
    )
    written = checked.rows | "Shards" >> beam.ParDo(
        _WriteShards(settings.directory, settings.shard_bytes)
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
        ("losses", raw[_LOSSES]),
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
    for _, counts, reasons in sorted(reject_files, key=lambda item: item[0]):
        rejected.update(counts)
        first_reason = {**reasons, **first_reason}
    return JobOutput(
        shards=tuple(ShardInfo(**shard) for shard in read("shards")),
        reject_files=tuple(sorted({path for path, _, _ in reject_files})),
        rejected=dict(rejected),
        first_reason=first_reason,
        rows_read=sum(read("rows_read")),
        parts=parts,
        losses=tuple(
            Loss(**loss) for _, loss in sorted(read("losses"), key=lambda item: item[0])
        ),
    )
