"""What environment is wanted, which Python suits it, and whether one is whole.

Part of `environment.py`; it needs nothing but the standard library.
"""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import json
import os
import pathlib
import subprocess
from collections.abc import Sequence

# Part of the stamp: raised when this tool makes environments in another way.
TOOL_VERSION = "1"

# The Python minor versions that have wheels of each TensorFlow release.
PYTHON_MINORS = {"2.21": (10, 13), "2.15": (10, 11)}

# setup.py reads it; see there why it can't be an extra.
TENSORFLOW_VARIABLE = "ESTIMATOR_PIPELINE_TENSORFLOW"

STAMP = "environment.json"
MUTEX = "environment.lock"
LOG = "install.log"
LOG_LINES_SHOWN = 15

PROBE = """
import importlib.util, json, sys
print(json.dumps({
    "executable": getattr(sys, "_base_executable", None) or sys.executable,
    "version": list(sys.version_info[:3]),
    "makes_venvs": all(map(importlib.util.find_spec, ("venv", "ensurepip"))),
}))
"""
PRINT_VERSION = "import sys; print('.'.join(map(str, sys.version_info[:3])))"


class SetUpError(Exception):
    """The environment can't be made; the message says why and what helps."""


@dataclasses.dataclass(frozen=True)
class Request:
    """What environment is wanted."""

    venv: pathlib.Path
    lock: pathlib.Path
    project: pathlib.Path
    tensorflow: str
    python: str | None

    @property
    def venv_python(self) -> pathlib.Path:
        return self.venv / "bin" / "python"

    @property
    def candidates(self) -> list[str]:
        """The commands to look for a Python under, best first."""
        if self.python:
            return [self.python]
        low, high = PYTHON_MINORS[self.tensorflow]
        return ["python3"] + [f"python3.{minor}" for minor in range(high, low - 1, -1)]

    @property
    def allowed(self) -> str:
        low, high = PYTHON_MINORS[self.tensorflow]
        return f"Python 3.{low} to 3.{high}"

    @property
    def how_to_choose(self) -> str:
        low, high = PYTHON_MINORS[self.tensorflow]
        return f"choose one with `make PYTHON=python3.{min(high, low + 1)} ...`"


@dataclasses.dataclass(frozen=True)
class Python:
    """An interpreter that ran when asked about itself."""

    command: str
    # Outside any virtual environment, for this one may be the one to be made anew.
    executable: str
    version: tuple[int, ...]
    makes_venvs: bool

    @property
    def version_text(self) -> str:
        return ".".join(map(str, self.version))

    def suits(self, tensorflow: str) -> bool:
        low, high = PYTHON_MINORS[tensorflow]
        return (3, low) <= self.version[:2] <= (3, high)


def say(text: str) -> None:
    """Prints at once: what follows may take minutes."""
    print(text, flush=True)


