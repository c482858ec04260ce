"""Checkpoints as files, compared with what TensorFlow makes of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline import checkpoints
from pipeline.compat import tf
from pipeline.types import UserError

_v1 = tf.compat.v1


def _save(directory: Path, *steps: int, keep: int = 10) -> None:
    with tf.Graph().as_default(), _v1.Session() as session:
        variable = _v1.get_variable("v", [4])
        session.run(variable.initializer)
        saver = _v1.train.Saver(max_to_keep=keep, save_relative_paths=True)
        for step in steps:
            saver.save(session, str(directory / "model.ckpt"), global_step=step)


@pytest.mark.parametrize("name", ["plain", 'with "quotes"', "größe 北京"])
def test_listed(tmp_path, name):
    directory = tmp_path / name
    directory.mkdir()
    assert checkpoints.listed(str(directory)) == []
    _save(directory, 3, 20, 100)
    found = checkpoints.listed(str(directory))
    assert [c.step for c in found] == [3, 20, 100]
    assert found[-1].path == tf.train.latest_checkpoint(str(directory))
    checkpoints.write_state(str(directory), ["model.ckpt-3", "model.ckpt-20"])
    assert [c.step for c in checkpoints.listed(str(directory))] == [3, 20]
    assert tf.train.latest_checkpoint(str(directory)).endswith("model.ckpt-20")


def test_an_earlier_one_is_the_newest_where_the_state_says_so(tmp_path):
    _save(tmp_path, 1, 2)
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-1"\n')
    assert [c.step for c in checkpoints.listed(str(tmp_path))] == [1]


def test_repair(tmp_path):
    assert checkpoints.repair(str(tmp_path)) is None
    _save(tmp_path, 1, 2)
    assert checkpoints.repair(str(tmp_path)) is None
    (tmp_path / "model.ckpt-2.index").unlink()
    assert tf.train.latest_checkpoint(str(tmp_path)) is None
    assert checkpoints.repair(str(tmp_path)).step == 1
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith("model.ckpt-1")
    (tmp_path / "model.ckpt-1.index").unlink()
    assert checkpoints.repair(str(tmp_path)) is None


def test_limit(tmp_path):
    _save(tmp_path, 1, 2, 3)
    checkpoints.limit(str(tmp_path), 3)
    assert len(checkpoints.listed(str(tmp_path))) == 3
    checkpoints.limit(str(tmp_path), 1)
    assert [c.step for c in checkpoints.listed(str(tmp_path))] == [3]
    assert not list(tmp_path.glob("model.ckpt-[12].*"))
    assert tf.train.load_variable(str(tmp_path), "v").shape == (4,)


def test_digest_is_of_the_content(tmp_path):
    _save(tmp_path, 1)
    first = checkpoints.digest(str(tmp_path / "model.ckpt-1"))
    (tmp_path / "model.ckpt-1.meta").unlink()
    assert checkpoints.digest(str(tmp_path / "model.ckpt-1")) == first
    _save(tmp_path, 1)
    assert checkpoints.digest(str(tmp_path / "model.ckpt-1")) != first


def test_pinned_files_outlive_the_checkpoint(tmp_path):
    _save(tmp_path, 1)
    path = str(tmp_path / "model.ckpt-1")
    value = tf.train.load_variable(path, "v")
    with checkpoints.pinned(lambda: path, str(tmp_path)) as pinned:
        for part in checkpoints.parts(path):
            Path(part).unlink()
        assert (tf.train.load_variable(pinned, "v") == value).all()
        assert checkpoints.unpinned(pinned) == path
    assert checkpoints.unpinned(path) == path


def test_another_one_is_asked_for_where_one_disappears(tmp_path):
    _save(tmp_path, 1, 2)
    asked = [str(tmp_path / "model.ckpt-2"), str(tmp_path / "model.ckpt-1")]
    for part in checkpoints.parts(asked[1]):
        Path(part).unlink()
    with checkpoints.pinned(asked.pop, str(tmp_path)) as pinned:
        assert pinned.endswith("model.ckpt-2")
    with (
        pytest.raises(UserError, match="files of its checkpoint are missing"),
        checkpoints.pinned(lambda: str(tmp_path / "model.ckpt-9"), str(tmp_path)),
    ):
        pass
    assert not list(tmp_path.glob(".pinned*"))
