"""The lock of a job: a file that says who is at work, kept fresh by a heartbeat.

A lock is taken over where its owner is surely dead, which is known of a process of this
machine, and where an owner elsewhere has not shown itself for a stated time. The kernel's
file locks would be simpler, but are not everywhere seen by other hosts.
"""

from __future__ import annotations

import contextlib
import dataclasses
import getpass
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator

from pipeline import files
from pipeline.console import Console
from pipeline.types import ExitCode, UserError

HEARTBEAT_SECONDS = 5.0
_GUARD_SECONDS = 30.0


@dataclasses.dataclass(frozen=True)
class Owner:
    """Who holds a lock.

    Attributes:
      token: Of this holding; no two are alike.
      user: Name of the user.
      host: Name of the host.
      machine: What tells process numbers of one place from those of another: the
        kernel's boot and the namespace of processes.
      process: Process number.
      started: When the process began, in the kernel's ticks since boot.
      since: When the lock was taken, local time.
    """

    token: str
    user: str
    host: str
    machine: str
    process: int
    started: int
    since: str

    def __str__(self) -> str:
        return (
            f"process {self.process} of {self.user} on {self.host} since {self.since}"
        )


@dataclasses.dataclass(frozen=True)
class State:
    """A lock that is held.

    Attributes:
      owner: Who holds it.
      silent: Seconds since its last heartbeat.
      dead: Whether the owner is surely dead.
    """

    owner: Owner
    silent: float
    dead: bool

    def is_stale(self, stale_seconds: float) -> bool:
        return self.dead or (
            self.owner.machine != _machine() and self.silent > stale_seconds
        )


def _machine() -> str:
    parts = []
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:
            parts.append(f.read().strip())
        parts.append(os.readlink("/proc/self/ns/pid"))
    except OSError:
        parts.append(socket.gethostname())
    return " ".join(parts)


def _started(process: int) -> int | None:
    """Returns when a process of this machine began; None where there is none."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as f:
            fields = f.read().rpartition(")")[2].split()
    except OSError:
        return None
    # A process that has ended and waits for its parent holds nothing any more.
    return None if fields[0] == "Z" else int(fields[19])


def _me() -> Owner:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # A container's user need have no name.
        user = str(os.getuid())
    return Owner(
        token=uuid.uuid4().hex,
        user=user,
        host=socket.gethostname(),
        machine=_machine(),
        process=os.getpid(),
        started=_started(os.getpid()) or 0,
        since=time.strftime("%Y-%m-%d %H:%M:%S"),
    )


def read(path: str) -> State | None:
    """Returns who holds a lock, or None."""
    try:
        owner = Owner(**files.read_fields(path, Owner, "a lock of this pipeline"))
        beat = os.stat(path).st_mtime
    except (UserError, OSError):
        if os.path.exists(path):
            raise
        return None
    dead = owner.machine == _machine() and _started(owner.process) != owner.started
    return State(owner, max(0.0, _now(path) - beat), dead)


def _now(path: str) -> float:
    """Returns the time as the file system of `path` has it, for clocks differ."""
    probe = f"{path}.now-{os.getpid()}-{threading.get_ident()}"
    try:
        with open(probe, "wb"):
            pass
        return os.stat(probe).st_mtime
    except OSError:
        return time.time()
    finally:
        with contextlib.suppress(OSError):
            os.remove(probe)


class Held:
    """A lock that this process holds.

    Args:
      path: The lock's file.
      owner: This process.
    """

    def __init__(self, path: str, owner: Owner):
        self._path = path
        self._owner = owner
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True, name="lock")
        self._thread.start()

    def check(self) -> None:
        """Raises UserError where somebody else has taken the lock over.

        That happens to a process that stood still for long; it must not go on.
        """
        state = read(self._path)
        if state is None or state.owner.token != self._owner.token:
            now = "nobody" if state is None else str(state.owner)
            raise UserError(
                f"the lock {self._path} was taken over meanwhile, {now} holds it: this"
                " run stops, and the same command does what is left",
                ExitCode.LOCKED,
            )

    def _beat(self) -> None:
        while not self._stop.wait(HEARTBEAT_SECONDS):
            # No lock any more, or no disk: `check` says so where it matters.
            with contextlib.suppress(OSError, UserError):
                self.check()
                os.utime(self._path)

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        with _guard(self._path):
            state = read(self._path)
            if state is not None and state.owner.token == self._owner.token:
                os.remove(self._path)


def _guard(path: str) -> contextlib.AbstractContextManager[None]:
    """Lets one process at a time look at the lock and change it."""
    return files.locked(path, _GUARD_SECONDS)


@contextlib.contextmanager
def held(path: str, stale_seconds: float, console: Console) -> Iterator[Held]:
    """Holds a lock.

    Args:
      path: The lock's file.
      stale_seconds: A lock of another machine whose heartbeat is older is taken over.
      console: Where to print.

    Raises:
      UserError: Another one holds it (LOCKED).
    """
    owner = _me()
    with _guard(path):
        state = read(path)
        if state is not None and not state.is_stale(stale_seconds):
            raise UserError(
                f"{os.path.dirname(path)} is in use by {state.owner}, last seen"
                f" {state.silent:.0f} s ago; wait for it, or remove {path} if you know"
                " that it is dead",
                ExitCode.LOCKED,
            )
        if state is not None:
            why = "is dead" if state.dead else f"was silent for {state.silent:.0f} s"
            console.progress(f"lock: taken over from {state.owner}, which {why}")
        files.write_json(path, dataclasses.asdict(owner))
    lock = Held(path, owner)
    try:
        yield lock
    finally:
        lock.close()
