"""Labels as ids of their classes, which is what most losses and metrics take."""

from __future__ import annotations

from pipeline.compat import tf
from pipeline.types import Declaration, Label, Labels


def of_label(value: tf.Tensor, label: Label) -> tf.Tensor:
    """Returns int64 ids [batch] of classes [batch] as text.

    Labels without classes, and those of which a row may have several, are numbers
    already and are left as they are.
    """
    if label.classes is None or label.separator is not None:
        return value
    same = tf.equal(value[:, tf.newaxis], tf.constant(label.classes)[tf.newaxis, :])
    return tf.argmax(tf.cast(same, tf.int32), axis=1)


def of_all(labels, declaration: Declaration):
    """Returns the labels of a batch with ids; a dict of several by name."""
    if labels is None or declaration.label is None:
        return labels
    if isinstance(declaration.label, Labels):
        return {
            name: of_label(labels[name], one)
            for name, one in declaration.label.of.items()
        }
    return of_label(labels, declaration.label)
