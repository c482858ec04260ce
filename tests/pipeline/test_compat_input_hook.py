"""A training run goes on with the next row of its input."""

from __future__ import annotations

from pipeline.compat import estimator, tf


def _model_fn(features, labels, mode):
    rows = tf.compat.v1.get_variable(
        "rows", [8], tf.int64, initializer=tf.compat.v1.zeros_initializer()
    )
    step = tf.compat.v1.train.get_global_step()
    note = tf.compat.v1.scatter_update(rows, step, features["row"][0])
    with tf.control_dependencies([note]):
        train_op = tf.compat.v1.assign_add(step, 1)
    loss = tf.constant(0.0)
    return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def _input_fn():
    rows = tf.data.Dataset.range(10, 30)
    return rows.map(lambda row: ({"row": row}, 0)).batch(1)


def _train(model_dir, *, with_hook):
    config = estimator.RunConfig(str(model_dir), save_checkpoints_steps=2)
    est = estimator.Estimator(_model_fn, config=config)
    for _ in range(2):
        hook = tf.data.experimental.CheckpointInputPipelineHook(est)
        est.train(_input_fn, steps=4, hooks=[hook] if with_hook else [])
    return list(est.get_variable_value("rows"))


def test_a_second_run_goes_on_with_the_next_row(tmp_path):
    rows = _train(tmp_path / "with", with_hook=True)
    assert rows == list(range(10, 18))
    assert (tmp_path / "with" / "checkpoint_input").exists()
    assert _train(tmp_path / "without", with_hook=False) == [*range(10, 14)] * 2
