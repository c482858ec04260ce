"""The `features` of a feature declaration."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pipeline.declaration import category_features as categories
from pipeline.declaration import content_features as contents
from pipeline.declaration import feature_nodes, memory
from pipeline.declaration.feature_nodes import Context
from pipeline.declaration.nodes import Node
from pipeline.types import (
    AnyLabel,
    Bucketized,
    Column,
    Date,
    Feature,
    Hashed,
    Identity,
    Numeric,
    Vocabulary,
    groups,
)

KINDS: Mapping[str, Callable[[str, Node, Context], Feature]] = {
    "numeric": contents.numeric,
    "bucketized": categories.bucketized,
    "vocabulary": categories.vocabulary,
    "hashed": categories.hashed,
    "identity": categories.identity,
    "crossed": categories.crossed,
    "date": contents.date,
    "text": contents.text,
    "sequence": contents.sequence,
    "image": contents.image,
}
_ONCE_A_COLUMN = (Numeric, Bucketized, Vocabulary, Hashed, Identity, Date)
# What features of one table must have in common.
_OF_A_GROUP = ("embedding", "buckets", *feature_nodes.LOOKED_UP)


def _check_different(node: Node, feature: Feature, context: Context) -> None:
    if not isinstance(feature, _ONCE_A_COLUMN):
        return
    for other in context.earlier.values():
        if type(other) is not type(feature) or other.column != feature.column:
            continue
        if isinstance(feature, Date) and other.part is not feature.part:
            continue
        node.fail(
            f"column {other.column} already has a {other.KIND} feature: {other.name}"
        )


def _read(name: str, node: Node, context: Context) -> Feature:
    feature_nodes.check_name(node, name)
    kinds = [n for key, n in node.items() if key == "kind"]
    if not kinds:
        node.fail(f"needs kind; allowed: {', '.join(KINDS)}")
    feature = KINDS[kinds[0].one_of(KINDS)](name, node, context)
    _check_different(node, feature, context)
    return feature


def _check_groups(nodes: Mapping[str, Node], features: Mapping[str, Feature]) -> None:
    """Checks that the features of a group can have one table."""
    for group, members in groups(features).items():
        first = members[0]
        place = dict(nodes[first.name].items())["shared"]
        if group in features:
            place.fail(f"{group!r} is the name of a feature; choose another")
        if len(members) == 1:
            place.fail(f"no other feature is in the group {group!r}")
        for member in members:
            node = nodes[member.name]
            if type(member) is not type(first):
                node.fail(
                    f"shares {group} with {first.name}, which is of kind {first.KIND};"
                    " all must be of one kind"
                )
            if member.use == "wide":
                node.fail(f"shares {group}, so use must be deep or both")
            for setting in _OF_A_GROUP:
                wanted = getattr(first, setting, None)
                if getattr(member, setting, None) != wanted:
                    node.fail(
                        f"shares {group} with {first.name}, so {setting} must be the"
                        f" same as there: {wanted}"
                    )


def read(
    node: Node, columns: Mapping[str, Column], label: AnyLabel | None
) -> dict[str, Feature]:
    """Reads the features.

    Raises:
      UserError: Naming file, line and column.
    """
    features: dict[str, Feature] = {}
    nodes: dict[str, Node] = {}
    needed = 0
    for name, child in node.items():
        feature = _read(name, child, Context(columns, label, features))
        shared = getattr(feature, "shared", None)
        has_table = shared is not None and shared in groups(features)
        needed = memory.check(child, feature, needed, has_table)
        features[name], nodes[name] = feature, child
    if not features:
        node.fail("declares no feature")
    _check_groups(nodes, features)
    return features
