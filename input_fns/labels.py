"""Which columns an input function reads, and how the label leaves the features."""

from __future__ import annotations

from collections.abc import Callable

from input_fns.parsing import Features
from pipeline.compat import tf
from pipeline.types import Column, Declaration, Label

_MAX_CLASSES_SHOWN = 10


def read_columns(declaration: Declaration) -> tuple[Column, ...]:
    """Returns the columns of features, label and weight, in declared order."""
    wanted = {column.name for column in declaration.input_columns}
    if declaration.label:
        wanted.add(declaration.label.column)
    if declaration.weight:
        wanted.add(declaration.weight)
    return tuple(c for c in declaration.columns.values() if c.name in wanted)


def labelled(declaration: Declaration) -> Callable[[Features], tuple | Features]:
    """Returns a function from columns to (features, label).

    Without a label it gives the features alone. Classes are text, whatever their
    column's type; a regression's label is float32.
    """
    label = declaration.label

    def divide(columns: Features):
        if label is None:
            return columns
        features = dict(columns)
        value = features.pop(label.column)
        if label.classes is None:
            return features, tf.cast(value, tf.float32)
        if value.dtype != tf.string:
            value = tf.strings.as_string(value)
        return features, _checked(value, label)

    return divide


def _fingerprint(text: tf.Tensor) -> tf.Tensor:
    return tf.strings.to_hash_bucket_fast(text, 2**63 - 1)


def _checked(value: tf.Tensor, label: Label) -> tf.Tensor:
    """Returns the labels, or fails and shows those that are not among the classes.

    An Estimator's head would fail as well, but would show their class id, -1.
    """
    # Sorted hashes, since comparing with each class is slow where there are many.
    classes = tf.sort(_fingerprint(tf.constant(label.classes)))
    wanted = _fingerprint(value)
    place = tf.minimum(tf.searchsorted(classes, wanted), len(label.classes) - 1)
    known = tf.equal(tf.gather(classes, place), wanted)
    check = tf.debugging.Assert(
        tf.reduce_all(known),
        [
            f"label {label.column}: not one of the classes"
            f" {', '.join(label.classes[:_MAX_CLASSES_SHOWN])}:",
            tf.boolean_mask(value, tf.logical_not(known)),
        ],
    )
    with tf.control_dependencies([check]):
        return tf.identity(value)
