"""What the encoders of tf.Examples share: protobuf's wire format, many values at once.

The wire format (protobuf.dev/programming-guides/encoding) of a tf.Example is, with
every message preceded by its tag and its length as a varint:

    Example  1: Features          Features  1: map entry, repeated
    entry    1: key, 2: Feature   Feature   1: BytesList, 2: FloatList, 3: Int64List
    lists    1: the values; numbers are packed
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from input_fns.wire import message as message
from input_fns.wire import varint as varint

FIELD_1 = b"\x0a"
"""The tag of field 1 of a length-delimited type; every message here has one."""
FIELD_2 = b"\x12"
INT64_LIST = b"\x1a"
FLOAT_LIST = b"\x12"
BYTES_LIST = b"\x0a"


def varints(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Varints of int64 values: uint8 [rows, at most 10] and the sizes in bytes."""
    rest = values.astype(np.int64).view(np.uint64)  # Negative ones take 10 bytes.
    sizes = np.ones(len(rest), np.int64)
    groups = []
    while True:
        groups.append((rest & np.uint64(127)).astype(np.uint8))
        rest = rest >> np.uint64(7)
        more = rest != 0
        if not more.any():
            return np.stack(groups, axis=1), sizes
        groups[-1][more] |= 128
        sizes += more


def by_distinct(
    values: np.ndarray,
    encode_one: Callable[[int], bytes],
    missing: np.ndarray | None = None,
) -> pa.Array:
    """Encodes each non-negative value, calling `encode_one` once for each distinct one."""
    if len(values) and values.max() < len(values):
        # Lengths are small, so counting them takes the place of sorting them.
        distinct = np.flatnonzero(np.bincount(values))
        places = np.empty(distinct[-1] + 1, np.int64)
        places[distinct] = np.arange(len(distinct))
        indexes = places[values]
    else:
        distinct, indexes = np.unique(values, return_inverse=True)
    encoded = [encode_one(int(value)) for value in distinct]
    dictionary = pa.array(encoded, pa.large_binary())
    return dictionary.take(pa.array(indexes.reshape(-1), mask=missing))
