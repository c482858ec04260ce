"""Runs the tests of compatibility and the Census job under each TensorFlow and Python.

    python3 tools/matrix.py --uv=.venv-lock/bin/uv

Each cell gets an environment of its own, which is removed after it. What a cell found
is kept in work/matrix/results.json, so that a second call goes on where the first one
ended; `--again` begins anew. Standard output is the table of README.md.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

ROOT = pathlib.Path(__file__).resolve().parents[1]
TENSORFLOWS = ("2.15.1", "2.16.2", "2.17.1", "2.18.1", "2.19.1", "2.20.0", "2.21.0")
PYTHONS = ("3.10", "3.11", "3.12", "3.13")
TESTS = (
    "tests/pipeline/test_compat.py",
    "tests/pipeline/test_compat_moved.py",
    "tests/pipeline/test_compat_input_hook.py",
    "tests/pipeline/test_exec_script.py",
    "tests/existing",
)
_TEST_PACKAGES = ("pytest>=8.2", "hypothesis>=6.100", "pandas>=2.0")
_ENOUGH_SECONDS = 1800


@dataclasses.dataclass(frozen=True)
class Cell:
    """A TensorFlow under a Python."""

    tensorflow: str
    python: str

    @property
    def name(self) -> str:
        return f"{self.tensorflow} on {self.python}"

    def requirements(self) -> list[str]:
        """What the project needs, with this TensorFlow."""
        minor = ".".join(self.tensorflow.split(".")[:2])
        old = minor == "2.15"
        return [
            f"tensorflow-cpu=={self.tensorflow}",
            f"tensorboard=={minor}.*" if minor != "2.21" else "tensorboard>=2.20",
            *([] if old else [f"tf-keras=={minor}.*"]),
            # TensorBoard imports pkg_resources, which setuptools 82 removed.
            "setuptools<82",
            # Later ones need a newer protobuf than these TensorFlows allow.
            *(["tensorflow-metadata<1.18"] if minor < "2.20" else []),
            *_required_by_setup(),
            *_TEST_PACKAGES,
        ]


def _required_by_setup() -> list[str]:
    """REQUIREMENTS of setup.py, which cannot be imported without running it."""
    for node in ast.parse((ROOT / "setup.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "REQUIREMENTS":
            return ast.literal_eval(node.value)
    raise ValueError("setup.py has no REQUIREMENTS")


def run_cell(cell: Cell, uv: str, work: pathlib.Path, tests: Sequence[str]) -> str:
    """Returns what the table says of a cell: "passed", "no wheel" or what failed."""
    venv = work / "venv"
    log = work / f"{cell.tensorflow}-{cell.python}.log"
    shutil.rmtree(venv, ignore_errors=True)
    python = str(venv / "bin" / "python")
    # Not under the eyes of another environment's variables.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TF_")}
    environment["PYTHONPATH"] = str(ROOT)
    with log.open("wb") as out:

        def call(*command: str, seconds: float = _ENOUGH_SECONDS) -> bool:
            out.write(f"\n$ {' '.join(command)}\n".encode())
            out.flush()
            try:
                done = subprocess.run(
                    command,
                    cwd=ROOT,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    timeout=seconds,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                return False
            return done.returncode == 0

        if not call(uv, "venv", "--quiet", "--python", cell.python, str(venv)):
            return "no such Python here"
        install = [uv, "pip", "install", "--quiet", "--python", python]
        wheel = ["--only-binary=tensorflow-cpu", f"tensorflow-cpu=={cell.tensorflow}"]
        if not call(*install, "--dry-run", "--no-deps", *wheel):
            return "no wheel"
        if not call(*install, *cell.requirements()):
            return "installation failed"
        failed = []
        if not call(python, "-m", "pytest", "-q", "-m", "not slow", *tests):
            failed.append("tests")
        if not call(
            python,
            "-m",
            "pipeline",
            "run",
            "--flagfile=examples/census/census.flags",
            "--model=wide_deep",
            f"--work_dir={venv / 'census'}",
        ):
            failed.append("Census")
        return " and ".join(failed) + " failed" if failed else "passed"


def table(results: dict[str, str]) -> Iterator[str]:
    """Yields the lines of the table."""
    yield f"| TensorFlow | {' | '.join(f'Python {p}' for p in PYTHONS)} |"
    yield f"|---|{'---|' * len(PYTHONS)}"
    for tensorflow in TENSORFLOWS:
        cells = (results.get(Cell(tensorflow, p).name, "not run") for p in PYTHONS)
        yield f"| {tensorflow} | {' | '.join(cells)} |"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--uv", default="uv", help="the uv that makes environments")
    parser.add_argument("--work_dir", default=str(ROOT / "work" / "matrix"))
    parser.add_argument("--tensorflow", nargs="*", default=TENSORFLOWS)
    parser.add_argument("--python", nargs="*", default=PYTHONS)
    parser.add_argument("--tests", nargs="*", default=TESTS)
    parser.add_argument("--again", action="store_true", help="forget earlier results")
    flags = parser.parse_args(arguments)

    work = pathlib.Path(flags.work_dir)
    work.mkdir(parents=True, exist_ok=True)
    file = work / "results.json"
    known = file.exists() and not flags.again
    results = json.loads(file.read_text(encoding="utf-8")) if known else {}
    for tensorflow in flags.tensorflow:
        for python in flags.python:
            cell = Cell(tensorflow, python)
            if cell.name in results:
                continue
            start = time.monotonic()
            results[cell.name] = run_cell(cell, flags.uv, work, flags.tests)
            shutil.rmtree(work / "venv", ignore_errors=True)
            seconds = time.monotonic() - start
            print(
                f"{cell.name}: {results[cell.name]} ({seconds:.0f} s)",
                file=sys.stderr,
                flush=True,
            )
            aside = file.with_suffix(".new")
            aside.write_text(json.dumps(results, indent=1), encoding="utf-8")
            aside.replace(file)
    print("\n".join(table(results)))
    return int(any(result.endswith("failed") for result in results.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
