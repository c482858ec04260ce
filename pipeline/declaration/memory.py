"""How much memory a model's tables need at least, known from the declaration."""

from __future__ import annotations

from pipeline import environment
from pipeline.declaration.nodes import Node
from pipeline.types import Feature, fixed_size, is_looked_up

_BYTES = 4
_COPIES = 3
"""A weight and what the optimizer (Adam, FTRL) keeps of it: two more numbers."""


_MOST_IDS = 2**31 - 1


def _known_ids(feature: Feature) -> tuple[str, int]:
    """Returns the setting that gives a feature ids, and how many of them."""
    if is_looked_up(feature):
        return "oov_buckets", feature.oov_buckets
    if getattr(feature, "buckets", None) is not None:
        return "buckets", fixed_size(feature)
    return "", 0


def table_bytes(feature: Feature, has_table: bool = False) -> int:
    """Returns bytes of the feature's weights in training, without vocabularies.

    A one-hot category counts one weight an id in each part of the model; the first
    layer of a network makes it more.

    Args:
      feature: The feature.
      has_table: Whether it shares the table of a feature that is counted already.
    """
    _, ids = _known_ids(feature)
    width = 0
    if ids and feature.use in ("wide", "both"):
        width += 1
    if ids and feature.use in ("deep", "both") and not has_table:
        width += feature.embedding or 1
    return ids * width * _BYTES * _COPIES


def check(node: Node, feature: Feature, earlier: int, has_table: bool) -> int:
    """Returns the bytes of this feature and those above it.

    Args:
      node: The feature's node.
      feature: The feature.
      earlier: The bytes of the features above it.
      has_table: Whether it shares the table of one of them.

    Raises:
      UserError: They are more than the machine has, or the ids too many.
    """
    needed = table_bytes(feature, has_table)
    memory = environment.memory_bytes()
    setting, ids = _known_ids(feature)
    if earlier + needed > memory:
        together = f", with those above it {_gib(earlier + needed)}" if earlier else ""
        dict(node.items())[setting].fail(
            f"{getattr(feature, setting)} {setting} would need {_gib(needed)} in"
            " training (weights, and the optimizer's two numbers for each)"
            f"{together}; this machine has {_gib(memory)}: take fewer, or a narrower embedding"
        )
    if ids > _MOST_IDS:
        dict(node.items())[setting].fail(f"too many; allowed: at most {_MOST_IDS}")
    return earlier + needed


def _gib(size: int) -> str:
    gib = size / 2**30
    return f"{gib:,.0f} GiB" if gib >= 100 else f"{gib:.1f} GiB"
