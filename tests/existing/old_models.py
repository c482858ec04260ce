"""Small models, as an older TensorFlow writes them; run by itself it writes them.

    PYTHON_OF_TENSORFLOW_2_15 tests/existing/old_models.py \
        tests/existing/fixtures/models_2_15
    PYTHON_OF_TENSORFLOW_2_8 tests/existing/old_models.py \
        tests/existing/fixtures/models_2_8

It keeps checkpoints after 20 steps, an export of them, and in results.json what the
model says then and after 10 steps more.
"""

import glob
import json
import os
import shutil
import sys

import numpy as np
import tensorflow as tf

KINDS = ("premade", "custom", "keras")


def rows():
    rng = np.random.RandomState(5)
    x = rng.normal(size=(80, 2)).astype("float32")
    job = rng.choice(["clerk", "farmer", "cook"], (80, 1))
    y = (x[:, :1] + (job == "cook") > 0).astype("float32")
    return {"x": x, "job": job}, y


def input_fn(kind, repeat):
    features, labels = rows()
    if kind == "keras":
        features = {"x": features["x"]}
    dataset = tf.data.Dataset.from_tensor_slices((features, labels))
    return dataset.repeat(repeat).batch(20)


def columns():
    job = tf.feature_column.categorical_column_with_vocabulary_list(
        "job", ["clerk", "farmer", "cook"]
    )
    return [tf.feature_column.numeric_column("x", shape=2), job]


def legacy(name, rate):
    optimizers = tf.keras.optimizers
    return getattr(getattr(optimizers, "legacy", optimizers), name)(rate)


def model_fn(features, labels, mode):
    v1 = tf.compat.v1
    training = mode == tf.estimator.ModeKeys.TRAIN
    net = v1.layers.dense(features["x"], 3, tf.nn.tanh, name="hidden")
    net = v1.layers.batch_normalization(net, training=training, momentum=0.9)
    logits = v1.layers.dense(net, 1, name="logits")
    predictions = {"probability": tf.sigmoid(logits)}
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=predictions)
    loss = v1.losses.sigmoid_cross_entropy(labels, logits)
    optimizer = v1.train.AdamOptimizer(0.05)
    with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):
        train_op = optimizer.minimize(loss, v1.train.get_global_step())
    metrics = {"mean": v1.metrics.mean(predictions["probability"])}
    return tf.estimator.EstimatorSpec(
        mode,
        loss=loss,
        train_op=train_op,
        predictions=predictions,
        eval_metric_ops=metrics,
    )


def build(kind, model_dir, warm_start_from=None):
    config = tf.estimator.RunConfig(model_dir=model_dir, tf_random_seed=3)
    if kind == "premade":
        x, job = columns()
        return tf.estimator.DNNLinearCombinedClassifier(
            linear_feature_columns=[job],
            linear_optimizer=lambda: legacy("Ftrl", 0.1),
            dnn_feature_columns=[x, tf.feature_column.embedding_column(job, 2)],
            dnn_optimizer=lambda: legacy("Adam", 0.05),
            dnn_hidden_units=[4],
            config=config,
            warm_start_from=warm_start_from,
        )
    if kind == "custom":
        return tf.estimator.Estimator(
            model_fn, config=config, warm_start_from=warm_start_from
        )
    inputs = tf.keras.Input([2], name="x")
    hidden = tf.keras.layers.Dense(3, "tanh", name="hidden")(inputs)
    outputs = tf.keras.layers.Dense(1, "sigmoid", name="out")(hidden)
    model = tf.keras.Model(inputs, outputs)
    model.compile(legacy("Adam", 0.05), "binary_crossentropy", ["accuracy"])
    return tf.keras.estimator.model_to_estimator(model, config=config)


def receiver(kind):
    features = {"x": tf.compat.v1.placeholder(tf.float32, [None, 2], "x")}
    if kind == "premade":
        features["job"] = tf.compat.v1.placeholder(tf.string, [None, 1], "job")
    return tf.estimator.export.ServingInputReceiver(dict(features), features)


def says(kind, estimator):
    """What a model says of the rows: its metrics and first probabilities."""
    metrics = estimator.evaluate(lambda: input_fn(kind, 1))
    found = {name: float(value) for name, value in metrics.items()}
    name = {"premade": "logistic", "custom": "probability", "keras": "out"}[kind]
    every = estimator.predict(lambda: input_fn(kind, 1))
    found["first_rows"] = [float(next(every)[name][0]) for _ in range(5)]
    return found


def served(kind, directory):
    """What an export says of the first rows."""
    features, _ = rows()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        meta = tf.compat.v1.saved_model.load(session, ["serve"], directory)
        name = "predict" if kind == "premade" else "serving_default"
        signature = meta.signature_def[name]
        feed = {i.name: features[k][:5] for k, i in signature.inputs.items()}
        name = {"premade": "logistic", "custom": "probability", "keras": "out"}[kind]
        return [float(v) for v in session.run(signature.outputs[name].name, feed)[:, 0]]


def write(root):
    results = {"tensorflow": tf.__version__}
    for kind in KINDS:
        place = os.path.join(root, kind)
        estimator = build(kind, place)
        estimator.train(lambda kind=kind: input_fn(kind, None), steps=20)
        after_20 = says(kind, estimator)
        path = estimator.export_saved_model(
            os.path.join(root, "export"), lambda kind=kind: receiver(kind)
        )
        os.rename(path, os.path.join(root, f"export_{kind}"))
        shutil.copytree(place, place + "_more")
        more = build(kind, place + "_more")
        more.train(lambda kind=kind: input_fn(kind, None), steps=10)
        results[kind] = {"after_20": after_20, "after_30": says(kind, more)}
        shutil.rmtree(place + "_more")
        shutil.rmtree(os.path.join(root, "export"), ignore_errors=True)
        for pattern in (
            "events*",
            "eval",
            "graph.pbtxt",
            "*.meta",
            "*ckpt-0*",
            "keras",
        ):
            for path in glob.glob(os.path.join(place, pattern)):
                shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
    with open(os.path.join(root, "results.json"), "w") as file:
        json.dump(results, file, indent=1)


if __name__ == "__main__":
    write(sys.argv[1])
