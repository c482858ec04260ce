"""A Keras model turned into an Estimator, written for TF 2.x."""

import json
import sys

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import backend, layers


def build():
    number = keras.Input([4], name="number")
    word = keras.Input([1], name="word", dtype="int32")
    table = layers.Embedding(20, 3, embeddings_initializer="ones")(word)
    net = layers.concatenate([number, layers.Flatten()(table)])
    net = layers.Dense(8, "tanh", kernel_initializer=keras.initializers.Ones())(net)
    net = layers.BatchNormalization()(net)
    out = layers.Dense(1, "sigmoid", kernel_initializer="zeros", name="out")(net)
    model = keras.Model([number, word], out)
    model.compile(
        optimizer=keras.optimizers.legacy.Adam(0.02),
        loss="binary_crossentropy",
        metrics=["accuracy", keras.metrics.AUC(name="auc")],
    )
    return model


def input_fn(repeat):
    rng = np.random.RandomState(13)
    number = rng.normal(size=(400, 4)).astype(np.float32)
    word = rng.randint(0, 20, (400, 1)).astype(np.int32)
    label = (number.sum(1, keepdims=True) + word / 10.0 > 1.0).astype(np.float32)
    dataset = tf.data.Dataset.from_tensor_slices(
        ({"number": number, "word": word}, label)
    )
    return dataset.repeat(repeat).batch(40)


def main(model_dir):
    config = tf.estimator.RunConfig(model_dir=model_dir, tf_random_seed=1)
    estimator = tf.keras.estimator.model_to_estimator(build(), config=config)
    estimator.train(lambda: input_fn(8))
    metrics = estimator.evaluate(lambda: input_fn(1))
    backend.clear_session()
    result = {k: float(v) for k, v in metrics.items()}
    rows = estimator.predict(lambda: input_fn(1))
    result["first_rows"] = [float(next(rows)["out"][0]) for _ in range(5)]
    print("RESULT", json.dumps(result))


main(sys.argv[1])
