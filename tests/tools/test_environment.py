"""Tests of tools/environment.py, most of them on real environments made by pip."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "environment.py"
SETUP = "import setuptools\nsetuptools.setup(name='tiny', version='{}', py_modules=[])"


# As for the tool itself, whose folder is on the path when it runs.
sys.path.insert(0, str(TOOL.parent))


def _load_tool():
    spec = importlib.util.spec_from_file_location("environment_tool", TOOL)
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up while they are made.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


environment = _load_tool()


class Sandbox:
    """A tiny project with a lock file of a few small packages."""

    def __init__(self, directory: pathlib.Path):
        self.directory = directory
        self.venv = directory / "venv"
        self.lock = directory / "tiny.lock"
        self.setup = directory / "setup.py"
        self.setup.write_text(SETUP.format("1.0"))
        self.pin("setuptools", "six")

    def pin(self, *packages: str) -> None:
        """Writes a lock file with the versions that the project itself pins."""
        pinned = (ROOT / "requirements.lock").read_text()
        pins = [re.search(rf"^{name}==\S+", pinned, re.M)[0] for name in packages]
        self.lock.write_text("\n".join(pins) + "\n")

    def arguments(self, **options: object) -> list[str]:
        options = {
            "venv": self.venv,
            "lock": self.lock,
            "project": self.directory,
            "python": sys.executable,
            **options,
        }
        return [f"--{name}={value}" for name, value in options.items() if value]

    def start(self, **options: object) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, TOOL, *self.arguments(**options)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def call(self, **options: object) -> str:
        """Runs the tool, which must succeed; returns what it printed."""
        process = self.start(**options)
        output, errors = process.communicate()
        assert (process.returncode, errors) == (0, ""), output + errors
        return output

    def call_in_vain(self, **options: object) -> str:
        """Runs the tool, which must fail; returns its error message."""
        process = self.start(**options)
        _, errors = process.communicate()
        assert process.returncode == 1
        return errors

    def fault(self) -> str | None:
        request = environment.parse_arguments(self.arguments())
        return environment.facts.find_fault(
            request, environment.facts.read_stamp(self.venv)
        )

    def installed(self, package: str) -> pathlib.Path:
        (path,) = self.venv.glob(f"lib/python3*/site-packages/{package}")
        return path

    def names(self) -> set[str]:
        listed = subprocess.run(
            [self.venv / "bin" / "python", "-I", "-m", "pip", "list", "--format=json"],
            check=True,
            capture_output=True,
        ).stdout
        return {package["name"] for package in json.loads(listed)}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    """An environment that the tests of this module share and leave whole."""
    sandbox = Sandbox(tmp_path_factory.mktemp("made"))
    assert "ready after" in sandbox.call()
    return sandbox


@contextlib.contextmanager
def _renamed(path: pathlib.Path) -> Iterator[None]:
    aside = path.with_name(path.name + ".aside")
    path.rename(aside)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        aside.rename(path)


def test_a_new_environment_holds_lock_and_project(made):
    assert {"six", "setuptools", "tiny"} <= made.names()
    assert "No broken requirements" in (made.venv / "install.log").read_text()


def test_a_whole_environment_is_left_alone_without_a_word(made):
    before = (made.venv / "environment.json").stat().st_mtime_ns
    started = time.monotonic()
    assert made.call() == ""
    assert time.monotonic() - started < 5
    assert made.call(python=None) == ""
    assert (made.venv / "environment.json").stat().st_mtime_ns == before


def test_a_missing_file_is_noticed(made):
    with _renamed(made.installed("six.py")):
        assert made.fault() == "lacks six.py"
    assert made.fault() is None


def test_a_truncated_file_is_noticed(made):
    path = made.installed("six.py")
    source = path.read_bytes()
    path.write_bytes(source[:100])
    fault = made.fault()
    path.write_bytes(source)
    assert fault == f"has a damaged six.py (100 bytes instead of {len(source)})"


@pytest.mark.parametrize("package", ["six", "tiny"])
def test_a_distribution_without_its_record_is_noticed(made, package):
    with _renamed(made.installed(f"{package}-*.dist-info")):
        assert re.fullmatch(rf"lacks \S+/{package}-.*/RECORD", made.fault())


def test_a_dangling_python_is_noticed(made):
    python = made.venv / "bin" / "python"
    with _renamed(python):
        python.symlink_to("nowhere")
        assert made.fault() == "has a Python that does not run"


def test_another_python_in_the_environment_is_noticed(made, tmp_path):
    python = made.venv / "bin" / "python"
    with _renamed(python):
        python.write_text("#!/bin/sh\necho 3.10.99\n")
        python.chmod(0o755)
        assert "now has 3.10.99" in made.fault()


def test_a_missing_venv_configuration_is_noticed(made):
    with _renamed(made.venv / "pyvenv.cfg"):
        assert made.fault() == "lacks pyvenv.cfg"


def test_a_missing_or_broken_stamp_is_noticed(made):
    stamp = made.venv / "environment.json"
    with _renamed(stamp):
        assert made.fault() == "was not made to its end"
        stamp.write_text('{"tool": ')
        assert made.fault() == "was not made to its end"


def test_an_environment_that_was_moved_is_noticed(made, tmp_path):
    moved = Sandbox(tmp_path)
    moved.lock = made.lock
    moved.venv.symlink_to(made.venv)
    assert moved.fault() is None, "The same place under another name."
    moved.venv.unlink()
    moved.venv.mkdir()
    (moved.venv / "environment.json").write_bytes(
        (made.venv / "environment.json").read_bytes()
    )
    assert moved.fault() == "was moved"


def test_another_python_that_was_asked_for_is_noticed(made, tmp_path):
    other = _fake_python(tmp_path, [3, 10, 99])
    request = environment.parse_arguments(made.arguments(python=other))
    fault = environment.facts.find_fault(
        request, environment.facts.read_stamp(made.venv)
    )
    assert fault.endswith(f"not {other}")


def test_a_changed_setup_reinstalls_only_the_project(made):
    python = (made.venv / "bin" / "python").lstat()
    made.setup.write_text(SETUP.format("2.0"))
    output = made.call()
    assert "setup.py changed" in output
    assert "ready after" not in output
    assert made.installed("tiny-2.0.dist-info").is_dir()
    assert (made.venv / "bin" / "python").lstat() == python
    assert made.call() == ""


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    """A place for environments to be made in; each test says what it starts from."""
    return Sandbox(tmp_path_factory.mktemp("sandbox"))


@pytest.mark.slow
def test_a_killed_call_leaves_what_the_next_one_makes_anew(sandbox):
    shutil.rmtree(sandbox.venv, ignore_errors=True)
    process = sandbox.start()
    while not list(sandbox.venv.glob("lib/python3*/site-packages/pip")):
        assert process.poll() is None
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert sandbox.fault() == "was not made to its end"

    first, second = sandbox.start(), sandbox.start()
    outputs = [process.communicate()[0] for process in (first, second)]
    assert (first.returncode, second.returncode) == (0, 0)
    assert sum("was not made to its end; making" in text for text in outputs) == 1
    assert sum("waiting for another call" in text for text in outputs) == 1
    assert sandbox.fault() is None


@pytest.mark.slow
def test_a_damaged_environment_and_a_changed_lock_are_made_anew(sandbox):
    sandbox.pin("setuptools", "six")
    sandbox.call()
    sandbox.installed("six.py").write_text("")
    sandbox.pin("setuptools", "idna")
    output = sandbox.call()
    assert f"{sandbox.venv} was made from another tiny.lock; making it anew." in output
    assert {"idna", "tiny"} <= sandbox.names()
    assert "six" not in sandbox.names()
    assert sandbox.call() == ""


def _fake_python(directory: pathlib.Path, version: list[int], **facts: object) -> str:
    """Writes a command that answers as an interpreter would."""
    answer = {
        "executable": "/nowhere",
        "version": version,
        "makes_venvs": True,
        **facts,
    }
    path = directory / f"python{version[0]}.{version[1]}"
    path.write_text(f"#!/bin/sh\necho '{json.dumps(answer)}'\n")
    path.chmod(0o755)
    return str(path)


def _failing_command(directory: pathlib.Path, name: str) -> str:
    path = directory / name
    path.write_text("#!/bin/sh\necho not switched on >&2\nexit 127\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("version", [[3, 9, 18], [3, 14, 0]])
def test_an_unsupported_python_is_one_line_of_error(tmp_path, version):
    python = _fake_python(tmp_path, version)
    error = Sandbox(tmp_path).call_in_vain(python=python)
    text = ".".join(map(str, version))
    assert error == (
        f"error: {python} is Python {text}, but Python 3.10 to 3.13 is needed; choose "
        "one with `make PYTHON=python3.11 ...`\n"
    )


def test_tensorflow_2_15_narrows_the_range(tmp_path):
    python = _fake_python(tmp_path, [3, 12, 1])
    error = Sandbox(tmp_path).call_in_vain(python=python, tensorflow="2.15")
    assert "is Python 3.12.1, but Python 3.10 to 3.11 is needed" in error


def test_a_command_that_fails_is_one_line_of_error(tmp_path):
    shim = _failing_command(tmp_path, "shim")
    error = Sandbox(tmp_path).call_in_vain(python=shim)
    assert error.startswith(f"error: {shim} does not run, but Python 3.10 to 3.13")
    assert error.count("\n") == 1


def test_a_python_without_venv_names_the_package(tmp_path):
    python = _fake_python(tmp_path, [3, 11, 2], makes_venvs=False)
    error = Sandbox(tmp_path).call_in_vain(python=python)
    assert "apt-get install python3-venv (or python3.11-venv)" in error
    assert error.count("\n") == 1


def _request(tmp_path: pathlib.Path, tensorflow: str = "2.21"):
    arguments = Sandbox(tmp_path).arguments(python=None, tensorflow=tensorflow)
    return environment.parse_arguments(arguments)


def test_the_first_python_that_runs_and_suits_is_chosen(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    _fake_python(tmp_path, [3, 14, 0])
    (tmp_path / "python3").symlink_to("python3.14")
    _failing_command(tmp_path, "python3.13")
    _fake_python(tmp_path, [3, 12, 5], makes_venvs=False)
    with pytest.raises(environment.facts.SetUpError, match="python3.12-venv"):
        environment.facts.choose_python(_request(tmp_path))
    _fake_python(tmp_path, [3, 11, 2])
    chosen = environment.facts.choose_python(_request(tmp_path))
    assert chosen.command == "python3.11"
    _fake_python(tmp_path, [3, 12, 5])
    assert environment.facts.choose_python(_request(tmp_path)).command == "python3.12"
    for_215 = environment.facts.choose_python(_request(tmp_path, tensorflow="2.15"))
    assert for_215.command == "python3.11"


def test_no_suitable_python_tells_what_was_found(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    _fake_python(tmp_path, [3, 14, 0])
    (tmp_path / "python3").symlink_to("python3.14")
    with pytest.raises(environment.facts.SetUpError, match="python3 is 3.14.0"):
        environment.facts.choose_python(_request(tmp_path))


def test_a_failing_command_shows_its_last_lines_and_exit_code(tmp_path):
    request = _request(tmp_path)
    with environment.exclusive(request.venv) as mutex:
        runner = environment.Runner(request, mutex)
        script = "for i in range(99): print('line', i)\nraise SystemExit(3)"
        with pytest.raises(environment.facts.SetUpError) as failure:
            runner.run("pip install", [sys.executable, "-c", script])
    message = str(failure.value)
    assert message.startswith("pip install failed with exit code 3;")
    assert message.endswith("line 97\nline 98")
    assert "line 80\n" not in message


def test_a_directory_of_somebody_else_is_not_emptied(tmp_path):
    sandbox = Sandbox(tmp_path)
    sandbox.venv.mkdir()
    (sandbox.venv / "thesis.txt").write_text("All of it.")
    error = sandbox.call_in_vain()
    assert "holds something else than a virtual environment" in error
    assert [path.name for path in sandbox.venv.iterdir()] == ["thesis.txt"]


def test_the_shell_script_runs_the_first_python_that_works(tmp_path):
    _failing_command(tmp_path, "python3")
    (tmp_path / "python3.12").symlink_to(sys.executable)
    command = ["/bin/sh", ROOT / "tools" / "python.sh", "-c", "print('ran')"]
    environ = {"PATH": str(tmp_path)}
    run = subprocess.run(command, env=environ, capture_output=True, text=True)
    assert run.stdout == "ran\n"
    (tmp_path / "python3.12").unlink()
    run = subprocess.run(command, env=environ, capture_output=True, text=True)
    assert run.returncode == 1
    assert re.fullmatch("error: no Python 3.10 to 3.13 found; .*\n", run.stderr)
