"""What exported models predict for the rows of a split.

The export itself is asked, since it is what will be served.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from export import versions
from input_fns import labels, order
from pipeline import declaration as declarations
from pipeline import estimators
from pipeline.compat import tf
from pipeline.dataset import Dataset
from pipeline.retraining.scores import Truth, names
from pipeline.types import Declaration, Label, UserError

_BATCH = 1024
_SIGNATURE = "predict"


@dataclasses.dataclass(frozen=True, eq=False)
class Exported:
    """An exported model that is loaded.

    Attributes:
      directory: The version.
      declaration: Of its features.
      signature: Takes columns by name.
      model: Keeps the variables alive.
    """

    directory: str
    declaration: Declaration
    signature: Any
    model: Any

    def inputs(self) -> set[str]:
        return set(self.signature.structured_input_signature[1])

    def predict(self, columns: Mapping[str, tf.Tensor], label: Label) -> np.ndarray:
        """Returns probabilities [rows, classes], or numbers [rows]; float64."""
        outputs = self.signature(**{n: columns[n] for n in self.inputs()})
        name = "predictions" if label.classes is None else "probabilities"
        if name not in outputs:
            raise UserError(
                f"{self.directory} has no output {name} to judge it by; there are"
                f" {', '.join(sorted(outputs))}"
            )
        found = outputs[name].numpy().astype(np.float64)
        return found[:, 0] if label.classes is None else found


def load(directory: str) -> Exported:
    """Loads a version.

    Raises:
      UserError: It cannot be loaded.
    """
    path = os.path.join(directory, versions.DECLARATION_FILE)
    declaration = declarations.load(path)
    try:
        model = tf.saved_model.load(directory)
        signature = model.signatures[_SIGNATURE]
    except (OSError, KeyError, ValueError, tf.errors.OpError) as error:
        raise UserError(f"{directory} cannot be loaded ({error})") from error
    return Exported(directory, declaration, signature, model)


def check_label(dataset: Dataset, exported: Exported) -> None:
    """Checks that a model predicts what the dataset's label says.

    Raises:
      UserError: It does not, or it reads columns that the dataset has not.
    """
    dataset.check_fits(exported.declaration, exported.directory)
    if exported.declaration.label != dataset.declaration.label:
        raise UserError(
            f"the model in {exported.directory} predicts another label or other"
            " classes, so that it cannot be compared; begin anew with another"
            " --serving_dir"
        )


def of_split(
    dataset: Dataset, split: str, models: Sequence[Exported], slices: Sequence[str]
) -> tuple[Truth, list[np.ndarray]]:
    """Returns the labels of a split, and each model's predictions of its rows.

    Args:
      dataset: Holds the rows; its label is a single one.
      split: Name of the split.
      models: Exported models that fit it.
      slices: Columns whose values are wanted as text.
    """
    declaration = dataset.declaration
    label = declaration.label
    wanted = {*slices, *(n for model in models for n in model.inputs())}
    wanted |= {c.name for c in labels.read_columns(declaration)}
    columns = tuple(c for c in declaration.columns.values() if c.name in wanted)
    source = estimators.to_records(dataset.shards(split))
    truths, weights = [], []
    texts: dict[str, list[np.ndarray]] = {name: [] for name in slices}
    found: list[list[np.ndarray]] = [[] for _ in models]
    for batch in order.read_in_order(source, columns, _BATCH):
        truths.append(_labels(batch[label.column], label))
        weight = batch[declaration.weight].numpy() if declaration.weight else None
        rows = len(truths[-1])
        weights.append(np.ones(rows) if weight is None else np.maximum(weight, 0.0))
        for name in slices:
            texts[name].append(_texts(batch[name]))
        for predictions, model in zip(found, models, strict=True):
            predictions.append(model.predict(batch, label))
    names(label.task)
    truth = Truth(
        label.task,
        np.concatenate(truths),
        np.concatenate(weights).astype(np.float64),
        {name: np.concatenate(values) for name, values in texts.items()},
    )
    return truth, [np.concatenate(predictions) for predictions in found]


def _texts(values: tf.Tensor) -> np.ndarray:
    text = values if values.dtype == tf.string else tf.strings.as_string(values)
    return np.array([v.decode(errors="backslashreplace") for v in text.numpy()], object)


def _labels(values: tf.Tensor, label: Label) -> np.ndarray:
    if label.classes is None:
        return values.numpy().astype(np.float64)
    place = {name: number for number, name in enumerate(label.classes)}
    try:
        return np.array([place[text] for text in _texts(values)], np.int64)
    except KeyError as error:
        raise UserError(
            f"label {label.column}: {error} is none of its classes"
        ) from None
