"""A model_fn as projects on TensorFlow 1.15 have it, for the Census example.

--model=examples.custom_models.graph_code:model_fn --hparams=hidden_units=[32],rate=0.05
"""

import tensorflow.compat.v1 as tf


def _columns():
    numbers = [tf.feature_column.numeric_column(c) for c in ("age", "hours-per-week")]
    jobs = tf.feature_column.categorical_column_with_hash_bucket("occupation", 50)
    return [*numbers, tf.feature_column.embedding_column(jobs, 4)]


def model_fn(features, labels, mode, params):
    training = mode == tf.estimator.ModeKeys.TRAIN
    net = tf.feature_column.input_layer(features, _columns())
    net = tf.layers.batch_normalization(net, training=training)
    for units in params.get("hidden_units", [16]):
        net = tf.layers.dense(net, units, tf.nn.relu)
    net = tf.layers.dropout(net, params.get("dropout", 0.0), training=training)
    logits = tf.layers.dense(net, 2)

    predictions = {
        "class_id": tf.argmax(logits, axis=1),
        "probability": tf.nn.softmax(logits)[:, 1],
    }
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=predictions)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    if mode == tf.estimator.ModeKeys.EVAL:
        metrics = {
            "accuracy": tf.metrics.accuracy(labels, predictions["class_id"]),
            "auc": tf.metrics.auc(labels, predictions["probability"]),
        }
        return tf.estimator.EstimatorSpec(
            mode, predictions=predictions, loss=loss, eval_metric_ops=metrics
        )
    optimizer = tf.train.AdagradOptimizer(params.get("rate", 0.05))
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        step = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step)
