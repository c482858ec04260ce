"""What befalls Beam jobs in production: bad rows, kills, and more data than memory."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from pipeline.dataset import open_dataset
from pipeline.types import ExitCode, UserError

ROOT = Path(__file__).parents[3]
_FEATURES = """
label: {column: y, classes: ["0", "1"]}
columns:
  x: {type: float, default: 0.0}
  n: {type: int}
  c: {type: string}
  y: {type: int}
features:
  x: {kind: numeric}
  n: {kind: bucketized, quantiles: 10}
  c: {kind: vocabulary}
"""
_MIB = 1 << 20


def _write(directory: Path, rows: int, bad_row: int | None = None) -> Path:
    lines = [f"{i / 8},{i},w{i % 13},{i % 2}" for i in range(rows)]
    if bad_row is not None:
        lines[bad_row] = "1.0,many,w1,0"
    path = directory / "a.csv"
    path.write_text("x,n,c,y\n" + "\n".join(lines) + "\n")
    (directory / "features.yaml").write_text(_FEATURES)
    return path


def _command(directory: Path, *options: str) -> list[str]:
    return [
        sys.executable,
        "-m",
        "pipeline",
        "preprocess",
        f"--input={directory}/*.csv",
        f"--features={directory}/features.yaml",
        f"--dataset_dir={directory}/dataset",
        *options,
    ]


def _preprocess(directory: Path, *options: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        _command(directory, *options),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
    )


def _train(directory: Path) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "pipeline", "train", "--max_steps=1"]
    command += [f"--dataset_dir={directory}/dataset", f"--model_dir={directory}/model"]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=600
    )


def _digests(directory: Path) -> dict[str, str] | None:
    """Digests of a dataset's files but for its manifest, which holds times."""
    dataset = directory / "dataset"
    if not dataset.exists():
        return None
    assert open_dataset(str(dataset)).find_damaged() is None
    return {
        str(path.relative_to(dataset)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(dataset.rglob("*"))
        if path.is_file() and path.name != "manifest.json"
    }


def _kill_after(directory: Path, seconds: float) -> None:
    job = subprocess.Popen(
        _command(directory), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    # Importing takes as long as all the rest; from here on it writes.
    job.stderr.readline()
    time.sleep(seconds)
    job.send_signal(signal.SIGKILL)
    job.wait(timeout=60)
    job.stderr.close()


@pytest.mark.slow
def test_a_bad_row_leaves_nothing_or_the_older_dataset(tmp_path):
    """BEAM-2 (a) and (c): one bad row in the middle."""
    _write(tmp_path, 3000, bad_row=1500)
    failed = _preprocess(tmp_path, "--max_reject_fraction=0")
    assert failed.returncode == ExitCode.BAD_DATA
    assert "column n" in failed.stderr.splitlines()[-1]
    refused = _train(tmp_path)
    assert refused.returncode == ExitCode.USER_ERROR
    assert "run preprocess" in refused.stderr
    _write(tmp_path, 3000)
    assert _preprocess(tmp_path).returncode == ExitCode.OK
    complete = _digests(tmp_path)
    _write(tmp_path, 4000, bad_row=1500)
    failed = _preprocess(tmp_path, "--max_reject_fraction=0")
    assert failed.returncode == ExitCode.BAD_DATA
    assert _digests(tmp_path) == complete


@pytest.mark.slow
def test_a_kill_half_way_leaves_nothing_that_training_would_read(tmp_path):
    """BEAM-2 (b) and (c): kill -9 half-way, without and with an older dataset."""
    _write(tmp_path, 200_000)
    _kill_after(tmp_path, 0.7)
    assert _digests(tmp_path) is None
    refused = _train(tmp_path)
    assert refused.returncode == ExitCode.USER_ERROR
    assert "run preprocess" in refused.stderr
    assert _preprocess(tmp_path).returncode == ExitCode.OK
    complete = _digests(tmp_path)
    _write(tmp_path, 250_000)
    _kill_after(tmp_path, 0.7)
    assert _digests(tmp_path) == complete
    assert _preprocess(tmp_path).returncode == ExitCode.OK
    rows = open_dataset(str(tmp_path / "dataset")).manifest.results["rows_written"]
    assert sum(rows.values()) == 250_000
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"a.csv", "features.yaml", "dataset", ".dataset.lock"}


@pytest.mark.slow
def test_kills_at_any_moment_leave_the_old_dataset_whole(tmp_path):
    """BEAM-2: twenty random moments; then the rerun equals an undisturbed run.

    The runs are forks of one process that has imported everything, which takes most
    of a command's time; so the kills fall on the work itself.
    """
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    done = subprocess.run(
        [sys.executable, "-c", _KILLS, str(tmp_path), str(seed)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, f"seed {seed}: {done.stdout}\n{done.stderr}"
    assert done.stdout.splitlines()[-1] == "20 kills"


_KILLS = """
import os, random, signal, sys, time
from pathlib import Path
sys.path.insert(0, "tests/pipeline/preprocess")
import test_trials_beam as trials
from pipeline.console import Console
from pipeline.flags.data import DataFlags
from pipeline.preprocess import beam_job, schema, shards, stage

directory, draw = Path(sys.argv[1]), random.Random(int(sys.argv[2]))

def start(name):
    child = os.fork()
    if child:
        return child
    # Libraries' threads are not in a fork, so it is made before TensorFlow works.
    settings = DataFlags(str(directory / "a.csv"), str(directory / "features.yaml"),
                         None, 0.01, 64, ())
    stage.run(str(directory / name), stage.plan(settings), Console(-1))
    os._exit(0)

def finish(child):
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

trials._write(directory, 20_000)
finish(start("dataset"))
old = trials._digests(directory)
trials._write(directory, 21_000)
began = time.monotonic()
finish(start("clean/dataset"))
length = time.monotonic() - began
clean = trials._digests(directory / "clean")
killed = 0
for number in range(200):
    child = start("dataset")
    time.sleep(draw.uniform(0, length))
    os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    found = trials._digests(directory)
    assert found in (old, clean, None), number
    killed += code == -signal.SIGKILL
    if killed == 20:
        break
    if found != old:
        # It was done or nearly so: the old dataset again, for the next kill.
        trials._write(directory, 20_000)
        finish(start("dataset"))
        trials._write(directory, 21_000)
finish(start("dataset"))
assert trials._digests(directory) == clean
print(f"{killed} kills")
"""


def _measured(directory: Path, files: int, rows: int) -> tuple[float, float]:
    """Seconds and peak MiB of preprocess over files of so many rows each."""
    directory.mkdir()
    draw = np.random.default_rng(1)
    names = [f"c{i}" for i in range(10)]
    for number in range(files):
        values = draw.integers(0, 100_000, (10, rows))
        pa.csv.write_csv(
            pa.table(dict(zip(names, values, strict=True))), directory / f"{number}.csv"
        )
    columns = "\n".join(f"  {name}: {{type: int}}" for name in names)
    features = "\n".join(f"  {name}: {{kind: numeric}}" for name in names)
    (directory / "features.yaml").write_text(
        f"columns:\n{columns}\nfeatures:\n{features}\n"
    )
    began = time.monotonic()
    job = subprocess.Popen(
        _command(directory),
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(job.pid, 0)
    job.returncode = os.waitstatus_to_exitcode(status)
    assert job.returncode == 0
    found = open_dataset(str(directory / "dataset")).manifest
    assert sum(found.results["rows_written"].values()) == files * rows
    return time.monotonic() - began, usage.ru_maxrss * 1024 / _MIB


@pytest.mark.slow
def test_a_million_rows_in_bounded_memory_and_about_linear_time(tmp_path):
    """BEAM-3: one million rows of ten columns, then twice the rows."""
    seconds, peak = _measured(tmp_path / "one", 2, 500_000)
    twice_seconds, twice_peak = _measured(tmp_path / "two", 4, 500_000)
    print(f"{seconds:.1f} s, {peak:.0f} MiB; {twice_seconds:.1f} s, {twice_peak:.0f}")
    assert peak < 1500 and twice_peak < 1500
    assert twice_peak < 1.2 * peak
    assert twice_seconds < 2.5 * seconds


def test_an_unfinished_dataset_is_refused(tmp_path):
    (tmp_path / "dataset").mkdir()
    (tmp_path / "dataset" / "train-00000-of-00001.tfrecord").touch()
    with pytest.raises(UserError, match="no finished dataset"):
        open_dataset(str(tmp_path / "dataset"))


@pytest.mark.slow
def test_the_default_runner_needs_no_network(tmp_path):
    """BEAM: the DirectRunner would look for an engine to download."""
    isolate = ["unshare", "--net", "--map-root-user"]
    if subprocess.run([*isolate, "true"], capture_output=True).returncode:
        pytest.skip("this machine does not let processes have no network")
    _write(tmp_path, 100)
    done = subprocess.run(
        [*isolate, *_command(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
