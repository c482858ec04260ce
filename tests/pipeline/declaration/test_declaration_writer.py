"""The declaration writer: what it writes is read back as the same declaration."""

from __future__ import annotations

import os
import tempfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import declaration, environment
from pipeline.types import (
    Bucketized,
    Column,
    ColumnType,
    Combiner,
    Crossed,
    Date,
    DatePart,
    Declaration,
    Feature,
    Hashed,
    Image,
    Label,
    Numeric,
    Scale,
    Split,
    Text,
    TextSplit,
    TokenSequence,
    Vocabulary,
)

_WORDS = r"""
yes No null ~ 1.0 1 0x1 1:30 2020-01-01 2020-13-45 .nan .inf # - ? | > & * ! % @
= << [ ] { } , : " ' \ ` a:b {a:b} [a] *a &a !a !!int --- ... ,"""
ODD = [
    *_WORDS.split(),
    "a: b",
    "a #b",
    "a  b",
    "two\nlines",
    "a\r\nb",
    "a\tb",
    "naïve",
    "日本",
    "😀",
    "\x07",
    "\x7f",
    "a\x85b",
    "a\u2028b",
    "\ufeffa",
    "\ufffe",
    "x" * 2000,
    "😀" * 300,
    "9" * 5000,
]
"""Texts that YAML, or a careless writer of it, takes for something else."""

_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_ANY_TEXT = st.one_of(st.sampled_from(ODD), _TEXTS)
# What a column's name or a class is: not empty, and no blanks around it.
_NAMES = _ANY_TEXT.map(str.strip).filter(bool)
_FEATURE_NAMES = st.one_of(
    st.sampled_from(["yes", "null", "1.0", "0x1", "2020-13-45", "1e5", "a" * 1500]),
    st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,8}", fullmatch=True),
)
_FINITE = st.floats(allow_nan=False, allow_infinity=False)
_USES = st.sampled_from(["wide", "deep", "both"])
_EMBEDDINGS = st.none() | st.integers(1, 2**16)
_DEFAULTS = {
    ColumnType.INT: st.integers(-(2**63), 2**63 - 1),
    ColumnType.FLOAT: st.floats(allow_nan=False, allow_infinity=False, width=32),
    ColumnType.STRING: _ANY_TEXT.filter(bool),
}


@st.composite
def _columns(draw) -> dict[str, Column]:
    columns = {}
    for name in draw(st.lists(_NAMES, min_size=3, max_size=6, unique=True)):
        kind = draw(st.sampled_from(ColumnType))
        markers = draw(st.lists(_NAMES, max_size=3, unique=True))
        columns[name] = Column(
            name, kind, ("", *markers), draw(st.none() | _DEFAULTS[kind])
        )
    return columns


@st.composite
def _label(draw, columns: dict[str, Column]) -> Label | None:
    possible = [c for c in columns.values() if c.required]
    if not possible or draw(st.booleans()):
        return None
    column = draw(st.sampled_from(possible))
    if column.type is ColumnType.FLOAT:
        return Label(column.name)
    texts = _NAMES.filter(lambda text: text not in column.missing)
    if column.type is ColumnType.INT:
        whole = st.integers(-(2**63), 2**63 - 1).map(str)
        texts = whole.filter(lambda text: text not in column.missing)
    classes = st.lists(texts, min_size=2, max_size=5, unique=True).map(tuple)
    if column.type is ColumnType.INT:
        classes = st.none() | classes
    return Label(column.name, draw(classes))


_COMBINERS = st.sampled_from(Combiner)


@st.composite
def _several(draw, column: Column) -> dict:
    if column.type is not ColumnType.STRING or draw(st.booleans()):
        return {}
    return {"separator": draw(_ANY_TEXT.filter(bool)), "combiner": draw(_COMBINERS)}


