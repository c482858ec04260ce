"""Which columns an input function reads, and how labels leave the features.

A wrong label never reaches a head.
"""

from __future__ import annotations

from collections.abc import Callable

from input_fns.parsing import Features
from pipeline.compat import tf
from pipeline.types import Column, Declaration, Distribution, Label, Labels

AnyLabels = "tf.Tensor | dict[str, tf.Tensor]"
_MAX_CLASSES_SHOWN = 10


def read_columns(declaration: Declaration) -> tuple[Column, ...]:
    """Returns the columns of features, labels and weight, in declared order."""
    wanted = {column.name for column in declaration.input_columns}
    wanted |= {label.column for label in declaration.labels}
    if declaration.weight:
        wanted.add(declaration.weight)
    return tuple(c for c in declaration.columns.values() if c.name in wanted)


def labelled(declaration: Declaration) -> Callable[[Features], tuple | Features]:
    """Returns a function from columns to (features, labels).

    Without a label it gives the features alone.
    """

    def divide(columns: Features):
        if declaration.label is None:
            return columns
        features = dict(columns)
        labels = take(features, declaration)
        return features, labels

    return divide


def take(features: dict[str, tf.Tensor], declaration: Declaration) -> AnyLabels:
    """Takes the labels out of the columns of a batch.

    Args:
      features: Column name to [batch]; the label's columns are removed from it.
      declaration: With at least one label.

    Returns:
      Of classes, string [batch], the class as text; of several classes a row, int64
      [batch, classes], 1 where the row has the class; of a regression, float32
      [batch]; of several labels, a dict of these by the label's name. Getting a batch
      with a value that is not allowed raises InvalidArgumentError, which names the
      label, the values and what is allowed.
    """
    label = declaration.label
    if isinstance(label, Labels):
        return {
            name: _checked(features.pop(one.column), one)
            for name, one in label.of.items()
        }
    return _checked(features.pop(label.column), label)


def _checked(value: tf.Tensor, label: Label) -> tf.Tensor:
    if label.classes is None:
        return _number(tf.cast(value, tf.float32), label)
    if value.dtype != tf.string:
        value = tf.strings.as_string(value)
    if label.separator is None:
        known = tf.greater_equal(_class_ids(value, label), 0)
        return _require(known, value, label, _listed(label))
    return _indicators(value, label)


def _listed(label: Label) -> str:
    """An Estimator's head would fail as well, but would show the class id, -1."""
    return f"not one of the classes {', '.join(label.classes[:_MAX_CLASSES_SHOWN])}" + (
        " ..." if len(label.classes) > _MAX_CLASSES_SHOWN else ""
    )


def _require(
    fine: tf.Tensor, value: tf.Tensor, label: Label, problem: str
) -> tf.Tensor:
    """Returns the value, or fails and shows those that are not fine."""
    check = tf.debugging.Assert(
        tf.reduce_all(fine),
        [
            f"label {label.column}: {problem}:",
            tf.boolean_mask(value, tf.logical_not(fine)),
        ],
    )
    with tf.control_dependencies([check]):
        return tf.identity(value)


def _fingerprint(text: tf.Tensor) -> tf.Tensor:
    return tf.strings.to_hash_bucket_fast(text, 2**63 - 1)


def _class_ids(text: tf.Tensor, label: Label) -> tf.Tensor:
    """Returns the places of texts [n] among the classes, int32; -1 for others."""
    # Sorted hashes, since comparing with each class is slow where there are many.
    hashes = _fingerprint(tf.constant(label.classes))
    order = tf.argsort(hashes)
    hashes = tf.gather(hashes, order)
    wanted = _fingerprint(text)
    place = tf.minimum(tf.searchsorted(hashes, wanted), len(label.classes) - 1)
    known = tf.equal(tf.gather(hashes, place), wanted)
    return tf.where(known, tf.gather(order, place), -1)


def _indicators(value: tf.Tensor, label: Label) -> tf.Tensor:
    """Returns 1 where a row has a class: int64 [batch, classes]."""
    parts = tf.strings.split(value, label.separator)
    rows, texts = parts.value_rowids(), tf.strings.strip(parts.flat_values)
    # An empty text splits into one empty part.
    there = tf.not_equal(texts, "")
    rows, texts = tf.boolean_mask(rows, there), tf.boolean_mask(texts, there)
    ids = _class_ids(texts, label)
    texts = _require(tf.greater_equal(ids, 0), texts, label, _listed(label))
    with tf.control_dependencies([texts]):
        places = tf.stack([rows, tf.cast(ids, tf.int64)], axis=1)
    shape = [tf.size(value, tf.int64), len(label.classes)]
    counts = tf.scatter_nd(places, tf.ones_like(rows), shape)
    return tf.minimum(counts, 1)


def _number(value: tf.Tensor, label: Label) -> tf.Tensor:
    fine, allowed = tf.math.is_finite(value), "a finite number"
    if label.distribution is Distribution.POISSON:
        fine, allowed = fine & (value >= 0), "a finite number of at least 0"
    elif label.distribution is Distribution.LOGNORMAL:
        fine, allowed = fine & (value > 0), "a finite number above 0"
    elif label.distribution is Distribution.LOGISTIC:
        fine, allowed = fine & (value >= 0) & (value <= 1), "a number from 0 to 1"
    kind = f"distribution {label.distribution.value} needs {allowed}"
    return _require(fine, value, label, f"{kind}, found")
