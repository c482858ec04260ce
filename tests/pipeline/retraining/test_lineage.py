"""The store: what is in it stays as it is, whoever writes at the same time."""

from __future__ import annotations

import dataclasses
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.retraining import lineage_report
from pipeline.retraining.lineage import Dataset, Model, Publication, Run, Store
from pipeline.types import UserError

ROOT = Path(__file__).parents[3]
DAY = Dataset("day1", "day", {"all": 5}, ({"path": "a.csv", "sha256": "x"},), "columns")
WINDOW = Dataset(
    "window1",
    "window",
    {"train": 3, "eval": 1, "test": 1},
    ({"path": "a.csv", "bytes": 9, "sha256": "x"},),
    "columns",
    {"2013-06-01": ("train", "day1")},
)
TRAINING = {"model": "linear", "hparams": {}, "seed": 1, "batch_size": 8}
MODEL = Model("m1", "window1", None, 10, TRAINING, {"python": "3"})
RUN = Run(
    id="r1",
    run_date="2013-06-01",
    request="q1",
    outcome="published",
    exit_code=0,
    message="version 7 published",
    started="2013-06-02T01:00:00",
    seconds=3.5,
    host="here",
    flags="--seed=1\n",
    dataset="window1",
    model="m1",
    champion=None,
    verdict={"verdict": "blessed"},
    warnings=("drift",),
)
VERSION = Publication(
    "/serving", 7, None, "m1", "q1", "2013-06-01", "blessed", None, "now"
)


@pytest.fixture
def store(tmp_path) -> Store:
    found = Store(str(tmp_path / "below" / "lineage.sqlite"))
    found.add(RUN, (DAY, WINDOW), MODEL, (VERSION,))
    return found


def test_what_goes_in_comes_out(store):
    assert store.runs(5) == [RUN]
    assert store.runs_of("q1", ("published",)) == [RUN]
    assert store.runs_of("q1", ("failed",)) == []
    assert store.dataset("window1") == WINDOW
    assert store.dataset("day1") == DAY
    assert store.model("m1") == MODEL
    assert store.publication("/serving", 7) == VERSION
    assert store.publication("/serving", 8) is None
    assert store.model("m2") is None


def test_the_last_runs_in_the_order_in_which_they_ended(store):
    more = [
        dataclasses.replace(RUN, id=f"x{n}", run_date=f"2013-0{9 - n}-01")
        for n in range(3)
    ]
    for run in more:
        store.add(run)
    assert store.runs(2) == more[-2:]
    assert store.runs(9, "2013-08-01") == [more[1]]


def test_records_are_never_changed(store, tmp_path):
    store.add(dataclasses.replace(RUN, outcome="failed", message="other"))
    store.add(
        dataclasses.replace(RUN, id="r2"),
        model=dataclasses.replace(MODEL, global_step=99),
        publications=(dataclasses.replace(VERSION, model="other"),),
    )
    assert store.runs(5)[0] == RUN
    assert store.model("m1") == MODEL
    assert store.publication("/serving", 7) == VERSION
    with sqlite3.connect(tmp_path / "below" / "lineage.sqlite") as connection:
        tables = [
            name
            for (name,) in connection.execute(
                "select name from sqlite_master where type = 'table'"
            )
        ]
        assert len(tables) == 5
        for table in tables:
            for statement in (f"delete from {table}", f"update {table} set rowid = 9"):
                with pytest.raises(sqlite3.DatabaseError, match="only ever added"):
                    connection.execute(statement)


def test_a_run_is_added_whole_or_not_at_all(store):
    lost = dataclasses.replace(MODEL, checkpoint="m9", dataset="nowhere")
    with pytest.raises(UserError, match="FOREIGN KEY"):
        store.add(dataclasses.replace(RUN, id="r9", model="m9"), model=lost)
    assert store.runs(5) == [RUN]
    assert store.model("m9") is None


def test_a_file_that_is_no_store(tmp_path):
    path = tmp_path / "lineage.sqlite"
    path.write_text("something else, and long enough to be looked at" * 9)
    with pytest.raises(UserError, match="cannot be used: file is not a database"):
        Store(str(path))


def test_a_store_of_a_later_version(store, tmp_path):
    path = tmp_path / "below" / "lineage.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("pragma user_version = 9")
    with pytest.raises(UserError, match="version 9; this program knows 1"):
        Store(str(path))


WRITER = """
import sys, dataclasses
sys.path.insert(0, sys.argv[3])
from test_lineage import RUN, DAY, WINDOW, MODEL, Store
for n in range(10):
    store = Store(sys.argv[1])
    store.add(dataclasses.replace(RUN, id=f"{sys.argv[2]}-{n}"), (DAY, WINDOW), MODEL)
"""


def test_processes_that_write_at_the_same_time(tmp_path):
    path = str(tmp_path / "lineage.sqlite")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(
            [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        ),
    }
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, path, str(n), str(Path(__file__).parent)],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        for n in range(3)
    ]
    for writer in writers:
        _, said = writer.communicate(timeout=120)
        assert writer.returncode == 0, said
    runs = Store(path).runs(99)
    assert {run.id for run in runs} == {f"{w}-{n}" for w in range(3) for n in range(10)}


def test_the_report_of_a_version(store):
    report = lineage_report.find(store, "/serving", 7)
    assert (report.model, report.dataset, report.run) == (MODEL, WINDOW, RUN)
    text = "\n".join(lineage_report.to_lines(report))
    for part in ("a.csv", "SHA-256 x", "--seed=1", "no champion", "2013-06-01 train"):
        assert part in text
    with pytest.raises(UserError, match="knows no version 8"):
        lineage_report.find(store, "/serving", 8)


def test_ancestors_by_warm_start(store):
    second = dataclasses.replace(MODEL, checkpoint="m2", warm_start="m1")
    third = dataclasses.replace(MODEL, checkpoint="m3", warm_start="m2")
    for number, model in enumerate((second, third)):
        store.add(
            dataclasses.replace(RUN, id=f"r{number}x", model=model.checkpoint),
            model=model,
        )
    store.add_publications((dataclasses.replace(VERSION, version=9, model="m3"),))
    report = lineage_report.find(store, "/serving", 9)
    assert report.ancestors == ("m2", "m1")


def test_a_version_whose_run_was_not_recorded(store):
    store.add_publications((dataclasses.replace(VERSION, version=8, model="m8"),))
    with pytest.raises(UserError, match="--run_date=2013-06-01"):
        lineage_report.find(store, "/serving", 8)
