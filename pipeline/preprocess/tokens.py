"""Several values in one string, taken apart as `model_fns/tokens.py` does.

Arrow's patterns are RE2, as TensorFlow's are. Its string kernels take any bytes.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.preprocess import number_text
from pipeline.types import Tokens

_DIVIDER = "\x1f"


def split(array: pa.Array, how: Tokens) -> pa.BinaryArray:
    """Returns the tokens of all rows in one binary array; null has none.

    Args:
      array: Binary.
      how: How each row is taken apart.
    """
    texts = array.drop_null().view(pa.string())
    if how.separator is not None:
        rows = pc.split_pattern(texts, pattern=how.separator)
        parts = number_text.trim(rows.flatten().view(pa.binary()))
    else:
        if how.lower:
            texts = pc.ascii_lower(texts)
        marked = pc.replace_substring_regex(
            texts, pattern=how.pattern, replacement=how.rewrite
        )
        rows = pc.split_pattern(marked, pattern=_DIVIDER)
        parts = rows.flatten()
    lengths = pc.list_value_length(rows).to_numpy(zero_copy_only=False)
    row_of = np.repeat(np.arange(len(rows)), lengths)
    kept = pc.greater(pc.binary_length(parts), 0)
    parts = parts.filter(kept)
    row_of = row_of[kept.to_numpy(zero_copy_only=False)]
    if how.most is not None:
        places = np.arange(len(row_of)) - np.searchsorted(row_of, row_of)
        parts = parts.filter(pa.array(places < how.most))
    elif how.ngrams > 1:
        parts = _ngrams(parts, row_of, how)
    return parts.view(pa.binary())


def _ngrams(parts: pa.Array, row_of: np.ndarray, how: Tokens) -> pa.Array:
    found = [parts]
    for size in range(2, min(how.ngrams, len(parts)) + 1):
        last = size - 1
        starts = np.flatnonzero(row_of[last:] == row_of[: len(row_of) - last])
        run = [parts.take(pa.array(starts + i)) for i in range(size)]
        found.append(pc.binary_join_element_wise(*run, how.joint))
    return pa.concat_arrays(found)
