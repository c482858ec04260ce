"""The flights example: its table, its declaration, and a run on a few flights."""

from __future__ import annotations

import gzip
import random
import subprocess
import sys
from pathlib import Path

import pytest
from pyarrow import csv, parquet

from pipeline import app, declaration

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "flights"
_HEADER = (
    "year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,"
    "arr_delay,carrier,flight,tailnum,origin,dest,air_time,distance,hour,minute,"
    "time_hour"
)


def _line(month: int, day: int, delay: str, departure: int = 515) -> str:
    return (
        f"2013,{month},{day},517.0,{departure},2.0,830.0,{departure + 300},{delay},UA,"
        f"1545,N14228,EWR,IAH,227.0,1400,5,15,2013-01-01T10:00:00Z"
    )


def _write(path: Path, lines: list[str]) -> Path:
    with gzip.open(path, "wt", encoding="utf-8") as f:
        f.write("\n".join([_HEADER, *lines, ""]))
    return path


def _prepare(*arguments) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, str(EXAMPLE / "prepare.py"), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize("name", ["new/flights.parquet", "flights.csv"])
def test_the_table(tmp_path, name):
    source = _write(
        tmp_path / "raw.csv.gz",
        [
            _line(1, 2, "15.0"),
            _line(11, 30, "16.0"),
            _line(12, 1, ""),
            _line(2, 3, "-9"),
        ],
    )
    done = _prepare(source, tmp_path / name)
    assert done.returncode == 0, done.stderr
    read = csv.read_csv if name.endswith(".csv") else parquet.read_table
    table = read(tmp_path / name)
    assert table["late"].to_pylist() == [0, 1, 0]
    assert [str(d) for d in table["date"].to_pylist()] == [
        *("2013-01-02", "2013-11-30", "2013-02-03")
    ]
    # Nothing that is known only once the flight is under way.
    assert set(table.column_names) == {
        *("date", "month", "day", "sched_dep_time", "sched_arr_time"),
        *("carrier", "origin", "dest", "distance", "late"),
    }


@pytest.mark.parametrize("content", [None, b"", b"a,b\n1,2\n", b"\x1f\x8b broken"])
def test_another_file_is_one_line(tmp_path, content):
    source = tmp_path / "raw.csv"
    if content is not None:
        source.write_bytes(content)
    done = _prepare(source, tmp_path / "out.parquet")
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {source} is not the table of flights: ")
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "out.parquet").exists()


def test_no_feature_knows_the_future():
    declared = declaration.load(str(EXAMPLE / "features.yaml"))
    assert {column.name for column in declared.input_columns} == {
        *("sched_dep_time", "sched_arr_time", "carrier", "origin", "dest", "distance")
    }
    assert declared.split.boundaries["test"].startswith("2013-11-01")


@pytest.mark.slow
def test_the_job_runs(tmp_path):
    draw = random.Random(1)
    lines = [
        _line(month, day, str(draw.randint(-20, 40)), draw.choice([600, 900, 1200]))
        for month in (1, 5, 10, 11)
        for day in range(1, 29)
        for _ in range(3)
    ]
    source = _write(tmp_path / "raw.csv.gz", lines)
    table = tmp_path / "flights.parquet"
    assert _prepare(source, table).returncode == 0
    code = app.main(
        [
            "run",
            f"--flagfile={EXAMPLE / 'flights.flags'}",
            f"--input={table}",
            f"--features={EXAMPLE / 'features.yaml'}",
            f"--work_dir={tmp_path / 'work'}",
            "--max_steps=3",
        ]
    )
    assert code == 0
