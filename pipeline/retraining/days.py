"""Each day's files as a dataset of its own, made once and kept.

A day is made again where its files, the declaration or the way of reading changed.
Files are known by SHA-256; one whose size, inode and time of change are those of the
last look is not read again.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import functools
import glob
import os
import time
from collections.abc import Sequence

from pipeline import declaration as declarations
from pipeline import files
from pipeline import manifest as manifests
from pipeline.console import Console
from pipeline.dataset import DATASET_FORMAT
from pipeline.flags.data import DataFlags
from pipeline.manifest import Manifest
from pipeline.preprocess import stage
from pipeline.preprocess.sources import dates
from pipeline.types import Declaration, ExitCode, UserError, WindowSplit

# A file changed within this time before it was read may change again unseen, since
# file systems keep times in steps.
_RACY_NS = 2_000_000_000


class Problem(enum.Enum):
    """Why a day cannot be used."""

    MISSING = "missing"
    EMPTY = "empty"
    UNREADABLE = "unreadable"


class DayError(UserError):
    """A day that cannot be used.

    Args:
      date: The day.
      problem: What kind of thing is wrong.
      reason: What exactly.
    """

    def __init__(self, date: str, problem: Problem, reason: str):
        super().__init__(
            f"the day {date} is {problem.value}: {reason}", ExitCode.BAD_DATA
        )
        self.date = date
        self.problem = problem


@dataclasses.dataclass(frozen=True)
class FileState:
    """A file as it was last looked at.

    Attributes:
      path: Absolute path.
      bytes: Its size.
      inode: Its number in the file system.
      changed: Time of its last change, in ns since 1970.
      looked: Time of the look, likewise.
      sha256: Digest of its content.
    """

    path: str
    bytes: int
    inode: int
    changed: int
    looked: int
    sha256: str


@dataclasses.dataclass(frozen=True)
class Day:
    """A day's dataset.

    Attributes:
      date: YYYY-MM-DD.
      directory: The dataset, all of it in the split train.
      key: Digest of the files' content and of the way they are read.
      fingerprint: Of the dataset's manifest.
      files: The raw files.
      rows: Rows written.
      rejected: Rows rejected.
    """

    date: str
    directory: str
    key: str
    fingerprint: str
    files: tuple[FileState, ...]
    rows: int
    rejected: int


@dataclasses.dataclass(frozen=True)
class Reader:
    """How a job reads its days.

    Attributes:
      settings: Flags about raw data; `input` has {date} in it.
      schema: Path of a schema, or None.
      directory: Where days are kept.
      console: Where to print.
    """

    settings: DataFlags
    schema: str | None
    directory: str
    console: Console

    def day(self, date: datetime.date) -> Day:
        """Returns a day, made now if it is not there as it should be.

        Raises:
          DayError: It cannot be used.
        """
        text = date.isoformat()
        paths = self.find(text)
        place = os.path.join(self.directory, text)
        known = _read(f"{place}.json")
        states = _states(paths, known.files if known else ())
        key = self._key(states)
        if known and known.key == key and _is_whole(place, known.fingerprint):
            day = dataclasses.replace(known, files=states, directory=place)
        else:
            manifest = self._make(place, text)
            day = Day(
                text,
                place,
                key,
                manifest.fingerprint,
                states,
                sum(manifest.results["rows_written"].values()),
                manifest.results["rows_rejected"],
            )
        if day != known:
            files.write_json(f"{place}.json", dataclasses.asdict(day))
        if not day.rows:
            raise DayError(text, Problem.EMPTY, f"{paths[0]} holds no rows")
        return day

    @functools.cached_property
    def declaration(self) -> Declaration:
        """The declaration, divided by days."""
        loaded = declarations.load(os.path.expanduser(self.settings.features.strip()))
        if self.schema is not None:
            from pipeline.preprocess import schema as schemas

            path = os.path.expanduser(self.schema.strip())
            loaded = schemas.apply(loaded, path)
        return _by_window(loaded)

    def find(self, date: str) -> tuple[str, ...]:
        """Returns the paths of a day's files; raises DayError where there are none."""
        value = dates.fill("input", self.settings.input, date)
        for part in filter(None, (part.strip() for part in value.split(","))):
            pattern = os.path.expanduser(part)
            if not os.path.lexists(pattern) and not glob.glob(pattern, recursive=True):
                raise DayError(date, Problem.MISSING, f"there is no {part}")
        paths = files.expand_patterns("input", value)
        for path in paths:
            if not os.path.getsize(path):
                raise DayError(date, Problem.EMPTY, f"{path} has 0 bytes")
        return paths

    def _key(self, states: Sequence[FileState]) -> str:
        return files.digest_value(
            [self._how, [[state.path, state.sha256] for state in states]]
        )

    @functools.cached_property
    def _how(self) -> str:
        """A digest of all but the files that decides what a day's dataset is."""
        settings = dataclasses.replace(self.settings, run_date=None, beam_options=())
        return files.digest_value(
            [
                DATASET_FORMAT,
                dataclasses.asdict(settings),
                declarations.dump(self.declaration),
            ]
        )

    def _make(self, place: str, date: str) -> Manifest:
        settings = dataclasses.replace(self.settings, run_date=date)
        try:
            plan = stage.plan(settings, self.schema)
        except UserError as error:
            raise DayError(date, Problem.UNREADABLE, str(error)) from error
        plan = dataclasses.replace(plan, declaration=_by_window(plan.declaration))
        try:
            return stage.run(place, plan, self.console)
        except UserError as error:
            # Others, such as a full disk, are not the day's.
            if error.exit_code is not ExitCode.BAD_DATA:
                raise
            raise DayError(date, Problem.UNREADABLE, str(error)) from error


def _by_window(declaration: Declaration) -> Declaration:
    return dataclasses.replace(declaration, split=WindowSplit())


def _read(path: str) -> Day | None:
    if not os.path.exists(path):
        return None
    try:
        values = files.read_fields(path, Day)
        states = tuple(FileState(**state) for state in values.pop("files"))
        return Day(files=states, **values)
    except (UserError, TypeError):
        # Made again: it only says what need not be done twice.
        return None


def _states(paths: Sequence[str], known: Sequence[FileState]) -> tuple[FileState, ...]:
    by_path = {state.path: state for state in known}
    return tuple(_state(os.path.abspath(path), by_path) for path in paths)


def _state(path: str, known: dict[str, FileState]) -> FileState:
    looked = time.time_ns()
    stat = os.stat(path)
    facts = (stat.st_size, stat.st_ino, stat.st_mtime_ns)
    old = known.get(path)
    if (
        old is not None
        and (old.bytes, old.inode, old.changed) == facts
        and old.looked - old.changed > _RACY_NS
    ):
        return old
    return FileState(path, *facts, looked, files.digest_file(path))


def _is_whole(place: str, fingerprint: str) -> bool:
    manifest = manifests.read(place) if os.path.isdir(place) else None
    if manifest is None or manifest.fingerprint != fingerprint:
        return False
    entries = (e for s in manifest.results["shards"].values() for e in s)
    return all(
        os.path.exists(path) and os.path.getsize(path) == entry["bytes"]
        for entry in entries
        for path in [os.path.join(place, entry["file"])]
    )
