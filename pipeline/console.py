"""What people see: progress on standard error, results on standard output."""

from __future__ import annotations

import dataclasses
import shutil
import sys
import time

_LOG_EVERY_SECONDS = 10.0
_TERMINAL_EVERY_SECONDS = 0.2


@dataclasses.dataclass(frozen=True)
class Console:
    """Prints for people.

    Attributes:
      verbosity: Below 0 only errors are printed.
      log_seconds: Seconds between progress lines where they are not redrawn; None
        stands for ten.
    """

    verbosity: int = 0
    log_seconds: float | None = None

    def progress(self, text: str) -> None:
        """Prints a line about what is being done."""
        if self.verbosity >= 0:
            print(text, file=sys.stderr, flush=True)

    def result(self, text: str) -> None:
        """Prints a line of the command's result."""
        if self.verbosity >= 0:
            print(text, flush=True)


def duration(seconds: float) -> str:
    """Returns e.g. 45s, 3m05s or 2h07m."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"


class Progress:
    """A progress line: redrawn on a terminal, every ten seconds or so in a log.

    Args:
      console: Where to print.
      stage: Name of the stage, first on the line.
      unit: What is counted, e.g. rows.
      total: How many there will be; None where that is unknown.
      start: How many were done before.
      speed_unit: What the speed is given in.
    """

    def __init__(
        self,
        console: Console,
        stage: str,
        unit: str,
        total: int | None = None,
        start: int = 0,
        speed_unit: str = "examples",
    ):
        self._console = console
        self._stage = stage
        self._unit = unit
        self._total = total
        self._start = start
        self._speed_unit = speed_unit
        self._began = time.monotonic()
        self._last = self._began
        self._open_line = False

    def update(
        self, done: int, scale: int = 1, note: str = "", share: float | None = None
    ) -> None:
        """Shows the state, if it is time to.

        Args:
          done: How many are done, `start` included.
          scale: Examples in a unit; the speed is shown in examples.
          note: Further text, e.g. the loss.
          share: How much of all is done, 0 to 1, where no total is known.
        """
        terminal = sys.stderr.isatty()
        every = self._console.log_seconds or _LOG_EVERY_SECONDS
        if terminal:
            every = _TERMINAL_EVERY_SECONDS
        now = time.monotonic()
        if self._console.verbosity < 0 or now - self._last < every:
            return
        self._last = now
        line = self._line(done, scale, note, share, now)
        if terminal:
            # A line that wraps could not be redrawn.
            line = line[: shutil.get_terminal_size().columns - 1]
            print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)
            self._open_line = True
        else:
            print(line, file=sys.stderr, flush=True)

    def _line(
        self, done: int, scale: int, note: str, share: float | None, now: float
    ) -> str:
        elapsed = max(now - self._began, 1e-9)
        speed = (done - self._start) / elapsed
        parts = [f"{self._stage}: {self._unit} {done:,}"]
        if self._total:
            parts[0] += f" of {self._total:,} ({done / self._total:.0%})"
        elif share is not None:
            parts[0] += f" ({share:.0%})"
        if note:
            parts.append(note)
        parts.append(f"{speed * scale:,.0f} {self._speed_unit}/s")
        if self._total and speed > 0:
            parts.append(f"{duration((self._total - done) / speed)} left")
        elif share:
            parts.append(f"{duration(elapsed * (1 - share) / share)} left")
        return ", ".join(parts)

    def close(self) -> None:
        """Ends the line on a terminal."""
        if self._open_line:
            print(file=sys.stderr, flush=True)
            self._open_line = False
