"""Which rows of another model's variables stand for the same things."""

from __future__ import annotations

import dataclasses

import helpers_models
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_fns import feature_columns, feature_layers
from pipeline.compat import tf
from pipeline.model_dir import TrainedModel, Training
from pipeline.types import (
    Crossed,
    Date,
    DatePart,
    Hashed,
    Image,
    Numeric,
    Text,
    TokenSequence,
    Vocabulary,
)
from pipeline.warm_start_rows import FRESH, Correspondence

KERNEL = {"dnn": "dnn/hiddenlayer_0/kernel", "keras": "wide_deep/hidden_0/dense/kernel"}


@pytest.fixture(scope="module")
def case(tmp_path_factory) -> helpers_models.Case:
    return helpers_models.label_case(
        tmp_path_factory.mktemp("case"), features=helpers_models.FEATURES
    )


def _model(case, features=None, **vocabularies) -> TrainedModel:
    declaration, constants = case.declaration, case.constants
    if features is not None:
        named = {feature.name: feature for feature in features}
        declaration = dataclasses.replace(declaration, features=named)
    words = {**constants.vocabularies, **vocabularies}
    constants = dataclasses.replace(constants, vocabularies=words)
    return TrainedModel("", Training("", {}, 1, 1, 1, ""), declaration, constants)


def _layout(model: TrainedModel, kind: str) -> list[tuple[str, int]]:
    found = Correspondence(model, model)._layout(model, kind == "dnn")
    return [(feature.name, width) for feature, width in found]


def test_the_premade_input_is_as_feature_columns_have_it(case):
    _, deep = feature_columns.compile_columns(case.declaration, case.constants)
    deep.sort(key=lambda column: column.name)
    widths = [column.variable_shape.num_elements() for column in deep]
    layout = _layout(_model(case), "dnn")
    assert [width for _, width in layout] == widths
    for (feature, _), column in zip(layout, deep, strict=True):
        crossed = isinstance(case.declaration.features[feature], Crossed)
        assert crossed or column.name.startswith(feature)


def test_the_premade_input_of_other_kinds(case):
    """With weights, shared tables, dates, texts, sequences and images."""
    features = (
        Vocabulary("w", "a", embedding=2, weights="b"),
        Vocabulary("z", "a", weights="b"),
        Vocabulary("s1", "a", embedding=3, shared="mine"),
        Vocabulary("s2", "c", embedding=3, shared="mine"),
        Date("month", "d", DatePart.MONTH, use="deep"),
        Date("year", "d", DatePart.YEAR, use="deep"),
        Text("text", "a", buckets=7, embedding=2),
        TokenSequence("sequence", "a", ",", 5),
        Image("picture", "a", 2, 3),
    )
    model = _model(case, features, **dict.fromkeys(["w", "z", "s1", "s2"], (b"a",)))
    vocabularies = {**model.constants.vocabularies, "sequence": (b"a", b"b", b"c")}
    constants = dataclasses.replace(
        model.constants,
        vocabularies=vocabularies,
        scalings={"year": model.constants.scalings["age"]},
    )
    model = dataclasses.replace(model, constants=constants)
    _, deep = feature_columns.compile_columns(model.declaration, constants)
    deep.sort(key=lambda column: column.name)
    widths = [column.variable_shape.num_elements() for column in deep]
    layout = [width for _, width in _layout(model, "dnn")]
    assert layout[layout.index(3) : layout.index(3) + 2] == [3, 3]
    del layout[layout.index(3)]
    layout[layout.index(3)] = 6
    assert layout == widths
    names = ["/".join([c.name, "embedding_weights"]) for c in deep]
    (shared,) = [name for name in names if "mine" in name]
    rows = Correspondence(model, model).rows(f"a/{shared}", [2, 3], [2, 3])
    assert rows.tolist() == [0, 1]


def test_the_keras_input_is_as_the_layer_has_it(case):
    """Each feature's part is found by what changes when its column does."""
    with tf.Graph().as_default():
        encoder = feature_layers.FeatureEncoder(case.declaration, case.constants)
        layer = feature_layers.DeepVector(encoder, 1)
        encoded = {
            name: tf.zeros([1, 1])
            if isinstance(f, Numeric)
            else tf.zeros([1], tf.int64)
            for name, f in case.declaration.features.items()
        }
        base = layer(encoded)
        others = {}
        for name, value in encoded.items():
            if case.declaration.features[name].use != "wide":
                others[name] = layer({**encoded, name: value + 1})
        with tf.compat.v1.Session() as session:
            session.run(tf.compat.v1.global_variables_initializer())
            base, others = session.run([base, others])
    start = 0
    for name, width in _layout(_model(case), "keras"):
        (changed,) = np.nonzero((others[name] != base)[0])
        assert start <= changed.min() and changed.max() < start + width
        start += width
    assert start == base.shape[1]


