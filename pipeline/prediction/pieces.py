"""A piece of a raw file to its predictions: what every worker does.

Whoever calls it, this process or a Beam worker, the same piece gives the same files.
"""

from __future__ import annotations

import collections
import dataclasses
import os
import uuid
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline import files
from pipeline.prediction import formats, version
from pipeline.prediction.answers import Answers, Columns
from pipeline.preprocess import rejects, shards, typed, typed_values
from pipeline.preprocess.progress import Counter, Done
from pipeline.preprocess.sources.base import FilePiece, RawBatch, Source
from pipeline.preprocess.sources.planning import order_key

PREFIX = "predictions"


@dataclasses.dataclass(frozen=True)
class Job:
    """What a run needs; it can be pickled.

    Attributes:
      sources: The raw files, in order.
      version: What predicts.
      directory: Where everything is written; it exists and is empty.
      format: In `formats.FORMATS`.
      rows_per_file: Rows at which a file is closed; None leaves a piece in one.
      key_columns: Columns of the files that stand beside predictions, as text.
      beam_options: Options of Beam, e.g. `--direct_num_workers=2`.
      stall_seconds: After so long without progress several workers are stopped.
      piece_bytes: Size of the pieces into which large files are cut, for several
        workers; None chooses it.
    """

    sources: tuple[Source, ...]
    version: version.Version
    directory: str
    format: str
    rows_per_file: int | None = None
    key_columns: tuple[str, ...] = ()
    beam_options: tuple[str, ...] = ()
    stall_seconds: float = 600.0
    piece_bytes: int | None = None

    @property
    def parts(self) -> str:
        """Directory of working files."""
        return os.path.join(self.directory, ".parts")

    @property
    def report(self) -> str:
        """File of the report, see `reports`; its values are those of `predict`."""
        return os.path.join(self.parts, "report.jsonl")


class _Files:
    """Consecutive predictions to files of limited size, under temporary names."""

    def __init__(self, job: Job, key: str):
        self._job = job
        self._key = key
        self._file: formats.File | None = None
        self._path = ""
        self._rows = 0
        self.done: list[shards.ShardInfo] = []

    def write(self, answers: Answers) -> None:
        count = len(answers.lines)
        start = 0
        while start < count:
            if self._file is None:
                name = f"{shards.TEMPORARY_PREFIX}{PREFIX}-{uuid.uuid4().hex}"
                suffix = f".{self._job.format}"
                self._path = os.path.join(self._job.directory, name + suffix)
                self._file = formats.FORMATS[self._job.format](self._path)
            room = (self._job.rows_per_file or count + self._rows) - self._rows
            stop = min(count, start + room)
            self._file.write(answers.slice(start, stop))
            self._rows += stop - start
            start = stop
            if self._rows == self._job.rows_per_file:
                self.close()

    def close(self) -> None:
        if self._file is None:
            return
        self._file.close()
        self._file = None
        self.done.append(
            shards.ShardInfo(
                split=PREFIX,
                order_key=self._key,
                path=self._path,
                rows=self._rows,
                bytes=os.path.getsize(self._path),
                digest=files.digest_file(self._path),
                part=len(self.done),
            )
        )
        self._rows = 0


def _keys(raw: RawBatch, good: np.ndarray, names: tuple[str, ...]) -> Columns:
    """Returns the key columns of the rows that could be read."""
    texts = (typed_values.as_text(raw.table.column(name)) for name in names)
    return {
        ("key", name): pa.array(
            [
                t.decode(errors="backslashreplace")
                for t in text.filter(good).to_pylist()
            ],
            pa.string(),
        )
        for name, text in zip(names, texts, strict=True)
    }


def _answers(
    raw: RawBatch, batch: typed.TypedBatch, predictor: version.Predictor, job: Job
) -> Iterator[Answers]:
    good = pa.array(np.isin(raw.lines, batch.lines, assume_unique=True))
    rows = Answers(raw.path, batch.lines, _keys(raw, good, job.key_columns))
    start = 0
    for columns in predictor.predict(batch.table):
        stop = start + len(next(iter(columns.values())))
        part = rows.slice(start, stop)
        yield dataclasses.replace(part, columns={**part.columns, **columns})
        start = stop


def predict(
    job: Job,
    predictor: version.Predictor,
    index: int,
    source: Source,
    piece: FilePiece,
) -> dict[str, Any]:
    """Writes the predictions and rejects of a piece.

    A piece that is tried again writes to other files, so no row stands twice: what
    counts is what is reported.

    Args:
      index: Number of the file among those of the job.

    Returns:
      Plain values: `place` [file, piece]; `files`, a list of `shards.ShardInfo` as
      dicts; `names` of their columns; `rejects`, the path of a file or None;
      `rejected`, column to number of rows; `first_reason` for each such column;
      `rows_read`; `losses`, a list of `Loss` as dicts.
    """
    columns = job.version.columns
    names = tuple(dict.fromkeys([*(c.name for c in columns), *job.key_columns]))
    key = order_key((index, piece.index))
    written = _Files(job, key)
    counter = Counter(job.parts)
    found: dict[str, Any] = {"place": [index, piece.index], "names": [], "losses": []}
    rejected: collections.Counter[str] = collections.Counter()
    reasons: dict[str, str] = {}
    rows_read, position = 0, piece.start
    path = os.path.join(job.parts, f"rejects-{key}-{uuid.uuid4().hex}.jsonl")
    with open(path, "w", encoding="utf-8", errors="backslashreplace") as bad:
        for raw in source.read(piece, names, columns):
            if raw.loss is not None:
                found["losses"].append(dataclasses.asdict(raw.loss))
            batch, wrong = typed.convert(raw, columns)
            for reject in sorted((*raw.rejects, *wrong), key=lambda r: r.line):
                bad.write(rejects.to_json(reject) + "\n")
                rejected[reject.column or ""] += 1
                reasons.setdefault(reject.column or "", reject.reason)
            for answers in _answers(raw, batch, predictor, job):
                written.write(answers)
                found["names"] = answers.names
            rows_read += raw.rows_read
            read = max(raw.position - position, 0)
            position += read
            bad_now = len(raw.rejects) + len(wrong)
            counter.add(Done(rows=raw.rows_read, rejected=bad_now, bytes=read))
    written.close()
    counter.flush()
    return {
        **found,
        "files": [dataclasses.asdict(info) for info in written.done],
        "rejects": path if rejected else None,
        "rejected": dict(rejected),
        "first_reason": reasons,
        "rows_read": rows_read,
    }
