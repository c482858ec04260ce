"""Who is told how a night ended, and in which words."""

from __future__ import annotations

import json
import math
import re
import sys

import pytest

from pipeline.console import Console
from pipeline.flags.notices import NoticeFlags
from pipeline.retraining import notices
from pipeline.retraining.outcome import End, Outcome, code_of, end_of
from pipeline.types import ExitCode, UserError

DONE = Outcome(
    End.PUBLISHED,
    0,
    "2013-06-01",
    "version 7 published: größer\nzwei",
    version=7,
    champion=7,
    metrics={"auc": 0.7, "average_loss": math.nan},
    seconds=12.5,
)


def test_one_line_of_json(capsys):
    notices.send(DONE, "/work", NoticeFlags(), Console(-1))
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    value = json.loads(out)
    assert value["outcome"] == "published"
    assert value["version"] == 7
    assert value["metrics"] == {"auc": 0.7, "average_loss": None}
    assert value["message"] == DONE.message


def test_the_hook_gets_the_line(tmp_path, capsys):
    target = tmp_path / "told file"
    program = "import sys; open(sys.argv[1], 'w').write(sys.stdin.read())"
    command = f'{sys.executable} -c "{program}" "{target}"'
    notices.send(DONE, "/work", NoticeFlags(command), Console(0))
    assert json.loads(target.read_text())["outcome"] == "published"
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("/no/such/program", "No such file"),
        (f"{sys.executable} -c 'import sys; sys.exit(\"oh\")'", "exit code 1: oh"),
    ],
)
def test_a_hook_that_fails_changes_nothing(capsys, command, said):
    notices.send(DONE, "/work", NoticeFlags(command), Console(0))
    found = capsys.readouterr()
    assert said in found.err
    assert json.loads(found.out)["exit_code"] == 0


def test_a_hook_that_is_no_command():
    for text in ("'", "  "):
        with pytest.raises(UserError, match="--webhook_command"):
            notices.check_flags(NoticeFlags(text))


SAMPLE = re.compile(
    r'(estimator_pipeline_retrain_\w+)\{((?:\w+="(?:[^"\\\n]|\\[\\"n])*",?)+)\} (\S+)'
)


def test_prometheus_text():
    text = notices.to_prometheus(DONE, 'a "b"\\\n')
    names = set()
    for line in text.splitlines():
        if line.startswith("#"):
            names.add(line.split()[2])
            continue
        match = SAMPLE.fullmatch(line)
        assert match, line
        assert match[1] in names
        assert math.isfinite(float(match[3]))
    assert 'outcome="published"} 1.0' in text
    assert 'outcome="failed"} 0.0' in text
    assert 'model="candidate",metric="auc"} 0.7' in text
    assert "average_loss" not in text
    assert text.endswith("\n")


def test_the_file_of_metrics(tmp_path, capsys):
    path = tmp_path / "retrain.prom"
    notices.send(DONE, "/work", NoticeFlags(None, str(path)), Console(0))
    assert path.read_text().startswith("# HELP ")
    nowhere = str(tmp_path / "no" / "retrain.prom")
    notices.send(DONE, "/work", NoticeFlags(None, nowhere), Console(0))
    assert "--prometheus_file: cannot write" in capsys.readouterr().err


def test_ends_and_codes():
    finished = (End.PUBLISHED, End.NOT_BLESSED, End.TOO_FEW_ROWS, End.NOTHING_TO_DO)
    codes = [code_of(end) for end in finished]
    codes += [ExitCode.BAD_DATA, ExitCode.LOCKED, ExitCode.BUG]
    assert len(set(codes)) == len(codes)
    assert end_of(ExitCode.BAD_DATA) is End.BAD_DATA
    assert end_of(ExitCode.LOCKED) is End.LOCKED
    assert end_of(ExitCode.VERIFY_FAILED) is End.FAILED
