"""Reads and checks a feature declaration."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pipeline.declaration import columns as columns_
from pipeline.declaration import features as features_
from pipeline.declaration import nodes
from pipeline.declaration import split as split_
from pipeline.declaration.columns import known_column
from pipeline.declaration.nodes import Node, build
from pipeline.declaration.split import DEFAULT_FRACTIONS
from pipeline.types import (
    AnySplit,
    Column,
    ColumnType,
    Declaration,
    Label,
    Split,
)

_INT_CLASS = re.compile(r"0|-?[1-9][0-9]{0,18}")
_ASCII_BLANKS = " \t\n\v\f\r"


def _check_classes(classes: Node, column: Column) -> None:
    """Refuses classes that no value of the column can be."""
    if column.type is ColumnType.FLOAT:
        classes.fail(
            f"column {column.name} is a float; classes need an int or string column"
        )
    seen: set[str] = set()
    for element in classes.elements():
        text = element.text()
        if text in seen:
            element.fail(f"{text!r} stands twice")
        seen.add(text)
        if column.type is ColumnType.INT and not (
            _INT_CLASS.fullmatch(text) and -(2**63) <= int(text) < 2**63
        ):
            element.fail(
                f"{text!r} is not a whole number as column {column.name} holds them,"
                " e.g. 0 or -12"
            )
        trimmed = text.strip(_ASCII_BLANKS)
        if text != trimmed:
            element.fail(
                f"{text!r} cannot be met: labels are read without the blanks around"
                f" them; write {trimmed!r}"
            )
        if text in column.missing:
            element.fail(f"{text!r} means that column {column.name} has no value")


def _label(node: Node, columns: Mapping[str, Column]) -> Label:
    fields = node.fields(["column"], ["classes"])
    column = known_column(fields["column"], columns)
    if not column.required:
        fields["column"].fail("the label's column may not have a default")
    classes = None
    if "classes" in fields:
        _check_classes(fields["classes"], column)
        classes = fields["classes"].texts()
    elif column.type is ColumnType.STRING:
        node.fail(
            f"column {column.name} is a string, so `classes` must list its labels"
        )
    return build(
        fields.get("classes", node), Label, column=column.name, classes=classes
    )


def load(path: str) -> Declaration:
    """Reads and checks a feature declaration.

    Raises:
      UserError: Naming file, line, column, the place and what is allowed.
    """
    root = nodes.load(path)
    fields = root.fields(["columns", "features"], ["label", "weight", "split"])
    columns = {
        name: columns_.read(name, node) for name, node in fields["columns"].items()
    }
    label = _label(fields["label"], columns) if "label" in fields else None
    weight = None
    if "weight" in fields:
        column = known_column(fields["weight"], columns)
        if column.type is ColumnType.STRING:
            fields["weight"].fail(f"column {column.name} is not a number")
        if label and column.name == label.column:
            fields["weight"].fail("the label cannot be the weight as well")
        weight = column.name
    split: AnySplit = Split(DEFAULT_FRACTIONS)
    if "split" in fields:
        split = split_.read(fields["split"], columns)
    features = features_.read(fields["features"], columns, label)
    return Declaration(columns, features, split, label, weight)
