"""Metrics of one's own, for `--metrics=examples.custom_models.metrics:share_of_rich`."""

import tensorflow.compat.v1 as tf


def share_of_rich(labels, predictions):
    return {
        "share_of_rich": tf.metrics.mean(labels),
        "predicted_share_of_rich": tf.metrics.mean(predictions["class_id"]),
    }
