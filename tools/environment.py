"""Makes the project's virtual environment, and makes it anew when it isn't whole.

    python3 tools/environment.py --venv=.venv --lock=requirements.lock

The environment gets what the lock file pins and the project itself, in development
mode. A stamp, written last, says what the environment was made from. The next call
compares the stamp with the lock file and each installed file's size with what its
distribution recorded; when all is as it was made, the call says nothing and is quick.

It needs nothing but the standard library, so that any Python 3.10 to 3.13 runs it.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import dataclasses
import fcntl
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

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
        "project": _project_digest(request),
        "python": python_version,
        "digests": {str(p.relative_to(request.venv)): sha256(p) for p in covered},
    }


def _project_digest(request: Request) -> str:
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
    return _find_python_fault(request, stamp) or _find_file_fault(request, stamp)


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


def _find_file_fault(request: Request, stamp: dict[str, object]) -> str | None:
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


# Making it.


@contextlib.contextmanager
def exclusive(venv: pathlib.Path) -> Iterator[int]:
    """Lets one call at a time work on an environment; yields the lock's descriptor."""
    while True:
        _require_own_directory(venv)
        venv.mkdir(parents=True, exist_ok=True)
        with (venv / MUTEX).open("a") as mutex:
            try:
                fcntl.flock(mutex, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say(f"{venv}: waiting for another call that works on it.")
                fcntl.flock(mutex, fcntl.LOCK_EX)
            # Somebody may have removed the environment while this call waited.
            if _is_still_there(mutex.fileno(), venv / MUTEX):
                yield mutex.fileno()
                return


def _is_still_there(descriptor: int, path: pathlib.Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _require_own_directory(venv: pathlib.Path) -> None:
    """Raises rather than let a mistyped option empty somebody's directory."""
    if not os.path.lexists(venv):
        return
    if not venv.is_dir():
        raise SetUpError(f"{venv} is in the way and is no directory; remove it")
    ours = [venv / MUTEX, venv / "pyvenv.cfg"]
    if any(venv.iterdir()) and not any(path.exists() for path in ours):
        raise SetUpError(f"{venv} holds something else than a virtual environment")


def empty(venv: pathlib.Path) -> None:
    """Removes all but the lock that this call holds, the stamp first."""
    (venv / STAMP).unlink(missing_ok=True)
    for path in venv.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name != MUTEX:
            path.unlink()


class Runner:
    """Runs the commands that make an environment; their output goes to its log."""

    def __init__(self, request: Request, mutex: int):
        self._request = request
        self._mutex = mutex
        self._log = request.venv / LOG
        self._variables = {
            **os.environ,
            TENSORFLOW_VARIABLE: request.tensorflow,
        }

    def run(self, what: str, command: Sequence[str | os.PathLike[str]]) -> None:
        """Runs one command; raises SetUpError with its last lines when it fails."""
        with self._log.open("ab") as log:
            code = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._variables,
                # It keeps the lock when only this process is killed.
                pass_fds=[self._mutex],
                check=False,
            ).returncode
        if code:
            raise SetUpError(
                f"{what} failed with exit code {code}; its last lines "
                f"(all are in {self._log}):\n{self._last_lines()}"
            )

    def pip(self, *arguments: str | os.PathLike[str]) -> None:
        """Runs the environment's pip."""
        # Isolated from the directory and variables of the caller, whose packages
        # pip would otherwise count as installed; pip's own settings still hold.
        python = [self._request.venv_python, "-I", "-m", "pip"]
        self.run(f"pip {arguments[0]}", [*python, *arguments])

    def _last_lines(self) -> str:
        text = self._log.read_text(encoding="utf-8", errors="replace")
        return "\n".join(text.splitlines()[-LOG_LINES_SHOWN:])


# Somebody's `user = true` setting would make pip refuse any virtual environment.
PIP_INSTALL = ["install", "--no-input", "--no-user", "--progress-bar=off"]


def build(request: Request, python: Python, mutex: int) -> None:
    """Makes the environment from nothing."""
    started = time.monotonic()
    say(
        f"{request.venv}: installing {_count_pins(request.lock)} packages from "
        f"{request.lock.name} with Python {python.version_text}. This takes minutes "
        f"on a slow network; its log: {request.venv / LOG}"
    )
    empty(request.venv)
    runner = Runner(request, mutex)
    runner.run("venv", [python.executable, "-I", "-m", "venv", request.venv])
    runner.pip(*PIP_INSTALL, f"--requirement={request.lock}")
    install_project(request, python.version_text, mutex)
    say(f"{request.venv}: ready after {time.monotonic() - started:.0f} s.")


def install_project(request: Request, python_version: str, mutex: int) -> None:
    """Installs the project into the environment, checks all and writes the stamp."""
    (request.venv / STAMP).unlink(missing_ok=True)
    runner = Runner(request, mutex)
    runner.pip(
        *PIP_INSTALL,
        "--no-deps",
        "--no-build-isolation",
        f"--editable={request.project}",
    )
    runner.pip("check")
    stamp = make_stamp(request, python_version)
    fault = _find_file_fault(request, stamp)
    if fault:
        raise SetUpError(f"{request.venv}: just made, yet it {fault}")
    write_stamp(request.venv, stamp)


def _count_pins(lock: pathlib.Path) -> int:
    pins = re.findall(r"^([\w.-]+)==", lock.read_text(encoding="utf-8"), re.MULTILINE)
    return len(set(pins))


def ensure(request: Request) -> None:
    """Makes the environment unless it is there and whole."""
    with exclusive(request.venv) as mutex:
        stamp = read_stamp(request.venv)
        fault = find_fault(request, stamp)
        if fault is None:
            if stamp["project"] != _project_digest(request):
                say(f"{request.venv}: setup.py changed; installing the project anew.")
                install_project(request, stamp["python"], mutex)
            return
        # Before anything is removed: without a suitable Python it stays as it is.
        python = choose_python(request)
        if any(path.name != MUTEX for path in request.venv.iterdir()):
            say(f"{request.venv} {fault}; making it anew.")
        build(request, python, mutex)


def parse_arguments(arguments: Sequence[str]) -> Request:
    """Turns the command line into a request."""
    parser = argparse.ArgumentParser(
        description="Makes the virtual environment unless it is there and whole."
    )
    root = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--venv", type=pathlib.Path, required=True)
    parser.add_argument("--lock", type=pathlib.Path, required=True)
    parser.add_argument(
        "--tensorflow",
        choices=sorted(PYTHON_MINORS),
        default="2.21",
        help="the TensorFlow release that the lock file pins",
    )
    parser.add_argument(
        "--python", help="the Python to make it with; else the first that suits"
    )
    parser.add_argument(
        "--project", type=pathlib.Path, default=root, help="what to install with it"
    )
    return Request(**vars(parser.parse_args(arguments)))


def main(arguments: Sequence[str]) -> int:
    """Runs the tool; returns the exit code."""
    try:
        ensure(parse_arguments(arguments))
    except (SetUpError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("error: interrupted; the next call starts anew", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
