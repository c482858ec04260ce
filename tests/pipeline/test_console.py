"""What is printed for people."""

from __future__ import annotations

import pytest

from pipeline import console
from pipeline.console import Console, Progress, duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3, "0s"),
        (0.4, "0s"),
        (59.4, "59s"),
        (59.6, "1m00s"),
        (185, "3m05s"),
        (3599.6, "1h00m"),
        (7620, "2h07m"),
        (400_000, "111h06m"),
    ],
)
def test_duration(seconds, text):
    assert duration(seconds) == text


def test_progress_goes_to_stderr_and_results_to_stdout(capsys):
    Console().progress("working")
    Console().result("done")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("done\n", "working\n")


def test_quiet(capsys):
    quiet = Console(-1)
    quiet.progress("working")
    quiet.result("done")
    Progress(quiet, "train", "step").update(5)
    assert capsys.readouterr() == ("", "")


class _Clock:
    """Stands for the time module."""

    def __init__(self):
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = _Clock()
    monkeypatch.setattr(console, "time", clock)
    return clock


def test_log_gets_a_line_every_ten_seconds(clock, capsys):
    progress = Progress(Console(), "train", "step", total=1000, start=100)
    progress.update(110)
    clock.now += 9.9
    progress.update(190)
    assert capsys.readouterr().err == ""
    clock.now += 0.1
    progress.update(200, scale=32, note="loss 0.5")
    progress.update(201)
    progress.close()
    assert capsys.readouterr().err == (
        "train: step 200 of 1,000 (20%), loss 0.5, 320 examples/s, 1m20s left\n"
    )


def test_log_lines_as_often_as_asked(clock, capsys):
    progress = Progress(Console(log_seconds=2), "train", "step", total=10)
    for _ in range(4):
        clock.now += 1
        progress.update(5)
    assert capsys.readouterr().err.count("train: step 5 of 10") == 2


def test_unknown_total(clock, capsys):
    progress = Progress(Console(), "read", "rows")
    clock.now += 10
    progress.update(12_345)
    assert capsys.readouterr().err == "read: rows 12,345, 1,234 examples/s\n"


def test_nothing_done_yet_has_no_time_left(clock, capsys):
    progress = Progress(Console(), "read", "rows", total=10)
    clock.now += 10
    progress.update(0)
    assert capsys.readouterr().err == "read: rows 0 of 10 (0%), 0 examples/s\n"


def test_terminal_line_is_redrawn_fits_and_is_ended(clock, capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "20")
    progress = Progress(Console(), "read", "rows")
    progress.close()
    assert capsys.readouterr().err == ""
    for _ in range(2):
        clock.now += 0.2
        progress.update(1_000_000)
    progress.close()
    line = "\r\033[Kread: rows 1,000,00"
    assert capsys.readouterr().err == f"{line}{line}\n"
