"""The predict command: raw files through an exported version into files.

Rows are checked as preprocess checks them; the label may be absent. Each prediction
stands with its file and line, in their order, however many workers predict. Rows that
cannot be read go to a file of rejects with file, line and reason.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from export import versions
from pipeline import environment, files, inputs
from pipeline import manifest as manifests
from pipeline.console import Console
from pipeline.flags.predicting import SIGNATURE
from pipeline.manifest import Manifest
from pipeline.prediction import formats, pieces, version
from pipeline.prediction.job_run import PIECE
from pipeline.preprocess import beam_options, beam_run, reports, shards
from pipeline.preprocess.sources.base import Loss, Source
from pipeline.types import Column, ColumnType, UserError

STAGE = "predict"
REJECTS_FILE = "rejects.jsonl"
_DEFAULT_FORMAT = "jsonl"


@dataclasses.dataclass(frozen=True)
class Settings:
    """How predictions are made and written.

    Attributes:
      format: In `formats.FORMATS`; None lets it follow from the name of the file.
      rows_per_file: Rows at which a file of a directory is closed.
      key_columns: Columns of the raw files that stand beside predictions, as text.
      signature: The version's signature that answers.
      beam_options: Options of Beam, e.g. `--direct_num_workers=2`.
      stall_seconds: After so long without progress several workers are stopped.
      piece_bytes: Size of the pieces into which large files are cut, for several
        workers; None chooses it.
    """

    format: str | None = None
    rows_per_file: int = 1_000_000
    key_columns: tuple[str, ...] = ()
    signature: str = SIGNATURE
    beam_options: tuple[str, ...] = ()
    stall_seconds: float = 600.0
    piece_bytes: int | None = None


DEFAULTS = Settings()


@dataclasses.dataclass(frozen=True)
class PredictResult:
    """What predict did.

    Attributes:
      output: File or directory of predictions, in the order of the input.
      rows: Rows predicted.
      rejects: File of the rows that could not be read; None where there were none.
      rejected: Their number.
      version: Directory of the SavedModel used.
      losses: Damaged files whose rest was left out.
      reused: Whether everything was there already.
    """

    output: str
    rows: int
    rejects: str | None
    rejected: int
    version: str
    losses: tuple[Loss, ...] = ()
    reused: bool = False


@dataclasses.dataclass(frozen=True)
class _Written:
    """What a job wrote, the pieces in the order of the input."""

    files: tuple[shards.ShardInfo, ...]
    names: tuple[str, ...]
    rejects: tuple[str, ...]
    rejected: Mapping[str, int]
    first_reason: Mapping[str, str]
    rows_read: int
    losses: tuple[Loss, ...]

    @property
    def rows(self) -> int:
        return sum(info.rows for info in self.files)

    @property
    def rows_rejected(self) -> int:
        return sum(self.rejected.values())


def _open(
    sources: Sequence[Source], version_dir: str, settings: Settings
) -> version.Version:
    """Reads what stands beside a model, and checks the files against it."""
    found = version.read(version_dir, settings.signature)
    inputs.check_columns(sources, found.columns, version_dir)
    keys = [Column(name, ColumnType.STRING) for name in settings.key_columns]
    if keys:
        inputs.check_columns(sources, keys, "--key_columns")
    return found


def _run_job(job: pieces.Job, console: Console) -> _Written:
    console.progress(f"predict: loading {job.version.directory}")
    if not beam_options.parse(job.beam_options).has_local_workers:
        environment.load_tensorflow(console.verbosity)
    # Workers load it late, and again where one is lost.
    hold = versions.Hold(job.version.directory)
    found = beam_run.run("pipeline.prediction.job_run", job, STAGE, console)
    hold.release()
    reports.raise_first(found[reports.FAILURE])
    rejected: collections.Counter[str] = collections.Counter()
    first_reason: dict[str, str] = {}
    done = sorted(found[PIECE], key=lambda piece: piece["place"])
    for piece in done:
        rejected.update(piece["rejected"])
        first_reason = {**piece["first_reason"], **first_reason}
    written = _Written(
        tuple(shards.ShardInfo(**info) for piece in done for info in piece["files"]),
        next((tuple(piece["names"]) for piece in done if piece["names"]), ()),
        tuple(piece["rejects"] for piece in done if piece["rejects"]),
        dict(rejected),
        first_reason,
        sum(piece["rows_read"] for piece in done),
        tuple(Loss(**loss) for piece in done for loss in piece["losses"]),
    )
    if written.rows_read != written.rows + written.rows_rejected:
        raise RuntimeError(f"rows were lost or counted twice: {written}")
    return written


def _join_rejects(written: _Written, path: str) -> None:
    with open(path, "wb") as out:
        for part in written.rejects:
            with open(part, "rb") as f:
                shutil.copyfileobj(f, out)


# --- one file ----------------------------------------------------------------------


def _rejects_path(output: str) -> str:
    return f"{output}.{REJECTS_FILE}"


def check_output(output: str, sources: Sequence[Source]) -> None:
    """Checks that a file may be written.

    Raises:
      UserError: It is a directory or an input, or there is no directory for it.
    """
    if not os.path.isdir(os.path.dirname(os.path.abspath(output))):
        raise UserError(f"--output: there is no directory for {output}")
    for path in (output, _rejects_path(output)):
        if os.path.isdir(path):
            raise UserError(
                f"--output: {path} is a directory; give a file, or --output_dir"
            )
        for source in sources:
            if os.path.exists(path) and os.path.samefile(path, source.path):
                raise UserError(
                    f"--output: {output} would replace {source.path}, which is an"
                    " --input"
                )


def _format_of(name: str) -> str:
    ending = os.path.splitext(name)[1].removeprefix(".").lower()
    return ending if ending in formats.FORMATS else _DEFAULT_FORMAT


@contextlib.contextmanager
def _aside(path: str) -> Iterator[str]:
    directory = f"{path}.tmp-{os.getpid()}"
    os.mkdir(directory)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def run(
    sources: Sequence[Source],
    version_dir: str,
    output: str,
    console: Console,
    settings: Settings = DEFAULTS,
) -> PredictResult:
    """Predicts every row of raw files into one file.

    Rejects go to OUTPUT.rejects.jsonl.

    Raises:
      UserError: The version or a file cannot be read, a file lacks a column, or the
        output would replace an input.
    """
    check_output(output, sources)
    found = _open(sources, version_dir, settings)
    kind = settings.format or _format_of(output)
    rejects = _rejects_path(output)
    with _aside(output) as aside:
        job = pieces.Job(
            tuple(sources),
            found,
            aside,
            kind,
            None,
            settings.key_columns,
            settings.beam_options,
            settings.stall_seconds,
            settings.piece_bytes,
        )
        written = _run_job(job, console)
        whole, bad = os.path.join(aside, "whole"), os.path.join(aside, REJECTS_FILE)
        parts = [info.path for info in written.files]
        formats.FORMATS[kind].join(parts, written.names, whole)
        if written.rejects:
            _join_rejects(written, bad)
            os.replace(bad, rejects)
        os.replace(whole, output)
        if not written.rejects:
            with contextlib.suppress(FileNotFoundError):
                os.remove(rejects)
    return PredictResult(
        output,
        written.rows,
        rejects if written.rejects else None,
        written.rows_rejected,
        version_dir,
        written.losses,
    )


# --- a directory -------------------------------------------------------------------


def check_directory(directory: str, sources: Sequence[Source]) -> None:
    """Checks that a directory may be written.

    Raises:
      UserError: It holds an input or what predict did not write.
    """
    manifests.check_replaceable("output_dir", directory, STAGE)
    inside = os.path.realpath(directory) + os.sep
    for source in sources:
        if os.path.realpath(source.path).startswith(inside):
            raise UserError(
                f"--output_dir: {directory} would replace {source.path}, which is an"
                " --input"
            )


def _results(job: pieces.Job, written: _Written) -> dict[str, Any]:
    """Gives files their names; returns what the manifest says of them."""
    named = shards.finalize(job.directory, written.files, suffix=f".{job.format}")
    _join_rejects(written, os.path.join(job.directory, REJECTS_FILE))
    shutil.rmtree(job.parts)
    return {
        "rows_read": written.rows_read,
        "rows_written": written.rows,
        "rows_rejected": written.rows_rejected,
        "rejected_by_column": dict(written.rejected),
        "first_reason": dict(written.first_reason),
        "lost": [dataclasses.asdict(loss) for loss in written.losses],
        "columns": list(written.names),
        "files": [
            {
                "file": os.path.basename(info.path),
                "rows": info.rows,
                "bytes": info.bytes,
                "sha256": info.digest,
            }
            for info in named
        ],
    }


def _of_manifest(
    directory: str, manifest: Manifest, version_dir: str, reused: bool
) -> PredictResult:
    results = manifest.results
    rejected = results["rows_rejected"]
    return PredictResult(
        directory,
        results["rows_written"],
        os.path.join(directory, REJECTS_FILE) if rejected else None,
        rejected,
        version_dir,
        tuple(Loss(**loss) for loss in results["lost"]),
        reused,
    )


def run_directory(
    sources: Sequence[Source],
    version_dir: str,
    directory: str,
    console: Console,
    settings: Settings = DEFAULTS,
    reading: Mapping[str, Any] | None = None,
) -> PredictResult:
    """Predicts every row of raw files into files of a directory.

    It holds predictions-00000-of-00002.FORMAT and so on, in the order of the input,
    rejects.jsonl and, written last, manifest.json. It takes its place by one rename,
    and is reused where it is of the same files, version and settings.

    Args:
      reading: The settings that decide which rows the sources give; plain values.

    Raises:
      UserError: As `run`; or the directory is in use (LOCKED), or holds something else.
    """
    started = time.monotonic()
    check_directory(directory, sources)
    found = _open(sources, version_dir, settings)
    of_version = found.manifest.fingerprint if found.manifest else None
    read_from = {
        "files": inputs.digests([source.path for source in sources]),
        "version": {"path": version_dir, "fingerprint": of_version},
    }
    configuration = {
        "format": settings.format or _DEFAULT_FORMAT,
        "rows_per_file": settings.rows_per_file,
        "key_columns": list(settings.key_columns),
        "signature": settings.signature,
        "reading": dict(reading or {}),
    }
    wanted = manifests.fingerprint(STAGE, read_from, configuration)
    with files.locked(directory):
        finished = manifests.read(directory)
        if of_version and finished and finished.fingerprint == wanted:
            console.progress(f"predict: reused, {directory} is up to date")
            return _of_manifest(directory, finished, version_dir, True)
        with files.staged_directory(directory) as aside:
            job = pieces.Job(
                tuple(sources),
                found,
                aside,
                configuration["format"],
                settings.rows_per_file,
                settings.key_columns,
                settings.beam_options,
                settings.stall_seconds,
                settings.piece_bytes,
            )
            results = _results(job, _run_job(job, console))
            manifest = manifests.write(
                aside, STAGE, read_from, configuration, results, started
            )
    return _of_manifest(directory, manifest, version_dir, False)
