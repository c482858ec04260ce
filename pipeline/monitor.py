"""The monitor command: TensorBoard on the runs of a directory."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import threading

from pipeline import environment
from pipeline.console import Console
from pipeline.flags.monitoring import MonitorFlags
from pipeline.types import UserError

_RUNS_SHOWN = 10


def runs(directory: str) -> list[str]:
    """Returns the directories with event files, relative to `directory`, sorted.

    These are TensorBoard's runs: of a work directory each model's training and its
    evaluations, of a retraining one those of each night and the nights themselves.
    """
    return sorted(
        os.path.relpath(place, directory)
        for place, _, names in os.walk(directory)
        if any("tfevents" in name for name in names)
    )


def check(directory: str) -> None:
    """Checks what can be checked without TensorBoard.

    Raises:
      UserError: There is no such directory.
    """
    if not os.path.isdir(directory):
        raise UserError(
            f"monitor: there is no directory {directory}; give --work_dir, or"
            " --model_dir for a single model"
        )


def _launch(directory: str, settings: MonitorFlags) -> str:
    """Starts TensorBoard in threads of this process; returns its address.

    Raises:
      UserError: It cannot listen there.
    """
    from tensorboard import default, program

    server = program.TensorBoard(plugins=default.get_plugins())
    server.configure(logdir=directory, host=settings.host, port=settings.port)
    try:
        return server.launch()
    except program.TensorBoardPortInUseError:
        raise UserError(
            f"--monitor_port={settings.port} is in use; 0 takes a free one"
        ) from None
    except (program.TensorBoardServerException, OSError) as error:
        raise UserError(
            f"--monitor_host={settings.host}, --monitor_port={settings.port}:"
            f" {str(error).removeprefix('TensorBoard ')}"
        ) from None


def start(directory: str, settings: MonitorFlags, console: Console) -> None:
    """Serves TensorBoard until the process gets SIGINT or SIGTERM.

    What it starts besides (its reader of event files) ends with this process, however
    that ends.

    Args:
      directory: A work directory or a model directory; runs may come later.
      settings: Where to listen.
      console: Where to print the address.

    Raises:
      UserError: It cannot listen there.
    """
    environment.load_tensorflow(console.verbosity)
    ended = threading.Event()
    before = {
        number: signal.signal(number, lambda *_: ended.set())
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        quiet = contextlib.redirect_stderr(io.StringIO())
        with quiet if console.verbosity < 1 else contextlib.nullcontext():
            address = _launch(directory, settings)
        found = runs(directory)
        shown = ", ".join(found[:_RUNS_SHOWN])
        more = f" and {len(found) - _RUNS_SHOWN} more" * (len(found) > _RUNS_SHOWN)
        console.result(f"TensorBoard: {address}\n             of {directory}")
        console.progress(
            f"monitor: {len(found)} runs: {shown}{more}; Ctrl-C ends it"
            if found
            else "monitor: no runs yet; they appear while train writes them; Ctrl-C"
            " ends it"
        )
        ended.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
