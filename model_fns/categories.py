"""What a categorical feature is before it is looked up: texts or ids, and weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from model_fns import dates, tokens, transforms
from model_fns.transforms import Categories
from pipeline.compat import tf
from pipeline.types import Date, Feature, Identity, tokens_of


class Values(NamedTuple):
    """The values of a feature.

    Attributes:
      values: Texts to be looked up or hashed, or int64 ids.
      weights: float32 of the same shape; None where none are declared.
    """

    values: Categories
    weights: Categories | None


def values(feature: Feature, raw: Mapping[str, tf.Tensor]) -> Values:
    """Returns the values of any category but bucketized and crossed ones.

    Args:
      feature: The feature.
      raw: Column name to [batch].
    """
    column = raw[feature.column]
    weights = getattr(feature, "weights", None)
    how = tokens_of(feature)
    if how is not None and weights is not None:
        return Values(*tokens.split_weighted(column, raw[weights], how))
    if how is not None:
        return Values(tokens.split(column, how), None)
    weight = None if weights is None else tokens.weight(raw[weights])
    if isinstance(feature, Identity):
        return Values(transforms.identity_ids(column, feature.buckets), weight)
    if isinstance(feature, Date):
        return Values(dates.part_ids(column, feature.part), weight)
    return Values(transforms.category_text(column), weight)


def number(feature: Feature, raw: Mapping[str, tf.Tensor]) -> tf.Tensor:
    """Returns what a feature that is a number is before scaling, [batch]."""
    if isinstance(feature, Date):
        return dates.part_number(raw[feature.column], feature.part)
    return raw[feature.column]
