"""Files: patterns, digests and writes that are whole or not there at all."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import glob
import hashlib
import json
import math
import os
import re
import shutil
import socket
import time
from collections.abc import Iterator, Sequence
from typing import Any

from pipeline import transient
from pipeline.types import ExitCode, UserError

_CHUNK_BYTES = 1 << 20
_LOCK_POLL_SECONDS = 0.1


def expand_patterns(flag: str, value: str) -> tuple[str, ...]:
    """Returns the files that comma-separated patterns stand for, sorted.

    Args:
      flag: Name of the flag, for the message.
      value: Paths or glob patterns; `~` is expanded, blanks around each trimmed. A
        part that is the path of a file stands for it, whatever characters it holds.

    Raises:
      UserError: Nothing given, a part matches no file, or names a directory or
        something else that cannot be read again and again.
    """
    parts = [part.strip() for part in value.split(",")]
    if not any(parts):
        raise UserError(f"--{flag} is empty: give a file, a pattern or a list of them")
    # By absolute path: a file that is named in two ways is one file.
    found: dict[str, str] = {}
    for part in filter(None, parts):
        pattern = os.path.expanduser(part)
        matches = [pattern]
        if not os.path.lexists(pattern):
            matches = sorted(glob.glob(pattern, recursive=True))
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
            if not os.path.exists(path):
                raise UserError(f"--{flag}: {path} is a link to a missing file")
            if not os.path.isfile(path):
                raise UserError(
                    f"--{flag}: {path} is not a regular file; a pipe or device can be"
                    " read once only"
                )
            if not os.access(path, os.R_OK):
                raise UserError(f"--{flag}: {path} may not be read by this user")
            found.setdefault(os.path.abspath(path), path)
    return tuple(sorted(found.values()))


def _digest_once(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as f:
        while chunk := f.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def digest_file(path: str) -> str:
    """Returns the SHA-256 of a file's content, in hex."""
    return transient.retried(lambda: _digest_once(path), path)


def _read_once(path: str) -> str:
    with open(path, encoding="utf-8") as f:
        return f.read()


def read_text(path: str) -> str:
    """Returns the content of a file in UTF-8.

    Raises:
      OSError: It cannot be read, and not in a moment either.
    """
    return transient.retried(lambda: _read_once(path), path)


