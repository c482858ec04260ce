"""Several, weighted and shared values, and contents, as columns and as layers."""

from __future__ import annotations

import numpy as np
import pytest
from helpers_images import PIXELS, jpeg, png
from helpers_records import column, constants_for, declare
from hypothesis import given, settings
from hypothesis import strategies as st

from model_fns import feature_columns, feature_layers, sequence_layers, tables
from pipeline.compat import tf, tf_keras
from pipeline.types import (
    Combiner,
    Crossed,
    Date,
    DatePart,
    Hashed,
    Identity,
    Image,
    Numeric,
    Scale,
    Scaling,
    Text,
    TextSplit,
    TokenSequence,
    Vocabulary,
    groups,
    is_category,
    is_looked_up,
    is_number,
)

COLUMNS = (
    column("tags", "string"),
    column("tags2", "string"),
    column("amounts", "string"),
    column("amount", "float"),
    column("i", "int"),
    column("when", "string"),
    column("words", "string"),
    column("photo", "string", default="none"),
)
_DTYPES = {"string": tf.string, "int": tf.int64, "float": tf.float32}
_TAGS = [b"", b"|", b"a", b"a|b", b" a |\tb||a", b"\xff|b", b"A|b|c|d|e", b"a|" * 5]
_RAW = {
    "tags": _TAGS,
    "tags2": [*_TAGS, b"b|a|zz"],
    "amounts": [b"", b"1|2", b"x|0.5", b"-1|0|3|4|5", b"nan|1e999|inf| 2e0 |.5|1."],
    "amount": [0.0, 1.0, -2.0, 3.5, np.inf],
    "i": [-1, 0, 1, 5, 2**40, -(2**40)],
    "when": [b"2024-02-29", b"1969-12-31T23:59:59.5Z", b"no", b"", b"2023-02-29"],
    "words": [b"", b"The cat, the CAT", b" ", b"\xc3\x84 b\xff\x1fc \x00", b"a b a b"],
    "photo": [b"none", b"", png(), jpeg()],
}
_TERMS = [b"a", b"b", b"the", b"the cat", b"c", b"5", b"\xff"]


def _feature_outputs(feature, column, inputs, layers):
    """Returns the columns' output, and keeps the layer, whose weights are set later."""
    layer = tf_keras.layers.DenseFeatures([column])
    layers[feature] = layer
    return layer(inputs)


def _exact(random, shape) -> np.ndarray:
    """Numbers whose sums float32 does not round, in whatever order they are added."""
    return random.integers(-64, 64, shape).astype("f4") / 16


def _run(declaration, constants, raw):
    """Returns name to (by feature columns, by layers), of both parts."""
    features = declaration.features
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        tensors = {
            c.name: tf.constant(raw[c.name], _DTYPES[c.type.value])
            for c in declaration.columns.values()
        }
        inputs = feature_columns.inputs(tensors, declaration)
        wide, deep = feature_columns.compile_columns(declaration, constants)
        encoder = feature_layers.FeatureEncoder(declaration, constants)
        encoded = encoder(tensors)
        vector = feature_layers.DeepVector(encoder, 1)
        by_layers = vector(encoded)
        made, random, assigned, pairs = {}, np.random.default_rng(0), [], {}

        sharing = groups(features)
        alone = [f for f in encoder.used("deep") if not getattr(f, "shared", None)]
        outputs = {}
        for feature, each in zip(alone, deep, strict=False):
            outputs[feature.name] = _feature_outputs(feature.name, each, inputs, made)
        for (group, members), each in zip(
            sharing.items(), deep[len(alone) :], strict=True
        ):
            found = _feature_outputs(group, each, inputs, made)
            by_name = sorted(members, key=lambda f: f.name)
            for member, part in zip(
                by_name, tf.split(found, len(members), axis=1), strict=True
            ):
                outputs[member.name] = part
        kinds = (is_category, is_number, lambda f: isinstance(f, Image))
        order = [f for kind in kinds for f in encoder.used("deep") if kind(f)]
        pairs["deep"] = tf.concat([outputs[f.name] for f in order], axis=1), by_layers
        for name, table in vector._tables.items():
            (ours,), (theirs,) = table.weights, made[name].weights
            value = _exact(random, ours.shape)
            assigned += [(ours, value), (theirs, value)]

        for feature, each in zip(encoder.used("wide"), wide, strict=True):
            if not is_category(feature):
                continue
            with tf.compat.v1.variable_scope(f"wide_{feature.name}") as scope:
                found = tf.compat.v1.feature_column.linear_model(inputs, [each])
            theirs = scope.trainable_variables()[0]
            table = tables.Table(
                encoder.sizes[feature.name], 1, "zeros", None, feature.name
            )
            pairs[f"wide {feature.name}"] = (
                found,
                table(encoded[feature.name], Combiner.SUM),
            )
            value = _exact(random, theirs.shape)
            assigned += [(table.weights[0], value), (theirs, value)]
        session.run(
            [
                tf.compat.v1.global_variables_initializer(),
                tf.compat.v1.tables_initializer(),
            ]
        )
        for variable, value in assigned:
            variable.load(value, session)
        return session.run(pairs)


