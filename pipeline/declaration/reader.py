"""Reads and checks a feature declaration."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping

from pipeline.declaration import nodes
from pipeline.declaration.nodes import Node
from pipeline.types import (
    Bucketized,
    Column,
    ColumnType,
    Crossed,
    Declaration,
    Feature,
    Hashed,
    Label,
    Numeric,
    Scale,
    Split,
    Vocabulary,
)

DEFAULT_FRACTIONS = {"train": 0.8, "eval": 0.1, "test": 0.1}
REQUIRED_SPLITS = ("train", "eval", "test")
# A feature's name becomes part of variable and layer names in the graph.
FEATURE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_USES = ("wide", "deep", "both")
_MAX_BUCKETS = 2**31 - 1
_MAX_WIDTH = 2**16
_INT_CLASS = re.compile(r"0|-?[1-9][0-9]{0,18}")
_ASCII_BLANKS = " \t\n\v\f\r"


def _build(node: Node, kind: type, **values):
    try:
        return kind(**values)
    except ValueError as error:
        node.fail(str(error))


# --- columns, label, split ---------------------------------------------------


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


def _column(name: str, node: Node) -> Column:
    if name != name.strip() or not name:
        node.fail_name(
            f"{name!r} cannot be found: names in the data are read without the blanks"
            " around them"
        )
    fields = node.fields(["type"], ["missing", "default"])
    kind = fields["type"].choice(ColumnType)
    markers = fields["missing"].texts() if "missing" in fields else ()
    default = None
    if "default" in fields:
        default = _default(fields["default"], kind)
    return _build(
        fields.get("default", node),
        Column,
        name=name,
        type=kind,
        missing=tuple(dict.fromkeys(("", *(m.strip() for m in markers)))),
        default=default,
    )


def _known_column(node: Node, columns: Mapping[str, Column]) -> Column:
    name = node.text()
    if name not in columns:
        node.fail(f"{name!r} is not under `columns`; there are: {', '.join(columns)}")
    return columns[name]


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
    column = _known_column(fields["column"], columns)
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
    return _build(
        fields.get("classes", node), Label, column=column.name, classes=classes
    )


def _split(node: Node, columns: Mapping[str, Column]) -> Split:
    fields = node.fields([], ["fractions", "key", "salt"])
    fractions: Mapping[str, float] = DEFAULT_FRACTIONS
    if "fractions" in fields:
        fractions = {n: v.number() for n, v in fields["fractions"].items()}
        if set(fractions) != set(REQUIRED_SPLITS):
            fields["fractions"].fail(f"needs exactly {', '.join(REQUIRED_SPLITS)}")
    key: tuple[str, ...] = ()
    if "key" in fields:
        key = tuple(_known_column(e, columns).name for e in fields["key"].elements())
    salt = fields["salt"].text() if "salt" in fields else ""
    return _build(
        fields.get("fractions", node), Split, fractions=fractions, key=key, salt=salt
    )


# --- features ----------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class _Context:
    """What a feature may refer to."""

    columns: Mapping[str, Column]
    label: Label | None
    earlier: Mapping[str, Feature]


def _source(
    name: str,
    node: Node,
    fields: Mapping[str, Node],
    context: _Context,
    types: tuple[ColumnType, ...],
) -> str:
    if "column" in fields:
        column = _known_column(fields["column"], context.columns)
    elif name in context.columns:
        column = context.columns[name]
    else:
        node.fail(f"needs `column`, since no column is called {name!r}")
    if context.label and column.name == context.label.column:
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


def _numeric(name: str, node: Node, context: _Context) -> Numeric:
    fields = node.fields(["kind"], ["column", "scale", "use"])
    scale = fields["scale"].choice(Scale) if "scale" in fields else Scale.ZSCORE
    column = _source(name, node, fields, context, _NUMBERS)
    return _build(
        node, Numeric, name=name, column=column, scale=scale, use=_use(fields, "deep")
    )


def _bucketized(name: str, node: Node, context: _Context) -> Bucketized:
    fields = node.fields(
        ["kind"], ["column", "boundaries", "quantiles", "embedding", "use"]
    )
    boundaries = None
    if "boundaries" in fields:
        boundaries = tuple(e.number() for e in fields["boundaries"].elements())
    quantiles = None
    if "quantiles" in fields:
        quantiles = fields["quantiles"].integer(2, _MAX_WIDTH)
    return _build(
        fields.get("boundaries", node),
        Bucketized,
        name=name,
        column=_source(name, node, fields, context, _NUMBERS),
        boundaries=boundaries,
        quantiles=quantiles,
        embedding=_embedding(fields),
        use=_use(fields, "wide"),
    )


def _vocabulary(name: str, node: Node, context: _Context) -> Vocabulary:
    fields = node.fields(
        ["kind"], ["column", "top_k", "min_count", "oov_buckets", "embedding", "use"]
    )
    return _build(
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


def _hashed(name: str, node: Node, context: _Context) -> Hashed:
    fields = node.fields(["kind", "buckets"], ["column", "embedding", "use"])
    return _build(
        node,
        Hashed,
        name=name,
        column=_source(name, node, fields, context, _CATEGORIES),
        buckets=_buckets(fields["buckets"]),
        embedding=_embedding(fields),
        use=_use(fields, "both"),
    )


def _crossed(name: str, node: Node, context: _Context) -> Crossed:
    fields = node.fields(["kind", "of", "buckets"], ["embedding", "use"])
    elements = fields["of"].elements()
    if len(elements) < 2 or len({e.text() for e in elements}) < len(elements):
        fields["of"].fail("needs at least two different features")
    for element in elements:
        part = context.earlier.get(element.text())
        if part is None:
            element.fail(f"{element.text()!r} is not a feature declared above this one")
        if not isinstance(part, (Bucketized, Vocabulary, Hashed)):
            element.fail(
                f"{part.name} cannot be crossed; cross bucketized, vocabulary or"
                " hashed features"
            )
    return _build(
        node,
        Crossed,
        name=name,
        of=tuple(e.text() for e in elements),
        buckets=_buckets(fields["buckets"]),
        embedding=_embedding(fields),
        use=_use(fields, "wide"),
    )


_KINDS: Mapping[str, Callable[[str, Node, _Context], Feature]] = {
    "numeric": _numeric,
    "bucketized": _bucketized,
    "vocabulary": _vocabulary,
    "hashed": _hashed,
    "crossed": _crossed,
}


def _feature(name: str, node: Node, context: _Context) -> Feature:
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


# --- the whole ---------------------------------------------------------------


def load(path: str) -> Declaration:
    """Reads and checks a feature declaration.

    Raises:
      UserError: Naming file, line, column, the place and what is allowed.
    """
    root = nodes.load(path)
    fields = root.fields(["columns", "features"], ["label", "weight", "split"])
    columns = {name: _column(name, node) for name, node in fields["columns"].items()}
    label = _label(fields["label"], columns) if "label" in fields else None
    weight = None
    if "weight" in fields:
        column = _known_column(fields["weight"], columns)
        if column.type not in _NUMBERS:
            fields["weight"].fail(f"column {column.name} is not a number")
        if label and column.name == label.column:
            fields["weight"].fail("the label cannot be the weight as well")
        weight = column.name
    split = Split(DEFAULT_FRACTIONS)
    if "split" in fields:
        split = _split(fields["split"], columns)
    features: dict[str, Feature] = {}
    for name, node in fields["features"].items():
        features[name] = _feature(name, node, _Context(columns, label, features))
    if not features:
        fields["features"].fail("declares no feature")
    return Declaration(columns, features, split, label, weight)
