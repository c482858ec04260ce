"""The numbered directories that servers watch."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from export import versions
from pipeline.types import UserError

ROOT = Path(__file__).parents[2]


def _make(export_dir: Path, *names: str, ours: bool = True) -> None:
    for name in names:
        extra = export_dir / name / versions.EXTRA
        extra.mkdir(parents=True)
        if ours:
            (export_dir / name / versions.DECLARATION_FILE).write_text("columns: {}")


def _clock(monkeypatch, seconds: float) -> None:
    monkeypatch.setattr(versions.time, "time", lambda: seconds)


def test_versions_are_plain_numbers_that_servers_read(tmp_path):
    _make(tmp_path, "12", "7", "100", "0")
    _make(tmp_path, ".8.tmp-1", "temp-9", "007", "1_0", "-3", "١٢", "9" * 19, "5 ")
    (tmp_path / "13").write_text("a file")
    assert versions.versions(str(tmp_path)) == [0, 7, 12, 100]


def test_no_directory_has_no_versions(tmp_path):
    assert versions.versions(str(tmp_path / "absent")) == []


def test_find_takes_the_newest_by_number(tmp_path):
    _make(tmp_path, "9", "10")
    assert versions.find(str(tmp_path), None) == str(tmp_path / "10")
    assert versions.find(str(tmp_path), 9) == str(tmp_path / "9")


def test_find_lists_what_is_there(tmp_path):
    _make(tmp_path, "9", "10")
    with pytest.raises(UserError, match=r"--version=3 .* there: 9, 10$"):
        versions.find(str(tmp_path), 3)


def test_find_in_nothing(tmp_path):
    with pytest.raises(UserError, match=r"holds no version; run export first"):
        versions.find(str(tmp_path / "absent"), None)


@pytest.mark.parametrize(
    ("now", "expected"), [(150.9, 151), (151.2, 151), (152.0, 152), (99.0, 151)]
)
def test_next_version_rises_whatever_the_clock_says(
    tmp_path, monkeypatch, now, expected
):
    _make(tmp_path, "150")
    _clock(monkeypatch, now)
    assert versions.next_version(str(tmp_path)) == expected


def test_next_version_is_the_time_where_there_is_none(tmp_path, monkeypatch):
    _clock(monkeypatch, 1234.5)
    assert versions.next_version(str(tmp_path)) == 1234


def test_no_version_is_above_the_largest(tmp_path):
    largest = str(2**63 - 1)
    _make(tmp_path, largest)
    with pytest.raises(UserError, match=largest):
        versions.next_version(str(tmp_path))


def test_prune_keeps_the_newest(tmp_path):
    _make(tmp_path, "8", "9", "10", "11")
    assert versions.prune(str(tmp_path), 2) == [8, 9]
    assert sorted(os.listdir(tmp_path)) == ["10", "11"]


def test_prune_keeps_fewer_than_allowed(tmp_path):
    _make(tmp_path, "8")
    assert versions.prune(str(tmp_path), 2) == []


def test_prune_leaves_the_versions_of_others(tmp_path):
    _make(tmp_path, "5", "7", "9", ours=False)
    _make(tmp_path, "6", "8")
    assert versions.prune(str(tmp_path), 1) == [6]
    assert sorted(os.listdir(tmp_path)) == ["5", "7", "8", "9"]


def test_prune_spares_what_is_named_and_what_is_held(tmp_path):
    _make(tmp_path, "5", "6", "7", "8", "9")
    hold = versions.Hold(str(tmp_path / "6"))
    again = versions.Hold(str(tmp_path / "6"))
    assert versions.prune(str(tmp_path), 1, spared=[7]) == [5, 8]
    hold.release()
    assert versions.prune(str(tmp_path), 1, spared=[7]) == []
    del again
    assert versions.prune(str(tmp_path), 1) == [6, 7]
    assert versions.versions(str(tmp_path)) == [9]


def test_a_hold_ends_with_its_process(tmp_path):
    _make(tmp_path, "5", "6")
    program = (
        "import sys\nfrom export import versions\nhold = versions.Hold(sys.argv[1])\n"
        "print('held', flush=True)\nsys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "5")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
    ) as process:
        assert process.stdout.readline() == b"held\n"
        assert versions.prune(str(tmp_path), 1) == []
        process.kill()
        process.wait(60)
    assert versions.prune(str(tmp_path), 1) == [5]


def test_a_version_of_others_needs_no_hold(tmp_path):
    versions.Hold(str(tmp_path)).release()


def test_sweep_removes_leftovers_only(tmp_path):
    _make(tmp_path, "10", ".11.tmp-123", ".9.old-4")
    others = [".git", ".x.tmp-1", ".11.tmp-123.txt", "11.tmp-123", ".lock.old-"]
    _make(tmp_path, *others)
    versions.sweep(str(tmp_path))
    assert sorted(os.listdir(tmp_path)) == sorted(["10", *others])


def test_sweep_of_nothing(tmp_path):
    versions.sweep(str(tmp_path / "absent"))
