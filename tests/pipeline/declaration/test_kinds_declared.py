"""The kinds of features in a declaration: what is read, and what is refused."""

from __future__ import annotations

import pytest

from pipeline import declaration, environment
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
    Text,
    TextSplit,
    TokenSequence,
    UserError,
    Vocabulary,
)

COLUMNS = """\
label: {column: y}
columns:
  s: {type: string}
  t: {type: string}
  w: {type: string}
  n: {type: float}
  i: {type: int}
  y: {type: float}
features:
"""


def load(tmp_path, *features: str):
    path = tmp_path / "features.yaml"
    path.write_text(COLUMNS + "".join(f"  {f}\n" for f in features), encoding="utf-8")
    return declaration.load(str(path))


KINDS = {
    "n: {kind: numeric, scale: minmax, clip: [-1, 2.5]}": Numeric(
        "n", "n", Scale.MINMAX, clip=(-1.0, 2.5)
    ),
    's: {kind: vocabulary, separator: "|", combiner: sqrtn, weights: w}': Vocabulary(
        "s", "s", separator="|", combiner=Combiner.SQRTN, weights="w"
    ),
    "s: {kind: hashed, buckets: 9, separator: ', '}": Hashed(
        "s", "s", 9, separator=", "
    ),
    "i: {kind: identity, buckets: 9, weights: n}": Identity(
        "i", "i", 9, weights="n", combiner=Combiner.SUM
    ),
    "d: {kind: date, column: s, part: day_of_year, embedding: 2}": Date(
        "d", "s", DatePart.DAY_OF_YEAR, embedding=2
    ),
    "d: {kind: date, column: i, part: timestamp, scale: none}": Date(
        "d", "i", DatePart.TIMESTAMP, Scale.NONE, use="deep"
    ),
    "s: {kind: text, lower: true, split: regex, pattern: '\\W+', ngrams: 2}": Text(
        "s", "s", True, TextSplit.REGEX, "\\W+", 2
    ),
    "s: {kind: sequence, separator: '>', max_length: 5, buckets: 7}": TokenSequence(
        "s", "s", ">", 5, 7
    ),
    "s: {kind: image, height: 3, width: 4, channels: 1}": Image("s", "s", 3, 4, 1),
}


@pytest.mark.parametrize(("text", "wanted"), KINDS.items())
def test_kinds(tmp_path, text, wanted):
    loaded = load(tmp_path, text)
    assert list(loaded.features.values()) == [wanted]
    path = tmp_path / "again.yaml"
    path.write_text(declaration.dump(loaded), encoding="utf-8")
    assert declaration.load(str(path)) == loaded


def test_weights_are_inputs_of_the_model(tmp_path):
    loaded = load(tmp_path, "i: {kind: identity, buckets: 9, weights: n}")
    assert [c.name for c in loaded.input_columns] == ["n", "i"]


def test_several_values_and_dates_are_crossed(tmp_path):
    loaded = load(
        tmp_path,
        's: {kind: vocabulary, separator: "|"}',
        "d: {kind: date, column: t, part: hour}",
        "x: {kind: crossed, of: [s, d], buckets: 9, combiner: sum}",
    )
    assert loaded.features["x"] == Crossed("x", ("s", "d"), 9, combiner=Combiner.SUM)


def test_several_parts_of_one_date(tmp_path):
    parts = [f"{p.value}: {{kind: date, column: s, part: {p.value}}}" for p in DatePart]
    assert len(load(tmp_path, *parts).features) == len(DatePart)


