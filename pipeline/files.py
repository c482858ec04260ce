"""Files: patterns, digests and writes that are whole or not there at all."""

from __future__ import annotations

import contextlib
import fcntl
import glob
import hashlib
import json
import os
import shutil
import socket
import time
from collections.abc import Iterator
from typing import Any

from pipeline.types import ExitCode, UserError

_CHUNK_BYTES = 1 << 20


def expand_patterns(flag: str, value: str) -> tuple[str, ...]:
    """Returns the files that comma-separated patterns stand for, sorted.

    Args:
      flag: Name of the flag, for the message.
      value: Paths or glob patterns; `~` is expanded, blanks around each trimmed.

    Raises:
      UserError: Nothing given, a part matches no file, or names a directory or a
        file that may not be read.
    """
    parts = [part.strip() for part in value.split(",")]
    if not any(parts):
        raise UserError(f"--{flag} is empty: give a file, a pattern or a list of them")
    found: set[str] = set()
    for part in filter(None, parts):
        matches = glob.glob(os.path.expanduser(part), recursive=True)
        if not matches:
            raise UserError(
                f"--{flag}: nothing matches {part!r} (looked in {os.getcwd()})"
            )
        for path in matches:
            if os.path.isdir(path):
                raise UserError(
                    f"--{flag}: {path} is a directory; give files, e.g."
                    f" {os.path.join(path, '*.csv')}"
                )
            if not os.access(path, os.R_OK):
                raise UserError(f"--{flag}: {path} may not be read by this user")
            found.add(path)
    return tuple(sorted(found))


def digest_file(path: str) -> str:
    """Returns the SHA-256 of a file's content, in hex."""
    digest = hashlib.sha256()
    with open(path, "rb") as f:
        while chunk := f.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def canonical_json(value: Any) -> str:
    """Returns JSON with sorted keys: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest_value(value: Any) -> str:
    """Returns the SHA-256 of a JSON value, in hex."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def write_atomically(path: str, content: str | bytes) -> None:
    """Writes a file aside, syncs it and renames it into place."""
    if isinstance(content, str):
        content = content.encode()
    aside = f"{path}.tmp-{os.getpid()}"
    with open(aside, "wb") as f:
        f.write(content)
        f.flush()
        os.fsync(f.fileno())
    os.replace(aside, path)


def write_json(path: str, value: Any) -> None:
    """Writes a JSON file that a person can read, atomically."""
    write_atomically(path, json.dumps(value, indent=2, allow_nan=False) + "\n")


def read_json(path: str) -> Any:
    """Reads a JSON file.

    Raises:
      UserError: The file is missing or is no JSON.
    """
    try:
        with open(path, encoding="utf-8") as f:
            return json.load(f)
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read {path}: {error}") from error


def read_json_lines(path: str) -> list[Any]:
    """Returns the values of a file of JSON lines."""
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def _sync_directory(path: str) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _siblings(directory: str) -> tuple[str, str, str]:
    parent, name = os.path.split(os.path.abspath(directory))
    return parent, f".{name}.tmp-", f".{name}.old-"


def sweep_leftovers(directory: str) -> None:
    """Removes what killed runs left beside `directory`; needs its lock."""
    parent, new, old = _siblings(directory)
    if not os.path.isdir(parent):
        return
    for entry in os.listdir(parent):
        if entry.startswith((new, old)):
            shutil.rmtree(os.path.join(parent, entry), ignore_errors=True)


@contextlib.contextmanager
def staged_directory(directory: str) -> Iterator[str]:
    """Gives a temporary sibling that takes the place of `directory` at the end.

    If the body raises, the sibling is removed and `directory` stays as it was. A
    kill leaves the old directory, the new one, or (between two renames) none.
    The caller holds the lock of `directory`.
    """
    parent, new, old = _siblings(directory)
    os.makedirs(parent, exist_ok=True)
    sweep_leftovers(directory)
    aside = os.path.join(parent, f"{new}{os.getpid()}")
    os.mkdir(aside)
    try:
        yield aside
        _sync_directory(aside)
        if os.path.lexists(directory):
            retired = os.path.join(parent, f"{old}{os.getpid()}")
            os.rename(directory, retired)
            os.rename(aside, directory)
            shutil.rmtree(retired, ignore_errors=True)
        else:
            os.rename(aside, directory)
        _sync_directory(parent)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise


@contextlib.contextmanager
def locked(directory: str) -> Iterator[None]:
    """Holds the lock of a directory; a dead owner's lock is free at once.

    The lock is a file beside the directory, so that the directory itself can be
    replaced. It is held by the kernel (flock), so no stale lock can remain.

    Raises:
      UserError: Another live process holds it (exit code LOCKED), or the place
        may not be written.
    """
    parent, name = os.path.split(os.path.abspath(directory))
    path = os.path.join(parent, f".{name}.lock")
    try:
        os.makedirs(parent, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise UserError(f"cannot write in {parent}: {error.strerror}") from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(handle, 200, 0).decode(errors="replace").strip()
            raise UserError(
                f"{directory} is in use by {owner or 'another process'}; wait for it"
                " or choose another directory",
                ExitCode.LOCKED,
            ) from None
        since = time.strftime("%Y-%m-%d %H:%M:%S")
        text = f"process {os.getpid()} on {socket.gethostname()} since {since}\n"
        os.ftruncate(handle, 0)
        os.pwrite(handle, text.encode(), 0)
        yield
    finally:
        os.close(handle)


def find_below(directory: str, name: str, depth: int) -> Iterator[str]:
    """Yields files of that name at most `depth` directories below, hidden ones not."""
    for entry in sorted(os.scandir(directory), key=lambda e: e.name):
        if entry.name.startswith("."):
            continue
        if entry.is_file() and entry.name == name:
            yield entry.path
        elif entry.is_dir() and depth > 0:
            yield from find_below(entry.path, name, depth - 1)
