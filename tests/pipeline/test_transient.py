"""Files that fail for a moment; the faults are real ones of the kernel's.

Reading and writing the first byte of /proc/self/mem is an input/output error, and so it is
for a link to it, which can be replaced.
"""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import helpers_jobs
import pytest

from pipeline import checkpoints, files, transient
from pipeline.compat import tf
from pipeline.console import Console
from pipeline.dataset import Dataset, open_dataset
from pipeline.types import ExitCode, UserError

_FAULTY = "/proc/self/mem"


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch):
    monkeypatch.setattr(transient, "PAUSES", (0.01, 0.02))


class _Mended:
    """Replaces a faulty link by a file once the fault was met so many times.

    It is done in place of a pause, since a thread cannot know how often that was.
    """

    def __init__(self, path: Path, content: str, after: int, monkeypatch):
        path.symlink_to(_FAULTY)
        self._path, self._content, self._after = path, content, after
        self.pauses = []
        monkeypatch.setattr(transient, "pause", self._pause)

    def _pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        if len(self.pauses) == self._after:
            self._path.unlink()
            self._path.write_text(self._content)


@pytest.mark.parametrize("after", [1, 2])
@pytest.mark.parametrize(
    ("read", "content", "expected"),
    [
        (files.read_json, '{"a": 1}', {"a": 1}),
        (files.read_text, "a", "a"),
        (
            files.digest_file,
            "",
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        ),
        (
            lambda path: len(checkpoints.read_state(os.path.dirname(path))[0]),
            'model_checkpoint_path: "model.ckpt-1"',
            1,
        ),
    ],
    ids=["json", "text", "digest", "list of checkpoints"],
)
def test_reading_again(tmp_path, monkeypatch, capsys, after, read, content, expected):
    path = tmp_path / checkpoints.STATE_FILE
    mended = _Mended(path, content, after, monkeypatch)
    assert read(str(path)) == expected
    assert len(mended.pauses) == after
    assert sorted(mended.pauses) == mended.pauses
    said = capsys.readouterr().err
    assert said.startswith(f"warning: {path}: Input/output error; trying again")
    assert said.count("\n") == 1


def test_writing_again(tmp_path, capsys):
    """The first try takes the faulty file away, as it does with what it left."""
    path = tmp_path / "a.json"
    (tmp_path / f"a.json.tmp-{os.getpid()}").symlink_to(_FAULTY)
    files.write_json(str(path), {"a": 1})
    assert files.read_json(str(path)) == {"a": 1}
    assert os.listdir(tmp_path) == ["a.json"]
    assert "Input/output error; trying again" in capsys.readouterr().err


def test_a_fault_that_stays_is_one_line_in_bounded_time(tmp_path):
    path = tmp_path / checkpoints.STATE_FILE
    path.symlink_to(_FAULTY)
    for read in (
        lambda: files.read_json(str(path)),
        # Not as if there were no checkpoint: training would begin anew.
        lambda: checkpoints.read_state(str(tmp_path)),
    ):
        with pytest.raises(UserError) as caught:
            read()
        assert str(caught.value) == f"cannot read {path}: Input/output error"


def test_other_errors_are_not_waited_for(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(transient, "pause", lambda seconds: pytest.fail("waits"))
    with pytest.raises(UserError, match="No such file"):
        files.read_json(str(tmp_path / "none"))
    with pytest.raises(UserError, match="Not a directory"):
        (tmp_path / "file").write_text("")
        files.write_json(str(tmp_path / "file" / "a"), 1)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("number", "is_found"),
    [(errno.EIO, True), (errno.ESTALE, True), (errno.ENOENT, False)],
)
def test_tensorflow_says_it_in_words(number, is_found):
    said = f"/a b/c.index; {os.strerror(number)}\n\t [[{{{{node save/SaveV2}}}}]]"
    found = transient.in_message(said)
    assert (found == f"b/c.index; {os.strerror(number)}") is is_found
    assert transient.in_message(f"recvmsg:{os.strerror(number)}") is None


@pytest.fixture
def faulty(untrained_job, tmp_path) -> tuple[Dataset, Path]:
    """Returns an open dataset whose records can no longer be read, and their file."""
    directory = tmp_path / "dataset"
    shutil.copytree(untrained_job.dataset_dir, directory)
    dataset = open_dataset(str(directory))
    (record,) = directory.glob("train*.tfrecord")
    record.rename(tmp_path / "whole")
    record.symlink_to(_FAULTY)
    return dataset, record


def _train(directory: Path, dataset: Dataset) -> None:
    settings = helpers_jobs.training_flags("wide_deep", max_steps=8, checkpoint_steps=4)
    helpers_jobs.run_training(directory, settings, dataset, Console())


def test_training_goes_on_when_records_can_be_read_again(
    untrained_job, faulty, tmp_path, monkeypatch, capsys
):
    dataset, record = faulty
    monkeypatch.setattr(
        transient, "pause", lambda seconds: os.replace(tmp_path / "whole", record)
    )
    _train(tmp_path / "model", dataset)
    said = capsys.readouterr().err
    assert f"train: {record}; Input/output error; goes on from step 0 in" in said
    assert said.count("Input/output error") == 1
    _train(tmp_path / "undisturbed", untrained_job.dataset())
    found, expected = (
        tf.train.load_checkpoint(str(tmp_path / name))
        for name in ("model", "undisturbed")
    )
    for name in expected.get_variable_to_shape_map():
        assert found.get_tensor(name) == pytest.approx(
            expected.get_tensor(name), abs=1e-6
        ), name


def test_records_that_stay_unreadable_end_it_with_a_line(faulty, tmp_path, capsys):
    dataset, record = faulty
    with pytest.raises(UserError) as caught:
        _train(tmp_path / "model", dataset)
    assert str(caught.value).startswith(f"{record}; Input/output error; if it is a")
    assert caught.value.exit_code is ExitCode.TRY_AGAIN
    assert capsys.readouterr().err.count("goes on from step") == len(transient.PAUSES)
