"""The first rows of a dataset's split, as text."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator

from input_fns import records
from pipeline import estimators
from pipeline.compat import tf
from pipeline.dataset import Dataset
from pipeline.preprocess import byte_text


def first_rows(dataset: Dataset, split: str, count: int) -> Iterator[str]:
    """Yields rows as JSON objects, a line each; a missing value is null.

    Raises:
      UserError: The split has no rows.
    """
    rows = records.serialized_rows(
        estimators.to_records(dataset.shards(split)),
        tuple(dataset.declaration.columns.values()),
    )
    for record in itertools.islice(rows, count):
        features = tf.train.Example.FromString(record).features.feature
        row = {name: _value(features[name]) for name in dataset.declaration.columns}
        yield json.dumps(row, ensure_ascii=False)


def _value(feature: tf.train.Feature) -> int | float | str | None:
    kind = feature.WhichOneof("kind")
    values = getattr(feature, kind).value if kind else ()
    if not values:
        return None
    (value,) = values
    if isinstance(value, bytes):
        return byte_text.to_text(value)
    # The shortest decimal that is this float32, as the file had it.
    return float(f"{value:.9g}") if isinstance(value, float) else value
