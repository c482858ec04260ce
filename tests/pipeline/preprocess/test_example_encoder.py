"""Tests of pipeline/preprocess/example_encoder.py."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.preprocess import example_encoder

INTS = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-3, 3),
    st.sampled_from([-(2**63), 2**63 - 1, 127, 128, 2**56 - 1, 2**56]),
)
FLOATS = st.one_of(
    st.floats(width=32),
    st.sampled_from([-0.0, float("inf"), float("nan"), 1e-45, 3.4028234663852886e38]),
)
STRINGS = st.one_of(
    st.binary(max_size=20), st.binary(min_size=90, max_size=400), st.just(b"\0" * 20000)
)
KINDS = {
    "int": (INTS, pa.int64()),
    "float": (FLOATS, pa.float32()),
    "string": (STRINGS, pa.binary()),
}
# Names around 110 bytes are where the lengths of an entry outgrow one byte.
NAMES = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=5),
    st.integers(95, 135).map(lambda n: "n" * n),
)


@st.composite
def batches(draw):
    rows = draw(st.integers(0, 6))
    columns = draw(st.dictionaries(NAMES, st.sampled_from(sorted(KINDS)), max_size=5))
    arrays = []
    for kind in columns.values():
        values, kind_type = KINDS[kind]
        cells = draw(st.lists(st.none() | values, min_size=rows, max_size=rows))
        arrays.append(pa.array(cells, kind_type))
    schema = pa.schema([(n, a.type) for n, a in zip(columns, arrays, strict=True)])
    return pa.RecordBatch.from_struct_array(
        pa.StructArray.from_arrays(arrays, fields=list(schema))
        if arrays
        else pa.array([{}] * rows, pa.struct([]))
    )


@pytest.fixture(scope="module")
def tf():
    from pipeline.compat import tf

    return tf


def slow_examples(tf, batch):
    """One protobuf object a row, as the documentation of tf.train.Example does it."""
    for row in batch.to_pylist():
        feature = {}
        for name, value in row.items():
            if value is None:
                continue
            if isinstance(value, int):
                one = tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))
            elif isinstance(value, float):
                one = tf.train.Feature(float_list=tf.train.FloatList(value=[value]))
            else:
                one = tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
            feature[name] = one
        yield tf.train.Example(features=tf.train.Features(feature=feature))


def test_equals_examples_built_the_slow_way(tf):
    @given(batches())
    @settings(deadline=None, max_examples=150)
    def check(batch):
        encoded = example_encoder.encode(batch)
        expected = list(slow_examples(tf, batch))
        assert len(encoded) == batch.num_rows
        for ours, theirs in zip(encoded, expected, strict=True):
            # Bytes rather than messages: NaN is not equal to itself.
            parsed = tf.train.Example.FromString(ours)
            assert parsed.SerializeToString(
                deterministic=True
            ) == theirs.SerializeToString(deterministic=True)

    check()


def test_names_of_every_length_around_a_longer_varint(tf):
    ints = [None, *(2 ** (7 * groups) for groups in range(9)), -1]
    for length in [*range(90, 130), 16_370]:
        name = "n" * length
        batch = pa.RecordBatch.from_arrays([pa.array(ints, pa.int64())], [name])
        for ours, value in zip(example_encoder.encode(batch), ints, strict=True):
            feature = tf.train.Example.FromString(ours).features.feature
            assert list(feature) == ([] if value is None else [name])
            assert feature[name].int64_list.value == ([] if value is None else [value])


def test_parse_example_reads_it(tf):
    ints = [-(2**63), -1, 0, 127, 128, 2**63 - 1, None]
    floats = [float("nan"), float("-inf"), -0.0, 1e-45, 3.4e38, None, 1.5]
    strings = [b"", b"\0\xff\n", None, "ü".encode(), b"x" * 127, b"x" * 128, b"a"]
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array(ints, pa.int64()),
            pa.array(floats, pa.float32()),
            pa.array(strings, pa.binary()),
        ],
        ["i", "f", "s"],
    )
    parsed = tf.io.parse_example(
        example_encoder.encode(batch),
        {
            "i": tf.io.FixedLenFeature([], tf.int64, default_value=-7),
            "f": tf.io.FixedLenFeature([], tf.float32, default_value=-7.0),
            "s": tf.io.FixedLenFeature([], tf.string, default_value=b"missing"),
        },
    )
    assert _values(tf, parsed["i"]).tolist() == [*ints[:-1], -7]
    assert _values(tf, parsed["s"]).tolist() == [*strings[:2], b"missing", *strings[3:]]
    np.testing.assert_array_equal(
        _values(tf, parsed["f"]), np.array([*floats[:5], -7, 1.5], np.float32)
    )


def _values(tf, tensor):
    if tf.executing_eagerly():
        return tensor.numpy()
    with tf.compat.v1.Session() as session:
        return session.run(tensor)


def test_column_order_does_not_change_the_bytes():
    batch = pa.RecordBatch.from_arrays(
        [pa.array([1, 2]), pa.array([b"x", b"y"]), pa.array([None, 0.5], pa.float32())],
        ["b", "c", "a"],
    )
    other = batch.select(["a", "b", "c"])
    assert example_encoder.encode(batch) == example_encoder.encode(other)


def test_slices_and_rows_without_any_value():
    batch = pa.RecordBatch.from_arrays(
        [pa.array([1, None, 300]), pa.array([b"x", None, b"z"])], ["i", "s"]
    )
    whole = example_encoder.encode(batch)
    assert example_encoder.encode(batch.slice(1, 2)) == whole[1:]
    assert whole[1] == b"\x0a\x00"
    assert example_encoder.encode(batch.slice(0, 0)) == []


def test_other_types_are_refused():
    batch = pa.RecordBatch.from_arrays([pa.array([1.0], pa.float64())], ["x"])
    with pytest.raises(TypeError, match="column x has type double"):
        example_encoder.encode(batch)
