"""Starts a cluster of processes on this machine, and ends every one of them."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import BinaryIO, TextIO

from pipeline import environment
from pipeline.cluster.config import CHIEF, EVALUATOR, PS, WORKER, Task
from pipeline.console import Console
from pipeline.flags.launcher import LauncherFlags
from pipeline.types import ExitCode, UserError

_POLL_SECONDS = 0.1
_KILL_SECONDS = 5
_PR_SET_PDEATHSIG = 1
_FIRST_PORT = 10_000
_EPHEMERAL_PORTS = "/proc/sys/net/ipv4/ip_local_port_range"
_FIRST_EPHEMERAL_PORT = 32_768
_PORT_TRIES = 100


@dataclasses.dataclass
class _Process:
    """A task's process.

    Attributes:
      task: The task.
      child: The process, leader of a group of its own.
      readers: Threads that copy what it says.
    """

    task: Task
    child: subprocess.Popen
    readers: list[threading.Thread]

    @property
    def code(self) -> int | None:
        """The exit code as a shell gives it; None while it runs."""
        code = self.child.poll()
        return code if code is None or code >= 0 else 128 - code

    def signal(self, number: int) -> None:
        # The group's number stays taken until its leader has been waited for.
        if self.child.poll() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.child.pid, number)


def tasks_of(settings: LauncherFlags) -> list[Task]:
    """Returns the tasks of a cluster.

    Raises:
      UserError: Nobody would lead.
    """
    tasks = [Task(CHIEF)] if settings.chief else []
    tasks += [Task(WORKER, index) for index in range(settings.workers)]
    if not tasks or (settings.ps and not settings.chief):
        raise UserError(
            "--nochief: "
            + ("parameter servers need a chief" if tasks else "there is no --workers")
            + "; leave --nochief out"
        )
    tasks += [Task(PS, index) for index in range(settings.ps)]
    return tasks + ([Task(EVALUATOR)] if settings.evaluator else [])


def _bound() -> socket.socket:
    """Returns a server at a port of its own on the loopback."""
    last = _FIRST_EPHEMERAL_PORT
    with contextlib.suppress(OSError, ValueError), open(_EPHEMERAL_PORTS) as f:
        last = int(f.read().split()[0])
    draw = random.SystemRandom()
    for _ in range(_PORT_TRIES if last > _FIRST_PORT else 0):
        with contextlib.suppress(OSError):
            return socket.create_server(
                ("127.0.0.1", draw.randrange(_FIRST_PORT, last))
            )
    return socket.create_server(("127.0.0.1", 0))


def free_addresses(count: int) -> list[str]:
    """Returns loopback addresses that nobody listens at now.

    A task listens at its own seconds later, when TensorFlow is loaded. So they are none of
    those that the kernel gives to connections, which would take some meanwhile.
    """
    with contextlib.ExitStack() as held:
        servers = [held.enter_context(_bound()) for _ in range(count)]
        return [f"127.0.0.1:{server.getsockname()[1]}" for server in servers]


def _die_with_parent() -> None:
    """Has the kernel kill this process when the launcher dies, even by SIGKILL."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _copy(source: BinaryIO, target: TextIO, prefix: str, lock: threading.Lock) -> None:
    with source:
        for line in source:
            text = line.decode(errors="replace").rstrip("\r\n")
            with lock, contextlib.suppress(OSError, ValueError):
                print(f"{prefix}{text}", file=target, flush=True)


def _start(tasks: Sequence[Task], arguments: Sequence[str]) -> list[_Process]:
    addresses = free_addresses(len(tasks))
    cluster: dict[str, list[str]] = {}
    for task, address in zip(tasks, addresses, strict=True):
        cluster.setdefault(task.type, []).append(address)
    lock, width = threading.Lock(), max(len(str(task)) for task in tasks)
    children = []
    for task in tasks:
        role = {"type": task.type, "index": task.index}
        variables = environment.with_tf_config({"cluster": cluster, "task": role})
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        children.append(
            subprocess.Popen(
                [sys.executable, "-m", "pipeline", *arguments],
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                preexec_fn=_die_with_parent,
            )
        )
    found = []
    for task, child in zip(tasks, children, strict=True):
        prefix = f"[{task!s:<{width}}] "
        readers = [
            threading.Thread(target=_copy, args=(*pair, prefix, lock), daemon=True)
            for pair in ((child.stdout, sys.stdout), (child.stderr, sys.stderr))
        ]
        for reader in readers:
            reader.start()
        found.append(_Process(task, child, readers))
    return found


