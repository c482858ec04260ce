"""A feature means the same as a feature column and as a Keras layer."""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers_records import column, constants_for, declare
from hypothesis import given, settings
from hypothesis import strategies as st

from model_fns import feature_columns, feature_layers
from pipeline.compat import tf
from pipeline.types import (
    Bucketized,
    Crossed,
    Hashed,
    Identity,
    Numeric,
    Scale,
    Scaling,
    UserError,
    Vocabulary,
)

COLUMNS = (
    column("s", "string"),
    column("Größe (cm)", "string"),
    column("i", "int"),
    column("i_as_text", "int"),
    column("x", "float"),
)
_CUTS = (-1.5, 0.0, 0.1, 1e7, 1e30)
_EITHER_SIDE = [
    float(np.nextafter(np.float32(cut), np.float32(to)))
    for cut in _CUTS
    for to in (-math.inf, math.inf)
]
_DTYPES = {"string": tf.string, "int": tf.int64, "float": tf.float32}
_VALUES = {
    "string": [b"", b" ", b"a", b"A", b"-1", b"0", b"\xff\xfe", b"\x00", b"a" * 300],
    "int": [-1, 0, 1, 2, 10, 10**7, 2**24 + 1, -(2**63), 2**63 - 1],
    "float": [*_CUTS, *_EITHER_SIDE, 3.0, -1e38, math.inf, -math.inf],
}


def _ids_by_column(column, inputs) -> tf.Tensor:
    cache = tf.__internal__.feature_column.FeatureTransformationCache(inputs)
    ids = column.get_sparse_tensors(cache, None).id_tensor
    # -2 where a row has no id at all, which is what disagreement would look like.
    return tf.sparse.to_dense(tf.sparse.reorder(ids), default_value=-2)


def _both_ways(declaration, constants, raw):
    """Returns feature name to (by feature column, by layer); ids or numbers."""
    features = declaration.features.values()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        tensors = {
            c.name: tf.constant(raw[c.name], _DTYPES[c.type.value])
            for c in declaration.columns.values()
        }
        inputs = feature_columns.inputs(tensors, declaration)
        wide, deep = feature_columns.compile_columns(declaration, constants)
        encoder = feature_layers.FeatureEncoder(declaration, constants)
        by_layer = encoder(tensors)
        fetched = {}
        for feature, in_wide, in_deep in zip(features, wide, deep, strict=True):
            dense = tf.compat.v1.keras.layers.DenseFeatures([in_deep])(inputs)
            if isinstance(feature, Numeric):
                fetched[feature.name] = (dense, by_layer[feature.name])
                continue
            name, size = feature.name, encoder.sizes[feature.name]
            fetched[name] = (
                _ids_by_column(in_wide, inputs),
                by_layer[name][:, tf.newaxis],
            )
            if feature.embedding is None:
                fetched[f"{name} one-hot"] = (dense, tf.one_hot(by_layer[name], size))
        session.run(tf.compat.v1.tables_initializer())
        return session.run(fetched)


def _assert_agree(declaration, constants, raw):
    for name, (found, wanted) in _both_ways(declaration, constants, raw).items():
        np.testing.assert_allclose(found, wanted, rtol=1e-6, err_msg=name)


@st.composite
def _cases(draw):
    features, vocabularies, scalings = [], {}, {}
    for c in draw(st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=4)):
        name, kind = f"f{len(features)}", c.type.value
        kinds = [Vocabulary, Hashed] if kind != "float" else []
        kinds += [Numeric, Bucketized] if kind != "string" else []
        kinds += [Identity] if kind == "int" else []
        feature = draw(st.sampled_from(kinds))
        if feature is Numeric:
            scale = draw(st.sampled_from(Scale))
            clip = draw(st.none() | st.just((-1.5, 0.1)) | st.just((0.0, 1e7)))
            features.append(Numeric(name, c.name, scale, "both", clip))
            scalings[name] = Scaling(draw(st.floats(-9, 9)), draw(st.floats(0.1, 9)))
        elif feature is Bucketized:
            cuts = draw(st.sets(st.sampled_from(_CUTS), min_size=1))
            cuts = tuple(sorted(cuts))
            features.append(Bucketized(name, c.name, cuts, use="both"))
        elif feature is Identity:
            features.append(Identity(name, c.name, draw(st.integers(1, 11))))
        elif feature is Hashed:
            features.append(Hashed(name, c.name, draw(st.integers(2, 50))))
        else:
            terms = draw(st.sets(st.sampled_from(_VALUES[kind]), min_size=1))
            if kind == "int":
                terms = {str(term).encode() for term in terms}
            vocabularies[name] = sorted(terms)
            oov = draw(st.integers(1, 5))
            features.append(Vocabulary(name, c.name, oov_buckets=oov))
    parts = [f.name for f in features if not isinstance(f, Numeric)]
    if len(parts) >= 2:
        for size in {2, min(3, len(parts))}:
            of = tuple(draw(st.permutations(parts))[:size])
            buckets = draw(st.integers(2, 10**6))
            name = f"f{len(features)}"
            features.append(Crossed(name, of, buckets, embedding=2, use="both"))
    declaration = declare(COLUMNS, features)
    rows = 25
    raw = {
        c.name: draw(
            st.lists(
                st.sampled_from(_VALUES[c.type.value]), min_size=rows, max_size=rows
            )
        )
        for c in COLUMNS
    }
    return declaration, constants_for(declaration, vocabularies, scalings), raw