def _assert_agree(declaration, constants, raw):
    found = _run(declaration, constants, raw)
    for name, (by_columns, by_layers) in found.items():
        np.testing.assert_allclose(
            by_columns, by_layers, rtol=1e-6, atol=1e-6, err_msg=name
        )
    return found


def _constants(declaration):
    features = declaration.features.values()
    return constants_for(
        declaration,
        {f.name: _TERMS for f in features if is_looked_up(f)},
        {f.name: Scaling(3.0, 0.25) for f in features if is_number(f)},
    )


_COMBINERS = st.sampled_from(Combiner)
_WIDTHS = st.none() | st.integers(1, 3)


@st.composite
def _several(draw, name, column_="tags"):
    settings_ = {"separator": "|", "combiner": draw(_COMBINERS)}
    settings_["weights"] = draw(st.sampled_from([None, "amounts"]))
    settings_["embedding"] = draw(_WIDTHS)
    if draw(st.booleans()):
        return Vocabulary(name, column_, oov_buckets=2, **settings_)
    return Hashed(name, column_, 9, **settings_)


@st.composite
def _weighted(draw, name):
    settings_ = {"combiner": Combiner.SUM, "weights": "amount"}
    settings_["embedding"] = draw(_WIDTHS)
    make = draw(st.sampled_from(["identity", "hashed", "vocabulary"]))
    if make == "identity":
        return Identity(name, "i", 4, **settings_)
    if make == "hashed":
        return Hashed(name, "i", 7, **settings_)
    return Vocabulary(name, "i", **settings_)


@st.composite
def _contents(draw, name):
    lookup = {"embedding": draw(_WIDTHS), "combiner": draw(_COMBINERS), "use": "both"}
    if draw(st.booleans()):
        lookup["buckets"] = 11
    kind = draw(st.sampled_from(["text", "sequence", "date"]))
    if kind == "sequence":
        return TokenSequence(name, "tags", "|", draw(st.integers(1, 4)), **lookup)
    if kind == "date":
        part = draw(st.sampled_from(DatePart))
        width = None if part.size is None else lookup["embedding"]
        return Date(name, "when", part, embedding=width)
    split = draw(st.sampled_from(TextSplit))
    return Text(
        name,
        "words",
        draw(st.booleans()),
        split,
        "[, ]+|b*" if split is TextSplit.REGEX else None,
        draw(st.integers(1, 3)),
        **lookup,
    )


@st.composite
def _cases(draw):
    features = [
        draw(_several("several")),
        draw(_weighted("weighted")),
        draw(_contents("contents")),
        Vocabulary("plain", "tags2", separator="|", use=draw(st.just("both"))),
        Hashed("hashed", "tags2", 50, separator="|"),
        Date("weekday", "when", DatePart.WEEKDAY),
    ]
    parts = ["plain", "hashed", "weekday"]
    of = tuple(draw(st.permutations(parts))[: draw(st.integers(2, 3))])
    features.append(Crossed("cross", of, 1000, draw(_WIDTHS), "both", draw(_COMBINERS)))
    declaration = declare(COLUMNS, features)
    rows = draw(st.integers(1, 12))
    raw = {}
    for name, values in _RAW.items():
        lists = st.lists(st.sampled_from(values), min_size=rows, max_size=rows)
        raw[name] = draw(lists) if name != "photo" else [b"none"] * rows
    return declaration, raw


@pytest.mark.slow
@settings(deadline=None, max_examples=10)
@given(_cases())
def test_any_declaration_means_the_same_both_ways(case):
    declaration, raw = case
    _assert_agree(declaration, _constants(declaration), raw)


def _raw(rows: int, **values):
    return {name: [known[0]] * rows for name, known in _RAW.items()} | values


def _deep(*features, **values):
    rows = len(next(iter(values.values())))
    declaration = declare(COLUMNS, features)
    return _assert_agree(declaration, _constants(declaration), _raw(rows, **values))[
        "deep"
    ][1]


def test_one_hot_of_several_values_counts_them():
    feature = Vocabulary("v", "tags", separator="|", use="deep")
    found = _deep(feature, tags=[b"a|b|a", b" b ||new", b"", b"|"])
    # a and b are the first ids, and the last is for unknown values.
    assert found[:, [0, 1, -1]].tolist() == [[2, 1, 0], [0, 1, 1], [0] * 3, [0] * 3]
    assert found.sum(axis=1).tolist() == [3, 2, 0, 0]


def test_weights_keep_their_places():
    feature = Vocabulary("v", "tags", separator="|", weights="amounts", use="deep")
    found = _deep(
        feature,
        tags=[b"a||b", b"a|b", b"a|b", b"a", b"a|b"],
        amounts=[b"2|5|3", b"0.5", b"x|-4", b"1|2|3", b"1e999|nan"],
    )
    assert found[:, :2].tolist() == [[2, 3], [0.5, 1], [1, 0], [1, 0], [1, 1]]