G = "embedding: 2, shared: g"
WRONG = {
    "n: {kind: numeric, clip: @[2, 1]}": "clip must be [lowest, highest]",
    "n: {kind: numeric, clip: @[2]}": "clip must be [lowest, highest]",
    "n: {kind: numeric, clip: @3}": "needs a list",
    "n: {kind: numeric, clip: [1, @x]}": "'x' is not a number",
    's: {kind: hashed, buckets: 9, separator: @""}': "the empty text separates nothing",
    "i: {kind: hashed, buckets: 9, separator: @x}": "column i is not a string",
    "s: {kind: hashed, buckets: 9, combiner: @sum}": "for several or weighted values",
    "s: {kind: hashed, buckets: 9, separator: x, combiner: @max}": (
        "'max' is unknown; allowed: sum, mean, sqrtn"
    ),
    "s: {kind: hashed, buckets: 9, separator: x, weights: @n}": (
        "column n is of type float; several weights with the same separator between"
        " them needs string"
    ),
    "s: {kind: hashed, buckets: 9, weights: @w}": "needs int or float",
    "s: {kind: hashed, buckets: 9, weights: @y}": "y is the label",
    "s: {kind: hashed, buckets: 9, weights: @z}": "'z' is not under `columns`",
    "s: {kind: hashed, buckets: 9, weights: n, combiner: @mean}": "would cancel out",
    "i: {kind: identity, buckets: 9, @separator: x}": "unknown; allowed here",
    "s: @{kind: hashed, buckets: 9, shared: g}": "shared needs `embedding`",
    f"s: {{kind: hashed, buckets: 9, {G[:-1]}@g}}": "no other feature is in the group",
    f"s: {{kind: hashed, buckets: 9, {G[:-1]}@s}}": "'s' is the name of a feature",
    f"s: {{kind: vocabulary, {G}}}\n  t: @{{kind: vocabulary, embedding: 3, shared: g}}": (
        "shares g with s, so embedding must be the same as there: 2"
    ),
    f"s: {{kind: vocabulary, {G}}}\n  t: @{{kind: vocabulary, {G}, oov_buckets: 2}}": (
        "so oov_buckets must be the same as there: 1"
    ),
    f"s: {{kind: hashed, buckets: 9, {G}}}\n  t: @{{kind: hashed, buckets: 8, {G}}}": (
        "so buckets must be the same as there: 9"
    ),
    f"s: {{kind: vocabulary, {G}}}\n  t: @{{kind: hashed, buckets: 8, {G}}}": (
        "which is of kind vocabulary"
    ),
    f"s: {{kind: vocabulary, {G}}}\n  t: @{{kind: vocabulary, {G}, use: wide}}": (
        "so use must be deep or both"
    ),
    "d: {kind: date, column: s, part: @month_of_year}": "allowed: year, timestamp",
    "d: @{kind: date, column: s}": "needs part",
    "d: @{kind: date, column: n, part: day}": "needs string or int",
    "d: @{kind: date, column: s, part: year, embedding: 3}": "the year is a number",
    "d: @{kind: date, column: s, part: day, scale: log}": "the day is a category",
    "d: {kind: date, column: s, part: day}\n  e: @{kind: date, column: s, part: day}": (
        "column s already has a date feature: d"
    ),
    "s: @{kind: text, split: regex}": "split: regex needs a pattern",
    "s: @{kind: text, pattern: x}": "split: regex needs a pattern",
    "s: {kind: text, split: regex, pattern: @(}": "no RE2 pattern",
    "s: {kind: text, lower: @1}": "'1' is unknown; allowed: true, false",
    "s: {kind: text, ngrams: @9}": "from 1 to 8",
    "s: @{kind: text, buckets: 9, top_k: 3}": "are for a vocabulary",
    "i: @{kind: text}": "needs string",
    "s: @{kind: sequence, separator: x}": "needs max_length",
    "s: {kind: sequence, separator: x, max_length: @0}": "from 1 to 65536",
    "s: {kind: image, height: 2, width: @0}": "from 1 to 8192",
    "s: {kind: image, height: 2, width: 2, channels: @2}": "allowed: 1, 3, 4",
    "s: {kind: vocabulary, separator: x, weights: w}\n"
    "  t: {kind: vocabulary}\n"
    "  c: {kind: crossed, of: [@s, t], buckets: 9}": "s has weights; a cross has none",
    "s: {kind: text}\n  t: {kind: vocabulary}\n"
    "  c: {kind: crossed, of: [@s, t], buckets: 9}": "s cannot be crossed",
    "d: {kind: date, column: s, part: year}\n  t: {kind: vocabulary}\n"
    "  c: {kind: crossed, of: [@d, t], buckets: 9}": "d cannot be crossed",
    "s: {kind: vocabulary}\n  t: {kind: vocabulary}\n"
    "  c: {kind: crossed, of: [s, t], buckets: 9, combiner: @sum}": "none is crossed",
}


@pytest.mark.parametrize(("text", "said"), WRONG.items())
def test_mistakes_name_the_place(tmp_path, text, said):
    before, after = f"{COLUMNS}  {text}".split("@")
    line = before.count("\n") + 1
    place = f"{line}:{len(before) - before.rfind(chr(10))}"
    with pytest.raises(UserError) as caught:
        load(tmp_path, text.replace("@", ""))
    message = str(caught.value)
    assert message.startswith(f"{tmp_path}/features.yaml:{place}: features.")
    assert said in message


class TestMemory:
    """A machine with 1 GiB, in which 4-byte numbers are kept in threes."""

    @pytest.fixture(autouse=True)
    def _one_gib(self, monkeypatch):
        monkeypatch.setattr(environment, "memory_bytes", lambda: 2**30)

    def test_the_width_counts(self, tmp_path):
        narrow = "s: {kind: hashed, buckets: 1000000, embedding: 8}"
        load(tmp_path, narrow)
        wide = narrow.replace("8}", "128}")
        with pytest.raises(UserError) as caught:
            load(tmp_path, wide)
        # 1,000,000 ids of 1 (wide) and 128 (deep) numbers, each with two of Adam's.
        assert str(caught.value).endswith(
            ":10:30: features.s.buckets: 1000000 buckets would need 1.4 GiB in training"
            " (weights, and the optimizer's two numbers for each); this machine has"
            " 1.0 GiB: take fewer, or a narrower embedding"
        )

    def test_all_features_count(self, tmp_path):
        features = [
            f"{s}: {{kind: hashed, buckets: 1000000, embedding: 50, use: deep}}"
            for s in "stw"
        ]
        load(tmp_path, features[0])
        with pytest.raises(UserError, match="features.t.buckets.*with those above"):
            load(tmp_path, *features)

    def test_a_shared_table_counts_once(self, tmp_path):
        features = [
            f"{s}: {{kind: hashed, buckets: 1000000, embedding: 50, use: deep,"
            " shared: g}"
            for s in "stw"
        ]
        load(tmp_path, *features)

    @pytest.mark.parametrize(
        "text",
        [
            "i: {kind: identity, buckets: 1000000, embedding: 100}",
            "s: {kind: text, buckets: 1000000, embedding: 100}",
            "s: {kind: vocabulary, oov_buckets: 1000000, embedding: 100}",
            "s: {kind: sequence, separator: x, max_length: 9, buckets: 1000000,"
            " embedding: 100}",
            "s: {kind: vocabulary}\n  t: {kind: vocabulary}\n"
            "  c: {kind: crossed, of: [s, t], buckets: 1000000, embedding: 100,"
            " use: deep}",
        ],
    )
    def test_every_kind_with_buckets_counts(self, tmp_path, text):
        with pytest.raises(UserError, match=r"1\.\d GiB in training"):
            load(tmp_path, text)


def test_memory_of_this_machine():
    assert 2**27 < environment.memory_bytes() < 2**50
