"""The head that fits a label: loss, metrics and export outputs."""

from __future__ import annotations

from pipeline.compat import estimator
from pipeline.types import Declaration, Task


def head(declaration: Declaration):
    """Returns the Estimator head for the declared label and weight.

    Classes are known to the head as the user's labels, so predictions and exports
    carry them.
    """
    label = declaration.label
    if label.task is Task.BINARY:
        return estimator.BinaryClassHead(
            weight_column=declaration.weight, label_vocabulary=list(label.classes)
        )
    if label.task is Task.MULTI_CLASS:
        return estimator.MultiClassHead(
            n_classes=len(label.classes),
            weight_column=declaration.weight,
            label_vocabulary=list(label.classes),
        )
    return estimator.RegressionHead(weight_column=declaration.weight)
