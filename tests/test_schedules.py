"""The schedules in deploy/: their commands are run, as far as a day that is missing."""

from __future__ import annotations

import configparser
import datetime
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import helpers_nights
import pytest
import yaml

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"


def cron() -> str:
    (line,) = [
        text
        for text in (DEPLOY / "retrain.cron").read_text().splitlines()
        if text and not text.startswith("#")
    ]
    *when, user, command = line.split(None, 6)
    assert len(when) == 5
    assert re.fullmatch("[a-z]+", user)
    assert not re.search(r"(?<!\\)%", command)
    return command.replace("\\%", "%")


def unit(name: str) -> configparser.ConfigParser:
    found = configparser.ConfigParser(interpolation=None)
    found.optionxform = str
    found.read(DEPLOY / name)
    return found


def systemd() -> str:
    start = unit("retrain.service")["Service"]["ExecStart"]
    match = re.fullmatch(r"/bin/sh -c '(.*)'", start)
    return match[1].replace("%%", "%")


def kubernetes() -> str:
    job = yaml.safe_load((DEPLOY / "retrain-cronjob.yaml").read_text())
    (container,) = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["/bin/sh", "-c"]
    (script,) = container["args"]
    return script


def airflow() -> str:
    text = (ROOT / "docs/retraining.md").read_text()
    (block,) = re.findall(r"```python\n(.+?)```", text, re.S)
    parts = re.search(r"bash_command=\((.+?)\n        \)", block, re.S)[1]
    command = "".join(re.findall(r'"(.*)"', parts))
    yesterday = datetime.date.today() - datetime.timedelta(days=1)
    return command.replace("{{ macros.ds_add(ds, -1) }}", yesterday.isoformat())


@pytest.mark.parametrize("command", [cron, systemd, kubernetes, airflow])
def test_the_command_of_a_schedule(tmp_path, command):
    """It asks for yesterday, whose file is not there: code 3, and a line of JSON."""
    known = ("max_steps", "verbosity")
    given = [
        flag
        for flag in helpers_nights.flags(tmp_path)
        if not flag.startswith(tuple(f"--{name}=" for name in known))
    ]
    (tmp_path / "nightly.flags").write_text("\n".join(given))
    python = tmp_path / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["/bin/sh", "-c", command().replace("/srv/flights", str(tmp_path))],
        cwd=tmp_path,
        env={**helpers_nights.environment(), "PATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 3, done.stderr
    log = tmp_path / "retrain.log"
    out = log.read_text() if log.exists() else done.stdout
    (line,) = [text for text in out.splitlines() if text.startswith("{")]
    outcome = json.loads(line)
    yesterday = datetime.date.today() - datetime.timedelta(days=1)
    assert outcome["run_date"] == yesterday.isoformat()
    assert "is missing" in outcome["message"]


def test_codes_that_are_no_failures():
    service = unit("retrain.service")["Service"]
    assert service["SuccessExitStatus"].split() == ["9", "10", "11"]
    assert unit("retrain.timer")["Timer"]["Persistent"] == "true"
    assert "9|10|11) exit 0" in kubernetes()
    job = yaml.safe_load((DEPLOY / "retrain-cronjob.yaml").read_text())
    assert job["spec"]["concurrencyPolicy"] == "Forbid"