@pytest.mark.parametrize("kind", KERNEL)
def test_a_model_like_itself_is_taken_whole(case, kind):
    model = _model(case)
    same = Correspondence(model, model)
    width = sum(width for _, width in _layout(model, kind))
    for name, rows in ((KERNEL[kind], width), ("a/bias", 7)):
        found = same.rows(name, [rows, 3], [rows, 3])
        assert (found == np.arange(rows)).all()


@given(
    st.lists(st.sampled_from("abcdefgh"), unique=True, min_size=1),
    st.lists(st.sampled_from("abcdefgh"), unique=True, min_size=1),
)
def test_terms_keep_what_was_learned_for_them(old_terms, new_terms):
    case = _CASES["words"]
    old = _model(case, **{"marital-status": tuple(t.encode() for t in old_terms)})
    new = _model(case, **{"marital-status": tuple(t.encode() for t in new_terms)})
    for name in (
        "linear/linear_model/marital-status/weights",
        "dnn/input_from_feature_columns/input_layer/marital-status_embedding/"
        "embedding_weights",
        "wide_deep/deep/marital-status/table/embeddings",
        "training/Ftrl/linear/linear_model/marital-status/weights/accumulator",
    ):
        shapes = [[len(terms) + 1, 3] for terms in (old_terms, new_terms)]
        rows = Correspondence(old, new).rows(name, *shapes)
        for term, row in zip([*new_terms, None], rows, strict=True):
            there = [*old_terms, None]
            assert row == (there.index(term) if term in there else FRESH)


_CASES = {}


@pytest.fixture(autouse=True)
def _keep(case):
    _CASES["words"] = case


@pytest.mark.parametrize(
    ("terms", "kept"),
    [((b"x", b"y", b"z"), True), ((b"y", b"x"), False), ((b"x",), False)],
)
def test_a_cross_is_kept_while_ids_mean_the_same(case, terms, kept):
    """three = marital_hashed x number x place, age_x_place = age_bucket x place"""
    rows = Correspondence(_model(case), _model(case, place=terms))
    for name, size in (
        ("wide_deep/wide/age_x_place/table/embeddings", 50),
        ("linear/linear_model/age_bucket_bucketized_X_place/weights", 50),
        ("wide_deep/deep/three/table/embeddings", 100),
    ):
        found = rows.rows(name, [size, 1], [size, 1])
        assert (found == np.arange(size)).all() == kept
        assert kept or (found == FRESH).all()


@pytest.mark.parametrize("kind", KERNEL)
def test_the_first_layer_where_features_come_and_go(case, kind):
    old = _model(
        case,
        [
            Numeric("age", "age"),
            Vocabulary("place", "\u6771\u4eac", use="deep"),
            Hashed("h", "marital-status", 4, use="deep"),
        ],
    )
    new = _model(
        case,
        [
            Vocabulary("place", "\u6771\u4eac", use="deep"),
            Hashed("h", "marital-status", 5, use="deep"),
            Numeric("age", "age"),
            Numeric("gain", helpers_models.ODD_NAME),
        ],
        place=(b"x", b"y", b"z"),
    )
    found = Correspondence(old, new).rows(KERNEL[kind], [8, 2], [11, 2])
    if kind == "dnn":
        # There age, h_indicator 4, place_indicator 3; here age, gain, h, place.
        wanted = [0, FRESH, *[FRESH] * 5, 5, 6, FRESH, 7]
    else:
        # There place 3, h 4, age; here place 4, h 5, age, gain.
        wanted = [0, 1, FRESH, 2, *[FRESH] * 5, 7, FRESH]
    assert found.tolist() == wanted


def test_shapes_that_have_nothing_to_do_with_each_other(case):
    model = _model(case)
    rows = Correspondence(model, model).rows
    assert rows("a/kernel", [3, 4], [3, 5]) is None
    assert rows("a/kernel", [3, 4], [2, 4]) is None
    assert rows("a/kernel", [3], [3, 1]) is None
    assert rows("a/scalar", [], []).size == 0
