"""What the kinds of features in a declaration have in common."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Mapping

from pipeline.declaration.columns import known_column
from pipeline.declaration.nodes import Node
from pipeline.types import (
    AnyLabel,
    Column,
    ColumnType,
    Combiner,
    Feature,
    label_of,
)

# A feature's name becomes part of variable and layer names in the graph.
FEATURE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
NUMBERS = (ColumnType.INT, ColumnType.FLOAT)
CATEGORIES = (ColumnType.STRING, ColumnType.INT)
MAX_WIDTH = 2**16
_USES = ("wide", "deep", "both")


@dataclasses.dataclass(frozen=True)
class Context:
    """What a feature may refer to: columns, the label, features above it."""

    columns: Mapping[str, Column]
    label: AnyLabel | None
    earlier: Mapping[str, Feature]


def check_name(node: Node, name: str, what: str = "a feature's name") -> None:
    if not FEATURE_NAME.fullmatch(name):
        node.fail_name(f"{what} may hold letters, digits, _ . and - only")


def _check_column(
    node: Node, column: Column, context: Context, types: Collection[ColumnType], user
) -> None:
    if label_of(context.label, column.name):
        node.fail(f"{column.name} is the label; it cannot be a feature as well")
    if column.type not in types:
        allowed = " or ".join(t.value for t in types)
        node.fail(
            f"column {column.name} is of type {column.type.value}; {user} needs"
            f" {allowed}"
        )


def source(
    name: str,
    node: Node,
    fields: Mapping[str, Node],
    context: Context,
    types: Collection[ColumnType],
) -> str:
    """Returns the feature's column, checked; by default the one of its own name."""
    if "column" in fields:
        column = known_column(fields["column"], context.columns)
    elif name in context.columns:
        column = context.columns[name]
    else:
        node.fail(f"needs `column`, since no column is called {name!r}")
    _check_column(node, column, context, types, "this kind of feature")
    return column.name


def embedding(fields: Mapping[str, Node]) -> int | None:
    if "embedding" not in fields or fields["embedding"].is_null():
        return None
    return fields["embedding"].integer(1, MAX_WIDTH)


def use(fields: Mapping[str, Node], default: str) -> str:
    return fields["use"].one_of(_USES) if "use" in fields else default


def buckets(fields: Mapping[str, Node], minimum: int = 2) -> int | None:
    return fields["buckets"].integer(minimum) if "buckets" in fields else None


LOOKED_UP = ("top_k", "min_count", "oov_buckets")


def looked_up(fields: Mapping[str, Node]) -> dict[str, int]:
    """Returns the settings of a vocabulary that are given."""
    return {name: fields[name].integer(1) for name in LOOKED_UP if name in fields}


def combiner(fields: Mapping[str, Node]) -> Combiner:
    return (
        fields["combiner"].choice(Combiner) if "combiner" in fields else Combiner.MEAN
    )


SEVERAL = ("separator", "combiner", "weights", "shared")


def separator(node: Node) -> str:
    if not node.text():
        node.fail("the empty text separates nothing")
    return node.text()


def _weights(node: Node, context: Context, are_several: bool) -> str:
    column = known_column(node, context.columns)
    types = (ColumnType.STRING,) if are_several else NUMBERS
    user = "the weight of one value"
    if are_several:
        user = "several weights with the same separator between them"
    _check_column(node, column, context, types, user)
    return column.name


def several(
    node: Node, fields: Mapping[str, Node], context: Context, column: str
) -> dict[str, object]:
    """Returns the settings of several, weighted and shared values that are given."""
    given: dict[str, object] = {}
    if "separator" in fields:
        given["separator"] = separator(fields["separator"])
        if context.columns[column].type is not ColumnType.STRING:
            fields["separator"].fail(f"column {column} is not a string; it holds one")
    if "weights" in fields:
        are_several = "separator" in fields
        given["weights"] = _weights(fields["weights"], context, are_several)
    if "combiner" in fields:
        given["combiner"] = combiner(fields)
        if not given.keys() & {"separator", "weights"}:
            fields["combiner"].fail("is for several or weighted values")
    if "weights" in given and "separator" not in given:
        given.setdefault("combiner", Combiner.SUM)
        if given["combiner"] is not Combiner.SUM:
            fields["combiner"].fail(
                "the weight of one value would cancel out; allowed: sum"
            )
    if "shared" in fields:
        given["shared"] = fields["shared"].text()
        check_name(fields["shared"], given["shared"], "a group's name")
        if "embedding" not in fields:
            node.fail("shared needs `embedding`: the width of the table that is shared")
    return given
