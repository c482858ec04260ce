"""The declaration as a TensorFlow Metadata schema, the ecosystem's form, and back."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import NoReturn

import numpy as np
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from pipeline.types import (
    AnyLabel,
    Column,
    ColumnType,
    Declaration,
    UserError,
    label_of,
)

_TYPES = {
    ColumnType.INT: schema_pb2.INT,
    ColumnType.FLOAT: schema_pb2.FLOAT,
    ColumnType.STRING: schema_pb2.BYTES,
}
_DOMAINS = {
    ColumnType.INT: "int_domain",
    ColumnType.FLOAT: "float_domain",
    ColumnType.STRING: "string_domain",
}


@dataclasses.dataclass(frozen=True)
class FeatureSchema:
    """What a schema says of a column; None where it says nothing.

    Attributes:
      type: Its type.
      min_fraction: Share of rows that must have a value; 1 makes it required.
      min: Lowest allowed number.
      max: Highest allowed number.
      values: Allowed texts.
      drift: Distance from an earlier dataset that is still normal.
    """

    type: ColumnType | None = None
    min_fraction: float | None = None
    min: int | float | None = None
    max: int | float | None = None
    values: tuple[str, ...] | None = None
    drift: float | None = None


def of_column(column: Column, labels: AnyLabel | None = None) -> FeatureSchema:
    """Returns what the declaration says of a column; labels have their classes."""
    low, high, values = column.min, column.max, column.values
    label = label_of(labels, column.name)
    if label and label.classes and label.separator is None and not values:
        if column.type is ColumnType.STRING:
            values = label.classes
        elif (low, high) == (None, None):
            numbers = list(map(int, label.classes))
            low, high = min(numbers), max(numbers)
    min_fraction = 1.0 if column.required else column.min_fraction
    return FeatureSchema(column.type, min_fraction, low, high, values, column.drift)


def to_text(declaration: Declaration) -> str:
    """Returns the schema as protobuf text (`schema.pbtxt`).

    Each column has one value in the rows that have it; required columns are in all
    rows; allowed values and the label's classes are the domains.
    """
    return text_format.MessageToString(to_proto(declaration), as_utf8=True)


def to_proto(declaration: Declaration) -> schema_pb2.Schema:
    """Returns the schema of a declaration."""
    schema = schema_pb2.Schema()
    for column in declaration.columns.values():
        feature = schema.feature.add(name=column.name, type=_TYPES[column.type])
        feature.value_count.min = feature.value_count.max = 1
        feature.presence.min_count = 1
        label = label_of(declaration.label, column.name)
        rules = of_column(column, label)
        if rules.min_fraction is not None:
            feature.presence.min_fraction = rules.min_fraction
        if rules.values is not None:
            feature.string_domain.value.extend(rules.values)
        if (rules.min, rules.max) != (None, None):
            domain = getattr(feature, _DOMAINS[column.type])
            if rules.min is not None:
                domain.min = rules.min
            if rules.max is not None:
                domain.max = rules.max
        if label and column.type is ColumnType.INT:
            feature.int_domain.is_categorical = label.classes is not None
        if rules.drift is not None:
            comparator = feature.drift_comparator
            if column.type is ColumnType.STRING:
                comparator.infinity_norm.threshold = rules.drift
            else:
                comparator.jensen_shannon_divergence.threshold = rules.drift
    return schema


def read(path: str) -> dict[str, FeatureSchema]:
    """Reads a schema file, e.g. an edited copy of `schema.pbtxt`.

    Raises:
      UserError: The file cannot be read or parsed (naming the line), or a feature
        asks for something that columns do not have.
    """
    try:
        with open(path, encoding="utf-8") as f:
            schema = text_format.Parse(f.read(), schema_pb2.Schema())
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read --schema {path}: {error}") from error
    except text_format.ParseError as error:
        place = f"{path}:{error.GetLine()}:{error.GetColumn()}"
        reason = str(error).split(" : ", 1)[-1]
        raise UserError(f"{place}: not a schema in protobuf text: {reason}") from error
    domains = {d.name: tuple(d.value) for d in schema.string_domain}
    found: dict[str, FeatureSchema] = {}
    for feature in schema.feature:
        if feature.name in found:
            _fail(path, feature.name, "stands twice")
        found[feature.name] = _feature(feature, domains, path)
    return found


def _fail(path: str, feature: str, message: str) -> NoReturn:
    raise UserError(f"{path}: feature {feature}: {message}")


def _feature(
    feature: schema_pb2.Feature, domains: Mapping[str, tuple[str, ...]], path: str
) -> FeatureSchema:
    types = {**{v: k for k, v in _TYPES.items()}, schema_pb2.TYPE_UNKNOWN: None}
    if feature.type not in types:
        name = schema_pb2.FeatureType.Name(feature.type)
        _fail(path, feature.name, f"type {name} is unknown; use INT, FLOAT or BYTES")
    counts = {feature.value_count.min, feature.value_count.max}
    if feature.HasField("value_count") and not counts <= {0, 1}:
        _fail(path, feature.name, "value_count must be 1: a column has one value a row")
    kind = types[feature.type]
    values: dict[str, object] = {}
    named = feature.WhichOneof("domain_info")
    if named == "domain":
        if feature.domain not in domains:
            _fail(path, feature.name, f"there is no string_domain {feature.domain!r}")
        values["values"] = domains[feature.domain]
    elif named == "string_domain":
        values["values"] = tuple(feature.string_domain.value)
    elif named in ("int_domain", "float_domain"):
        domain = getattr(feature, named)
        for bound in ("min", "max"):
            value = getattr(domain, bound)
            if domain.HasField(bound) and not math.isinf(value):
                values[bound] = _shortest(value) if named == "float_domain" else value
    elif named is not None:
        _fail(
            path,
            feature.name,
            f"{named} is not supported; use int_domain, float_domain or string_domain",
        )
    named = "string_domain" if named == "domain" else named
    if kind is not None and named not in (None, _DOMAINS[kind]):
        _fail(path, feature.name, f"{named} does not go with type {kind.value.upper()}")
    if kind is None and named is not None:
        kind = {v: k for k, v in _DOMAINS.items()}[named]
    if feature.presence.HasField("min_fraction"):
        values["min_fraction"] = feature.presence.min_fraction
    for measure in ("infinity_norm", "jensen_shannon_divergence"):
        comparator = getattr(feature.drift_comparator, measure)
        if comparator.HasField("threshold"):
            values["drift"] = comparator.threshold
    return FeatureSchema(type=kind, **values)


def _shortest(bound: float) -> float:
    """Returns the shortest decimal of a float32, which is what people wrote."""
    single = np.float32(bound)
    return float(str(single)) if float(single) == bound else bound


def apply(declaration: Declaration, path: str) -> Declaration:
    """Returns the declaration with the schema's rules in place of its columns' own.

    A schema can make a column required, not the other way round.

    Raises:
      UserError: The schema cannot be read or contradicts the declaration.
    """
    columns = dict(declaration.columns)
    for name, rules in read(path).items():
        column = columns.get(name)
        if column is None:
            _fail(path, name, f"no such column; declared are: {', '.join(columns)}")
        if rules.type not in (None, column.type):
            _fail(
                path,
                name,
                f"type {rules.type.value}, but the column is declared as"
                f" {column.type.value}",
            )
        columns[name] = _ruled(column, rules, declaration.label, path)
    return dataclasses.replace(declaration, columns=columns)


def _ruled(
    column: Column, rules: FeatureSchema, labels: AnyLabel | None, path: str
) -> Column:
    own = of_column(column, labels)
    changes: dict[str, object] = {"drift": rules.drift}
    if (rules.min, rules.max, rules.values) != (own.min, own.max, own.values):
        changes |= {"min": rules.min, "max": rules.max, "values": rules.values}
    label = label_of(labels, column.name)
    if label and label.classes and rules.values is not None:
        unknown = [v for v in rules.values if v not in label.classes]
        if unknown:
            _fail(
                path, column.name, f"{unknown[0]!r} is not one of the label's classes"
            )
    if rules.min_fraction == 1.0:
        changes |= {"default": None, "min_fraction": None}
    elif not column.required:
        changes["min_fraction"] = rules.min_fraction
    try:
        return dataclasses.replace(column, **changes)
    except ValueError as error:
        _fail(path, column.name, str(error))
