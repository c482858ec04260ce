"""Runs a Beam job: in this process, or in a child that is watched.

With one local worker the pipeline runs in this process. With several it runs in a
child process that can be watched and stopped, since Beam's local runner waits
forever for a worker that died.
"""

from __future__ import annotations

import importlib
import os
import pickle
import sys
from collections.abc import Sequence
from typing import Protocol

from pipeline.console import Console
from pipeline.preprocess import beam_options, progress, reports, watchdog
from pipeline.preprocess.sources.base import Source

_SETTINGS = "settings.pickle"


class Job(Protocol):
    """What a run needs to know; it can be pickled.

    Attributes:
      sources: The raw files, in order.
      directory: Where everything is written; it exists and is empty.
      parts: Directory of working files in it; the run makes it.
      report: File of the report in that; see `reports`.
      beam_options: Options of Beam, e.g. `--direct_num_workers=2`.
      stall_seconds: After so long without progress several workers are stopped.
    """

    sources: tuple[Source, ...]
    directory: str
    parts: str
    report: str
    beam_options: Sequence[str]
    stall_seconds: float


def run(module: str, job: Job, stage: str, console: Console) -> reports.Report:
    """Calls `run(job)` of a module, which writes the report; returns the report.

    Args:
      module: Its full name; it is imported where it runs, since Beam takes seconds.
      stage: What is run, for the line of progress.

    Raises:
      UserError: A worker died or made no progress.
    """
    os.mkdir(job.parts)
    total = sum(os.path.getsize(source.path) for source in job.sources)
    with progress.shown(job.parts, total, stage, console):
        if beam_options.parse(job.beam_options).has_local_workers:
            _run_watched(module, job, console)
        else:
            importlib.import_module(module).run(job)
    return reports.read(job.report)


def _run_watched(module: str, job: Job, console: Console) -> None:
    path = os.path.join(job.parts, _SETTINGS)
    with open(path, "wb") as f:
        pickle.dump((module, job, console.verbosity), f)
    # By name, since what stands in __main__ cannot be sent to workers.
    program = f"from pipeline.preprocess import beam_child; beam_child.main({path!r})"
    watchdog.run(
        [sys.executable, "-c", program],
        progress=lambda: (progress.read(job.parts), watchdog.bytes_in(job.directory)),
        stall_seconds=job.stall_seconds,
        console=console,
    )
