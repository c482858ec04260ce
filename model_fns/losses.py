"""Losses that take the place of a head's own.

Each is what a head calls `loss_fn`: it takes labels and logits [batch, n], and
returns [batch, 1]. Of classes, z are the logits, q the probabilities that they
stand for, and y the label as 0, 1 or, with more classes, one-hot:

    default    cross entropy, -sum(y log q)
    focal      -sum(y (1 - q)^focal_gamma log q) (Lin et al. 2017, without alpha: that
               is what class_weights are for)
    smoothed   cross entropy of y (1 - smoothing) + smoothing / classes (Szegedy et al.
               2016); where each class is a yes or no, classes is 2

Of a regression, e is label - prediction:

    default    e^2
    huber      e^2 / 2 where |e| <= huber_delta, else huber_delta (|e| - huber_delta / 2)
    absolute   |e|
    quantile   max(quantile e, (quantile - 1) e), the pinball loss
"""

from __future__ import annotations

from collections.abc import Callable

from model_fns import hparams
from pipeline.compat import tf
from pipeline.types import Distribution, Label, Task, UserError

LossFn = Callable[..., "tf.Tensor"]
_OF_CLASSES = ("default", "focal", "smoothed")
_OF_NUMBERS = ("default", "huber", "absolute", "quantile")


def _yes_or_no(labels, logits, settings: hparams.Objective) -> tf.Tensor:
    """Returns the losses [batch, n] of labels that are 0 or 1."""
    labels = tf.cast(labels, logits.dtype)
    if settings.loss == "smoothed":
        labels = labels * (1 - settings.smoothing) + settings.smoothing / 2
    entropy = tf.nn.sigmoid_cross_entropy_with_logits(labels, logits)
    if settings.loss == "focal":
        # 1 - q of the label itself; from logits, since q may round to 1.
        other = tf.sigmoid(tf.where(labels > 0.5, -logits, logits))
        entropy *= tf.pow(other, settings.focal_gamma)
    return entropy


def _one_of_many(ids, logits, settings: hparams.Objective) -> tf.Tensor:
    """Returns the losses [batch] of class ids [batch]."""
    log_q = tf.nn.log_softmax(logits)
    wanted = tf.gather(log_q, ids, batch_dims=1)
    if settings.loss == "smoothed":
        share = settings.smoothing
        return -(1 - share) * wanted - share * tf.reduce_mean(log_q, axis=1)
    if settings.loss == "focal":
        return -tf.pow(1 - tf.exp(wanted), settings.focal_gamma) * wanted
    return -wanted


def _of_classes(label: Label, settings: hparams.Objective) -> LossFn:
    # No tensor: each mode has a graph of its own.
    weights = list(settings.class_weights or [1.0] * len(label.classes))

    def binary(labels, logits):
        factor = tf.gather(weights, tf.cast(labels, tf.int32))
        return factor * _yes_or_no(labels, logits, settings)

    def multi_class(labels, logits):
        ids = tf.cast(tf.reshape(labels, [-1]), tf.int32)
        losses = tf.gather(weights, ids) * _one_of_many(ids, logits, settings)
        return losses[:, tf.newaxis]

    def multi_label(labels, logits):
        losses = weights * _yes_or_no(labels, logits, settings)
        return tf.reduce_mean(losses, axis=1, keepdims=True)

    return {
        Task.BINARY: binary,
        Task.MULTI_CLASS: multi_class,
        Task.MULTI_LABEL: multi_label,
    }[label.task]


def _of_numbers(settings: hparams.Objective) -> LossFn:
    def loss_fn(labels, logits):
        error = tf.cast(labels, logits.dtype) - logits
        size = tf.abs(error)
        if settings.loss == "huber":
            delta = settings.huber_delta
            return tf.where(
                size <= delta, tf.square(error) / 2, delta * (size - delta / 2)
            )
        if settings.loss == "absolute":
            return size
        return tf.maximum(settings.quantile * error, (settings.quantile - 1) * error)

    return loss_fn


def lognormal(labels, logits) -> tf.Tensor:
    """The loss of `Distribution.LOGNORMAL`."""
    return tf.square(tf.math.log(tf.cast(labels, logits.dtype)) - logits)


def _check_allowed(label: Label, settings: hparams.Objective) -> None:
    allowed = _OF_NUMBERS if label.classes is None else _OF_CLASSES
    if label.distribution is not Distribution.NORMAL:
        allowed = ("default",)
    if settings.loss not in allowed:
        raise UserError(
            f"--hparams: loss={settings.loss} does not fit the label {label.column}"
            f" ({label.task.value}, distribution {label.distribution.value}); it can be"
            f" {', '.join(allowed)}"
        )
    weights = settings.class_weights
    if weights and label.classes is None:
        raise UserError(
            f"--hparams: class_weights has no effect on the label {label.column},"
            " which has no classes"
        )
    if weights and len(weights) != len(label.classes):
        raise UserError(
            f"--hparams: class_weights has {len(weights)} elements; the label"
            f" {label.column} has the classes {', '.join(label.classes)}"
        )


def for_label(label: Label, settings: hparams.Objective) -> LossFn | None:
    """Returns the loss that the settings ask for; None for the head's own.

    Raises:
      UserError: It does not fit the label.
    """
    _check_allowed(label, settings)
    if settings.loss == "default" and not settings.class_weights:
        return lognormal if label.distribution is Distribution.LOGNORMAL else None
    if label.classes is None:
        return _of_numbers(settings)
    return _of_classes(label, settings)
