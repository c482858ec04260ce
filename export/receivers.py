"""The serving receiver: how a request becomes the model's features."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence

from input_fns import parsing
from pipeline.compat import tf
from pipeline.types import Column

EXAMPLES = "examples"


@dataclasses.dataclass(frozen=True)
class Receiver:
    """Both ways into one model.

    Attributes:
      examples: Placeholder of serialized tf.Examples, string [batch].
      columns: Column name to the tensor [batch] that stands behind the parser;
        feeding these instead of `examples` is the raw-tensor way in.
      features: Column name to [batch], after the rules for missing values
        and for values out of range.
    """

    examples: tf.Tensor
    columns: Mapping[str, tf.Tensor]
    features: Mapping[str, tf.Tensor]


def receiver(columns: Sequence[Column]) -> Receiver:
    """Builds the receiver of a model that reads these columns."""
    examples = tf.compat.v1.placeholder(tf.string, [None], name=EXAMPLES)
    parsed = parsing.parse(examples, columns)
    named = {
        name: tf.identity(value, "raw_" + re.sub(r"[^A-Za-z0-9_.-]", "_", name))
        for name, value in parsed.items()
    }
    features = parsing.apply_missing_rule(named, columns)
    return Receiver(examples, named, parsing.apply_range_rule(features, columns))
