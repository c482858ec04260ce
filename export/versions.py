"""The numbered versions in an export directory."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import time
import weakref
from collections.abc import Collection

from pipeline.types import UserError

EXTRA = "assets.extra"
"""Directory of files about a version, which servers ignore."""

DECLARATION_FILE = os.path.join(EXTRA, "features.yaml")

# Servers read a version's name as an int64.
_LARGEST = 2**63 - 1
_LEFTOVER = re.compile(r"\.[0-9]+\.(tmp|old)-[0-9]+")


def versions(export_dir: str) -> list[int]:
    """Returns the version numbers there, rising. Only plain numbers count."""
    if not os.path.isdir(export_dir):
        return []
    return sorted(
        int(name)
        for name in os.listdir(export_dir)
        if re.fullmatch("0|[1-9][0-9]*", name)
        and int(name) <= _LARGEST
        and os.path.isdir(os.path.join(export_dir, name))
    )


def path(export_dir: str, version: int) -> str:
    """Returns the directory of a version."""
    return os.path.join(export_dir, str(version))


def find(export_dir: str, version: int | None) -> str:
    """Returns the directory of a version, the newest by default.

    Raises:
      UserError: There is none, or not that one.
    """
    there = versions(export_dir)
    if not there:
        raise UserError(
            f"--export_dir: {export_dir} holds no version; run export first"
        )
    if version is not None and version not in there:
        listed = ", ".join(map(str, there))
        raise UserError(f"--version={version} is not in {export_dir}; there: {listed}")
    return path(export_dir, version or there[-1])


def next_version(export_dir: str) -> int:
    """Returns the time in seconds since 1970, or one above the newest version.

    Servers take the highest number, so it rises even where the clock went back.

    Raises:
      UserError: The newest version has the highest number that servers can read.
    """
    newest = max(versions(export_dir), default=0)
    if newest == _LARGEST:
        raise UserError(f"--export_dir: no number is above {path(export_dir, newest)}")
    return max(int(time.time()), newest + 1)


class Hold:
    """Keeps a version from being removed by `prune`, on this machine.

    The kernel holds it (flock), so it ends with the process, however that ends. A
    version that this pipeline did not write needs none.

    Args:
      directory: The version.
    """

    def __init__(self, directory: str):
        try:
            handle = os.open(os.path.join(directory, DECLARATION_FILE), os.O_RDONLY)
        except OSError:
            return
        self._finalizer = weakref.finalize(self, os.close, handle)
        # Where a file system has no locks, nothing can be held.
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)

    def release(self) -> None:
        """Ends it; so does the end of the last reference."""
        if hasattr(self, "_finalizer"):
            self._finalizer()


def _is_held(directory: str) -> bool:
    handle = os.open(os.path.join(directory, DECLARATION_FILE), os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(handle)
    return False


def prune(export_dir: str, keep: int, spared: Collection[int] = ()) -> list[int]:
    """Removes all but the newest `keep` versions; returns those removed.

    Numbered directories that this pipeline did not write are neither counted nor
    removed.

    Args:
      spared: Versions that stay besides; so do those that somebody holds.
    """
    ours = [
        version
        for version in versions(export_dir)
        if os.path.exists(os.path.join(path(export_dir, version), DECLARATION_FILE))
    ]
    old = [
        version
        for version in ours[:-keep]
        if version not in spared and not _is_held(path(export_dir, version))
    ]
    for version in old:
        # Renamed first: a server that watches never sees half a version.
        aside = os.path.join(export_dir, f".{version}.old-{os.getpid()}")
        os.rename(path(export_dir, version), aside)
        shutil.rmtree(aside, ignore_errors=True)
    return old


def sweep(export_dir: str) -> None:
    """Removes what killed exports left; needs the lock of the directory."""
    if not os.path.isdir(export_dir):
        return
    for name in os.listdir(export_dir):
        if _LEFTOVER.fullmatch(name):
            shutil.rmtree(os.path.join(export_dir, name), ignore_errors=True)
