"""The export stage: versions appear whole and verified, or not at all."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import helpers_jobs
import pytest

from export import verify, versions
from pipeline import best, estimators, export_model, metric_order
from pipeline import manifest as manifests
from pipeline.compat import tf
from pipeline.types import ExitCode, UserError

ROOT = Path(__file__).parents[2]
MODEL = "keras_wide_deep"


@pytest.fixture
def job(small_job, tmp_path):
    """A copy of the dataset and a model that tests may train on and damage."""
    shutil.copytree(small_job.dataset_dir, tmp_path / "dataset")
    job = helpers_jobs.Job(tmp_path, small_job.input)
    shutil.copytree(small_job.model_dir(MODEL), job.model_dir(MODEL))
    return job


@pytest.fixture
def verified(monkeypatch):
    """Replaces verification, which has its own tests and takes seconds."""
    calls = []

    def passes(directory, *arguments):
        calls.append(directory)
        return verify.Verification(7, ("serving_default", "predict"), 0.0)

    monkeypatch.setattr(export_model.verify, "verify", passes)
    return calls


def _export(job, **settings) -> export_model.ExportResult:
    return export_model.run(
        str(job.export_dir(MODEL)),
        job.model(MODEL),
        job.dataset(),
        helpers_jobs.serving_flags(**settings),
        helpers_jobs.QUIET,
    )


def _there(job) -> list[str]:
    return sorted(os.listdir(job.export_dir(MODEL)))


def _numbers(job) -> list[int]:
    return versions.versions(str(job.export_dir(MODEL)))


def _set_step(job, step: int) -> None:
    """Makes another checkpoint of the model directory the newest."""
    text = f'model_checkpoint_path: "model.ckpt-{step}"\n'
    (job.model_dir(MODEL) / "checkpoint").write_text(text)


def _step(result: export_model.ExportResult) -> int:
    return result.manifest.results["global_step"]


# --- versions --------------------------------------------------------------------


def test_a_version_holds_what_servers_and_predict_need(small_job):
    directory = versions.find(str(small_job.export_dir(MODEL)), None)
    assert sorted(os.listdir(directory)) == [
        "assets.extra",
        "manifest.json",
        "saved_model.pb",
        "variables",
    ]
    manifest = manifests.read(directory)
    assert manifest.stage == "export"
    assert manifest.results["global_step"] == 4
    assert manifest.results["signatures"] == [
        "classify",
        "predict",
        "regress",
        "serving_default",
        "transform",
    ]


def test_nothing_is_done_again(job, verified):
    first = _export(job)
    before = _there(job)
    assert _export(job).directory == first.directory
    assert _there(job) == before and len(verified) == 1


@pytest.mark.parametrize("changes", [{"eval_split": "eval"}, {"verify_rows": 5}])
def test_another_verification_is_another_version(job, verified, changes):
    first = _export(job)
    assert int(_export(job, **changes).directory.rpartition("/")[2]) > int(
        first.directory.rpartition("/")[2]
    )


def test_a_new_checkpoint_is_a_higher_version_even_if_the_clock_went_back(
    job, verified, monkeypatch
):
    monkeypatch.setattr(versions.time, "time", lambda: 1000.0)
    _set_step(job, 0)
    first = _export(job)
    _set_step(job, 4)
    monkeypatch.setattr(versions.time, "time", lambda: 900.0)
    second = _export(job)
    assert _numbers(job) == [1000, 1001]
    assert second.directory == str(job.export_dir(MODEL) / "1001")
    assert (_step(first), _step(second)) == (0, 4)


def test_an_older_version_is_not_reused_as_servers_take_the_newest(job, verified):
    first = _export(job)
    _set_step(job, 0)
    _export(job)
    _set_step(job, 4)
    third = _export(job)
    assert _step(third) == _step(first) == 4
    assert len(_numbers(job)) == 3
    assert third.directory == versions.find(str(job.export_dir(MODEL)), None)


@pytest.mark.parametrize("name", ["saved_model.pb", "variables/variables.index"])
@pytest.mark.parametrize("damage", ["remove", "truncate"])
def test_a_damaged_version_is_not_reused(job, verified, name, damage):
    first = _export(job)
    path = Path(first.directory, name)
    if damage == "remove":
        path.unlink()
    else:
        os.truncate(path, 10)
    assert _export(job).directory != first.directory


def test_a_version_with_a_damaged_manifest_is_not_reused(job, verified):
    first = _export(job)
    Path(first.directory, manifests.FILE_NAME).write_text("{")
    assert _export(job).directory != first.directory


def test_only_the_newest_are_kept(job, verified):
    for rows in (1, 2, 3):
        _export(job, verify_rows=rows)
    newest = _numbers(job)[1:]
    _export(job, verify_rows=4, keep_versions=3)
    assert len(_numbers(job)) == 3 and _numbers(job)[:2] == newest
    _export(job, verify_rows=4, keep_versions=1)
    assert len(_numbers(job)) == 1


def test_the_version_of_the_best_checkpoint_stays(job, verified):
    model = job.model(MODEL)
    order = metric_order.MetricOrder("loss", "min")
    checkpoint = estimators.latest_checkpoint(model)[0]
    best.keep(model, checkpoint, {"loss": 0.5, "global_step": 4}, order)
    of_best = [_export(job, verify_rows=rows) and _numbers(job)[-1] for rows in (1, 2)]
    _set_step(job, 0)
    for rows in (3, 4):
        _export(job, verify_rows=rows, keep_versions=1)
    assert len(_numbers(job)) == 2 and _numbers(job)[0] == of_best[1]


def test_a_version_that_is_used_stays(job, verified):
    first = _export(job, verify_rows=1)
    hold = versions.Hold(first.directory)
    _export(job, verify_rows=2, keep_versions=1)
    assert len(_numbers(job)) == 2 and os.path.isdir(first.directory)
    hold.release()
    _export(job, verify_rows=3, keep_versions=1)
    assert len(_numbers(job)) == 1


def test_what_others_put_there_stays(job, verified):
    export_dir = job.export_dir(MODEL)
    for name in ("1234567890/variables", "12", "temp-99", "notes", ".hidden"):
        (export_dir / name).mkdir(parents=True)
    (export_dir / "1234567890" / "saved_model.pb").write_text("of another tool")
    (export_dir / "12" / manifests.FILE_NAME).write_text("[]")
    (export_dir / "README").write_text("mine")
    before = _there(job)
    for rows in (1, 2):
        _export(job, verify_rows=rows, keep_versions=1)
    left = [name for name in _there(job) if name not in before]
    assert set(before) <= set(_there(job))
    assert len(left) == 2 and ".versions.lock" in left


def test_the_place_above_may_be_read_only(job, verified):
    export_dir = job.export_dir(MODEL)
    _export(job)
    assert sorted(os.listdir(export_dir.parent)) == ["export", "model"]


def test_an_export_directory_that_cannot_be(job, verified):
    (job.root / "file").write_text("")
    with pytest.raises(UserError, match="cannot write in .*/file/export"):
        export_model.run(
            str(job.root / "file" / "export"),
            job.model(MODEL),
            job.dataset(),
            helpers_jobs.serving_flags(),
            helpers_jobs.QUIET,
        )


# --- failures --------------------------------------------------------------------


def test_a_failed_verification_leaves_everything_as_it_was(job, verified, monkeypatch):
    first = _export(job, keep_versions=1)
    before = _there(job)
    _set_step(job, 0)

    def fails(*arguments):
        raise UserError("verify: no", ExitCode.VERIFY_FAILED)

    monkeypatch.setattr(export_model.verify, "verify", fails)
    with pytest.raises(UserError, match="^verify: no$") as caught:
        _export(job, keep_versions=1)
    assert caught.value.exit_code is ExitCode.VERIFY_FAILED
    assert _there(job) == before
    tf.saved_model.load(first.directory)


def _one_line(action, *arguments, **keywords) -> UserError:
    with pytest.raises(UserError) as caught:
        action(*arguments, **keywords)
    assert "\n" not in str(caught.value)
    return caught.value


def _checkpoint_file(job, suffix: str) -> Path:
    (path,) = job.model_dir(MODEL).glob(f"model.ckpt-4.{suffix}")
    return path


@pytest.mark.parametrize("suffix", ["index", "data-*"])
@pytest.mark.parametrize("size", [None, 0, 100])
def test_a_damaged_checkpoint_is_one_line(job, verified, suffix, size):
    path = _checkpoint_file(job, suffix)
    if size is None:
        path.unlink()
    else:
        os.truncate(path, size)
    error = _one_line(_export, job)
    assert str(job.model_dir(MODEL)) in str(error)
    assert not job.export_dir(MODEL).exists() or _numbers(job) == []


def test_a_changed_checkpoint_is_one_line(job, verified):
    path = _checkpoint_file(job, "data-*")
    content = bytearray(path.read_bytes())
    # The model's variables come last; those of the optimizer are not exported.
    content[-2] ^= 0xFF
    path.write_bytes(content)
    error = _one_line(_export, job)
    assert "model.ckpt-4 is damaged" in str(error)
    assert error.exit_code is ExitCode.BAD_DATA
    assert _numbers(job) == []


@pytest.mark.parametrize("content", ["", "model_checkpoint_pa", "\x00\x01", "x: 1"])
def test_a_damaged_checkpoint_list_is_one_line(job, verified, content):
    (job.model_dir(MODEL) / "checkpoint").write_text(content)
    assert "holds no checkpoint" in str(_one_line(_export, job))


def test_a_model_without_checkpoint_list_is_one_line(job, verified):
    (job.model_dir(MODEL) / "checkpoint").unlink()
    assert "holds no trained model" in str(_one_line(_export, job))


def test_damaged_records_are_named(job):
    (shard,) = job.dataset_dir.glob("test-*.tfrecord")
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 0xFF
    shard.write_bytes(content)
    error = _one_line(_export, job)
    assert f"{shard} is damaged" in str(error)
    assert error.exit_code is ExitCode.BAD_DATA
    assert _numbers(job) == []


def test_an_export_in_use_is_refused(job, verified):
    export_dir = job.export_dir(MODEL)
    with export_model.files.locked(str(export_dir / "versions")):
        error = _one_line(_export, job)
    assert error.exit_code is ExitCode.LOCKED


# --- kills and readers -----------------------------------------------------------

# An export that says when its version is written but not yet verified, and waits.
_WAITING_EXPORT = """
import sys
sys.path[:0] = sys.argv[1:3]
import helpers_jobs, pathlib
from pipeline import best, estimators, export_model, metric_order

