"""tune as a program: trials, a kill in the midst of one, pruning, mistakes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import helpers_training
import pytest

from pipeline import app

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory) -> Path:
    found = helpers_training.small_dataset(tmp_path_factory.mktemp("data"))
    return Path(found.directory)


def _arguments(work_dir: Path, dataset: Path, *more: str) -> list[str]:
    return [
        "tune",
        f"--work_dir={work_dir}",
        f"--dataset_dir={dataset}",
        "--hparams=hidden_units=[4]",
        "--max_steps=8",
        "--batch_size=16",
        "--eval_steps=4",
        *more,
    ]


def _start(arguments: list[str]) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "pipeline", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ([], "--search is needed"),
        (["--search=dropot=0..1"], "dropot"),
        (["--search=dropout=0.1|0.2", "--search_method=sloth"], "search_method"),
        (["--search=dropout=0.0..0.2", "--search_method=grid"], "is a range"),
        (["--search=hidden_units=[4]|[8]"], "twice"),
        (["--search=batch_size=a|b"], "batch_size=a is no whole number"),
    ],
)
def test_mistakes_are_one_line(tmp_path, dataset, capsys, flags, said):
    assert app.main(_arguments(tmp_path, dataset, *flags)) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and said in error
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_goes_on_after_a_kill(tmp_path, dataset):
    arguments = _arguments(
        tmp_path, dataset, "--search=learning_rate=0.001..0.1:log", "--trials=2"
    )
    process = _start(arguments)
    try:
        # The second trial is under way when the first one has ended.
        for line in process.stderr:
            if "trial 2 of 2" in line:
                break
    finally:
        process.kill()
        process.communicate(timeout=60)
    root = tmp_path / "wide_deep/tune"
    first = (root / "trial-0000/trial.json").read_text()
    second = json.loads((root / "trial-0001/trial.json").read_text())
    assert second["state"] == "running"

    again = _start(arguments)
    out, err = again.communicate(timeout=300)
    assert again.returncode == 0, err
    assert "trial 1 of 2" not in err and "trial 2 complete: loss " in err
    assert (root / "trial-0000/trial.json").read_text() == first
    ended = json.loads((root / "trial-0001/trial.json").read_text())
    assert ended == {**second, "state": "complete"}
    assert len(re.findall(r"^trial ", out, re.M)) == 2
    assert re.search(r"--hparams=hidden_units=\[4\],learning_rate=0\.0", out)
    runs = {p.parent.name for p in root.rglob("events.*hparams-*")}
    assert runs == {"model"}

    other = _start([*arguments, "--seed=5"])
    _, err = other.communicate(timeout=60)
    assert other.returncode == 2 and "another search (seed changed)" in err


@pytest.mark.slow
def test_a_hopeless_trial_is_ended(tmp_path, dataset):
    root = tmp_path / "t"
    for number, loss in enumerate([1e-9] * 4):
        model = root / f"trial-{number:04}/model"
        model.mkdir(parents=True)
        (model.parent / "trial.json").write_text(
            json.dumps({"parameters": {"dropout": "0"}, "state": "complete"})
        )
        there = [
            {"global_step": step, "metrics": {"loss": loss}} for step in (1, 10**7)
        ]
        (model / "evaluations.json").write_text(json.dumps(there))
    process = _start(
        _arguments(
            tmp_path,
            dataset,
            "--search=dropout=0.0..0.2",
            "--trials=5",
            "--max_steps=10000000",
            f"--tune_dir={root}",
        )
    )
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert "trial 5 pruned: loss " in err and "pruned" in out
