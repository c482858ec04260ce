"""The `split` of a feature declaration."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pipeline import times
from pipeline.declaration.columns import known_column
from pipeline.declaration.nodes import Node, build
from pipeline.types import (
    AnySplit,
    Column,
    ColumnSplit,
    ColumnType,
    Split,
    TimeSplit,
    WindowSplit,
)

DEFAULT_FRACTIONS = {"train": 0.8, "eval": 0.1, "test": 0.1}
REQUIRED_SPLITS = ("train", "eval", "test")


def _require_names(node: Node, found: Mapping[str, object], wanted) -> None:
    if set(found) != set(wanted):
        node.fail(f"needs exactly {', '.join(wanted)}")


def _by_hash(node: Node, columns: Mapping[str, Column]) -> Split:
    fields = node.fields([], ["by", "fractions", "key", "salt"])
    fractions: Mapping[str, float] = DEFAULT_FRACTIONS
    if "fractions" in fields:
        fractions = {n: v.number() for n, v in fields["fractions"].items()}
        _require_names(fields["fractions"], fractions, REQUIRED_SPLITS)
    key: tuple[str, ...] = ()
    if "key" in fields:
        key = tuple(known_column(e, columns).name for e in fields["key"].elements())
    salt = fields["salt"].text() if "salt" in fields else ""
    return build(
        fields.get("fractions", node), Split, fractions=fractions, key=key, salt=salt
    )


def _boundary(node: Node, column: Column) -> str | int | float:
    if column.type is ColumnType.INT:
        return node.integer()
    if column.type is ColumnType.FLOAT:
        return node.number()
    time = times.normal(node.text())
    if time is None:
        node.fail(f"{node.text()!r} is not {times.EXPECTED}")
    return time


def _by_time(node: Node, columns: Mapping[str, Column]) -> TimeSplit:
    fields = node.fields(["by", "column", "boundaries"], [])
    column = known_column(fields["column"], columns)
    boundaries = {n: _boundary(v, column) for n, v in fields["boundaries"].items()}
    _require_names(fields["boundaries"], boundaries, REQUIRED_SPLITS[1:])
    return build(
        fields["boundaries"], TimeSplit, column=column.name, boundaries=boundaries
    )


def _by_column(node: Node, columns: Mapping[str, Column]) -> ColumnSplit:
    fields = node.fields(["by", "column", "values"], [])
    column = known_column(fields["column"], columns)
    if column.type is ColumnType.FLOAT:
        fields["column"].fail(f"{column.name} is a float; a string or int is needed")
    values = {}
    for name, listed in fields["values"].items():
        if column.type is ColumnType.INT:
            values[name] = tuple(e.integer_text() for e in listed.elements())
        else:
            values[name] = listed.texts()
    _require_names(fields["values"], values, REQUIRED_SPLITS)
    return build(fields["values"], ColumnSplit, column=column.name, values=values)


def _by_window(node: Node, columns: Mapping[str, Column]) -> WindowSplit:
    del columns
    node.fields(["by"], [])
    return WindowSplit()


_KINDS: Mapping[str, Callable[[Node, Mapping[str, Column]], AnySplit]] = {
    Split.BY: _by_hash,
    TimeSplit.BY: _by_time,
    ColumnSplit.BY: _by_column,
    WindowSplit.BY: _by_window,
}


def read(node: Node, columns: Mapping[str, Column]) -> AnySplit:
    """Reads how rows are divided.

    Raises:
      UserError: Naming file, line and column.
    """
    kinds = [value for key, value in node.items() if key == "by"]
    kind = kinds[0].one_of(_KINDS) if kinds else Split.BY
    return _KINDS[kind](node, columns)