def wait(directory, *arguments):
    print(directory, flush=True)
    sys.stdin.read()

export_model.verify.verify = wait
job = helpers_jobs.Job(pathlib.Path(sys.argv[3]), None)
helpers_jobs.export(job, sys.argv[4])
"""


def test_a_killed_export_leaves_no_version_and_is_swept(job, verified):
    process = subprocess.Popen(
        [
            *(sys.executable, "-c", _WAITING_EXPORT),
            *(str(ROOT), str(ROOT / "tests"), str(job.root), MODEL),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        aside = process.stdout.readline().strip()
        assert Path(aside, "saved_model.pb").exists()
        error = _one_line(_export, job)
        assert error.exit_code is ExitCode.LOCKED
        assert f"process {process.pid} " in str(error)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert Path(aside).parent == job.export_dir(MODEL)
    assert Path(aside).name in _there(job)
    assert _numbers(job) == []
    result = _export(job)
    assert _there(job) == [".versions.lock", Path(result.directory).name]
    tf.saved_model.load(result.directory)


class _Server(threading.Thread):
    """Loads every version at the moment it appears, as a server does."""

    def __init__(self, export_dir: Path):
        super().__init__(daemon=True)
        self._export_dir = export_dir
        self._stopped = threading.Event()
        self.loaded: list[str] = []
        self.failures: list[str] = []
        self.polls = 0

    def run(self):
        seen = set()
        while not self._stopped.is_set():
            self.polls += 1
            names = os.listdir(self._export_dir)
            for name in filter(str.isdigit, set(names) - seen):
                seen.add(name)
                try:
                    tf.saved_model.load(str(self._export_dir / name))
                    self.loaded.append(name)
                except Exception as error:
                    self.failures.append(f"{name}: {error}")

    def stop(self):
        self._stopped.set()
        self.join()


def test_a_server_only_ever_sees_whole_versions(job, verified):
    job.export_dir(MODEL).mkdir(parents=True)
    server = _Server(job.export_dir(MODEL))
    server.start()
    for rows in (1, 2, 3):
        _export(job, verify_rows=rows, keep_versions=3)
    names = [str(number) for number in _numbers(job)]
    while not set(names) <= {*server.loaded} and not server.failures:
        server.join(0.01)
    server.stop()
    assert server.failures == []
    assert sorted(server.loaded) == names and len(names) == 3
    assert server.polls > 100


def test_a_server_sees_no_half_removed_version(job, verified, monkeypatch):
    """Versions that are removed get a hidden name before their files go."""
    _export(job, verify_rows=1)
    (old,) = _numbers(job)
    seen = []
    rmtree = shutil.rmtree

    def spy(path, *arguments, **keywords):
        seen.append((os.path.basename(path), old in _numbers(job)))
        rmtree(path, *arguments, **keywords)

    monkeypatch.setattr(versions.shutil, "rmtree", spy)
    _export(job, verify_rows=2, keep_versions=1)
    assert (f".{old}.old-{os.getpid()}", False) in seen
    assert all(name.startswith(".") for name, _ in seen)


def test_the_manifest_is_plain_json(small_job):
    directory = versions.find(str(small_job.export_dir(MODEL)), None)
    value = json.loads(Path(directory, manifests.FILE_NAME).read_text())
    assert value["results"]["files"]["saved_model.pb"] > 1000
    assert value["configuration"] == {
        "split": "test",
        "verify_rows": 0,
        "forward_features": [],
        "formats": [],
        "embeddings": False,
    }