def canonical_json(value: Any) -> str:
    """Returns JSON with sorted keys: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def finite_or_null(value: Any) -> Any:
    """Returns a JSON value with null for NaN and infinity, for which JSON has no words."""
    if isinstance(value, dict):
        return {name: finite_or_null(part) for name, part in value.items()}
    if isinstance(value, list):
        return [finite_or_null(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def digest_value(value: Any) -> str:
    """Returns the SHA-256 of a JSON value, in hex."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def _write_once(path: str, content: bytes) -> None:
    aside = f"{path}.tmp-{os.getpid()}"
    try:
        with open(aside, "wb") as f:
            f.write(content)
            f.flush()
            os.fsync(f.fileno())
        os.replace(aside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(aside)
        raise


def write_atomically(path: str, content: str | bytes) -> None:
    """Writes a file aside, syncs it and renames it into place.

    Raises:
      UserError: It cannot be written; what was there before is unchanged.
    """
    encoded = content.encode() if isinstance(content, str) else content
    try:
        transient.retried(lambda: _write_once(path, encoded), path)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from error


def write_json(path: str, value: Any) -> None:
    """Writes a JSON file that a person can read, atomically."""
    write_atomically(path, json.dumps(value, indent=2, allow_nan=False) + "\n")


def read_json(path: str) -> Any:
    """Reads a JSON file.

    Raises:
      UserError: The file is missing or is no JSON.
    """
    try:
        return json.loads(read_text(path))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is not valid JSON: {error}") from error


def read_fields(
    path: str,
    kind: type,
    what: str = "of this pipeline",
    objects: Sequence[str] = (),
) -> dict:
    """Reads a JSON object that holds the fields of a dataclass.

    Args:
      path: The file.
      kind: The dataclass. Fields with a default may be absent.
      what: What the file should be, for the message.
      objects: Fields that are objects themselves.

    Raises:
      UserError: As `read_json`, or it holds something else.
    """
    values = read_json(path)
    fields = dataclasses.fields(kind)
    needed = {field.name for field in fields if field.default is dataclasses.MISSING}
    allowed = {field.name for field in fields}
    if (
        not isinstance(values, dict)
        or not needed <= values.keys() <= allowed
        or not all(isinstance(values[name], dict) for name in objects)
    ):
        raise UserError(
            f"{path} is not {what}; it needs exactly {', '.join(sorted(needed))}"
        )
    return values


def link_or_copy(source: str, target: str) -> None:
    """Gives a file a second name, or a copy where the file system has no hard links.

    Raises:
      FileNotFoundError: There is no such file.
    """
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


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


def _parent_and_name(directory: str) -> tuple[str, str]:
    """Splits a path; a link stands for the directory that it leads to."""
    return os.path.split(os.path.realpath(directory))


def _sibling(directory: str, kind: str) -> str:
    parent, name = _parent_and_name(directory)
    return os.path.join(parent, f".{name}.{kind}-{os.getpid()}")


def sweep_leftovers(directory: str) -> None:
    """Removes what killed runs left beside `directory`; needs its lock.

    Where a kill came between the two renames of `staged_directory`, the old
    directory gets its name back.
    """
    parent, name = _parent_and_name(directory)
    if not os.path.isdir(parent):
        return
    leftover = re.compile(rf"\.{re.escape(name)}\.(tmp|old)-[0-9]+")
    for entry in sorted(os.listdir(parent)):
        match = leftover.fullmatch(entry)
        if not match:
            continue
        path = os.path.join(parent, entry)
        if match.group(1) == "old" and not os.path.lexists(os.path.realpath(directory)):
            os.rename(path, os.path.realpath(directory))
        else:
            shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def staged_directory(directory: str) -> Iterator[str]:
    """Gives a temporary sibling that takes the place of `directory` at the end.

    If the body raises, the sibling is removed and `directory` stays as it was. A
    kill leaves the old directory, the new one, or (between two renames) none until
    the next run, which puts the old one back. The caller holds the lock of
    `directory`.

    Raises:
      UserError: The place is a file or may not be written.
    """
    target = os.path.realpath(directory)
    parent = os.path.dirname(target)
    aside, retired = _sibling(directory, "tmp"), _sibling(directory, "old")
    if os.path.lexists(target) and not os.path.isdir(target):
        raise UserError(f"{directory} is a file; a directory is to be written there")
    try:
        os.makedirs(parent, exist_ok=True)
        sweep_leftovers(directory)
        os.mkdir(aside)
    except OSError as error:
        raise UserError(f"cannot write in {parent}: {error.strerror}") from error
    try:
        yield aside
        _sync_directory(aside)
        if os.path.lexists(target):
            os.rename(target, retired)
        os.rename(aside, target)
        _sync_directory(parent)
    except BaseException:
        if os.path.lexists(retired) and not os.path.lexists(target):
            os.rename(retired, target)
        shutil.rmtree(aside, ignore_errors=True)
        raise
    finally:
        if os.path.lexists(target):
            shutil.rmtree(retired, ignore_errors=True)


def _try_lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def locked(directory: str, wait_seconds: float = 0) -> Iterator[None]:
    """Holds the lock of a directory; a dead owner's lock is free at once.

    The lock is a file beside the directory, so that the directory itself can be
    replaced. It is held by the kernel (flock), so no stale lock can remain.

    Args:
      directory: What is locked; it need not exist.
      wait_seconds: How long to wait for another owner.

    Raises:
      UserError: Another live process holds it (exit code LOCKED), or the place
        may not be written.
    """
    parent, name = _parent_and_name(directory)
    path = os.path.join(parent, f".{name}.lock")
    try:
        os.makedirs(parent, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise UserError(f"cannot write in {parent}: {error.strerror}") from error
    end = time.monotonic() + wait_seconds
    try:
        try:
            while not _try_lock(handle):
                if time.monotonic() >= end:
                    owner = os.pread(handle, 200, 0).decode(errors="replace").strip()
                    raise UserError(
                        f"{directory} is in use by {owner or 'another process'}; wait"
                        " for it or choose another directory",
                        ExitCode.LOCKED,
                    )
                time.sleep(_LOCK_POLL_SECONDS)
        except OSError as error:
            raise UserError(f"cannot lock {path}: {error.strerror}") from error
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
