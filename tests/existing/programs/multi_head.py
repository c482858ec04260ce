"""Two heads over one network, written for TF 2.x."""

import json
import sys

import numpy as np
import tensorflow as tf


def input_fn(training):
    rng = np.random.RandomState(17)
    x = rng.uniform(-1, 1, (320, 5)).astype(np.float32)
    click = (x[:, :1] * x[:, 1:2] > 0).astype(np.int32)
    price = (2 * x[:, 2:3] - x[:, 3:4]).astype(np.float32)
    dataset = tf.data.Dataset.from_tensor_slices(
        ({"x": x}, {"click": click, "price": price})
    )
    return (dataset.repeat() if training else dataset).batch(32)


def main(model_dir):
    head = tf.estimator.MultiHead(
        [
            tf.estimator.BinaryClassHead(name="click"),
            tf.estimator.RegressionHead(name="price"),
        ],
        head_weights=[1.0, 0.5],
    )
    column = tf.feature_column.numeric_column("x", shape=[5])
    estimator = tf.estimator.DNNEstimator(
        head=head,
        hidden_units=[10],
        feature_columns=[column],
        optimizer=lambda: tf.keras.optimizers.legacy.RMSprop(0.01),
        model_dir=model_dir,
        config=tf.estimator.RunConfig(tf_random_seed=9),
    )
    estimator = tf.estimator.add_metrics(estimator, extra_metrics)
    estimator.train(lambda: input_fn(True), steps=60)
    metrics = estimator.evaluate(lambda: input_fn(False))
    row = next(estimator.predict(lambda: input_fn(False)))
    result = {k: float(v) for k, v in metrics.items()}
    result["price"] = float(row[("price", "predictions")][0])
    receiver = tf.estimator.export.build_parsing_serving_input_receiver_fn(
        tf.feature_column.make_parse_example_spec([column])
    )
    exported = estimator.export_saved_model(model_dir + "/export", receiver)
    loaded = tf.saved_model.load(exported.decode())
    result["signatures"] = sorted(loaded.signatures)
    print("RESULT", json.dumps(result))


def extra_metrics(labels, predictions):
    error = tf.keras.metrics.MeanAbsoluteError(name="mae")
    error.update_state(labels["price"], predictions[("price", "predictions")])
    return {"mae": error}


main(sys.argv[1])
