"""A program for TensorFlow's own Estimators, which knows nothing of this project.

python -m pipeline exec examples/estimator/train.py --steps=200
"""

import argparse
import csv
import gzip
import tempfile

import numpy as np
import tensorflow as tf

PARSER = argparse.ArgumentParser()
PARSER.add_argument("--data", default="examples/census/adult.csv.gz")
PARSER.add_argument("--steps", type=int, default=200)
PARSER.add_argument("--model_dir", default=None)


def read(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    features = {
        "age": np.array([row["age"] for row in rows], np.float32),
        "education": np.array([row["education"] for row in rows]),
        "occupation": np.array([row["occupation"] for row in rows]),
    }
    label = np.array([row["income"].startswith(">50K") for row in rows], np.int32)
    return features, label


def main():
    flags = PARSER.parse_args()
    features, label = read(flags.data)

    def input_fn(repeat):
        dataset = tf.data.Dataset.from_tensor_slices((features, label))
        return dataset.repeat(repeat).batch(512)

    fc = tf.feature_column
    age = fc.bucketized_column(fc.numeric_column("age"), [20, 30, 40, 50, 60])
    education = fc.categorical_column_with_hash_bucket("education", 50)
    occupation = fc.categorical_column_with_hash_bucket("occupation", 50)
    estimator = tf.estimator.DNNLinearCombinedClassifier(
        model_dir=flags.model_dir or tempfile.mkdtemp(),
        linear_feature_columns=[
            age,
            education,
            fc.crossed_column([age, "education"], 1000),
        ],
        dnn_feature_columns=[fc.embedding_column(occupation, 8)],
        dnn_hidden_units=[32],
        linear_optimizer=lambda: tf.keras.optimizers.legacy.Ftrl(0.1),
        dnn_optimizer=lambda: tf.keras.optimizers.legacy.Adam(0.01),
    )
    estimator.train(lambda: input_fn(None), steps=flags.steps)
    metrics = estimator.evaluate(lambda: input_fn(1))
    print({name: round(float(value), 4) for name, value in metrics.items()})


if __name__ == "__main__":
    main()
