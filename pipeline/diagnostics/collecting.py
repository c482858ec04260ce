"""Takes labels and predictions of all rows out of an Estimator's evaluation.

So they are of the very pass that gives the metrics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from input_fns import order
from model_fns import label_ids
from pipeline import estimators
from pipeline.compat import estimator, tf
from pipeline.dataset import Dataset
from pipeline.diagnostics import slices
from pipeline.diagnostics.rows import Rows, is_possible
from pipeline.types import ColumnType, Declaration, Label, Task

_BATCH = 4096


def _tensors(
    features: Mapping[str, Any], labels: Any, predictions: Any, declaration: Declaration
) -> dict[str, tf.Tensor] | None:
    """Returns the fields of `Rows`, [batch] each; None where outputs are missing."""
    label = declaration.label
    name = "predictions" if label.classes is None else "probabilities"
    if not isinstance(predictions, Mapping) or name not in predictions:
        return None
    output = tf.cast(predictions[name], tf.float64)
    truth = label_ids.of_label(labels, label)
    truth = tf.reshape(truth, [-1])
    weight = tf.ones_like(truth, tf.float64)
    if declaration.weight:
        weight = tf.reshape(tf.cast(features[declaration.weight], tf.float64), [-1])
    found = {"truth": tf.cast(truth, tf.float64), "weight": weight}
    if label.task is Task.REGRESSION:
        found["score"] = found["predicted"] = tf.reshape(output, [-1])
        return found
    found["predicted"] = tf.cast(tf.argmax(output, axis=1), tf.float64)
    if label.task is Task.BINARY:
        found["score"] = output[:, 1]
    else:
        found["score"] = tf.gather(output, tf.cast(truth, tf.int64), batch_dims=1)
    return found


class Collected:
    """The rows of one evaluation."""

    def __init__(self, label: Label):
        self._label = label
        self._batches: list[dict[str, np.ndarray]] = []

    def add(self, batch: dict[str, np.ndarray]) -> None:
        self._batches.append(batch)

    def rows(self) -> Rows | None:
        """Returns the rows; None where the model gave nothing to collect."""
        if not self._batches:
            return None
        fields = {
            name: np.concatenate([batch[name] for batch in self._batches])
            for name in self._batches[0]
        }
        fields["weight"] = np.maximum(fields["weight"], 0.0)
        return Rows(self._label, **fields)


class _Collect(tf.compat.v1.train.SessionRunHook):
    def __init__(self, tensors: dict[str, tf.Tensor], collected: Collected):
        self._tensors = tensors
        self._collected = collected

    def before_run(self, run_context):
        del run_context
        return tf.compat.v1.train.SessionRunArgs(self._tensors)

    def after_run(self, run_context, run_values):
        del run_context
        self._collected.add(run_values.results)


def collecting(
    trained: estimator.Estimator, declaration: Declaration
) -> tuple[estimator.Estimator, Collected | None]:
    """Returns an Estimator whose evaluation collects rows, and what it collects.

    None where there are no diagnostics for the label, see `is_possible`.
    """
    if not is_possible(declaration.label):
        return trained, None
    collected = Collected(declaration.label)
    model_fn = trained.model_fn

    def watched(features, labels, mode, config):
        # Models may take things out of it.
        given = dict(features) if isinstance(features, Mapping) else {}
        spec = model_fn(features, labels, mode, config)
        if mode != estimator.ModeKeys.EVAL:
            return spec
        tensors = _tensors(given, labels, spec.predictions, declaration)
        if tensors is None:
            return spec
        hooks = (*(spec.evaluation_hooks or ()), _Collect(tensors, collected))
        return spec._replace(evaluation_hooks=hooks)

    return estimator.Estimator(watched, config=trained.config), collected


def texts(
    dataset: Dataset, split: str, columns: Sequence[str]
) -> dict[str, np.ndarray]:
    """Returns columns of a split as text, in the order in which it is evaluated."""
    if not columns:
        return {}
    wanted = tuple(dataset.declaration.columns[name] for name in columns)
    source = estimators.to_records(dataset.shards(split))
    found: dict[str, list[np.ndarray]] = {name: [] for name in columns}
    for batch in order.read_in_order(source, wanted, _BATCH):
        for name in columns:
            found[name].append(batch[name].numpy())
    joined = {name: np.concatenate(values) for name, values in found.items()}
    return {
        column.name: _as_text(joined[column.name], column.type) for column in wanted
    }


def _as_text(values: np.ndarray, kind: ColumnType) -> np.ndarray:
    if kind is not ColumnType.STRING:
        return slices.in_ranges(values.astype(np.float64))
    decoded = [value.decode(errors="backslashreplace") for value in values]
    return np.array([text or slices.MISSING for text in decoded], object)
