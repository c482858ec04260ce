"""Writes a feature declaration as YAML that a person can edit."""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Mapping

import yaml

from pipeline.declaration.feature_nodes import FEATURE_NAME
from pipeline.types import (
    AnyLabel,
    AnySplit,
    Column,
    Declaration,
    Distribution,
    Feature,
    Label,
    OutOfRange,
    Split,
    TimeSplit,
    WindowSplit,
)

_TEXT_TAG = "tag:yaml.org,2002:str"
# YAML allows no longer name before a colon, unless a question mark precedes it.
_MAX_NAME = 1000


def _scalar(value: str | int | float) -> str:
    if not isinstance(value, str):
        return yaml.safe_dump(value).splitlines()[0]
    if FEATURE_NAME.fullmatch(value) and yaml.compose(value).tag == _TEXT_TAG:
        return value
    quoted = yaml.safe_dump(
        value, default_style='"', allow_unicode=True, width=math.inf
    )
    return quoted.removesuffix("\n")


def _line(name: str, values: Mapping[str, object]) -> str:
    shown = _scalar(name)
    if len(shown) > _MAX_NAME:
        return f"  ? {shown}\n  : {_flow(values)}"
    return f"  {shown}: {_flow(values)}"


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(_scalar(v) for v in value) + "]"
    return _scalar(value)


def _flow(values: Mapping[str, object]) -> str:
    return "{" + ", ".join(f"{k}: {_shown(v)}" for k, v in values.items()) + "}"


def _column_line(column: Column) -> str:
    values: dict[str, object] = {"type": column.type.value}
    markers = tuple(m for m in column.missing if m)
    if markers:
        values["missing"] = markers
    for field in dataclasses.fields(column):
        value = getattr(column, field.name)
        if field.name in ("name", "type", "missing") or value == field.default:
            continue
        values[field.name] = value.value if isinstance(value, OutOfRange) else value
    return _line(column.name, values)


def _feature_line(feature: Feature) -> str:
    values: dict[str, object] = {"kind": feature.KIND}
    for field in dataclasses.fields(feature):
        value = getattr(feature, field.name)
        if field.name == "name" or value is None or value == field.default:
            continue
        if field.name == "column" and value == feature.name:
            continue
        values[field.name] = value.value if isinstance(value, enum.Enum) else value
    return _line(feature.name, values)


def _split_lines(split: AnySplit) -> list[str]:
    if isinstance(split, Split):
        return [
            "split:",
            f"  fractions: {_flow(split.fractions)}",
            "  # Columns whose values decide a row's split; [] takes the whole row.",
            "  key: [" + ", ".join(map(_scalar, split.key)) + "]",
            f"  salt: {_scalar(split.salt)}",
        ]
    if isinstance(split, WindowSplit):
        return ["split:", f"  by: {split.BY}"]
    head = ["split:", f"  by: {split.BY}", f"  column: {_scalar(split.column)}"]
    if isinstance(split, TimeSplit):
        return [*head, f"  boundaries: {_flow(split.boundaries)}"]
    return [*head, f"  values: {_flow(split.values)}"]


def _label_values(label: Label) -> dict[str, object]:
    values: dict[str, object] = {"column": label.column}
    if label.classes is not None:
        values["classes"] = label.classes
    if label.separator is not None:
        values["separator"] = label.separator
    if label.distribution is not Distribution.NORMAL:
        values["distribution"] = label.distribution.value
    return values


def _label_lines(label: AnyLabel | None) -> list[str]:
    if label is None:
        return []
    if isinstance(label, Label):
        values = _label_values(label)
        return ["label:", *(f"  {k}: {_shown(v)}" for k, v in values.items())]
    lines = ["labels:"]
    for name, one in label.of.items():
        values = _label_values(one)
        if label.weights[name] != 1:
            values["weight"] = label.weights[name]
        lines.append(_line(name, values))
    return lines


def dump(declaration: Declaration, comment: str = "") -> str:
    """Returns YAML that `load` reads back as an equal declaration."""
    lines = [f"# {line}" for line in comment.splitlines()]
    lines += _label_lines(declaration.label)
    if declaration.weight:
        lines.append(f"weight: {_scalar(declaration.weight)}")
    lines += [
        *_split_lines(declaration.split),
        "columns:",
        *map(_column_line, declaration.columns.values()),
        "features:",
        *map(_feature_line, declaration.features.values()),
    ]
    return "\n".join(lines) + "\n"
