"""What is known of any feature; part of `pipeline.types`, from where it is imported."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.feature_settings import Tokens
from pipeline.feature_types import (
    Bucketized,
    Date,
    Feature,
    Identity,
    Image,
    Numeric,
    Text,
    TokenSequence,
    Vocabulary,
)


def is_number(feature: Feature) -> bool:
    """Whether it is one scaled number, which has a Scaling among the constants."""
    return isinstance(feature, Numeric) or (
        isinstance(feature, Date) and feature.part.size is None
    )


def is_looked_up(feature: Feature) -> bool:
    """Whether it has a vocabulary among the constants."""
    return isinstance(feature, Vocabulary) or (
        isinstance(feature, (Text, TokenSequence)) and feature.buckets is None
    )


def is_category(feature: Feature) -> bool:
    """Whether it is one or several ids."""
    return not (is_number(feature) or isinstance(feature, Image))


def tokens_of(feature: Feature) -> Tokens | None:
    """How the feature's string holds several values; None if it is one value."""
    return getattr(feature, "tokens", None)


def columns_of(feature: Feature) -> tuple[str, ...]:
    """The columns that it reads itself; a cross reads those of its parts."""
    found = (getattr(feature, "column", None), getattr(feature, "weights", None))
    return tuple(name for name in found if name is not None)


def fixed_size(feature: Feature) -> int | None:
    """Number of ids of a category where it needs no constants, else None."""
    if isinstance(feature, Identity):
        return feature.buckets + 1
    if isinstance(feature, Date):
        return None if feature.part.size is None else feature.part.size + 1
    if isinstance(feature, Bucketized) and feature.boundaries is not None:
        return len(feature.boundaries) + 1
    return getattr(feature, "buckets", None)


def groups(features: Mapping[str, Feature]) -> dict[str, tuple[Feature, ...]]:
    """Returns the features of each group that shares a table, in declared order."""
    found: dict[str, list[Feature]] = {}
    for feature in features.values():
        if getattr(feature, "shared", None) is not None:
            found.setdefault(feature.shared, []).append(feature)
    return {group: tuple(members) for group, members in found.items()}
