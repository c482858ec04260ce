"""Small days of data, and nights of `retrain` on them."""

from __future__ import annotations

import csv
import datetime
import json
import os
import random
import subprocess
import sys
from pathlib import Path

from pipeline import app

ROOT = Path(__file__).parents[1]
FIRST = datetime.date(2013, 6, 1)
HEADER = ("date", "city", "age", "bought")
FEATURES = """
label: {column: bought, classes: ["0", "1"]}
split: {by: window}
columns:
  date: {type: string, drift: 1}
  city: {type: string, drift: 0.5}
  age: {type: int, drift: 0.5}
  bought: {type: int, drift: 0.5}
features:
  city: {kind: vocabulary, embedding: 2}
  age: {kind: numeric}
"""


def date(number: int) -> str:
    """Returns a day, from 0."""
    return (FIRST + datetime.timedelta(days=number)).isoformat()


def rows(number: int, count: int = 60) -> list[list]:
    """Returns the rows of a day: who is old, or from Ulm, buys."""
    draw = random.Random(number)
    found = []
    for _ in range(count):
        city, age = draw.choice(["Ulm", "Köln", "Bonn"]), draw.randrange(10, 90)
        score = (age - 50) / 20 + (city == "Ulm") + draw.gauss(0, 0.6)
        found.append([date(number), city, age, int(score > 0)])
    return found


def deliver(root: Path, number: int, lines=None, header=HEADER) -> Path:
    """Writes a day's file."""
    path = root / "days" / f"{date(number)}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(".part")
    with open(aside, "w", newline="", encoding="utf-8") as f:
        csv.writer(f).writerows([header, *(rows(number) if lines is None else lines)])
    os.replace(aside, path)
    return path


def flags(root: Path, **changes) -> list[str]:
    """Returns the flags of a small, fast job of windows of six days."""
    features = root / "features.yaml"
    if not features.exists():
        features.write_text(FEATURES, encoding="utf-8")
    values = {
        "input": f"{root}/days/{{date}}.csv",
        "features": features,
        "work_dir": root / "work",
        "model": "keras_wide_deep",
        "hparams": "hidden_units=[8],learning_rate=0.02",
        "batch_size": 32,
        "max_steps": 40,
        "eval_steps": 40,
        "window_days": 6,
        "test_days": 2,
        "min_train_rows": 50,
        "min_test_rows": 50,
        "slice_min_rows": 10,
        "bless_metric": "auc",
        "bless_max_drop": 0.2,
        "bless_interval": "off",
        "bless_max_miscalibration": 0.5,
        "bless_samples": 20,
        "verify_rows": 20,
        "verbosity": -1,
        **changes,
    }
    return [f"--{name}={value}" for name, value in values.items()]


def night(root: Path, capsys, number: int, *more: str, **changes) -> tuple[int, dict]:
    """Runs a night in this process; returns its exit code and its line of JSON."""
    given = flags(root, run_date=date(number), **changes)
    code = app.main(["retrain", *given, *more])
    return int(code), json.loads(capsys.readouterr().out.splitlines()[-1])


def environment() -> dict[str, str]:
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def start(root: Path, number: int, *more: str, **changes) -> subprocess.Popen:
    """Starts a night as a process."""
    given = flags(root, run_date=date(number), **{"verbosity": 0, **changes})
    return subprocess.Popen(
        [sys.executable, "-m", "pipeline", "retrain", *given, *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )


def champion(root: Path) -> dict:
    path = root / "work/serving/keras_wide_deep/champion.json"
    return json.loads(path.read_text()) if path.exists() else {}