def sha256(path: pathlib.Path) -> str:
    """Returns a file's digest."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


# Choosing a Python.


def probe(command: str) -> Python | None:
    """Asks an interpreter about itself; None when it does not run.

    A command that exists may still fail: version managers put shims on the path for
    versions that are switched off.
    """
    try:
        answer = subprocess.run(
            [command, "-c", PROBE], capture_output=True, text=True, check=True
        ).stdout
        facts = json.loads(answer)
    except (OSError, subprocess.CalledProcessError, json.JSONDecodeError):
        return None
    return Python(
        command=command,
        executable=facts["executable"],
        version=tuple(facts["version"]),
        makes_venvs=facts["makes_venvs"],
    )


def choose_python(request: Request) -> Python:
    """Returns the first candidate that runs, is in range and can make environments."""
    working = [python for python in map(probe, request.candidates) if python]
    suitable = [python for python in working if python.suits(request.tensorflow)]
    for python in suitable:
        if python.makes_venvs:
            return python
    raise SetUpError(_why_no_python(request, working, suitable))


def _why_no_python(
    request: Request, working: Sequence[Python], suitable: Sequence[Python]
) -> str:
    if suitable:
        minor = suitable[0].version[1]
        return (
            f"{suitable[0].command} lacks the venv or ensurepip module; on Debian: "
            f"apt-get install python3-venv (or python3.{minor}-venv), or "
            f"{request.how_to_choose}"
        )
    if not request.python:
        tried = ", ".join(request.candidates)
        found = ", ".join(f"{p.command} is {p.version_text}" for p in working)
        return (
            f"no {request.allowed} found (tried {tried}{'; ' + found if found else ''})"
            f"; install one, or {request.how_to_choose}"
        )
    fault = f"is Python {working[0].version_text}" if working else "does not run"
    return (
        f"{request.python} {fault}, but {request.allowed} is needed; "
        f"{request.how_to_choose}"
    )


# Is the environment whole?


def make_stamp(request: Request, python_version: str) -> dict[str, object]:
    """Returns what a whole environment's stamp says.

    The digests cover the files that no distribution's record covers: the records
    themselves, and what makes the directory a virtual environment.
    """
    covered = [request.venv / "pyvenv.cfg", *request.venv.glob("lib/*/*/*/RECORD")]
    return {
        "tool": TOOL_VERSION,
        # Scripts hold absolute paths, so an environment that was moved is broken.
        "place": str(request.venv.resolve()),
        "lock": sha256(request.lock),
        "project": project_digest(request),
        "python": python_version,
        "digests": {str(p.relative_to(request.venv)): sha256(p) for p in covered},
    }


def project_digest(request: Request) -> str:
    # In development mode only the metadata is copied, and setup.py states it.
    setup = request.project / "setup.py"
    text = f"{request.project.resolve()}\0{request.tensorflow}\0{sha256(setup)}"
    return hashlib.sha256(text.encode()).hexdigest()


def read_stamp(venv: pathlib.Path) -> dict[str, object] | None:
    """Returns the stamp; None when there is none that can be read."""
    try:
        stamp = json.loads((venv / STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return stamp if isinstance(stamp, dict) else None


def write_stamp(venv: pathlib.Path, stamp: dict[str, object]) -> None:
    """Writes the stamp, so that it is there either whole or not at all."""
    unfinished = venv / f"{STAMP}.tmp"
    with unfinished.open("w", encoding="utf-8") as file:
        json.dump(stamp, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(venv / STAMP)


def find_fault(request: Request, stamp: dict[str, object] | None) -> str | None:
    """Returns why the environment must be made anew, or None when it is whole."""
    if stamp is None:
        return "was not made to its end"
    if stamp.get("tool") != TOOL_VERSION:
        return "was made by another version of this tool"
    if stamp.get("place") != str(request.venv.resolve()):
        return "was moved"
    if stamp.get("lock") != sha256(request.lock):
        return f"was made from another {request.lock.name}"
    return _find_python_fault(request, stamp) or find_file_fault(request, stamp)


def _find_python_fault(request: Request, stamp: dict[str, object]) -> str | None:
    try:
        # Without site, so that a broken package is reported as what it is.
        version = subprocess.run(
            [request.venv_python, "-I", "-S", "-c", PRINT_VERSION],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "has a Python that does not run"
    if version != stamp.get("python"):
        return f"was made with Python {stamp.get('python')} and now has {version}"
    if request.python and choose_python(request).version_text != version:
        return f"has Python {version}, not {request.python}"
    return None


def find_file_fault(request: Request, stamp: dict[str, object]) -> str | None:
    for name, digest in stamp["digests"].items():
        path = request.venv / name
        if not path.is_file():
            return f"lacks {name}"
        if sha256(path) != digest:
            return f"has another {name} than it was made with"
        if path.name == "RECORD":
            fault = find_record_fault(path)
            if fault:
                return fault
    return None


def find_record_fault(record: pathlib.Path) -> str | None:
    """Returns which file of a distribution is gone or has another size, if any."""
    # Plain strings: there are tens of thousands of files, and this runs every time.
    packages = str(record.parent.parent)
    with record.open(encoding="utf-8", newline="") as lines:
        for name, _, size in csv.reader(lines):
            if name.endswith(".pyc"):
                continue
            try:
                actual = os.stat(os.path.join(packages, name)).st_size
            except OSError:
                return f"lacks {name}"
            if size and actual != int(size):
                return f"has a damaged {name} ({actual} bytes instead of {size})"
    return None
