"""Tests of Beam's options and of progress, without a Beam run."""

from __future__ import annotations

import os
import re
import time

import pytest
from absl import flags

from pipeline import console as consoles
from pipeline.console import Console, Progress
from pipeline.flags import data, workers, writing
from pipeline.preprocess import beam_options, progress
from pipeline.preprocess.progress import Counter, Done
from pipeline.types import UserError


@pytest.mark.parametrize(
    "options, watched",
    [
        ((), False),
        (("--direct_num_workers=1",), False),
        (("--direct_num_workers=2",), True),
        (("--direct_num_workers", "0"), True),
        (("--direct_running_mode=multi_processing",), True),
        (("--runner=PrismRunner", "--prism_location=x"), True),
        (("--runner=DataflowRunner", "--direct_num_workers=2"), False),
        (("--temp_location=x",), False),
    ],
)
def test_workers_on_this_machine_are_watched(options, watched):
    assert beam_options.parse(options).has_local_workers == watched


@pytest.mark.parametrize(
    ("options", "workers"),
    [
        ((), 1),
        (("--direct_num_workers=2",), 2),
        (("--direct_num_workers", "2"), 2),
        (("--direct_num_workers=0",), os.cpu_count()),
        (("--runner=FlinkRunner",), None),
        (("--runner", "FlinkRunner", "--direct_num_workers", "2"), None),
    ],
)
def test_workers_are_known_from_either_form_of_an_option(options, workers):
    assert beam_options.parse(options).workers == workers


def test_a_bad_beam_option_is_one_line():
    with pytest.raises(UserError, match="--beam_option: .*direct_num_workers.*two"):
        beam_options.parse(("--direct_num_workers=two",))


def test_what_workers_did_is_added_up(tmp_path):
    assert progress.read(str(tmp_path)) == Done()
    one, other = Counter(str(tmp_path)), Counter(str(tmp_path))
    one.add(Done(rows=5, bytes=100))
    one.add(Done(rejected=1))
    other.add(Done(rows=7, bytes=50))
    one.flush()
    assert progress.read(str(tmp_path)) == Done(rows=12, rejected=1, bytes=150)


def test_a_worker_on_another_machine_counts_in_vain(tmp_path):
    Counter(str(tmp_path / "elsewhere")).add(Done(rows=1))


def test_a_log_gets_plain_lines_with_speed_rejects_and_time_left(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(consoles, "_LOG_EVERY_SECONDS", 0.1)
    counter = Counter(str(tmp_path))
    counter.add(Done(rows=2500, rejected=3, bytes=25))
    with progress.shown(str(tmp_path), 100, "preprocess", Console()):
        time.sleep(0.7)
    first = capsys.readouterr().err.splitlines()[0]
    assert re.fullmatch(
        r"preprocess: rows 2,500 \(25%\), 3 rejected, [\d,]+ rows/s, \d+s left", first
    )


def test_a_terminal_gets_one_line_that_is_redrawn(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr(consoles, "_TERMINAL_EVERY_SECONDS", 0.0)
    line = Progress(Console(), "preprocess", "rows", speed_unit="rows")
    line.update(10, share=0.5)
    line.update(20, share=1.0)
    line.close()
    shown = capsys.readouterr().err
    assert shown.count("\r\033[K") == 2 and shown.count("\n") == 1
    assert "rows 20 (100%)" in shown and "0s left" in shown


@pytest.mark.parametrize(
    ("given", "options"),
    [
        ([], ()),
        (["--direct_num_workers=1"], ()),
        (
            ["--beam_option=--x=1", "--direct_num_workers=3"],
            (
                "--direct_running_mode=multi_processing",
                "--direct_num_workers=3",
                "--x=1",
            ),
        ),
    ],
)
def test_several_workers_by_a_flag_of_their_own(given, options):
    values = flags.FlagValues()
    data.define(values)
    writing.define(values)
    workers.define(values)
    values(["program", *given])
    assert data.read(values).beam_options == options
