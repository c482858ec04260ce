"""Models as users write them, for test_user_models; imported by name."""

import tensorflow as tf

from pipeline.compat import tf_keras

_v1 = tf.compat.v1


def graph_model_fn(features, labels, mode, params):
    training = mode == tf.estimator.ModeKeys.TRAIN
    columns = [
        tf.feature_column.numeric_column(
            "age", normalizer_fn=lambda age: (tf.cast(age, tf.float32) - 45) / 15
        ),
        tf.feature_column.indicator_column(
            tf.feature_column.categorical_column_with_hash_bucket("marital-status", 50)
        ),
    ]
    net = _v1.feature_column.input_layer(features, columns)
    net = _v1.layers.batch_normalization(net, training=training, momentum=0.9)
    for units in params["hidden_units"]:
        net = _v1.layers.dense(net, units, tf.nn.relu)
    logits = _v1.layers.dense(net, 3)
    ids = tf.argmax(logits, 1)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=ids)
    loss = _v1.losses.sparse_softmax_cross_entropy(labels, logits)
    if mode == tf.estimator.ModeKeys.EVAL:
        accuracy = _v1.metrics.accuracy(labels, ids)
        return tf.estimator.EstimatorSpec(
            mode, loss=loss, eval_metric_ops={"accuracy": accuracy}
        )
    optimizer = _v1.train.AdamOptimizer(params.get("rate", 0.01))
    with tf.control_dependencies(_v1.get_collection(_v1.GraphKeys.UPDATE_OPS)):
        step = optimizer.minimize(loss, global_step=_v1.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step)


def makes_model_fn(params):
    def model_fn(features, labels, mode):
        return graph_model_fn(features, labels, mode, params)

    return model_fn


def premade(params, config):
    return tf.estimator.DNNClassifier(
        list(params["hidden_units"]),
        [
            tf.feature_column.numeric_column(
                "age", normalizer_fn=lambda age: (tf.cast(age, tf.float32) - 45) / 15
            ),
            tf.feature_column.indicator_column(
                tf.feature_column.categorical_column_with_hash_bucket(
                    "marital-status", 50
                )
            ),
        ],
        n_classes=3,
        optimizer=lambda: tf_keras.optimizers.legacy.Adam(0.01),
        config=config,
    )


class _Columns(tf_keras.layers.Layer):
    def call(self, features):
        age = (tf.cast(features["age"], tf.float32) - 45) / 15
        status = tf.strings.to_hash_bucket_fast(features["marital-status"], 50)
        return tf.concat([age[:, tf.newaxis], tf.one_hot(status, 50)], axis=1)


def _stack(outputs):
    return [
        _Columns(),
        tf_keras.layers.Dense(16, "relu"),
        tf_keras.layers.BatchNormalization(momentum=0.9),
        tf_keras.layers.Dense(outputs),
    ]


def sequential():
    return tf_keras.Sequential(_stack(3))


def compiled():
    model = tf_keras.Sequential(_stack(3))
    model.compile(
        tf_keras.optimizers.Adam(0.01),
        tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy", tf_keras.metrics.SparseTopKCategoricalAccuracy(2)],
    )
    return model


class _Model(tf_keras.Model):
    def __init__(self):
        super().__init__()
        self._parts = _stack(3)

    def call(self, features, training=False):
        value = features
        for part in self._parts[:2]:
            value = part(value)
        value = self._parts[2](value, training=training)
        return self._parts[3](value)


def compiled_subclass():
    model = _Model()
    model.compile(
        "adam",
        tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    return model


def returns_nothing():
    return None


def wants_more(params, dataset):
    return None


def spec_of_nothing(features, labels, mode):
    return None


def with_adamw():
    model = tf_keras.Sequential(_stack(3))
    model.compile(tf_keras.optimizers.AdamW(0.01), "mse")
    return model
