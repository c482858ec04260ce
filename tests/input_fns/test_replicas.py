"""Batches of several replicas in step: the size is over all of them (trial DIST-3)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers_records import column, declare, write_blocks

from input_fns.options import TrainInput
from input_fns.order import train_input_fn
from pipeline.compat import tf
from pipeline.types import Numeric, Scale, UserError

ROOT = Path(__file__).parents[2]
COLUMNS = (column("id", "int"),)
DECLARATION = declare(COLUMNS, [Numeric("id", "id", scale=Scale.NONE)])
CHILD = """
import json, sys
sys.path[:0] = [{tests!r}]
from pipeline.compat import estimator, tf
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0],
    [tf.config.LogicalDeviceConfiguration()] * 2,
)
from helpers_records import column, declare, write_blocks
from input_fns.options import TrainInput
from input_fns.order import train_input_fn
from pipeline.types import Numeric, Scale

directory, replicas, epochs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
columns = (column("id", "int"),)
declaration = declare(columns, [Numeric("id", "id", scale=Scale.NONE)])
tf.io.gfile.makedirs(directory)
records = write_blocks(directory, [[{{"id": i}} for i in range(64)]], columns)
seen, weights = [], []

def model_fn(features, labels, mode):
    weight = tf.compat.v1.get_variable("w", initializer=0.0)
    x = tf.cast(features["id"], tf.float32) / 64
    tf.debugging.assert_equal(tf.size(x), 8 // replicas)
    loss = tf.reduce_mean((x * weight - 1) ** 2)
    optimizer = tf.compat.v1.train.GradientDescentOptimizer(0.1)
    train_op = optimizer.minimize(loss, tf.compat.v1.train.get_global_step())
    noted = tf.compat.v1.py_func(
        lambda ids: (seen.extend(ids.tolist()), np.int64(0))[1],
        [features["id"]], tf.int64,
    )
    with tf.control_dependencies([noted]):
        train_op = tf.group(train_op)
    return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

import numpy as np

class Weights(tf.compat.v1.train.SessionRunHook):
    def after_run(self, context, values):
        (variable,) = tf.compat.v1.trainable_variables()[:1]
        weights.append(float(context.session.run(variable)))

strategy = None
if replicas > 1:
    strategy = tf.distribute.MirroredStrategy(
        ["CPU:0", "CPU:1"],
        cross_device_ops=tf.distribute.ReductionToOneDevice(),
    )
config = estimator.RunConfig(directory + "/model", train_distribute=strategy)
model = estimator.Estimator(model_fn, config=config)
options = TrainInput(8, 64, seed=1, epochs=epochs)
model.train(train_input_fn(records, declaration, options), hooks=[Weights()])
print(json.dumps(
    {{"steps": len(weights), "weights": weights, "seen": sorted(seen)}}
))
"""


def _run(directory, replicas: int) -> dict:
    program = CHILD.format(tests=str(ROOT / "tests"))
    done = subprocess.run(
        [sys.executable, "-c", program, str(directory), str(replicas), "1"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


@pytest.mark.slow
def test_DIST_3_two_replicas_take_the_steps_of_one(tmp_path):
    one, two = (_run(tmp_path / str(n), n) for n in (1, 2))
    assert one["steps"] == two["steps"] == 8
    assert one["seen"] == two["seen"] == list(range(64))
    np.testing.assert_allclose(one["weights"], two["weights"], atol=1e-5)
    assert one["weights"][0] != 0


def _context(pipelines: int, pipeline: int, replicas: int):
    return tf.distribute.InputContext(pipelines, pipeline, replicas)


def _batches(records, options, context, count):
    dataset = train_input_fn(records, DECLARATION, options)(input_context=context)
    return [b["id"].tolist() for b in dataset.take(count).as_numpy_iterator()]


def test_DIST_3_replicas_take_turns_at_the_rows_of_one(tmp_path):
    records = write_blocks(tmp_path, [[{"id": i} for i in range(64)]], COLUMNS)
    options = TrainInput(8, 20, seed=3, start_step=2)
    alone = _batches(records, options, None, 8)
    shared = _batches(records, options, _context(1, 0, 2), 16)
    assert [a + b for a, b in zip(shared[::2], shared[1::2], strict=True)] == alone


def test_DIST_3_workers_share_a_batch(tmp_path):
    records = write_blocks(tmp_path, [[{"id": i} for i in range(64)]], COLUMNS)
    options = TrainInput(8, 20, seed=3)
    drawn = [_batches(records, options, _context(2, n, 4), 16) for n in (0, 1)]
    # Four replicas of two rows, two on each worker: an epoch is 8 steps.
    assert all(len(batch) == 2 for worker in drawn for batch in worker)
    rows = [row for worker in drawn for batch in worker for row in batch]
    assert sorted(rows) == list(range(64))


def test_DIST_3_a_batch_that_does_not_divide_is_refused(tmp_path):
    records = write_blocks(tmp_path, [[{"id": 1}]], COLUMNS)
    input_fn = train_input_fn(records, DECLARATION, TrainInput(9, 9, seed=1))
    with pytest.raises(UserError, match="--batch_size=9 .* 2 replicas.*multiple of 2"):
        input_fn(input_context=_context(1, 0, 2))
