"""A wide and deep classifier over feature columns and crosses, written for TF 2.x."""

import argparse
import json

import numpy as np
import tensorflow as tf

PARSER = argparse.ArgumentParser()
PARSER.add_argument("--model_dir", required=True)
PARSER.add_argument("--steps", type=int, default=60)


def table():
    rng = np.random.RandomState(7)
    age = rng.uniform(17, 90, 600).astype(np.float32)
    hours = rng.uniform(1, 80, 600).astype(np.float32)
    job = rng.choice(["clerk", "farmer", "cook", "nurse"], 600)
    town = rng.choice(["north", "south", "east"], 600)
    label = (age > 40) ^ (job == "farmer") ^ (hours > 60)
    return {"age": age, "hours": hours, "job": job, "town": town}, label.astype("int32")


def input_fn(training):
    dataset = tf.data.Dataset.from_tensor_slices(table())
    if training:
        dataset = dataset.shuffle(600, seed=3).repeat()
    return dataset.batch(50)


def columns():
    fc = tf.feature_column
    age = fc.numeric_column("age", normalizer_fn=lambda x: (x - 50.0) / 20.0)
    hours = fc.numeric_column("hours", normalizer_fn=lambda x: (x - 40.0) / 20.0)
    buckets = fc.bucketized_column(fc.numeric_column("age"), [25, 35, 40, 50, 65])
    job = fc.categorical_column_with_vocabulary_list(
        "job", ["clerk", "farmer", "cook", "nurse"]
    )
    town = fc.categorical_column_with_hash_bucket("town", 10)
    crosses = [
        fc.crossed_column([buckets, "job"], 100),
        fc.crossed_column(["job", "town"], 50),
    ]
    deep = [age, hours, fc.indicator_column(job), fc.embedding_column(town, 4)]
    return [buckets, job, town, *crosses], deep, [age, hours, job, town]


class Losses(tf.estimator.SessionRunHook):
    def __init__(self):
        self.values = []

    def before_run(self, run_context):
        graph = run_context.session.graph
        losses = graph.get_collection(tf.compat.v1.GraphKeys.LOSSES)
        return tf.estimator.SessionRunArgs(losses)

    def after_run(self, run_context, run_values):
        self.values.extend(float(v) for v in run_values.results)


def main():
    flags = PARSER.parse_args()
    wide, deep, raw = columns()
    classifier = tf.estimator.DNNLinearCombinedClassifier(
        model_dir=flags.model_dir,
        linear_feature_columns=wide,
        linear_optimizer="Ftrl",
        dnn_feature_columns=deep,
        dnn_optimizer=lambda: tf.keras.optimizers.legacy.Adagrad(0.05),
        dnn_hidden_units=[16, 8],
        config=tf.estimator.RunConfig(tf_random_seed=42, log_step_count_steps=20),
    )
    losses = Losses()
    classifier.train(lambda: input_fn(True), steps=flags.steps, hooks=[losses])
    metrics = classifier.evaluate(lambda: input_fn(False))
    rows = [p["probabilities"][1] for p in classifier.predict(lambda: input_fn(False))]
    spec = tf.feature_column.make_parse_example_spec(raw)
    receiver = tf.estimator.export.build_parsing_serving_input_receiver_fn(spec)
    exported = classifier.export_saved_model(flags.model_dir + "/export", receiver)
    loaded = tf.saved_model.load(exported.decode())
    result = {k: float(v) for k, v in metrics.items()}
    result["first_rows"] = [float(v) for v in rows[:5]]
    result["signatures"] = sorted(loaded.signatures)
    result["training"] = losses.values
    print("RESULT", json.dumps(result))


if __name__ == "__main__":
    main()
