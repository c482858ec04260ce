"""The `columns` of a feature declaration."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.declaration.nodes import Node, build
from pipeline.types import Column, ColumnType, OutOfRange


def known_column(node: Node, columns: Mapping[str, Column]) -> Column:
    """Returns the column that a node names; fails where there is none."""
    name = node.text()
    if name not in columns:
        node.fail(f"{name!r} is not under `columns`; there are: {', '.join(columns)}")
    return columns[name]


def _default(node: Node, kind: ColumnType) -> int | float | str:
    if node.is_null():
        node.fail("no value; leave `default` out to make the column required")
    if kind is ColumnType.STRING and not node.text():
        node.fail("the empty text means that a value is missing; choose another")
    if kind is ColumnType.INT:
        return node.integer()
    if kind is ColumnType.FLOAT:
        return node.number()
    return node.text()


def _number(node: Node, kind: ColumnType) -> int | float:
    return node.integer() if kind is ColumnType.INT else node.number()


def read(name: str, node: Node) -> Column:
    """Reads a column.

    Raises:
      UserError: Naming file, line and column.
    """
    if name != name.strip() or not name:
        node.fail_name(
            f"{name!r} cannot be found: names in the data are read without the blanks"
            " around them"
        )
    fields = node.fields(["type"], _OPTIONAL)
    kind = fields["type"].choice(ColumnType)
    markers = fields["missing"].texts() if "missing" in fields else ()
    settings: dict[str, object] = {}
    if "default" in fields:
        settings["default"] = _default(fields["default"], kind)
        # Alone first, so that an error about it has its place.
        build(fields["default"], Column, name=name, type=kind, **settings)
    for bound in ("min", "max"):
        if bound in fields:
            settings[bound] = _number(fields[bound], kind)
    if "values" in fields:
        settings["values"] = fields["values"].texts()
    if "out_of_range" in fields:
        settings["out_of_range"] = fields["out_of_range"].choice(OutOfRange)
    for share in ("min_fraction", "drift"):
        if share in fields:
            settings[share] = fields[share].number()
    return build(
        node,
        Column,
        name=name,
        type=kind,
        missing=tuple(dict.fromkeys(("", *(m.strip() for m in markers)))),
        **settings,
    )


_OPTIONAL = (
    "missing",
    "default",
    "min",
    "max",
    "values",
    "out_of_range",
    "min_fraction",
    "drift",
)
