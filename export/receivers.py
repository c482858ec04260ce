"""The serving receiver: how a request becomes the model's features."""

from __future__ import annotations

import dataclasses
import functools
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
      features: Column name to [batch], after the rules for missing values and for
        values out of range. In place of an empty batch there is one row, since
        premade Estimators fail on none.
      batch: Number of rows in the request, int32 scalar.
      forwarded: Column name to [batch] of the columns that answers repeat, after the
        rule for missing values.
    """

    examples: tf.Tensor
    columns: Mapping[str, tf.Tensor]
    features: Mapping[str, tf.Tensor]
    batch: tf.Tensor
    forwarded: Mapping[str, tf.Tensor]

    def answer(self, output: tf.Tensor) -> tf.Tensor:
        """Returns what the model says of the rows in the request."""
        return output[: self.batch]


def _of_one_length(columns: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Makes a request fail that has more values of one feature than of another.

    Without it a single value would silently stand for all rows.
    """
    names = list(columns)
    sizes = tf.stack([tf.size(value) for value in columns.values()])
    most = tf.argmax(sizes)
    fewest = tf.argmin(sizes)
    name_of = functools.partial(tf.gather, tf.constant(names))
    check = tf.debugging.Assert(
        tf.equal(sizes[most], sizes[fewest]),
        [
            "features of a request must have as many values each:",
            *(name_of(most), "has", sizes[most]),
            *("and", name_of(fewest), "has", sizes[fewest]),
        ],
    )
    with tf.control_dependencies([check]):
        return {name: tf.identity(value) for name, value in columns.items()}


def receiver(columns: Sequence[Column], forwarded: Sequence[Column] = ()) -> Receiver:
    """Builds the receiver of a model that reads these columns.

    Args:
      columns: What the model reads.
      forwarded: What answers repeat, e.g. a key; columns that the model does not read
        become part of a request.
    """
    read = {column.name for column in columns}
    received = [*columns, *(c for c in forwarded if c.name not in read)]
    examples = tf.compat.v1.placeholder(tf.string, [None], name=EXAMPLES)
    parsed = parsing.parse_request(examples, received)
    named = {
        name: tf.identity(value, "raw_" + re.sub(r"[^A-Za-z0-9_.-]", "_", name))
        for name, value in parsed.items()
    }
    complete = parsing.apply_missing_rule(_of_one_length(named), received)
    allowed = parsing.apply_range_rule(
        {c.name: complete[c.name] for c in columns}, columns
    )
    batch = tf.size(named[columns[0].name])
    padding = [[0, tf.maximum(0, 1 - batch)]]
    features = {c.name: tf.pad(allowed[c.name], padding) for c in columns}
    repeated = {column.name: complete[column.name] for column in forwarded}
    return Receiver(examples, named, features, batch, repeated)
