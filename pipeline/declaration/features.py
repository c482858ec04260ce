"""The `features` of a feature declaration."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping

from pipeline.declaration.columns import known_column
from pipeline.declaration.nodes import Node, build
from pipeline.types import (
    AnyLabel,
    Bucketized,
    Column,
    ColumnType,
    Crossed,
    Feature,
    Hashed,
    Identity,
    Numeric,
    Scale,
    Vocabulary,
    label_of,
)

# A feature's name becomes part of variable and layer names in the graph.
FEATURE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_USES = ("wide", "deep", "both")
_MAX_WIDTH = 2**16
_MAX_BUCKETS = 2**31 - 1


@dataclasses.dataclass(frozen=True)
class Context:
    """What a feature may refer to: columns, the label, features above it."""

    columns: Mapping[str, Column]
    label: AnyLabel | None
    earlier: Mapping[str, Feature]


def _source(
    name: str,
    node: Node,
    fields: Mapping[str, Node],
    context: Context,
    types: tuple[ColumnType, ...],
) -> str:
    if "column" in fields:
        column = known_column(fields["column"], context.columns)
    elif name in context.columns:
        column = context.columns[name]
    else:
        node.fail(f"needs `column`, since no column is called {name!r}")
    if label_of(context.label, column.name):
        node.fail(f"{column.name} is the label; it cannot be a feature as well")
    if column.type not in types:
        allowed = " or ".join(t.value for t in types)
        node.fail(
            f"column {column.name} is of type {column.type.value}; this kind of"
            f" feature needs {allowed}"
        )
    return column.name


_NUMBERS = (ColumnType.INT, ColumnType.FLOAT)
_CATEGORIES = (ColumnType.STRING, ColumnType.INT)


def _embedding(fields: Mapping[str, Node]) -> int | None:
    if "embedding" not in fields or fields["embedding"].is_null():
        return None
    return fields["embedding"].integer(1, _MAX_WIDTH)


def _use(fields: Mapping[str, Node], default: str) -> str:
    return fields["use"].one_of(_USES) if "use" in fields else default


def _buckets(node: Node, minimum: int = 2) -> int:
    buckets = node.integer(minimum)
    if buckets > _MAX_BUCKETS:
        node.fail(
            f"{buckets} buckets would need {buckets * 4 / 2**30:,.0f} GiB for one"
            f" weight each; at most {_MAX_BUCKETS} are allowed"
        )
    return buckets


def _numeric(name: str, node: Node, context: Context) -> Numeric:
    fields = node.fields(["kind"], ["column", "scale", "use"])
    scale = fields["scale"].choice(Scale) if "scale" in fields else Scale.ZSCORE
    column = _source(name, node, fields, context, _NUMBERS)
    return build(
        node, Numeric, name=name, column=column, scale=scale, use=_use(fields, "deep")
    )


def _bucketized(name: str, node: Node, context: Context) -> Bucketized:
    fields = node.fields(
        ["kind"], ["column", "boundaries", "quantiles", "embedding", "use"]
    )
    boundaries = None
    if "boundaries" in fields:
        boundaries = tuple(e.number() for e in fields["boundaries"].elements())
    quantiles = None
    if "quantiles" in fields:
        quantiles = fields["quantiles"].integer(2, _MAX_WIDTH)
    return build(
        fields.get("boundaries", node),
        Bucketized,
        name=name,
        column=_source(name, node, fields, context, _NUMBERS),
        boundaries=boundaries,
        quantiles=quantiles,
        embedding=_embedding(fields),
        use=_use(fields, "wide"),
    )


def _vocabulary(name: str, node: Node, context: Context) -> Vocabulary:
    fields = node.fields(
        ["kind"], ["column", "top_k", "min_count", "oov_buckets", "embedding", "use"]
    )
    return build(
        node,
        Vocabulary,
        name=name,
        column=_source(name, node, fields, context, _CATEGORIES),
        top_k=fields["top_k"].integer(1) if "top_k" in fields else None,
        min_count=fields["min_count"].integer(1) if "min_count" in fields else 1,
        oov_buckets=_buckets(fields["oov_buckets"], 1)
        if "oov_buckets" in fields
        else 1,
        embedding=_embedding(fields),
        use=_use(fields, "both"),
    )


def _hashed(name: str, node: Node, context: Context) -> Hashed:
    fields = node.fields(["kind", "buckets"], ["column", "embedding", "use"])
    return build(
        node,
        Hashed,
        name=name,
        column=_source(name, node, fields, context, _CATEGORIES),
        buckets=_buckets(fields["buckets"]),
        embedding=_embedding(fields),
        use=_use(fields, "both"),
    )


def _identity(name: str, node: Node, context: Context) -> Identity:
    fields = node.fields(["kind", "buckets"], ["column", "embedding", "use"])
    return build(
        node,
        Identity,
        name=name,
        column=_source(name, node, fields, context, (ColumnType.INT,)),
        buckets=_buckets(fields["buckets"], 1),
        embedding=_embedding(fields),
        use=_use(fields, "both"),
    )


def _crossed(name: str, node: Node, context: Context) -> Crossed:
    fields = node.fields(["kind", "of", "buckets"], ["embedding", "use"])
    elements = fields["of"].elements()
    if len(elements) < 2 or len({e.text() for e in elements}) < len(elements):
        fields["of"].fail("needs at least two different features")
    for element in elements:
        part = context.earlier.get(element.text())
        if part is None:
            element.fail(f"{element.text()!r} is not a feature declared above this one")
        if not isinstance(part, (Bucketized, Vocabulary, Hashed, Identity)):
            element.fail(
                f"{part.name} cannot be crossed; cross bucketized, vocabulary,"
                " hashed or identity features"
            )
    return build(
        node,
        Crossed,
        name=name,
        of=tuple(e.text() for e in elements),
        buckets=_buckets(fields["buckets"]),
        embedding=_embedding(fields),
        use=_use(fields, "wide"),
    )


_KINDS: Mapping[str, Callable[[str, Node, Context], Feature]] = {
    "numeric": _numeric,
    "bucketized": _bucketized,
    "vocabulary": _vocabulary,
    "hashed": _hashed,
    "identity": _identity,
    "crossed": _crossed,
}


def read(name: str, node: Node, context: Context) -> Feature:
    """Reads a feature.

    Raises:
      UserError: Naming file, line and column.
    """
    if not FEATURE_NAME.fullmatch(name):
        node.fail_name("a feature's name may hold letters, digits, _ . and - only")
    kinds = [n for key, n in node.items() if key == "kind"]
    if not kinds:
        node.fail(f"needs kind; allowed: {', '.join(_KINDS)}")
    feature = _KINDS[kinds[0].one_of(_KINDS)](name, node, context)
    for other in context.earlier.values():
        same_kind = type(other) is type(feature) and not isinstance(other, Crossed)
        if same_kind and other.column == feature.column:
            node.fail(
                f"column {other.column} already has a {other.KIND} feature:"
                f" {other.name}"
            )
    return feature
