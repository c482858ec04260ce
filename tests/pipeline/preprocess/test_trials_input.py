"""Wrong --input and its companions stop within moments, in one line (INP-2)."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from helpers_formats import WRITERS

from pipeline.types import ColumnType

ROOT = Path(__file__).parents[3]
TABLE = {
    "x": (ColumnType.FLOAT, [0.5, 1.5]),
    "y": (ColumnType.STRING, ["no", "yes"]),
}
# Says at the end what was imported, whatever the command did.
RUN = (
    "import sys; from pipeline import app; code = app.main(sys.argv[1:]);"
    "print('imported', *{'tensorflow', 'apache_beam'} & set(sys.modules));"
    "sys.exit(code)"
)


@pytest.fixture
def fails(tmp_path):
    """Runs a command that must fail at once; returns its line."""
    (tmp_path / "folder").mkdir()
    for name in ("csv", "jsonl", "parquet"):
        WRITERS[name](tmp_path / f"a.{name}", TABLE)
    (tmp_path / "doubt.txt").write_text("neither comma nor tab\n")

    def run(*arguments: str, command: str = "run") -> str:
        started = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-c", RUN, command, *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=60,
        )
        seconds = time.monotonic() - started
        assert done.returncode == 2, done.stderr
        assert done.stdout.strip() == "imported"
        (line,) = done.stderr.splitlines()
        assert line.startswith("error: ")
        # Five seconds on a machine that has nothing else to do.
        assert seconds < 20
        assert not (tmp_path / "work").exists() and not (tmp_path / "w").exists()
        return line

    return run


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--input=b*.csv"], ["--input", "'b*.csv'"]),
        (["--input=folder"], ["--input", "folder is a directory"]),
        (["--input=~/none/*.csv"], ["--input", "'~/none/*.csv'"]),
        (["--input=a.csv, b.csv"], ["--input", "'b.csv'"]),
        (["--input= b.csv"], ["--input", "'b.csv'"]),
        (["--input="], ["--input"]),
        (["--input=,"], ["--input is empty"]),
        (["--input={date}.csv"], ["--input", "--run_date"]),
        (["--input={date}.csv", "--run_date=2013-02-30"], ["--run_date"]),
        (["--input={date}.csv", "--run_date=2013-06-01"], ["'2013-06-01.csv'"]),
        (
            ["--input={date:%Y}.csv", "--run_date=20130601"],
            ["--run_date", "YYYY-MM-DD"],
        ),
        (["--input=doubt.txt"], ["doubt.txt", "--input_format"]),
        (["--input=a.csv", "--input_format=excel"], ["--input_format", "parquet"]),
        (["--input=a.csv", "--delimiter=ab"], ["--delimiter", "one ASCII character"]),
        (["--input=a.csv", "--columns=a,,b"], ["--columns"]),
        (["--input=a.csv", "--columns=a,a"], ["--columns"]),
        (["--input=a.parquet", "--columns=a,b"], ["--columns", "a.parquet"]),
        (["--input=a.csv", "--input_format=parquet"], ["a.csv"]),
        (["--input=a.csv", "--input_format=jsonl"], ["a.csv", "no JSON lines"]),
        (["--input=a.jsonl", "--label=z"], ["--label=z", "x, y"]),
        (["--input=a.parquet", "--label=z"], ["--label=z", "x, y"]),
        (["--input=tfds:none"], ["tfds:none", "is not prepared"]),
    ],
)
def test_one_line_before_anything_is_written(fails, arguments, parts):
    # A label of its own does not hurt: what is wrong is found before.
    if not any(a.startswith("--label") for a in arguments):
        arguments = [*arguments, "--label=y"]
    line = fails(*arguments, "--work_dir=w")
    assert all(part in line for part in parts), line


def test_home_and_blanks_are_understood(fails, tmp_path):
    line = fails("--input= ~/a.csv , a.jsonl", "--label=z", "--work_dir=w")
    assert "--label=z" in line


def test_a_declared_column_that_no_file_has(fails, tmp_path):
    (tmp_path / "f.yaml").write_text(
        "label: {column: y, classes: ['no', 'yes']}\n"
        "columns:\n  z: {type: float}\n  y: {type: string}\n"
        "features:\n  z: {kind: numeric}\n"
    )
    for name in ("csv", "jsonl", "parquet"):
        line = fails(f"--input=a.{name}", "--features=f.yaml", "--work_dir=w")
        assert f"a.{name}" in line and "no column z" in line and "f.yaml" in line
