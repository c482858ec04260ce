"""The numbered versions in an export directory."""

from __future__ import annotations

import os
import shutil
import time

from pipeline.types import UserError

EXTRA = "assets.extra"
"""Directory of files about a version, which servers ignore."""

DECLARATION_FILE = os.path.join(EXTRA, "features.yaml")


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
