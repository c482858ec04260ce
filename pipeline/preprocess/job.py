"""The Beam job as the preprocess stage sees it: settings, running it, what it made."""

from __future__ import annotations

import collections
import dataclasses
import os
from collections.abc import Mapping

from pipeline.console import Console
from pipeline.preprocess import beam_run, reports
from pipeline.preprocess.shards import ShardInfo
from pipeline.preprocess.sources.base import Loss, Source
from pipeline.types import Declaration, RecordForm, UserError

_PARTS = ".parts"
_REPORT = "report.jsonl"


@dataclasses.dataclass(frozen=True)
class JobSettings:
    """What a run of the pipeline needs.

    Attributes:
      sources: The raw files, in order.
      declaration: The features.
      directory: Where everything is written; it exists and is empty.
      shard_bytes: Size at which a shard is closed.
      record_form: What a record holds.
      beam_options: Options of Beam, e.g. `--direct_num_workers=2`.
      stall_seconds: After so long without progress several workers are stopped.
      piece_bytes: Size of the pieces into which large files are cut, for several
        workers; None chooses it, and leaves files whole for one worker.
    """

    sources: tuple[Source, ...]
    declaration: Declaration
    directory: str
    shard_bytes: int
    record_form: RecordForm
    beam_options: tuple[str, ...] = ()
    stall_seconds: float = 600.0
    piece_bytes: int | None = None

    @property
    def parts(self) -> str:
        """Directory of working files."""
        return os.path.join(self.directory, _PARTS)

    @property
    def report(self) -> str:
        """File of what the pipeline made: lines of JSON, [kind, value]."""
        return os.path.join(self.parts, _REPORT)


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
    statistics_failure: UserError | None = None


def run(settings: JobSettings, console: Console) -> JobOutput:
    """Runs the pipeline on Beam's local in-memory runner, or the one asked for.

    Raises:
      UserError: The data cannot be used, or a worker died or made no progress;
        nothing of ours is broken.
    """
    found = beam_run.run(
        "pipeline.preprocess.beam_job", settings, "preprocess", console
    )
    of_statistics = found["statistics_failure"]
    reports.raise_first(
        [*found[reports.FAILURE], *filter(reports.is_bug, of_statistics)]
    )
    rejected: collections.Counter[str] = collections.Counter()
    first_reason: dict[str, str] = {}
    reject_files = []
    for _, path, counts, reasons in sorted(found["rejects"], key=lambda item: item[:2]):
        reject_files.append(path)
        rejected.update(counts)
        first_reason = {**reasons, **first_reason}
    return JobOutput(
        shards=tuple(ShardInfo(**shard) for shard in found["shard"]),
        reject_files=tuple(reject_files),
        rejected=dict(rejected),
        first_reason=first_reason,
        rows_read=sum(found["rows_read"]),
        parts=settings.parts,
        losses=tuple(
            Loss(**loss) for _, loss in sorted(found["loss"], key=lambda item: item[0])
        ),
        statistics_failure=next(map(reports.user_error, of_statistics), None),
    )