@st.composite
def _content(draw, kind: str, name: str, column: str) -> Feature:
    if kind == "date":
        part = draw(st.sampled_from(DatePart))
        if part.size is None:
            return Date(name, column, part, draw(st.sampled_from(Scale)), use="deep")
        return Date(name, column, part, embedding=draw(_EMBEDDINGS), use=draw(_USES))
    if kind == "image":
        sides = st.integers(1, 8192)
        return Image(
            name, column, draw(sides), draw(sides), draw(st.sampled_from([1, 3, 4]))
        )
    lookup = draw(
        st.fixed_dictionaries({"buckets": st.integers(2, 2**31 - 1)})
        | st.fixed_dictionaries(
            {}, optional={"top_k": st.integers(1, 9), "min_count": st.integers(1, 9)}
        )
    )
    lookup |= {"embedding": draw(_EMBEDDINGS), "use": draw(_USES)}
    lookup |= {"combiner": draw(_COMBINERS)}
    if kind == "sequence":
        separator = draw(_ANY_TEXT.filter(bool))
        return TokenSequence(
            name, column, separator, draw(st.integers(1, 2**16)), **lookup
        )
    split = draw(st.sampled_from(TextSplit))
    pattern = draw(st.sampled_from(["a|b", "\\W+", '"', "[,; ]"]))
    return Text(
        name,
        column,
        draw(st.booleans()),
        split,
        pattern if split is TextSplit.REGEX else None,
        draw(st.integers(1, 8)),
        **lookup,
    )


@st.composite
def _feature(draw, name: str, column: Column) -> Feature:
    kinds = []
    if column.type is not ColumnType.STRING:
        kinds += ["numeric", "bucketized"]
    if column.type is not ColumnType.FLOAT:
        kinds += ["vocabulary", "hashed"]
    if column.type is not ColumnType.FLOAT:
        kinds += ["date"]
    if column.type is ColumnType.STRING:
        kinds += ["text", "sequence", "image"]
    kind = draw(st.sampled_from(kinds))
    if kind == "numeric":
        clip = st.tuples(st.floats(-9, 0), st.floats(1, 9))
        return Numeric(
            name,
            column.name,
            draw(st.sampled_from(Scale)),
            draw(_USES),
            draw(st.none() | clip),
        )
    if kind in ("date", "text", "sequence", "image"):
        return draw(_content(kind, name, column.name))
    if kind == "bucketized":
        cuts = st.lists(_FINITE, min_size=1, max_size=4, unique=True)
        boundaries = draw(st.none() | cuts.map(sorted).map(tuple))
        quantiles = draw(st.integers(2, 2**16)) if boundaries is None else None
        return Bucketized(
            name, column.name, boundaries, quantiles, draw(_EMBEDDINGS), draw(_USES)
        )
    if kind == "vocabulary":
        return Vocabulary(
            name,
            column.name,
            draw(st.none() | st.integers(1, 10**12)),
            draw(st.integers(1, 10**12)),
            draw(st.integers(1, 2**31 - 1)),
            draw(_EMBEDDINGS),
            draw(_USES),
            **draw(_several(column)),
        )
    buckets = draw(st.integers(2, 2**31 - 1))
    return Hashed(
        name,
        column.name,
        buckets,
        draw(_EMBEDDINGS),
        draw(_USES),
        **draw(_several(column)),
    )


@st.composite
def declarations(draw) -> Declaration:
    columns = draw(_columns())
    label = draw(_label(columns))
    free = [c for c in columns.values() if label is None or c.name != label.column]
    numbers = [c.name for c in free if c.type is not ColumnType.STRING]
    weight = draw(st.none() | st.sampled_from(numbers)) if numbers else None
    features: dict[str, Feature] = {}
    taken = set()
    for name in draw(st.lists(_FEATURE_NAMES, min_size=1, max_size=6, unique=True)):
        feature = draw(_feature(name, draw(st.sampled_from(free))))
        if (feature.KIND, feature.column) not in taken:
            taken.add((feature.KIND, feature.column))
            features[name] = feature
    crossable = (Bucketized, Vocabulary, Hashed)
    parts = [n for n, f in features.items() if isinstance(f, crossable)]
    if len(parts) >= 2 and "cross" not in features:
        of = draw(st.lists(st.sampled_from(parts), min_size=2, unique=True))
        features["cross"] = Crossed("cross", tuple(of), 9, draw(_EMBEDDINGS))
    eval_share = draw(st.floats(0.01, 0.4))
    test_share = draw(st.floats(0.01, 0.4))
    key = draw(st.lists(st.sampled_from(list(columns)), unique=True, max_size=3))
    split = Split(
        {"train": 1 - eval_share - test_share, "eval": eval_share, "test": test_share},
        tuple(key),
        draw(_ANY_TEXT),
    )
    return Declaration(columns, features, split, label, weight)


