"""The `label` or the `labels` of a feature declaration."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pipeline.declaration.columns import known_column
from pipeline.declaration.feature_nodes import FEATURE_NAME
from pipeline.declaration.nodes import Node, build
from pipeline.types import Column, ColumnType, Distribution, Label, Labels

_INT_CLASS = re.compile(r"0|-?[1-9][0-9]{0,18}")
_ASCII_BLANKS = " \t\n\v\f\r"
_OPTIONAL = ("classes", "separator", "distribution")


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


def _check_default(node: Node, column: Column, label: Label) -> None:
    """A row without a value has no label; it may have none of several, though."""
    if column.required:
        return
    if label.separator is None:
        node.fail("the label's column may not have a default")
    parts = map(str.strip, str(column.default).split(label.separator))
    unknown = [part for part in parts if part and part not in label.classes]
    if unknown:
        node.fail(
            f"the default of column {column.name} holds {unknown[0]!r}, which is not"
            f" one of the classes; for none of them the default is {label.separator!r}"
        )


def _label(fields: Mapping[str, Node], node: Node, columns) -> Label:
    column = known_column(fields["column"], columns)
    settings: dict[str, object] = {"column": column.name}
    if "classes" in fields:
        _check_classes(fields["classes"], column)
        settings["classes"] = fields["classes"].texts()
        build(fields["classes"], Label, **settings)
    elif column.type is ColumnType.STRING:
        node.fail(
            f"column {column.name} is a string, so `classes` must list its labels"
        )
    if "separator" in fields:
        if column.type is not ColumnType.STRING:
            fields["separator"].fail(f"column {column.name} is not a string")
        settings["separator"] = fields["separator"].text()
        build(fields["separator"], Label, **settings)
    if "distribution" in fields:
        settings["distribution"] = fields["distribution"].choice(Distribution)
    label = build(fields.get("distribution", node), Label, **settings)
    _check_default(fields["column"], column, label)
    return label


def read_one(node: Node, columns: Mapping[str, Column]) -> Label:
    """Reads `label`.

    Raises:
      UserError: Naming file, line and column.
    """
    return _label(node.fields(["column"], _OPTIONAL), node, columns)


def read_several(node: Node, columns: Mapping[str, Column]) -> Labels:
    """Reads `labels`, a mapping of names to labels; else as `read_one`."""
    found: dict[str, Label] = {}
    weights: dict[str, float] = {}
    for name, one in node.items():
        if not FEATURE_NAME.fullmatch(name):
            one.fail_name(
                f"{name!r} cannot be a name; use letters, digits, _ . and -, not"
                " first of these the last three"
            )
        fields = one.fields(["column"], [*_OPTIONAL, "weight"])
        weights[name] = 1.0
        if "weight" in fields:
            weights[name] = fields["weight"].number()
            if weights[name] <= 0:
                fields["weight"].fail("a weight must be above 0")
        found[name] = _label(fields, one, columns)
    return build(node, Labels, of=found, weights=weights)