@pytest.mark.parametrize("combiner", Combiner)
def test_combiners(combiner):
    feature = Hashed("h", "tags", 9, 2, "deep", "|", combiner)
    tags = [b"a|b|a", b"a", b""]
    found = _deep(feature, tags=tags)
    single = _deep(Hashed("h", "tags", 9, 2, "deep"), tags=[b"a", b"b", b""])
    total = 2 * single[0] + single[1]
    by = {Combiner.SUM: 1, Combiner.MEAN: 3, Combiner.SQRTN: 3**0.5}[combiner]
    np.testing.assert_allclose(found[0], total / by, rtol=1e-5)
    np.testing.assert_allclose(found[1], single[0], rtol=1e-5)
    assert found[2].tolist() == [0, 0]


def test_weight_of_one_value():
    feature = Identity("id", "i", 3, None, "deep", Combiner.SUM, "amount")
    found = _deep(feature, i=[0, 2, 7, 1], amount=[2.5, -1.0, np.inf, 0.0])
    assert found.tolist() == [[2.5, 0, 0, 0], [0] * 4, [0, 0, 0, 1], [0] * 4]


def test_a_group_has_one_table():
    features = [
        Vocabulary("from", "tags", None, 1, 2, 3, "deep", shared="place"),
        Vocabulary("to", "tags2", None, 1, 2, 3, "both", shared="place"),
        Hashed("h", "tags", 5, 2, "deep"),
    ]
    found = _deep(*features, tags=[b"a", b"b", b"zz"], tags2=[b"a", b"a", b"zz"])
    np.testing.assert_array_equal(found[:1, :3], found[:1, 3:6])
    np.testing.assert_array_equal(found[2, :3], found[2, 3:6])
    assert (found[1, :3] != found[1, 3:6]).all()


def test_clip():
    feature = Numeric("x", "amount", Scale.ZSCORE, clip=(-1.0, 2.0))
    found = _deep(feature, amount=[-np.inf, -1.5, 0.0, 2.0, 9.0])
    assert found[:, 0].tolist() == [-1.0, -1.0, -0.75, -0.25, -0.25]


def test_images():
    feature = Image("picture", "photo", 2, 3)
    found = _deep(feature, photo=[png(), b"none", b"", png()])
    assert found.shape == (4, 2 * 3 * 3)
    np.testing.assert_allclose(found[0], PIXELS.ravel() / 255, atol=1e-6)
    np.testing.assert_array_equal(found[1:3], 0)
    np.testing.assert_array_equal(found[3], found[0])
    grey = _deep(Image("picture", "photo", 1, 1, 1), photo=[jpeg()])
    assert 0 < grey[0, 0] < 1


@pytest.mark.parametrize("damaged", [b"text", b"\xff\xd8\xff\xe0 no", png()[:60]])
def test_an_image_that_cannot_be_read_is_named(damaged):
    feature = Image("picture", "photo", 2, 3)
    with pytest.raises(tf.errors.InvalidArgumentError, match="picture"):
        _deep(feature, photo=[png(), damaged])


def test_sequences_in_order():
    features = [
        TokenSequence("visit", "tags", "|", 3, embedding=2),
        TokenSequence("hashed", "tags2", "|", 3, 9),
    ]
    declaration = declare(COLUMNS, features)
    raw = _raw(4, tags=[b"a|b", b"", b"b|a|c|c", b"|new"], tags2=[b"x"] * 4)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        constants = _constants(declaration)
        tensors = {
            c.name: tf.constant(raw[c.name], _DTYPES[c.type.value]) for c in COLUMNS
        }
        encoder = feature_layers.FeatureEncoder(declaration, constants)
        encoded = encoder(tensors)
        inputs = feature_columns.inputs(tensors, declaration)
        columns = feature_columns.sequence_columns(declaration, constants)
        fetched, weights = [], []
        for feature, each in zip(features, columns, strict=True):
            theirs = tf_keras.experimental.SequenceFeatures([each])
            ours = sequence_layers.SequenceVectors(encoder, feature, 1)
            fetched.append((theirs(inputs), ours(encoded)))
            weights += zip(theirs.weights, ours.weights, strict=True)
        session.run(
            [
                tf.compat.v1.global_variables_initializer(),
                tf.compat.v1.tables_initializer(),
            ]
        )
        for one, other in weights:
            one.load(session.run(other), session)
        found = session.run(fetched)
        padded = sequence_layers.padded_ids(encoded, features[0], -1)
        ids, lengths = session.run(padded)
    assert ids.tolist()[:3] == [[0, 1, -1], [-1] * 3, [1, 0, 4]]
    assert lengths.tolist() == [2, 0, 3, 1]
    assert len(weights) == 1
    for feature, ((theirs, lengths), (ours, mask)) in zip(features, found, strict=True):
        assert ours.shape[:2] == (4, 3)
        most = theirs.shape[1]
        np.testing.assert_allclose(ours[:, :most], theirs, rtol=1e-6)
        np.testing.assert_array_equal(ours[:, most:], 0)
        assert mask.sum(axis=1).tolist() == lengths.tolist(), feature
        assert lengths.tolist() == (
            [2, 0, 3, 1] if feature.name == "visit" else [1] * 4
        )
        np.testing.assert_array_equal(ours[~mask], 0)
