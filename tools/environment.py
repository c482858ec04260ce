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
import fcntl
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

import environment_facts as facts

# Making it.


@contextlib.contextmanager
def exclusive(venv: pathlib.Path) -> Iterator[int]:
    """Lets one call at a time work on an environment; yields the lock's descriptor."""
    while True:
        _require_own_directory(venv)
        venv.mkdir(parents=True, exist_ok=True)
        with (venv / facts.MUTEX).open("a") as mutex:
            try:
                fcntl.flock(mutex, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                facts.say(f"{venv}: waiting for another call that works on it.")
                fcntl.flock(mutex, fcntl.LOCK_EX)
            # Somebody may have removed the environment while this call waited.
            if _is_still_there(mutex.fileno(), venv / facts.MUTEX):
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
        raise facts.SetUpError(f"{venv} is in the way and is no directory; remove it")
    ours = [venv / facts.MUTEX, venv / "pyvenv.cfg"]
    if any(venv.iterdir()) and not any(path.exists() for path in ours):
        raise facts.SetUpError(
            f"{venv} holds something else than a virtual environment"
        )


def empty(venv: pathlib.Path) -> None:
    """Removes all but the lock that this call holds, the stamp first."""
    (venv / facts.STAMP).unlink(missing_ok=True)
    for path in venv.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name != facts.MUTEX:
            path.unlink()


class Runner:
    """Runs the commands that make an environment; their output goes to its log."""

    def __init__(self, request: facts.Request, mutex: int):
        self._request = request
        self._mutex = mutex
        self._log = request.venv / facts.LOG
        self._variables = {
            **os.environ,
            facts.TENSORFLOW_VARIABLE: request.tensorflow,
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
            raise facts.SetUpError(
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
        return "\n".join(text.splitlines()[-facts.LOG_LINES_SHOWN :])


# Somebody's `user = true` setting would make pip refuse any virtual environment.
PIP_INSTALL = ["install", "--no-input", "--no-user", "--progress-bar=off"]


def build(request: facts.Request, python: facts.Python, mutex: int) -> None:
    """Makes the environment from nothing."""
    started = time.monotonic()
    facts.say(
        f"{request.venv}: installing {_count_pins(request.lock)} packages from "
        f"{request.lock.name} with Python {python.version_text}. This takes minutes "
        f"on a slow network; its log: {request.venv / facts.LOG}"
    )
    empty(request.venv)
    runner = Runner(request, mutex)
    runner.run("venv", [python.executable, "-I", "-m", "venv", request.venv])
    runner.pip(*PIP_INSTALL, f"--requirement={request.lock}")
    install_project(request, python.version_text, mutex)
    facts.say(f"{request.venv}: ready after {time.monotonic() - started:.0f} s.")


def install_project(request: facts.Request, python_version: str, mutex: int) -> None:
    """Installs the project into the environment, checks all and writes the stamp."""
    (request.venv / facts.STAMP).unlink(missing_ok=True)
    runner = Runner(request, mutex)
    runner.pip(
        *PIP_INSTALL,
        "--no-deps",
        "--no-build-isolation",
        f"--editable={request.project}",
    )
    runner.pip("check")
    stamp = facts.make_stamp(request, python_version)
    fault = facts.find_file_fault(request, stamp)
    if fault:
        raise facts.SetUpError(f"{request.venv}: just made, yet it {fault}")
    facts.write_stamp(request.venv, stamp)


def _count_pins(lock: pathlib.Path) -> int:
    pins = re.findall(r"^([\w.-]+)==", lock.read_text(encoding="utf-8"), re.MULTILINE)
    return len(set(pins))


def ensure(request: facts.Request) -> None:
    """Makes the environment unless it is there and whole."""
    with exclusive(request.venv) as mutex:
        stamp = facts.read_stamp(request.venv)
        fault = facts.find_fault(request, stamp)
        if fault is None:
            if stamp["project"] != facts.project_digest(request):
                facts.say(
                    f"{request.venv}: setup.py changed; installing the project anew."
                )
                install_project(request, stamp["python"], mutex)
            return
        # Before anything is removed: without a suitable Python it stays as it is.
        python = facts.choose_python(request)
        if any(path.name != facts.MUTEX for path in request.venv.iterdir()):
            facts.say(f"{request.venv} {fault}; making it anew.")
        build(request, python, mutex)


def parse_arguments(arguments: Sequence[str]) -> facts.Request:
    """Turns the command line into a request."""
    parser = argparse.ArgumentParser(
        description="Makes the virtual environment unless it is there and whole."
    )
    root = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--venv", type=pathlib.Path, required=True)
    parser.add_argument("--lock", type=pathlib.Path, required=True)
    parser.add_argument(
        "--tensorflow",
        choices=sorted(facts.PYTHON_MINORS),
        default="2.21",
        help="the TensorFlow release that the lock file pins",
    )
    parser.add_argument(
        "--python", help="the Python to make it with; else the first that suits"
    )
    parser.add_argument(
        "--project", type=pathlib.Path, default=root, help="what to install with it"
    )
    return facts.Request(**vars(parser.parse_args(arguments)))


def main(arguments: Sequence[str]) -> int:
    """Runs the tool; returns the exit code."""
    try:
        ensure(parse_arguments(arguments))
    except (facts.SetUpError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("error: interrupted; the next call starts anew", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
