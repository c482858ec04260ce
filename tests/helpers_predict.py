"""What tests of predict share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pipeline.prediction import version

_LOADED: dict[str, Any] = {}


def load_once(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Loads each version once for all tests that do not damage it.

    Returns:
      What loads a version each time.
    """
    load = version.load

    def loaded(version_dir: str):
        if version_dir not in _LOADED:
            _LOADED[version_dir] = load(version_dir)
        return _LOADED[version_dir]

    monkeypatch.setattr(version, "load", loaded)
    return load
