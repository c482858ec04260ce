"""Numbers, and features taken out of dates, texts, lists and images."""

from __future__ import annotations

from pipeline.declaration import feature_nodes as common
from pipeline.declaration.feature_nodes import Context
from pipeline.declaration.nodes import Node, build
from pipeline.types import (
    ColumnType,
    Date,
    DatePart,
    Image,
    Numeric,
    Scale,
    Text,
    TextSplit,
    TokenSequence,
)

_MAX_NGRAMS = 8
_MAX_SIDE = 8192
_STRING = (ColumnType.STRING,)


def numeric(name: str, node: Node, context: Context) -> Numeric:
    fields = node.fields(["kind"], ["column", "scale", "use", "clip"])
    clip = None
    if "clip" in fields:
        clip = tuple(e.number() for e in fields["clip"].elements())
    return build(
        fields.get("clip", node),
        Numeric,
        name=name,
        column=common.source(name, node, fields, context, common.NUMBERS),
        scale=fields["scale"].choice(Scale) if "scale" in fields else Scale.ZSCORE,
        use=common.use(fields, "deep"),
        clip=clip,
    )


def date(name: str, node: Node, context: Context) -> Date:
    fields = node.fields(["kind", "part"], ["column", "scale", "embedding", "use"])
    part = fields["part"].choice(DatePart)
    return build(
        node,
        Date,
        name=name,
        column=common.source(name, node, fields, context, common.CATEGORIES),
        part=part,
        scale=fields["scale"].choice(Scale) if "scale" in fields else Scale.ZSCORE,
        embedding=common.embedding(fields),
        use=common.use(fields, "deep" if part.size is None else "both"),
    )


def _check_pattern(node: Node) -> None:
    # Arrow has the same RE2 as TensorFlow.
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        pc.replace_substring_regex(
            pa.array([""]), pattern=node.text(), replacement="\x1f"
        )
    except pa.ArrowInvalid as error:
        node.fail(f"no RE2 pattern: {error}")


def text(name: str, node: Node, context: Context) -> Text:
    fields = node.fields(
        ["kind"],
        ["column", "lower", "split", "pattern", "ngrams", "buckets"]
        + [*common.LOOKED_UP, "embedding", "use", "combiner"],
    )
    given: dict[str, object] = {}
    if "lower" in fields:
        given["lower"] = fields["lower"].boolean()
    if "split" in fields:
        given["split"] = fields["split"].choice(TextSplit)
    if "pattern" in fields:
        _check_pattern(fields["pattern"])
        given["pattern"] = fields["pattern"].text()
    if "ngrams" in fields:
        given["ngrams"] = fields["ngrams"].integer(1, _MAX_NGRAMS)
    return build(
        node,
        Text,
        name=name,
        column=common.source(name, node, fields, context, _STRING),
        buckets=common.buckets(fields),
        embedding=common.embedding(fields),
        use=common.use(fields, "both"),
        combiner=common.combiner(fields),
        **common.looked_up(fields),
        **given,
    )


def sequence(name: str, node: Node, context: Context) -> TokenSequence:
    fields = node.fields(
        ["kind", "separator", "max_length"],
        ["column", "buckets", *common.LOOKED_UP, "embedding", "use", "combiner"],
    )
    return build(
        node,
        TokenSequence,
        name=name,
        column=common.source(name, node, fields, context, _STRING),
        separator=common.separator(fields["separator"]),
        max_length=fields["max_length"].integer(1, common.MAX_WIDTH),
        buckets=common.buckets(fields),
        embedding=common.embedding(fields),
        use=common.use(fields, "deep"),
        combiner=common.combiner(fields),
        **common.looked_up(fields),
    )


def image(name: str, node: Node, context: Context) -> Image:
    fields = node.fields(["kind", "height", "width"], ["column", "channels"])
    channels = 3
    if "channels" in fields:
        channels = int(fields["channels"].one_of(("1", "3", "4")))
    return build(
        node,
        Image,
        name=name,
        column=common.source(name, node, fields, context, _STRING),
        height=fields["height"].integer(1, _MAX_SIDE),
        width=fields["width"].integer(1, _MAX_SIDE),
        channels=channels,
    )