class _Interrupted(Exception):
    """The launcher was sent a signal."""

    def __init__(self, number: int):
        super().__init__(number)
        self.number = number


@contextlib.contextmanager
def _signals_raise() -> Iterator[None]:
    def on_signal(number, frame):
        del frame
        raise _Interrupted(number)

    old = {n: signal.signal(n, on_signal) for n in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def _wait(processes: Sequence[_Process], seconds: float) -> list[_Process]:
    """Waits until all have ended, or the time is over; returns those that have not."""
    end = time.monotonic() + seconds
    while running := [p for p in processes if p.code is None]:
        if time.monotonic() >= end:
            break
        time.sleep(_POLL_SECONDS)
    return running


def _end(processes: Sequence[_Process], number: int, seconds: float) -> None:
    """Sends a signal to those that run, and kills what is left of them."""
    for process in processes:
        process.signal(number)
    for process in _wait(processes, seconds):
        process.signal(signal.SIGKILL)
    _wait(processes, _KILL_SECONDS)
    for process in processes:
        for reader in process.readers:
            reader.join(_KILL_SECONDS)


def _cause(processes: Sequence[_Process], failed: _Process) -> _Process:
    """Returns the process whose failure made others fail, which may end after them."""
    end = time.monotonic() + _KILL_SECONDS
    while failed.code == ExitCode.TRY_AGAIN and time.monotonic() < end:
        others = (p for p in processes if p.code not in (None, 0, failed.code))
        failed = next(others, failed)
        time.sleep(_POLL_SECONDS)
    return failed


def _run_once(
    tasks: Sequence[Task],
    arguments: Sequence[str],
    settings: LauncherFlags,
    console: Console,
) -> int:
    """Runs a cluster to its end; returns the exit code of the first that failed."""
    processes = _start(tasks, arguments)
    leader, number = processes[0], signal.SIGTERM
    try:
        while leader.code is None:
            failed = next((p for p in processes if p.code), None)
            if failed is not None:
                break
            time.sleep(_POLL_SECONDS)
        else:
            failed = leader if leader.code else None
        if failed is not None:
            failed = _cause(processes, failed)
            console.progress(
                f"cluster: {failed.task} ended with code {failed.code}; ending the rest"
            )
            return failed.code
        late = _wait(processes, settings.end_seconds)
        if late:
            names = ", ".join(str(process.task) for process in late)
            raise UserError(
                f"cluster: training is complete, but {names} did not end within"
                f" {settings.end_seconds} seconds, and was stopped",
                ExitCode.WORKER_FAILED,
            )
        return next((p.code for p in processes if p.code), 0)
    except _Interrupted as interrupted:
        number = interrupted.number
        raise
    finally:
        _end(processes, number, settings.end_seconds)


def run(settings: LauncherFlags, arguments: Sequence[str], console: Console) -> None:
    """Runs a command in every process of a local cluster.

    Their lines come out with the task's name in front. SIGTERM and SIGINT are passed
    on. No process outlives this one.

    Args:
      settings: The cluster.
      arguments: The command line of each process, e.g. train and its flags.
      console: Where to print.

    Raises:
      UserError: One failed; with its exit code.
    """
    tasks = tasks_of(settings)
    with _signals_raise():
        try:
            for attempt in range(settings.restarts + 1):
                code = _run_once(tasks, arguments, settings, console)
                if not code or attempt == settings.restarts:
                    break
                console.progress(
                    f"cluster: starts again ({attempt + 1} of {settings.restarts})"
                )
        except _Interrupted as interrupted:
            raise UserError(
                f"cluster: ended by signal {interrupted.number}; the same command goes"
                " on from the last checkpoint",
                ExitCode.PREEMPTED
                if interrupted.number == signal.SIGTERM
                else ExitCode.INTERRUPTED,
            ) from None
    if code:
        raise UserError(
            f"cluster: failed with exit code {code}; see above",
            code,
        )
