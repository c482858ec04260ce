"""Lists what is public in tf.estimator; run by itself it writes the list down.

    PYTHON_OF_TENSORFLOW_2_15 tests/existing/surface.py > \
        tests/existing/fixtures/surface_2_15.json
"""

from __future__ import annotations

import inspect
import json
import re
import types

NAMESPACES = (
    "estimator",
    "compat.v1.estimator",
    "compat.v2.estimator",
    "keras.estimator",
    "compat.v1.keras.estimator",
)


def _signature(value: object) -> str:
    try:
        text = str(inspect.signature(value))
    except (TypeError, ValueError):
        return ""
    # Places in memory, and how a release of Python or NumPy writes an object.
    return re.sub(r"<[^<>]*>|0x[0-9a-f]+", "<>", text)


def _members(value: type) -> dict[str, str]:
    return {
        name: _signature(member) if callable(member) else type(member).__name__
        for name, member in inspect.getmembers(value)
        # What Python's own classes have differs between its releases.
        if not (name.startswith("_") or hasattr(Exception, name)) or name == "__init__"
    }


def _walk(module: types.ModuleType, path: str, found: dict[str, object]) -> None:
    for name in dir(module):
        if name.startswith("_"):
            continue
        value = getattr(module, name)
        place = f"{path}.{name}"
        if isinstance(value, types.ModuleType):
            _walk(value, place, found)
        elif isinstance(value, type):
            found[place] = _members(value)
        else:
            found[place] = _signature(value) if callable(value) else repr(value)


def public(tf: types.ModuleType) -> dict[str, object]:
    """Each public name with its signature, a class with those of its members."""
    found: dict[str, object] = {}
    for namespace in NAMESPACES:
        module = tf
        for part in namespace.split("."):
            module = getattr(module, part)
        _walk(module, f"tf.{namespace}", found)
    return found


if __name__ == "__main__":
    import tensorflow

    print(json.dumps(public(tensorflow), indent=1, sort_keys=True))
