"""Rows made for verification, from a real one: values missing, unknown or wrong."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence

from pipeline.compat import tf
from pipeline.types import Column, ColumnType, Declaration, Image

UNKNOWN = "\u2603 no term of any vocabulary"
# Of each refused request a call is made; tables with more columns are tried in part.
_MAX_COLUMNS = 100


def _copy(row: bytes) -> tf.train.Example:
    return tf.train.Example.FromString(row)


def rows(row: bytes, declaration: Declaration) -> list[bytes]:
    """Returns a row as it is, with each optional value missing, with unknown texts.

    The columns of images get none, since a text is no image.

    Args:
      row: A serialized tf.Example.
      declaration: What the model reads.
    """
    features = declaration.features.values()
    images = {feature.column for feature in features if isinstance(feature, Image)}
    found = [row]
    everything_missing = _copy(row)
    for column in declaration.input_columns:
        takes_any = column.type is ColumnType.STRING and not column.restricted
        if not column.required:
            example = _copy(row)
            for changed in (example, everything_missing):
                changed.features.feature.pop(column.name, None)
            found.append(example.SerializeToString())
        if takes_any and column.name not in images:
            example = _copy(row)
            example.features.feature[column.name].bytes_list.value[:] = [
                UNKNOWN.encode()
            ]
            found.append(example.SerializeToString())
    return [*found, everything_missing.SerializeToString()]


def refused(row: bytes, columns: Sequence[Column]) -> Iterator[dict[str, str]]:
    """Yields requests that must fail with an error that names the feature.

    Each is a plain value: `feature`, `what` is wrong, `example` in base64.
    """
    for column in columns[:_MAX_COLUMNS]:
        example = _copy(row)
        feature = example.features.feature[column.name]
        feature.Clear()
        if column.type is ColumnType.STRING:
            feature.int64_list.value.append(1)
            yield _request(column, "an int instead of text", example)
        else:
            feature.bytes_list.value.append(b"1")
            yield _request(column, "text instead of a number", example)
        if column.required:
            del example.features.feature[column.name]
            yield _request(column, "no value", example)


def _request(column: Column, what: str, example: tf.train.Example) -> dict[str, str]:
    encoded = base64.b64encode(example.SerializeToString()).decode("ascii")
    return {"feature": column.name, "what": what, "example": encoded}