@pytest.fixture(autouse=True, scope="module")
def _much_memory():
    """Declarations of any size are written and read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(environment, "memory_bytes", lambda: 2**80)
        yield


def written_and_read(value: Declaration, comment: str = "") -> Declaration:
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "features.yaml")
        with open(path, "w", encoding="utf-8", newline="") as f:
            f.write(declaration.dump(value, comment))
        return declaration.load(path)


def _small(name: str = "a", **changes) -> Declaration:
    values = {
        "columns": {name: Column(name, ColumnType.STRING)},
        "features": {"f": Vocabulary("f", name)},
        "split": Split({"train": 0.8, "eval": 0.1, "test": 0.1}),
    }
    return Declaration(**{**values, **changes})


@settings(deadline=None)
@given(declarations())
def test_what_is_written_is_read_back(value):
    again = written_and_read(value, "two\nlines\r# and: more")
    assert again == value
    assert list(again.columns) == list(value.columns)
    assert list(again.features) == list(value.features)


@pytest.mark.parametrize(
    "text", [t for t in ODD if t == t.strip()], ids=lambda text: ascii(text[:20])
)
def test_odd_text_in_every_place(text):
    columns = {
        text: Column(text, ColumnType.STRING, ("", text), default=text),
        "y" + text: Column("y" + text, ColumnType.STRING),
    }
    label = Label("y" + text, (text, "other" + text))
    split = Split({"train": 0.8, "eval": 0.1, "test": 0.1}, (text,), text)
    value = _small(text, columns=columns, label=label, split=split)
    assert written_and_read(value) == value


def test_int_classes_come_back():
    columns = {
        "a": Column("a", ColumnType.STRING),
        "y": Column("y", ColumnType.INT),
    }
    value = _small(
        columns=columns, label=Label("y", ("0", "1", "-9223372036854775808"))
    )
    assert written_and_read(value) == value


def test_a_person_can_read_it():
    columns = {
        "work class": Column("work class", ColumnType.STRING, ("", "?"), "unknown"),
        "größe": Column("größe", ColumnType.FLOAT, default=1.5),
        "y": Column("y", ColumnType.STRING),
    }
    features = {
        "work": Vocabulary("work", "work class", embedding=8),
        "size": Numeric("size", "größe", Scale.LOG),
        "cut": Bucketized("cut", "größe", (1.0, 2.5)),
    }
    value = Declaration(
        columns,
        features,
        Split({"train": 0.8, "eval": 0.1, "test": 0.1}),
        Label("y", ("no", "maybe")),
    )
    assert declaration.dump(value, "Made by hand.\nTwice.") == (
        "# Made by hand.\n"
        "# Twice.\n"
        "label:\n"
        "  column: y\n"
        '  classes: ["no", maybe]\n'
        "split:\n"
        "  fractions: {train: 0.8, eval: 0.1, test: 0.1}\n"
        "  # Columns whose values decide a row's split; [] takes the whole row.\n"
        "  key: []\n"
        '  salt: ""\n'
        "columns:\n"
        '  "work class": {type: string, missing: ["?"], default: unknown}\n'
        '  "größe": {type: float, default: 1.5}\n'
        "  y: {type: string}\n"
        "features:\n"
        '  work: {kind: vocabulary, column: "work class", embedding: 8}\n'
        '  size: {kind: numeric, column: "größe", scale: log}\n'
        '  cut: {kind: bucketized, column: "größe", boundaries: [1.0, 2.5]}\n'
    )
