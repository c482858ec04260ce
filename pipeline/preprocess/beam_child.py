"""The process in which Beam runs when there are several workers; see `watchdog`."""

from __future__ import annotations

import importlib
import os
import pickle
import signal
import sys
import threading
import traceback

from pipeline import environment
from pipeline.preprocess import watchdog

# Beam's thread that waits for a worker process; it raises when the process failed,
# and the run then waits for the worker's answers forever.
_WORKER_THREAD = "run_worker"


def _die_with_parent() -> None:
    """Stops the whole process group when the parent's end of the pipe closes."""

    def wait() -> None:
        sys.stdin.buffer.read()
        os.killpg(os.getpgrp(), signal.SIGKILL)

    threading.Thread(target=wait, daemon=True).start()


def _end_when_a_worker_dies() -> None:
    def report(failure: threading.ExceptHookArgs) -> None:
        traceback.print_exception(failure.exc_value)
        if failure.thread is not None and failure.thread.name == _WORKER_THREAD:
            sys.stderr.flush()
            os._exit(watchdog.WORKER_LOST)

    threading.excepthook = report


def main(path: str) -> None:
    """Runs the job that `beam_run` has pickled."""
    _die_with_parent()
    _end_when_a_worker_dies()
    with open(path, "rb") as f:
        module, job, verbosity = pickle.load(f)
    environment.set_verbosity(verbosity)
    importlib.import_module(module).run(job)
    sys.stderr.flush()
    # Threads of Beam's may still wait for something; all results are in files.
    os._exit(0)
