"""train_and_evaluate with exporters and early stopping, written for TF 1.15 and 2.x."""

import glob
import json
import os

import numpy as np
import tensorflow as tf
from absl import app, flags

flags.DEFINE_string("model_dir", None, "Where checkpoints go.", required=True)
FLAGS = flags.FLAGS


def input_fn(training):
    rng = np.random.RandomState(19)
    x = rng.normal(size=(500, 3)).astype(np.float32)
    kind = rng.choice(["a", "b", "c"], 500)
    y = x @ [1.0, -2.0, 0.5] + 1.5 * (kind == "a")
    data = ({"x": x, "kind": kind}, y.astype(np.float32))
    dataset = tf.data.Dataset.from_tensor_slices(data)
    return (dataset.repeat() if training else dataset).batch(25)


def evaluations(directory):
    """The losses of all evaluations, as they were written for TensorBoard."""
    found = []
    for path in sorted(glob.glob(os.path.join(directory, "events*"))):
        for event in tf.compat.v1.train.summary_iterator(path):
            found += [v.simple_value for v in event.summary.value if v.tag == "loss"]
    return found


def main(argv):
    del argv
    x = tf.feature_column.numeric_column("x", shape=3)
    kind = tf.feature_column.categorical_column_with_vocabulary_list(
        "kind", ["a", "b", "c"]
    )
    estimator = tf.estimator.LinearRegressor(
        [x, kind],
        model_dir=FLAGS.model_dir,
        optimizer=lambda: tf.keras.optimizers.legacy.SGD(0.1),
        config=tf.estimator.RunConfig(tf_random_seed=2, save_checkpoints_steps=20),
    )
    receiver = tf.estimator.export.build_parsing_serving_input_receiver_fn(
        tf.feature_column.make_parse_example_spec([x, kind])
    )
    os.makedirs(estimator.eval_dir())
    stop = tf.estimator.experimental.stop_if_lower_hook(
        estimator, "loss", 0.01, run_every_secs=None, run_every_steps=10
    )
    exporters = [
        tf.estimator.BestExporter("best", receiver, exports_to_keep=2),
        tf.estimator.LatestExporter("latest", receiver, exports_to_keep=1),
        tf.estimator.FinalExporter("final", receiver),
    ]
    tf.estimator.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(lambda: input_fn(True), max_steps=400, hooks=[stop]),
        tf.estimator.EvalSpec(
            lambda: input_fn(False), steps=None, exporters=exporters, throttle_secs=0
        ),
    )
    # A step more or less may pass before training has noticed.
    stopped_at = int(estimator.get_variable_value("global_step"))
    result = {
        "stopped_early": float(stopped_at < 400),
        "evaluations": evaluations(estimator.eval_dir())[:2],
    }
    for name in ("best", "latest", "final"):
        found = glob.glob(os.path.join(FLAGS.model_dir, "export", name, "[0-9]*"))
        result[f"exports_{name}"] = len(found)
    print("RESULT", json.dumps(result))


if __name__ == "__main__":
    app.run(main)
