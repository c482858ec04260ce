"""A training that stands still says where."""

from __future__ import annotations

import dataclasses
import threading

import numpy as np
import pytest

from pipeline import hooks_profile, hooks_stall
from pipeline.compat import tf
from pipeline.console import Console

_v1 = tf.compat.v1
_TIMEOUT = 120


@dataclasses.dataclass(frozen=True)
class _Heard(Console):
    """A console that remembers, and tells when something was said."""

    lines: list = dataclasses.field(default_factory=list)
    said: threading.Event = dataclasses.field(default_factory=threading.Event)

    def progress(self, text: str) -> None:
        self.lines.append(text)
        self.said.set()


def _train(console: _Heard, stuck: str, waits_for: str | None = None) -> None:
    """Runs three steps; in the second one the batch or the computation waits until
    something is said."""

    def rows():
        for number in range(3):
            if stuck == "input" and number == 1:
                assert console.said.wait(_TIMEOUT)
            yield np.int64(number)

    def compute(number):
        if stuck == "step" and number == 1:
            assert console.said.wait(_TIMEOUT)
        return number

    with tf.Graph().as_default():
        dataset = tf.data.Dataset.from_generator(
            rows, output_signature=tf.TensorSpec([], tf.int64)
        )
        iterator = _v1.data.make_initializable_iterator(dataset)
        _v1.add_to_collection(_v1.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
        number = iterator.get_next()
        step = _v1.train.get_or_create_global_step()
        with tf.control_dependencies([tf.numpy_function(compute, [number], tf.int64)]):
            train_op = step.assign_add(1)
        hook = hooks_stall.StallHook(console, "train", 0.2, waits_for)
        with _v1.train.MonitoredTrainingSession(hooks=[hook]) as session:
            for _ in range(3):
                session.run(train_op)


@pytest.mark.parametrize(
    ("stuck", "where"),
    [("input", hooks_stall.INPUT), ("step", hooks_stall.COMPUTING)],
)
def test_says_where_it_waits(stuck, where):
    console = _Heard()
    _train(console, stuck)
    # A slow machine may say something about another step as well.
    assert console.lines[0].startswith("train: no step for ")
    assert any(line.endswith(f"it waits for {where}") for line in console.lines)


def test_says_what_it_is_told():
    console = _Heard()
    _train(console, "step", hooks_stall.COLLECTIVE)
    assert console.lines[0].endswith(hooks_stall.COLLECTIVE)


@pytest.mark.parametrize(
    ("waited", "seconds", "begin", "flag"),
    [
        (0.5, 0.1, "input-bound: 100.0 ms a step, 50% of it", "--cache=memory"),
        (0.1, 0.1, "compute-bound: ", "--xla"),
        (0.0, 0.001, "compute-bound: 1.0 ms", "--steps_per_run=50"),
        (None, 0.001, "1.0 ms a step", "can't be seen"),
    ],
)
def test_advice(waited, seconds, begin, flag):
    text = hooks_profile.advice(waited, seconds)
    assert text.startswith(begin) and flag in text
