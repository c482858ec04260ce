"""Removes what nothing needs any more."""

from __future__ import annotations

import datetime
import os
import re
import shutil

from pipeline.retraining.layout import Layout
from pipeline.retraining.registry import Registry
from pipeline.retraining.window import Window

_ATTEMPT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}-[0-9a-f]{12}")
_DAY = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(\.json)?")


def remove_attempts(layout: Layout, registry: Registry, keep: int) -> list[str]:
    """Removes all attempts but the newest, and those of published versions.

    Returns:
      The names of those removed.
    """
    if not os.path.isdir(layout.runs):
        return []
    needed = {one.attempt for one in registry.all()}
    names = [name for name in os.listdir(layout.runs) if _ATTEMPT.fullmatch(name)]
    # By time, for a run may be of an earlier date.
    names.sort(key=lambda name: os.stat(os.path.join(layout.runs, name)).st_mtime_ns)
    old = [name for name in names[:-keep] if name not in needed]
    for name in old:
        shutil.rmtree(os.path.join(layout.runs, name), ignore_errors=True)
    return old


def remove_days(layout: Layout, window: Window) -> list[str]:
    """Removes days so old that no run of the last window's dates would read them.

    Returns:
      The dates of those removed.
    """
    if not os.path.isdir(layout.days):
        return []
    limit = window.first - datetime.timedelta(days=window.days)
    removed = set()
    for name in os.listdir(layout.days):
        match = _DAY.fullmatch(name)
        if match is None or match[1] >= limit.isoformat():
            continue
        path = os.path.join(layout.days, name)
        if os.path.isdir(path):
            shutil.rmtree(path, ignore_errors=True)
        else:
            os.remove(path)
        removed.add(match[1])
    return sorted(removed)
