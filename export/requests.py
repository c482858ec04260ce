"""Real rows of a dataset as the requests that clients send."""

from __future__ import annotations

import base64
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from input_fns import parsing, records
from pipeline.compat import tf
from pipeline.types import Column, ColumnType


def raw_spec(columns: Iterable[Column]) -> dict[str, tf.io.FixedLenFeature]:
    """Returns how columns are read for a client: NaN or empty text for no value."""
    nothing = {ColumnType.FLOAT: math.nan, ColumnType.STRING: ""}
    spec = parsing.feature_spec(columns)
    for column in columns:
        if not column.required and column.type in nothing:
            spec[column.name] = spec[column.name]._replace(
                default_value=nothing[column.type]
            )
    return spec


def first_rows(
    part: records.Records, columns: Sequence[Column], count: int
) -> list[bytes]:
    """Returns the first rows as serialized tf.Examples that hold these columns only."""
    wanted = {column.name for column in columns}
    rows = []
    for serialized in itertools.islice(records.serialized_rows(part, columns), count):
        example = tf.train.Example.FromString(serialized)
        for name in set(example.features.feature) - wanted:
            del example.features.feature[name]
        rows.append(example.SerializeToString(deterministic=True))
    return rows


def raw_inputs(
    examples: Sequence[bytes], columns: Sequence[Column]
) -> dict[str, np.ndarray]:
    """Returns rows as the `predict` signature takes them: column name to [rows].

    A missing value stands as the column's default.
    """
    parsed = parsing.parse(tf.constant(list(examples), tf.string), columns)
    return {name: value.numpy() for name, value in parsed.items()}


def json_value(value: Any) -> Any:
    """Returns one value of a tensor in the REST API's JSON.

    Bytes are text where they are UTF-8, else `{"b64": ...}`.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return b64(value)


def b64(value: bytes) -> dict[str, str]:
    """Returns bytes as the REST API writes what is no text."""
    return {"b64": base64.b64encode(value).decode("ascii")}


def json_instances(
    examples: Sequence[bytes], columns: Sequence[Column]
) -> list[dict[str, Any]]:
    """Returns rows as the `instances` of a REST call of `predict`."""
    values = raw_inputs(examples, columns)
    return [
        {name: json_value(value[i]) for name, value in values.items()}
        for i in range(len(examples))
    ]


def json_examples(examples: Sequence[bytes]) -> list[dict[str, Any]]:
    """Returns rows as the `examples` of a REST call of `classify` or `regress`.

    A missing value is left out.
    """
    return [
        {name: json_value(_only(feature)) for name, feature in _features(example)}
        for example in examples
    ]


def _features(example: bytes) -> Iterable[tuple[str, tf.train.Feature]]:
    return sorted(tf.train.Example.FromString(example).features.feature.items())


def _only(feature: tf.train.Feature) -> Any:
    (value,) = getattr(feature, feature.WhichOneof("kind")).value
    return value


def rest_bodies(
    kinds: Mapping[str, str], examples: Sequence[bytes], columns: Sequence[Column]
) -> dict[str, dict[str, Any]]:
    """Returns the body of a REST call for each signature.

    Args:
      kinds: Signature name to what it takes, as `signature_defs.kind` says.
    """
    bodies = {}
    for name, kind in kinds.items():
        if kind in ("classify", "regress"):
            body = {"examples": json_examples(examples)}
        elif kind == "examples":
            body = {"instances": [{"examples": b64(e)} for e in examples]}
        else:
            body = {"instances": json_instances(examples, columns)}
        bodies[name] = {"signature_name": name, **body}
    return bodies
