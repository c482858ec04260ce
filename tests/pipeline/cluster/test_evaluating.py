"""The evaluator: each newest checkpoint, the last one, and those that go meanwhile."""

from __future__ import annotations

import pytest

from pipeline.cluster import evaluating
from pipeline.compat import tf


def _save(directory, step: int) -> str:
    path = directory / f"model.ckpt-{step}"
    (directory / f"model.ckpt-{step}.index").write_text("")
    state = f'model_checkpoint_path: "{path}"\n'
    (directory / "checkpoint").write_text(state)
    return str(path)


def test_the_last_checkpoint_is_evaluated_once_and_as_the_last(tmp_path):
    seen = []
    last = _save(tmp_path, 1)
    over = iter([False, False, True])

    def is_over() -> bool:
        nonlocal last
        now = next(over, True)
        if now and len(seen) == 1:
            last = _save(tmp_path, 2)
        return now

    evaluating.follow(str(tmp_path), lambda *found: seen.append(found), is_over)
    assert seen == [(str(tmp_path / "model.ckpt-1"), False), (last, True)]


@pytest.mark.parametrize(
    "error", [ValueError("gone"), tf.errors.NotFoundError(None, None, "gone")]
)
def test_a_checkpoint_that_goes_meanwhile_is_passed_over(tmp_path, error):
    seen = []
    _save(tmp_path, 1)

    def evaluate(path, last):
        del last
        seen.append(path)
        if path.endswith("-1"):
            (tmp_path / "model.ckpt-1.index").unlink()
            _save(tmp_path, 2)
            raise error

    evaluating.follow(str(tmp_path), evaluate, lambda: len(seen) > 1)
    assert [path[-1] for path in seen] == ["1", "2"]


def test_another_failure_is_not_passed_over(tmp_path):
    _save(tmp_path, 1)

    def evaluate(path, last):
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        evaluating.follow(str(tmp_path), evaluate, lambda: False)


def test_without_a_checkpoint_it_ends_when_training_does(tmp_path):
    evaluating.follow(str(tmp_path), lambda path, last: pytest.fail(path), lambda: True)
