"""Days as datasets of their own, and windows of them."""

from __future__ import annotations

import dataclasses
import datetime
import os
import time

import helpers_nights
import pytest
from helpers_nights import date, deliver

from pipeline import files
from pipeline.console import Console
from pipeline.flags.checks import CheckFlags
from pipeline.flags.data import DataFlags
from pipeline.flags.retraining import RetrainingFlags
from pipeline.preprocess import merge, stage
from pipeline.retraining import data, gates, merged
from pipeline.retraining.days import DayError, Problem, Reader
from pipeline.retraining.window import Window
from pipeline.types import ColumnSplit, ExitCode, UserError

QUIET = Console(-1)
WINDOW = Window(datetime.date.fromisoformat(date(3)), 4, 1, 1)
CHECKS = CheckFlags(None, 0.1, 2.0)


def settings(root) -> DataFlags:
    features = root / "features.yaml"
    features.write_text(helpers_nights.FEATURES, encoding="utf-8")
    pattern = f"{root}/days/{{date}}.csv"
    return DataFlags(pattern, str(features), None, 0.01, 64, ())


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Four days that were read once; do not change them."""
    root = tmp_path_factory.mktemp("made")
    for number in range(4):
        deliver(root, number)
    reader = Reader(settings(root), None, str(root / "kept"), QUIET)
    days, warnings = data.read(WINDOW, reader, RetrainingFlags())
    assert warnings == ()
    return root, reader, days


def stamps(days) -> list[int]:
    return [
        os.stat(os.path.join(one.day.directory, "manifest.json")).st_mtime_ns
        for one in days
    ]


def test_a_day_is_read_once(made):
    _, reader, days = made
    before = stamps(days)
    again, _ = data.read(WINDOW, reader, RetrainingFlags())
    assert [d.day.key for d in again] == [d.day.key for d in days]
    assert stamps(again) == before
    assert [d.role for d in days] == ["train", "train", "eval", "test"]
    assert {d.day.rows for d in days} == {60}


def test_a_window_is_what_one_pass_over_its_files_gives(made, tmp_path):
    root, reader, days = made
    window = merged.merge(
        str(tmp_path / "window"), days, reader.declaration, "blocks", QUIET
    )
    plan = stage.plan(
        dataclasses.replace(settings(root), input=f"{root}/days/*.csv"), None
    )
    split = ColumnSplit(
        "date",
        {
            "train": (date(0), date(1)),
            "eval": (date(2),),
            "test": (date(3),),
        },
    )
    whole = dataclasses.replace(plan.declaration, split=split)
    stage.run(
        str(tmp_path / "whole"), dataclasses.replace(plan, declaration=whole), QUIET
    )
    for name in ("statistics.json", "constants.json", "vocabularies/city.txt"):
        texts = [(tmp_path / d / name).read_text() for d in ("window", "whole")]
        assert texts[0] == texts[1], name
    assert dict(window.manifest.results["rows_written"]) == {
        "train": 120,
        "eval": 60,
        "test": 60,
    }
    assert window.find_damaged() is None
    # The same days give the same dataset, and it is not written again.
    stamp = os.stat(tmp_path / "window" / "manifest.json").st_mtime_ns
    merged.merge(str(tmp_path / "window"), days, reader.declaration, "blocks", QUIET)
    assert os.stat(tmp_path / "window" / "manifest.json").st_mtime_ns == stamp
    shard = next((tmp_path / "window").glob("train-*.tfrecord"))
    assert os.stat(shard).st_nlink > 1


@pytest.fixture
def copied(tmp_path):
    """The same days, to be changed."""
    for number in range(4):
        path = deliver(tmp_path, number)
        # Long ago, so that a change of the time is a change of the file.
        os.utime(path, (1e9, 1e9))
    return tmp_path, Reader(settings(tmp_path), None, str(tmp_path / "kept"), QUIET)


def day(reader, number: int):
    return reader.day(WINDOW.first + datetime.timedelta(days=number))


def test_late_data_is_noticed(copied, monkeypatch):
    root, reader = copied
    first = day(reader, 0)
    read = []
    digest = files.digest_file
    monkeypatch.setattr(files, "digest_file", lambda p: read.append(p) or digest(p))
    assert day(reader, 0).fingerprint == first.fingerprint
    assert read == []
    path = deliver(root, 0, [*helpers_nights.rows(0), [date(0), "Ulm", 5, 0]])
    late = day(reader, 0)
    assert late.rows == first.rows + 1
    assert late.key != first.key
    assert late.fingerprint != first.fingerprint
    # Touched but the same: read again, and not made again.
    os.utime(path, (1e9, 1e9))
    stamp = os.stat(os.path.join(late.directory, "manifest.json")).st_mtime_ns
    read.clear()
    assert day(reader, 0).fingerprint == late.fingerprint
    assert str(path) in read
    assert os.stat(os.path.join(late.directory, "manifest.json")).st_mtime_ns == stamp


def test_a_change_within_the_step_of_a_clock_is_noticed(copied):
    """Same size, same inode, same time."""
    root, reader = copied
    path = root / "days" / f"{date(0)}.csv"
    stat = os.stat(path)
    now = time.time_ns()
    os.utime(path, ns=(now, now))
    first = day(reader, 0)
    text = path.read_text(encoding="utf-8")
    with open(path, "r+", encoding="utf-8") as f:
        f.write(text.replace("Ulm", "Umm"))
    os.utime(path, ns=(now, now))
    assert (os.stat(path).st_size, os.stat(path).st_ino) == (stat.st_size, stat.st_ino)
    assert day(reader, 0).fingerprint != first.fingerprint


def test_a_damaged_day_is_made_again(copied):
    _, reader = copied
    first = day(reader, 0)
    shard = next(
        os.path.join(first.directory, name)
        for name in os.listdir(first.directory)
        if name.endswith(".tfrecord")
    )
    os.truncate(shard, 10)
    os.remove(os.path.join(first.directory, "manifest.json"))
    assert day(reader, 0).fingerprint == first.fingerprint
    assert os.path.getsize(shard) > 10


def problem(reader, number: int) -> Problem:
    with pytest.raises(DayError) as caught:
        day(reader, number)
    assert date(number) in str(caught.value)
    assert caught.value.exit_code is ExitCode.BAD_DATA
    return caught.value.problem


def test_days_that_cannot_be_used(copied):
    root, reader = copied
    (root / "days" / f"{date(1)}.csv").unlink()
    assert problem(reader, 1) is Problem.MISSING
    deliver(root, 1, [])
    assert problem(reader, 1) is Problem.EMPTY
    (root / "days" / f"{date(1)}.csv").write_bytes(b"")
    assert problem(reader, 1) is Problem.EMPTY
    deliver(root, 2, header=("date", "town", "age", "bought"))
    assert problem(reader, 2) is Problem.UNREADABLE
    with pytest.raises(UserError, match="gate schema: the day 2013-06-03 is unread"):
        data.read(WINDOW, reader, RetrainingFlags(allow_missing_days=3))
    warn = {"schema": "warn"}
    with pytest.raises(
        UserError, match=r"2013-06-02 is empty.*so are 2013-06-03.*missing_days=2"
    ):
        data.read(WINDOW, reader, RetrainingFlags(gates=warn, allow_missing_days=1))
    days, warnings = data.read(
        WINDOW, reader, RetrainingFlags(gates=warn, allow_missing_days=2)
    )
    assert [d.day.date for d in days] == [date(0), date(3)]
    assert [w.split()[2] for w in warnings] == [date(1), date(2)]
    skipped = RetrainingFlags(skip_days=(date(1), date(2)))
    days, warnings = data.read(WINDOW, reader, skipped)
    assert len(days) == 2
    assert "left out by --skip_days" in warnings[0]
    # Which leaves nothing to choose checkpoints by.
    with pytest.raises(UserError, match="no day to eval on"):
        merged.merge(str(root / "w"), days, reader.declaration, "blocks", QUIET)


def test_what_cannot_be_written_is_no_fault_of_the_day(copied):
    root, reader = copied
    (root / "kept").write_text("no directory")
    with pytest.raises(UserError, match="cannot write in") as caught:
        day(reader, 0)
    assert not isinstance(caught.value, DayError)
    assert caught.value.exit_code is ExitCode.USER_ERROR


def findings(reader, days, number: int) -> list[str]:
    learned = [d.day.directory for d in days if d.role == "train"]
    earlier = gates.Earlier(merge.merge_statistics(learned)["train"], len(learned))
    found = gates.look([day(reader, number)], earlier, reader.declaration, None, CHECKS)
    return [f"{one.gate}: {one.message}" for one in found]


def test_what_gates_see(made, copied):
    _, _, days = made
    root, reader = copied
    assert findings(reader, days, 3) == []
    shifted = [[d, c, a + 900, b] for d, c, a, b in helpers_nights.rows(3)]
    deliver(root, 3, shifted)
    (only,) = findings(reader, days, 3)
    assert only.startswith("drift: 2013-06-04: age Jensen-Shannon distance 1.0000")
    deliver(root, 3, helpers_nights.rows(3)[:20])
    few = "anomalies: 2013-06-04: 20 rows, the champion's days have 60 (factor 2)"
    assert few in findings(reader, days, 3)


def test_what_gates_do():
    found = [gates.Finding("drift", "a"), gates.Finding("rows", "b")]
    found.append(gates.Finding("anomalies", "c"))
    actions = {"drift": "warn", "rows": "off", "anomalies": "warn"}
    assert gates.apply(found, actions) == ("gate drift: a", "gate anomalies: c")
    with pytest.raises(UserError, match=r"gate rows: b \(and 1 more\)") as caught:
        gates.apply(found, {**actions, "rows": "stop", "anomalies": "stop"})
    assert caught.value.exit_code is ExitCode.BAD_DATA
    assert len(list(gates.too_few_rows(9, 10))) == 1
    assert not list(gates.too_few_rows(10, 10))
