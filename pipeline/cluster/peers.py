"""Watches the other tasks of a cluster, and ends this process when one is lost.

TensorFlow waits without limit for a task that died: a step then never returns, and no
exception can reach it. So a thread looks whether the others still accept connections.
"""

from __future__ import annotations

import contextlib
import math
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import NoReturn

from pipeline.cluster.config import EVALUATOR, PS, ClusterConfig, Task
from pipeline.types import ExitCode, UserError

_EVERY_SECONDS = 1.0
_CONNECT_SECONDS = 2.0


def answers(address: str) -> bool:
    """Returns whether somebody listens at "host:port"."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS):
            return True
    except OSError:
        return False


def watched_by(cluster: ClusterConfig) -> dict[Task, str]:
    """Returns the tasks without which this one cannot go on, and their addresses."""
    leader = cluster.leader
    if cluster.task is None:
        wanted: Iterable[Task] = ()
    elif cluster.task.type in (PS, EVALUATOR):
        wanted = (leader,)
    elif cluster.is_leader or not cluster.of_type(PS):
        wanted = cluster.servers
    else:
        wanted = (leader, *cluster.of_type(PS))
    return {
        task: cluster.addresses[task]
        for task in wanted
        if task != cluster.task and task in cluster.addresses
    }


class Watch:
    """What is known of the others.

    Args:
      addresses: Whom to watch.
      wait_seconds: How long each may take to appear.
      lost_seconds: How long one that has appeared may be gone.
    """

    def __init__(
        self, addresses: Mapping[Task, str], wait_seconds: float, lost_seconds: float
    ):
        self._addresses = addresses
        self._wait = wait_seconds
        self._lost = lost_seconds
        self._began = time.monotonic()
        self._seen: dict[Task, float] = {}

    def look(self) -> str | None:
        """Looks at all; returns what is wrong, if it no longer can be waited for."""
        for task, address in self._addresses.items():
            if answers(address):
                self._seen[task] = time.monotonic()
        now = time.monotonic()
        gone, missing = [], []
        for task, address in self._addresses.items():
            if task not in self._seen:
                if now - self._began > self._wait:
                    missing.append(f"{task} ({address})")
            elif now - self._seen[task] > self._lost:
                gone.append(f"{task} ({address})")
        if gone:
            return (
                f"{', '.join(gone)} ended or cannot be reached for"
                f" {self._lost:g} seconds (--lost_seconds)"
            )
        if missing:
            return (
                f"{', '.join(missing)} did not appear within {self._wait:g} seconds"
                " (--wait_seconds)"
            )
        return None

    def has_seen(self, task: Task) -> bool:
        """Whether a task has ever answered; True for one that is not watched."""
        return task not in self._addresses or task in self._seen


def leave(message: str, code: int) -> NoReturn:
    """Ends the process at once, with an error line.

    The main thread may hang in a call that never returns, and with workers in step so
    may TensorFlow's own clean-up at exit. Checkpoints and results are renamed into
    place, so leaving loses nothing that was saved.
    """
    with contextlib.suppress(OSError, ValueError):
        print(message, file=sys.stderr, flush=True)
        sys.stdout.flush()
    os._exit(code)


@contextlib.contextmanager
def watched(
    watch: Watch,
    is_over: Callable[[], bool],
    find_failure: Callable[[], str | None] = lambda: None,
    on_loss: Callable[[str], None] = lambda reason: None,
    over_seconds: float = math.inf,
    code: Callable[[], ExitCode] = lambda: ExitCode.TRY_AGAIN,
):
    """Watches while the body runs; if a task is lost, the process exits.

    Args:
      watch: Whom to watch.
      is_over: Whether training has ended, so that tasks may leave.
      find_failure: Returns why the leader says that training failed, if it does.
      on_loss: Called with the reason before the process exits.
      over_seconds: How long the body may go on when training has ended; the process
        then exits with code 0. A worker that is late waits for ps tasks that left.
      code: Returns the exit code where a task is lost.
    """
    stop = threading.Event()

    def run():
        end = math.inf
        while not stop.wait(_EVERY_SECONDS):
            with contextlib.suppress(UserError):
                reason = watch.look() or find_failure()
                if is_over():
                    end = min(end, time.monotonic() + over_seconds)
                    if time.monotonic() > end and not stop.is_set():
                        leave("cluster: training is complete", 0)
                    continue
                if reason is None or stop.is_set():
                    continue
                with contextlib.suppress(Exception):
                    on_loss(reason)
                leave(
                    f"error: cluster: {reason}; the same command goes on from there",
                    code(),
                )

    thread = threading.Thread(target=run, name="watch peers", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(_CONNECT_SECONDS * 2)


@contextlib.contextmanager
def listening(address: str):
    """Accepts connections while the body runs, for a leader that has no server."""
    port = int(address.rpartition(":")[2])
    with socket.create_server(("", port), reuse_port=False) as server:
        stop = threading.Event()

        def run():
            while not stop.is_set():
                with contextlib.suppress(OSError):
                    connection, _ = server.accept()
                    connection.close()

        server.settimeout(_EVERY_SECONDS)
        thread = threading.Thread(target=run, name="listen", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join(_EVERY_SECONDS * 2)
