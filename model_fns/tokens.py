"""Several values in one string, taken apart in the graph.

`pipeline/preprocess/tokens.py` does the same to count vocabularies; tests hold them
equal.
"""

from __future__ import annotations

from pipeline.compat import tf
from pipeline.types import Tokens

_DIVIDER = "\x1f"
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"


def _parts(text: tf.Tensor, how: Tokens) -> tf.RaggedTensor:
    """Returns string [batch, None]; some may be empty."""
    if how.separator is None:
        if how.lower:
            text = tf.strings.lower(text)
        marked = tf.strings.regex_replace(text, how.pattern, how.rewrite)
        return tf.strings.split(marked, _DIVIDER)
    parts = tf.strings.split(text, how.separator)
    return parts.with_flat_values(tf.strings.strip(parts.flat_values))


def _are_tokens(parts: tf.RaggedTensor) -> tf.RaggedTensor:
    return parts.with_flat_values(tf.not_equal(parts.flat_values, ""))


def split(text: tf.Tensor, how: Tokens) -> tf.RaggedTensor:
    """Returns the tokens of each string [batch], string [batch, None]."""
    parts = _parts(text, how)
    tokens = tf.ragged.boolean_mask(parts, _are_tokens(parts))
    if how.most is not None:
        tokens = tokens[:, : how.most]
    if how.ngrams > 1:
        widths = tuple(range(1, how.ngrams + 1))
        tokens = tf.strings.ngrams(tokens, widths, separator=how.joint)
    return tokens


def weight(number: tf.Tensor) -> tf.Tensor:
    """Returns float32 weights: below 0 is 0, and what is not finite is 1."""
    number = tf.cast(number, tf.float32)
    ones = tf.ones_like(number)
    return tf.where(tf.math.is_finite(number), tf.maximum(number, 0.0), ones)


def _text_weight(text: tf.Tensor) -> tf.Tensor:
    is_number = tf.strings.regex_full_match(text, _NUMBER)
    known = tf.where(is_number, text, tf.fill(tf.shape(text), "1"))
    return weight(tf.strings.to_number(known, tf.float32))


def split_weighted(
    text: tf.Tensor, weights: tf.Tensor, how: Tokens
) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
    """Returns the tokens of each string and their weights, both [batch, None].

    The weight at a token's place counts, empty tokens included in the counting;
    where there is none, or no number, it is 1. Further weights are left out.

    Args:
      text: Strings, [batch].
      weights: Strings of numbers with the same separator, [batch].
      how: Has a separator.
    """
    parts, numbers = _parts(text, how), _parts(weights, how)
    rows = parts.value_rowids()
    places = tf.range(tf.size(rows, tf.int64)) - tf.gather(parts.row_starts(), rows)
    # The last of these stands for "no weight".
    texts = tf.concat([numbers.flat_values, [""]], axis=0)
    last = tf.size(texts, tf.int64) - 1
    found = tf.where(
        places < tf.gather(numbers.row_lengths(), rows),
        tf.gather(numbers.row_starts(), rows) + places,
        tf.fill(tf.shape(places), last),
    )
    weighed = parts.with_flat_values(_text_weight(tf.gather(texts, found)))
    mask = _are_tokens(parts)
    return tf.ragged.boolean_mask(parts, mask), tf.ragged.boolean_mask(weighed, mask)
