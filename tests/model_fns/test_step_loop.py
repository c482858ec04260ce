"""Several steps in one call give what as many calls give."""

from __future__ import annotations

import numpy as np
import pytest

from model_fns import step_loop
from pipeline.compat import tf
from pipeline.types import UserError

_v1 = tf.compat.v1


def _data(batches: int):
    random = np.random.default_rng(0)
    x = random.normal(size=(batches, 4)).astype("f")
    return tf.data.Dataset.from_tensor_slices(({"x": x}, 3 * x))


def _train(loop, batches, calls: int | None = None):
    """Trains one weight with momentum; returns (global step after each call, weight,
    last loss)."""
    with tf.Graph().as_default():
        iterator = _v1.data.make_initializable_iterator(_data(batches))
        features, labels = iterator.get_next()
        global_step = _v1.train.create_global_step()
        weight = _v1.get_variable("w", [], initializer=_v1.zeros_initializer())
        optimizer = _v1.train.MomentumOptimizer(0.01, 0.9)
        # Its slots must exist before the loop.
        optimizer.minimize(tf.square(weight))

        def step(features, labels):
            loss = tf.reduce_mean(tf.square(features["x"] * weight - labels))
            _v1.summary.scalar("inside", loss)
            return optimizer.minimize(loss, global_step), loss

        if loop is None:
            train_op, loss = step(features, labels)
        else:
            train_op, loss = step_loop.run_steps(loop, step, features, labels)
            assert not _v1.get_collection(_v1.GraphKeys.SUMMARIES)
        reached = []
        with _v1.Session() as session:
            session.run([_v1.global_variables_initializer(), iterator.initializer])
            last = None
            while calls is None or len(reached) < calls:
                try:
                    _, last = session.run([train_op, loss])
                except tf.errors.OutOfRangeError:
                    break
                reached.append(int(session.run(global_step)))
            return reached, session.run(weight), last, session.run(global_step)


def test_one_call_runs_as_many_steps_as_asked():
    _, wanted, wanted_loss, _ = _train(None, 10)
    reached, weight, loss, _ = _train(step_loop.StepLoop((5,), 100), 10, 2)
    assert reached == [5, 10]
    assert weight == pytest.approx(wanted, rel=1e-6)
    assert loss == pytest.approx(wanted_loss, rel=1e-5)


def test_no_call_goes_beyond_the_last_step():
    reached, *_ = _train(step_loop.StepLoop((4,), 6), 10, 2)
    assert reached == [4, 6]


def test_a_call_ends_at_each_of_the_asked_multiples():
    reached, *_ = _train(step_loop.StepLoop((4, 3), 10), 10, 5)
    assert reached == [3, 4, 6, 8, 9]


def test_the_end_of_the_data_loses_no_step():
    reached, weight, _, step = _train(step_loop.StepLoop((4,), 100), 6)
    _, wanted, _, _ = _train(None, 6)
    assert reached == [4]
    assert step == 6
    assert weight == pytest.approx(wanted, rel=1e-6)


def test_tensors_that_come_from_no_dataset_are_refused():
    with (
        tf.Graph().as_default(),
        pytest.raises(UserError, match="--steps_per_run.*tf.data.Dataset"),
    ):
        _v1.train.create_global_step()
        step_loop.run_steps(
            step_loop.StepLoop((2,), 4), lambda f, y: None, tf.constant([1.0]), None
        )
