"""Runs measured programs, each in a process of its own, and sums up the runs."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_FAILED_LINES = 5


@dataclasses.dataclass(frozen=True)
class Program:
    """A program that does the work once.

    Attributes:
      name: What it is, for people.
      module: Name in this package; its `main` does the work.
      arguments: What main takes, behind the output directory.
      python: The interpreter.
    """

    name: str
    module: str
    arguments: tuple[str, ...]
    python: str = sys.executable


@dataclasses.dataclass(frozen=True)
class Run:
    """One run of a program.

    Attributes:
      rows: Rows of work done.
      seconds: Wall time of the work.
      import_seconds: Wall time of importing what it needs, not part of `seconds`.
      peak_mb: Peak resident memory of the process and its children.
      bytes: Size of what was written.
    """

    rows: int
    seconds: float
    import_seconds: float
    peak_mb: float
    bytes: int = 0

    @property
    def speed(self) -> float:
        return self.rows / self.seconds


def report(
    rows: int, seconds: float, import_seconds: float, bytes_: int, workers: int = 0
) -> None:
    """Prints a measured program's result for `run_program` to read.

    Args:
      workers: Processes beside this one, each taken to need as much as the largest.
    """
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    run = Run(rows, seconds, import_seconds, own + workers * child, bytes_)
    print(json.dumps(dataclasses.asdict(run)))


@contextlib.contextmanager
def stopwatch() -> Iterator[Callable[[], float]]:
    """Yields a function that returns the seconds since the beginning."""
    began = time.perf_counter()
    yield lambda: time.perf_counter() - began


def size_of(directory: str, ending: str = ".tfrecord") -> int:
    """Returns the size of the record files in a directory."""
    return sum(
        os.path.getsize(os.path.join(directory, name))
        for name in os.listdir(directory)
        if ending in name
    )


def preprocess(
    dataset: str, form: str, pattern: str, declaration: str | None = None
) -> None:
    """Makes a dataset of flights, outside of any time that is measured."""
    chosen = f"ours.DECLARATION = {declaration!r};" if declaration else ""
    program = (
        f"from benchmarks import ours; {chosen}"
        f" ours.main({dataset!r}, {form!r}, {pattern!r})"
    )
    subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, cwd=ROOT
    )


def run_program(program: Program) -> dict[str, float]:
    """Runs a program once; returns what its last line says.

    Raises:
      RuntimeError: It failed.
    """
    with tempfile.TemporaryDirectory() as directory:
        done = subprocess.run(
            [
                program.python,
                "-c",
                # Imported by name, since Beam pickles what stands in __main__.
                f"import sys; from benchmarks import {program.module} as program;"
                " program.main(*sys.argv[1:])",
                os.path.join(directory, "out"),
                *program.arguments,
            ],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "PYTHONPATH": ROOT},
        )
    if done.returncode:
        last = "\n".join(done.stderr.strip().splitlines()[-_FAILED_LINES:])
        raise RuntimeError(f"{program.name} failed:\n{last}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def run_side_by_side(programs: Sequence[Program], runs: int) -> dict[str, list[Run]]:
    """Runs programs by turns, so that all meet the same moods of the machine."""
    found: dict[str, list[Run]] = {program.name: [] for program in programs}
    for number in range(runs):
        for program in programs:
            run = Run(**run_program(program))
            print(
                f"  run {number + 1} of {runs}: {program.name}, {run.speed:,.0f} rows/s",
                file=sys.stderr,
            )
            found[program.name].append(run)
    return found


def median_speed(runs: Sequence[Run]) -> float:
    return statistics.median(run.speed for run in runs)


def print_table(title: str, found: Mapping[str, Sequence[Run]]) -> None:
    """Prints medians and spreads, one program a line, slowest to fastest run."""
    print(f"\n{title}")
    width = max(map(len, found))
    print(
        f"  {'':<{width}}  {'rows':>10}  {'seconds':>8}  {'rows/s':>9}"
        f"  {'lowest to highest':>19}  {'peak MB':>7}  {'bytes/row':>9}  {'import s':>8}"
    )
    for name, runs in found.items():
        speeds = sorted(run.speed for run in runs)
        seconds = statistics.median(run.seconds for run in runs)
        print(
            f"  {name:<{width}}  {runs[0].rows:>10,}  {seconds:>8.2f}"
            f"  {statistics.median(speeds):>9,.0f}"
            f"  {speeds[0]:>9,.0f}-{speeds[-1]:>9,.0f}"
            f"  {max(run.peak_mb for run in runs):>7,.0f}"
            f"  {runs[0].bytes / runs[0].rows:>9,.0f}"
            f"  {statistics.median(run.import_seconds for run in runs):>8.1f}"
        )


def print_ratio(
    found: Mapping[str, Sequence[Run]],
    ours: str,
    other: str,
    target: float | None = None,
) -> None:
    """Prints how much faster ours is, by medians and run by run."""
    ratio = median_speed(found[ours]) / median_speed(found[other])
    pairs = [a.speed / b.speed for a, b in zip(found[ours], found[other], strict=True)]
    verdict = ""
    if target is not None:
        verdict = f"; wanted {target:g}: {'met' if ratio >= target else 'MISSED'}"
    print(
        f"  {ours} / {other}: {ratio:.2f} times (single runs {min(pairs):.2f} to"
        f" {max(pairs):.2f}){verdict}"
    )
