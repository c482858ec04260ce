"""Features that are categories, in a feature declaration."""

from __future__ import annotations

from pipeline.declaration import feature_nodes as common
from pipeline.declaration.feature_nodes import Context
from pipeline.declaration.nodes import Node, build
from pipeline.types import (
    Bucketized,
    ColumnType,
    Crossed,
    Date,
    Hashed,
    Identity,
    Vocabulary,
    is_category,
    tokens_of,
)


def bucketized(name: str, node: Node, context: Context) -> Bucketized:
    fields = node.fields(
        ["kind"], ["column", "boundaries", "quantiles", "embedding", "use"]
    )
    boundaries = None
    if "boundaries" in fields:
        boundaries = tuple(e.number() for e in fields["boundaries"].elements())
    quantiles = None
    if "quantiles" in fields:
        quantiles = fields["quantiles"].integer(2, common.MAX_WIDTH)
    return build(
        fields.get("boundaries", node),
        Bucketized,
        name=name,
        column=common.source(name, node, fields, context, common.NUMBERS),
        boundaries=boundaries,
        quantiles=quantiles,
        embedding=common.embedding(fields),
        use=common.use(fields, "wide"),
    )


def vocabulary(name: str, node: Node, context: Context) -> Vocabulary:
    fields = node.fields(
        ["kind"], ["column", *common.LOOKED_UP, "embedding", "use", *common.SEVERAL]
    )
    column = common.source(name, node, fields, context, common.CATEGORIES)
    return build(
        node,
        Vocabulary,
        name=name,
        column=column,
        embedding=common.embedding(fields),
        use=common.use(fields, "both"),
        **common.looked_up(fields),
        **common.several(node, fields, context, column),
    )


def hashed(name: str, node: Node, context: Context) -> Hashed:
    fields = node.fields(
        ["kind", "buckets"], ["column", "embedding", "use", *common.SEVERAL]
    )
    column = common.source(name, node, fields, context, common.CATEGORIES)
    return build(
        node,
        Hashed,
        name=name,
        column=column,
        buckets=common.buckets(fields),
        embedding=common.embedding(fields),
        use=common.use(fields, "both"),
        **common.several(node, fields, context, column),
    )


def identity(name: str, node: Node, context: Context) -> Identity:
    fields = node.fields(
        ["kind", "buckets"],
        ["column", "embedding", "use", "combiner", "weights", "shared"],
    )
    column = common.source(name, node, fields, context, (ColumnType.INT,))
    return build(
        node,
        Identity,
        name=name,
        column=column,
        buckets=common.buckets(fields, 1),
        embedding=common.embedding(fields),
        use=common.use(fields, "both"),
        **common.several(node, fields, context, column),
    )


def _check_part(node: Node, context: Context) -> None:
    part = context.earlier.get(node.text())
    if part is None:
        node.fail(f"{node.text()!r} is not a feature declared above this one")
    crossable = (Bucketized, Vocabulary, Hashed, Identity, Date)
    if not isinstance(part, crossable) or not is_category(part):
        node.fail(
            f"{part.name} cannot be crossed; cross bucketized, vocabulary, hashed or"
            " identity features, or the parts of a date that are no numbers"
        )
    if getattr(part, "weights", None) is not None:
        node.fail(f"{part.name} has weights; a cross has none")


def crossed(name: str, node: Node, context: Context) -> Crossed:
    fields = node.fields(["kind", "of", "buckets"], ["embedding", "use", "combiner"])
    elements = fields["of"].elements()
    if len(elements) < 2 or len({e.text() for e in elements}) < len(elements):
        fields["of"].fail("needs at least two different features")
    for element in elements:
        _check_part(element, context)
    of = tuple(e.text() for e in elements)
    if "combiner" in fields and not any(
        tokens_of(context.earlier[part]) for part in of
    ):
        fields["combiner"].fail("is for features with several values; none is crossed")
    return build(
        node,
        Crossed,
        name=name,
        of=of,
        buckets=common.buckets(fields),
        embedding=common.embedding(fields),
        use=common.use(fields, "wide"),
        combiner=common.combiner(fields),
    )