@settings(deadline=None, max_examples=25)
@given(_cases())
def test_any_declaration_means_the_same_both_ways(case):
    _assert_agree(*case)


def _raw(rows: int = 1, **values) -> dict[str, list]:
    raw = {c.name: _VALUES[c.type.value][:1] * rows for c in COLUMNS}
    return raw | values


def test_values_that_feature_columns_would_drop():
    declaration = declare(
        COLUMNS,
        [
            Vocabulary("text", "s"),
            Vocabulary("number", "i"),
            Hashed("hashed", "i", 7),
            Crossed("cross", ("text", "number"), 1000, use="both"),
        ],
    )
    constants = constants_for(declaration, {"text": [b"a", b""], "number": [b"-1"]})
    found = _both_ways(declaration, constants, _raw(2, s=[b"", b"b"], i=[-1, 0]))
    assert found["text"][0].tolist() == [[1], [2]]
    assert found["number"][0].tolist() == [[0], [1]]
    _assert_agree(declaration, constants, _raw(2, s=[b"", b"b"], i=[-1, 0]))


def test_a_cross_keeps_the_order_of_hashed_and_other_parts():
    """TensorFlow crosses sparse parts first, whatever their order."""
    declaration = declare(
        COLUMNS,
        [
            Hashed("hashed", "s", 9),
            Bucketized("bucket", "x", _CUTS, use="both"),
            Crossed("cross", ("hashed", "bucket"), 10**6, use="both"),
        ],
    )
    raw = _raw(3, s=[b"a", b"b", b""], x=[0.0, 0.1, -9.0], i=[0] * 3)
    _assert_agree(declaration, constants_for(declaration), raw)


def test_values_outside_the_vocabulary_share_its_last_ids():
    declaration = declare(COLUMNS, [Vocabulary("text", "s", oov_buckets=2)])
    constants = constants_for(declaration, {"text": [b"a"]})
    texts = [b"a", b"unknown", b"other", b"\xff", b""]
    found, by_layer = _both_ways(declaration, constants, _raw(5, s=texts))["text"]
    assert found[0] == 0
    assert set(found[1:, 0]) <= {1, 2}
    np.testing.assert_array_equal(found, by_layer)


def test_ids_out_of_range_share_the_last_id():
    declaration = declare(
        COLUMNS, [Identity("id", "i", 10), Identity("other", "i_as_text", 1)]
    )
    ids = [3, -1, 10, 12, 0, 9, -(2**63), 2**63 - 1]
    raw = _raw(8, i=ids, i_as_text=[0] * 8)
    found = _both_ways(declaration, constants_for(declaration), raw)
    assert found["id"][0][:, 0].tolist() == [3, 10, 10, 10, 0, 9, 10, 10]
    _assert_agree(declaration, constants_for(declaration), raw)


def test_no_rows():
    declaration = declare(
        COLUMNS,
        [
            Vocabulary("text", "s"),
            Numeric("x", "x", use="both"),
            Bucketized("bucket", "x", _CUTS, use="both"),
            Crossed("cross", ("text", "bucket"), 10, use="both"),
        ],
    )
    constants = constants_for(declaration, {"text": [b"a"]})
    raw = {c.name: [] for c in COLUMNS}
    for found, _ in _both_ways(declaration, constants, raw).values():
        assert len(found) == 0


def _compile(*features):
    declaration = declare(COLUMNS, features)
    vocabularies = {f.name: [b"a"] for f in features if isinstance(f, Vocabulary)}
    return feature_columns.compile_columns(
        declaration, constants_for(declaration, vocabularies)
    )


_PARTS = (Vocabulary("a", "s"), Hashed("b", "s", 9))


def test_the_same_cross_twice_in_a_part_is_refused():
    with pytest.raises(UserError, match="ab, ba, in the model's wide part, cross the"):
        _compile(*_PARTS, Crossed("ab", ("a", "b"), 9), Crossed("ba", ("b", "a"), 8))


def test_the_same_cross_in_both_parts_is_allowed():
    deep = Crossed("ba", ("a", "b"), 8, embedding=2, use="deep")
    assert [len(part) for part in _compile(*_PARTS, Crossed("ab", ("a", "b"), 9), deep)]


def test_a_name_that_tensorflow_gives_to_another_feature_is_refused():
    clashing = Hashed("a_X_b", "i", 9, use="wide")
    with pytest.raises(UserError, match="a_X_b, cross, .* rename one of them"):
        _compile(*_PARTS, clashing, Crossed("cross", ("a", "b"), 9))
