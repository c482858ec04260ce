"""Measures the stages against other ways to do the same, and the models against
LightGBM: `make bench`.

    python -m benchmarks [--flights=FILE.csv.gz] [--runs=5] [--parts=peers,reading]

Every run is a process of its own and they take turns; figures of different tables
may come from different moods of the machine. Importing is not part of any time.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import itertools
import os
import shutil
import subprocess
import sys
import tempfile

from benchmarks import latency, make_flights, measure, quality, training
from benchmarks.measure import Program

# The only place where the real data's name is given; without it data is made.
_VARIABLE = "BENCH_FLIGHTS"
_PEER_ROWS = 100_000
_TRANSFORM_ROWS = 30_000
_SCALES = (1, 10, 30)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--flights",
        default=os.environ.get(_VARIABLE),
        help=f"nycflights13's flights as gzip CSV; also from {_VARIABLE}",
    )
    parser.add_argument("--runs", type=int, default=5, help="of each program")
    parser.add_argument(
        "--transform_python",
        default=sys.executable,
        help="an interpreter that has tensorflow-transform",
    )
    parser.add_argument(
        "--parts",
        default="peers,reading,transform",
        help="what to measure; also scaling (10 and 30 times the rows), workers (two"
        " processes against one), training (an Estimator against Keras fit), job"
        " (training from records against training from memory), strategies (a step by"
        " each strategy, and of one and two workers), monitoring (training with its"
        " curves against none), latency (answers of exports against a SavedModel by hand)"
        " and quality (how well models predict)",
    )
    arguments = parser.parse_args()
    unknown = set(arguments.parts.split(",")) - set(_PARTS)
    if unknown:
        parser.error(f"--parts: {unknown.pop()!r} is none of {', '.join(_PARTS)}")
    return arguments


def _flights(arguments: argparse.Namespace, directory: str) -> str:
    if arguments.flights:
        print(f"data: {arguments.flights}")
        return arguments.flights
    path = os.path.join(directory, "flights.csv.gz")
    print(f"data: synthetic flights (no --flights=FILE, no {_VARIABLE})")
    make_flights.write(path)
    return path


def _first_rows(path: str, rows: int, directory: str) -> str:
    out = os.path.join(directory, f"first-{rows}.csv.gz")
    with gzip.open(path, "rb") as f, gzip.open(out, "wb") as g:
        g.writelines(itertools.islice(f, rows + 1))
    return out


def _copies(path: str, count: int, directory: str) -> str:
    """Returns a pattern of so many files with the rows of one, plain text."""
    folder = os.path.join(directory, f"{count}-files")
    os.mkdir(folder)
    for number in range(count):
        with (
            gzip.open(path, "rb") as f,
            open(os.path.join(folder, f"{number:03d}.csv"), "wb") as g,
        ):
            shutil.copyfileobj(f, g)
    return os.path.join(folder, "*.csv")


def _has_transform(python: str) -> bool:
    if python == sys.executable:
        return importlib.util.find_spec("tensorflow_transform") is not None
    command = [python, "-c", "import tensorflow_transform"]
    return subprocess.run(command, capture_output=True).returncode == 0


def _against_peers(arguments, path: str, directory: str) -> None:
    few = _first_rows(path, _PEER_ROWS, directory)
    programs = [
        Program("preprocess, blocks", "ours", ("blocks", path)),
        Program("by hand, blocks", "plain_arrow", ("blocks", path)),
        Program("preprocess, rows", "ours", ("rows", path)),
        Program("by hand, rows", "plain_arrow", ("rows", path)),
        Program("Beam, an element a row", "beam_rows", (few,)),
    ]
    found = measure.run_side_by_side(programs, arguments.runs)
    measure.print_table(
        f"CSV to records and statistics (a row an element: {_PEER_ROWS:,} rows)", found
    )
    measure.print_ratio(found, "preprocess, blocks", "Beam, an element a row", 10)
    measure.print_ratio(found, "preprocess, rows", "Beam, an element a row")
    measure.print_ratio(found, "preprocess, blocks", "by hand, blocks", 0.5)
    measure.print_ratio(found, "preprocess, rows", "by hand, rows", 0.5)


def _against_transform(arguments, path: str, directory: str) -> None:
    if not _has_transform(arguments.transform_python):
        print("\nTensorFlow Transform is not installed: not measured")
        return
    few = _first_rows(path, _TRANSFORM_ROWS, directory)
    programs = [
        Program("preprocess, blocks", "ours", ("blocks", few)),
        Program(
            "TensorFlow Transform", "transform", (few,), arguments.transform_python
        ),
    ]
    found = measure.run_side_by_side(programs, min(3, arguments.runs))
    measure.print_table("TensorFlow Transform", found)
    measure.print_ratio(found, *[p.name for p in programs])


def _reading(arguments, path: str, directory: str) -> None:
    programs = []
    for form in ("rows", "blocks"):
        dataset = os.path.join(directory, f"dataset-{form}")
        measure.preprocess(dataset, form, path)
        programs.append(Program(f"reading {form}", "read_records", (dataset, "2")))
    found = measure.run_side_by_side(programs, arguments.runs)
    measure.print_table("Records to shuffled batches of 512 (two epochs)", found)
    measure.print_ratio(found, "reading blocks", "reading rows")


def _scaling(arguments, path: str, directory: str) -> None:
    programs = [
        Program(f"{scale} times", "ours", ("blocks", _copies(path, scale, directory)))
        for scale in _SCALES
    ]
    found = measure.run_side_by_side(programs, min(2, arguments.runs))
    measure.print_table("Rows, time and memory", found)


def _workers(arguments, path: str, directory: str) -> None:
    pattern = _copies(path, 20, directory)
    two = ("--direct_running_mode=multi_processing", "--direct_num_workers=2")
    programs = [
        Program("one process", "ours", ("blocks", pattern)),
        Program("two workers", "ours", ("blocks", pattern, *two)),
    ]
    found = measure.run_side_by_side(programs, min(2, arguments.runs))
    measure.print_table("Workers", found)
    measure.print_ratio(found, "two workers", "one process")


def _quality(arguments, path: str, directory: str) -> None:
    del path
    # Made-up flights are late at random.
    quality.run(arguments.flights, arguments.runs, directory)


_PARTS = {
    "peers": _against_peers,
    "reading": _reading,
    "transform": _against_transform,
    "scaling": _scaling,
    "workers": _workers,
    "training": training.speed,
    "job": training.job,
    "strategies": training.strategies,
    "monitoring": training.monitoring,
    "latency": latency.answers,
    "quality": _quality,
}


def main() -> None:
    arguments = _arguments()
    with tempfile.TemporaryDirectory() as directory:
        path = _flights(arguments, directory)
        for part in arguments.parts.split(","):
            _PARTS[part](arguments, path, directory)


if __name__ == "__main__":
    main()
