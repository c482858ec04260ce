"""How far workers have come, told through small files that one process reads.

Workers may be threads or processes, so what they have done stands in a file of
each reader's own: rows read, rows rejected and bytes of the input read so far.
"""

from __future__ import annotations

import contextlib
import dataclasses
import glob
import os
import threading
import time
import uuid
from collections.abc import Iterator

from pipeline.console import Console, Progress

_EVERY_SECONDS = 0.2
_PREFIX = "progress-"


@dataclasses.dataclass(frozen=True)
class Done:
    """What has been done so far."""

    rows: int = 0
    rejected: int = 0
    bytes: int = 0

    def __add__(self, other: Done) -> Done:
        return Done(
            self.rows + other.rows,
            self.rejected + other.rejected,
            self.bytes + other.bytes,
        )


class Counter:
    """Counts what one worker does, in a file that others read.

    Args:
      directory: Where all workers of a run have their files.
    """

    def __init__(self, directory: str):
        self._path = os.path.join(directory, f"{_PREFIX}{uuid.uuid4().hex}")
        self._done = Done()
        self._written = -_EVERY_SECONDS

    def add(self, done: Done) -> None:
        self._done += done
        if time.monotonic() - self._written >= _EVERY_SECONDS:
            self.flush()

    def flush(self) -> None:
        self._written = time.monotonic()
        text = " ".join(map(str, dataclasses.astuple(self._done)))
        # A worker on another machine has no such directory, and no one who watches.
        with contextlib.suppress(OSError):
            with open(f"{self._path}.new", "w", encoding="ascii") as f:
                f.write(text)
            os.replace(f"{self._path}.new", self._path)


def read(directory: str) -> Done:
    """Returns what all workers have done together."""
    total = Done()
    for path in glob.glob(os.path.join(glob.escape(directory), f"{_PREFIX}*[!w]")):
        with contextlib.suppress(OSError), open(path, encoding="ascii") as f:
            total += Done(*map(int, f.read().split()))
    return total


@contextlib.contextmanager
def shown(
    directory: str, total_bytes: int, stage: str, console: Console
) -> Iterator[None]:
    """Shows the progress of workers while the body runs."""
    line = Progress(console, stage, "rows", speed_unit="rows")
    finished = threading.Event()

    def show() -> None:
        while not finished.wait(_EVERY_SECONDS):
            done = read(directory)
            line.update(
                done.rows,
                note=f"{done.rejected:,} rejected",
                share=min(1.0, done.bytes / total_bytes) if total_bytes else None,
            )

    thread = threading.Thread(target=show, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        finished.set()
        thread.join()
        line.close()
