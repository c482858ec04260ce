"""Boosted trees as TensorFlow 2.8 had them; prints what they find.

fixtures/boosted_trees_2_8.json holds what it prints under TensorFlow 2.8.4:

    PYTHON_OF_TENSORFLOW_2_8 tests/existing/boosted_trees.py DIRECTORY
"""

import json
import sys

import numpy as np
import tensorflow as tf


def rows():
    rng = np.random.RandomState(3)
    size = 500
    features = {
        "x": rng.normal(size=size).astype("float32"),
        "z": rng.uniform(size=size).astype("float32"),
        "job": rng.choice(["a", "b", "c"], size),
        "town": rng.randint(0, 5, (size, 1)).astype("int64"),
        "weight": rng.choice([0.5, 2.0], (size, 1)).astype("float32"),
    }
    is_b = features["job"] == "b"
    score = features["x"] + is_b - 0.3 * features["town"][:, 0]
    labels = {
        "binary": (score + rng.normal(size=size) * 0.3 > 0).astype("int32"),
        "price": (2 * features["x"] - 3 * features["z"] + is_b).astype("float32"),
        "three": np.digitize(features["x"], [-0.5, 0.5]).astype("int32"),
    }
    return features, labels


def input_fn(label, epochs, batch_size=100):
    features, labels = rows()
    dataset = tf.data.Dataset.from_tensor_slices((features, labels[label]))
    return dataset.batch(batch_size).repeat(epochs)


def columns():
    fc = tf.feature_column
    job = fc.categorical_column_with_vocabulary_list("job", ["a", "b", "c"])
    return [
        fc.bucketized_column(fc.numeric_column("x"), [-1.0, -0.5, 0.0, 0.5, 1.0]),
        fc.bucketized_column(fc.numeric_column("z"), [0.2, 0.4, 0.6, 0.8]),
        fc.indicator_column(job),
        fc.categorical_column_with_identity("town", 5),
    ]


def estimators(root):
    def classifier(name, read=None, **options):
        return tf.estimator.BoostedTreesClassifier(
            read or columns(), 5, model_dir=f"{root}/{name}", **options
        )

    def regressor(name, **options):
        return tf.estimator.BoostedTreesRegressor(
            columns(), 5, model_dir=f"{root}/{name}", **options
        )

    return {
        "plain": (classifier("plain", n_trees=6, max_depth=3), "binary"),
        "penalties": (
            classifier(
                "penalties",
                n_trees=5,
                max_depth=4,
                l1_regularization=0.002,
                l2_regularization=0.01,
            ),
            "binary",
        ),
        "least_weight": (
            classifier(
                "least_weight",
                columns()[:3],
                n_trees=3,
                max_depth=3,
                min_node_weight=0.01,
            ),
            "binary",
        ),
        "centered": (
            classifier("centered", n_trees=4, max_depth=2, center_bias=True),
            "binary",
        ),
        "weighted": (
            classifier("weighted", n_trees=4, max_depth=3, weight_column="weight"),
            "binary",
        ),
        "price": (
            regressor("price", n_trees=8, max_depth=3, learning_rate=0.3),
            "price",
        ),
        "price_centered": (
            regressor("price_centered", n_trees=3, max_depth=3, center_bias=True),
            "price",
        ),
        "three": (classifier("three", n_classes=3, n_trees=4, max_depth=2), "three"),
    }


def run(root, name):
    estimator, label = estimators(root)[name]
    estimator.train(lambda: input_fn(label, None))
    metrics = estimator.evaluate(lambda: input_fn(label, 1))
    found = {key: float(value) for key, value in metrics.items()}
    first = list(estimator.predict(lambda: input_fn(label, 1)))[:8]
    key = "probabilities" if "probabilities" in first[0] else "predictions"
    found["first_rows"] = [float(row[key][0]) for row in first]
    return found


if __name__ == "__main__":
    found = {name: run(sys.argv[1], name) for name in estimators(sys.argv[1])}
    print("RESULT", json.dumps(found))
