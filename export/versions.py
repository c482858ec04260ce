"""The numbered versions in an export directory."""

from __future__ import annotations

import os
import shutil
import time


def versions(export_dir: str) -> list[int]:
    """Returns the version numbers there, rising. Only plain numbers count."""
    if not os.path.isdir(export_dir):
        return []
    return sorted(
        int(name)
        for name in os.listdir(export_dir)
        if name.isdecimal() and os.path.isdir(os.path.join(export_dir, name))
    )


def path(export_dir: str, version: int) -> str:
    """Returns the directory of a version."""
    return os.path.join(export_dir, str(version))


def next_version(export_dir: str) -> int:
    """Returns the time in seconds since 1970, or one above the newest version.

    Servers take the highest number, so it rises even where the clock went back.
    """
    newest = max(versions(export_dir), default=0)
    return max(int(time.time()), newest + 1)


def prune(export_dir: str, keep: int) -> list[int]:
    """Removes all but the newest `keep` versions; returns those removed."""
    old = versions(export_dir)[:-keep]
    for version in old:
        # Renamed first: a server that watches never sees half a version.
        aside = os.path.join(export_dir, f".{version}.old-{os.getpid()}")
        os.rename(path(export_dir, version), aside)
        shutil.rmtree(aside, ignore_errors=True)
    return old
