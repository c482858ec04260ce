"""Statistics of what features make of columns, and the constants from them."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest

from pipeline.preprocess import accumulators, merge, statistics_files
from pipeline.preprocess.constants import compute_constants
from pipeline.preprocess.derived import Derivation
from pipeline.preprocess.statistics import DatasetStatistics
from pipeline.types import (
    Column,
    ColumnType,
    Constants,
    Date,
    DatePart,
    Declaration,
    Image,
    Numeric,
    Scale,
    Split,
    Text,
    TokenSequence,
    UserError,
    Vocabulary,
)

TYPES = {
    "x": ColumnType.FLOAT,
    "i": ColumnType.INT,
    "s": ColumnType.STRING,
    "t": ColumnType.STRING,
    "d": ColumnType.STRING,
}
ARROW = {
    ColumnType.INT: pa.int64(),
    ColumnType.FLOAT: pa.float32(),
    ColumnType.STRING: pa.binary(),
}


def declare(*features, **defaults) -> Declaration:
    return Declaration(
        {n: Column(n, t, default=defaults.get(n)) for n, t in TYPES.items()},
        {f.name: f for f in features},
        Split({"train": 1.0}),
    )


def batch(**columns) -> pa.RecordBatch:
    rows = len(next(iter(columns.values())))
    return pa.record_batch(
        [pa.array(columns.get(n, [None] * rows), ARROW[t]) for n, t in TYPES.items()],
        list(TYPES),
    )


def gather(declaration: Declaration, *batches: pa.RecordBatch) -> DatasetStatistics:
    statistics = DatasetStatistics.of(declaration)
    for each in batches:
        statistics.add("train", each)
    return statistics


def compute(declaration: Declaration, statistics: DatasetStatistics) -> Constants:
    return compute_constants(
        declaration, statistics["train"], statistics.derived("train")
    )


def constants(declaration: Declaration, **columns) -> Constants:
    return compute(declaration, gather(declaration, batch(**columns)))


def test_tokens_are_counted():
    feature = Vocabulary("f", "s", separator="|", min_count=2)
    values = [b"a|b", b" b |c|", b"", b"c|c", b"d", None]
    found = constants(declare(feature), s=values)
    assert found.vocabularies["f"] == (b"c", b"b")


def test_a_missing_value_counts_as_the_tokens_of_the_default():
    feature = Vocabulary("f", "s", separator="|")
    found = constants(declare(feature, s="z|y"), s=[b"a", None, None])
    assert found.vocabularies["f"] == (b"y", b"z", b"a")
    found = constants(declare(feature, s="|"), s=[b"a", None, None])
    assert found.vocabularies["f"] == (b"a",)


def test_no_token_at_all():
    feature = Vocabulary("f", "s", separator="|")
    with pytest.raises(UserError, match="feature f: .* empty, since no token of col"):
        constants(declare(feature), s=[b"|", b" "])


def test_text_and_sequences():
    features = [
        Text("words", "s", lower=True, ngrams=2),
        Text("hashed", "s", buckets=9),
        TokenSequence("pages", "t", ">", 2),
    ]
    found = constants(
        declare(*features), s=[b"A b", b"a"], t=[b"1>2>3", b">2"]
    ).vocabularies
    assert found == {"words": (b"a", b"a b", b"b"), "pages": (b"2", b"1")}


def test_a_group_has_the_vocabulary_of_all_its_columns():
    features = [
        Vocabulary("one", "s", min_count=3, embedding=2, shared="g"),
        Vocabulary("two", "t", min_count=3, embedding=2, shared="g"),
        Vocabulary("alone", "i"),
    ]
    found = constants(
        declare(*features, t="c"),
        s=[b"a", b"b", b"b", b"a"],
        t=[b"b", b"a", b"c", None],
        i=[1, 1, 1, 2],
    ).vocabularies
    assert found == {"one": (b"a", b"b"), "two": (b"a", b"b"), "alone": (b"1", b"2")}


@pytest.mark.parametrize("scale", Scale)
def test_constants_of_clipped_numbers_are_those_of_the_clipped_values(scale):
    values = [-50.0, 0.0, 1.0, 3.0, 1000.0, np.inf]
    clipped = np.clip(values, 0, 4).tolist()
    found = constants(declare(Numeric("f", "x", scale, clip=(0.0, 4.0))), x=values)
    wanted = constants(declare(Numeric("f", "x", scale)), x=clipped)
    assert found.scalings == wanted.scalings
    whole = constants(declare(Numeric("f", "i", scale, clip=(0, 4))), i=[-50, 1, 3, 9])
    wanted = constants(declare(Numeric("f", "x", scale)), x=[0.0, 1.0, 3.0, 4.0])
    assert whole.scalings == wanted.scalings


def test_numbers_of_dates():
    feature = Date("f", "d", DatePart.YEAR, Scale.MINMAX)
    found = constants(
        declare(feature), d=[b"2001-01-01", b"soon", None, b"2011-05-05T10:00Z"]
    )
    assert found.scalings["f"].shift == 2001
    assert found.scalings["f"].factor == 1 / 10
    with pytest.raises(UserError, match="feature f: no value of column d .* is an ISO"):
        constants(declare(feature), d=[b"soon"])


def test_what_is_no_date_is_counted():
    features = [Date("f", "d", DatePart.MONTH), Date("g", "i", DatePart.HOUR)]
    statistics = gather(
        declare(*features),
        batch(d=[b"2001-01-01", b"soon", None], i=[0, 2**60, -(2**60)]),
    )
    summary = statistics.summary().splits["train"]
    assert (summary["d"].outside, summary["i"].outside) == (1, 2)
    assert summary["s"].outside == 0


def test_values_of_texts_and_images_alone_are_not_counted():
    features = [Text("f", "s", buckets=3), Image("g", "d", 1, 1)]
    statistics = gather(declare(*features), batch(s=[b"a"]))
    counted = {n for n, c in statistics["train"].items() if c.values is not None}
    assert counted == {"t"}
    also = declare(*features, Vocabulary("v", "s"))
    assert gather(also, batch(s=[b"a"]))["train"]["s"].values is not None


FEATURES = (
    Numeric("clipped", "x", clip=(0.0, 1.0)),
    Vocabulary("tags", "s", separator="|"),
    Text("words", "t", ngrams=2),
    Date("year", "d", DatePart.YEAR),
)


def _days(seed: int) -> pa.RecordBatch:
    random = np.random.default_rng(seed)
    words = random.choice([b"a|b", b"b c", b"c", b"", b"\xff|\x00"], (2, 50)).tolist()
    return batch(
        x=random.normal(size=50).astype("f4"),
        s=words[0],
        t=words[1],
        d=[f"20{i:02}-01-01".encode() for i in random.integers(0, 99, 50)],
    )


def test_merged_days_are_one_pass(tmp_path):
    declaration = declare(*FEATURES)
    batches = [_days(i) for i in range(4)]
    one = gather(declaration, *batches)
    parts = [pickle.loads(pickle.dumps(gather(declaration, b))) for b in batches]
    directories = []
    for i, part in enumerate(parts):
        directories.append(str(tmp_path / str(i)))
        (tmp_path / str(i)).mkdir()
        statistics_files.write(directories[-1], part)
    for order in (directories, directories[::-1]):
        merged = merge.merge_statistics(order)
        assert compute(declaration, merged) == compute(declaration, one)
    paths = [tmp_path / "one.arrow", tmp_path / "merged.arrow"]
    for path, statistics in zip(paths, (one, merged), strict=True):
        accumulators.write(str(path), statistics)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    merged.add("train", batches[0])
    assert merged.derived("train").keys() == one.derived("train").keys()


@pytest.mark.parametrize(
    ("other", "problem"),
    [
        (Numeric("clipped", "x", clip=(0.0, 2.0)), "column x is clipped, or taken"),
        (Vocabulary("tags", "s", separator=","), "column s is clipped, or taken apart"),
        (Date("year", "d", DatePart.TIMESTAMP), "column d is clipped, or taken apart"),
        (Date("other", "t", DatePart.MONTH), "column t has date features in one"),
    ],
)
def test_days_taken_apart_otherwise_are_not_merged(tmp_path, other, problem):
    features = {f.name: f for f in FEATURES}
    directories = []
    for name, changes in (("a", {}), ("b", {other.name: other})):
        declaration = declare(*{**features, **changes}.values())
        directories.append(str(tmp_path / name))
        (tmp_path / name).mkdir()
        statistics_files.write(directories[-1], gather(declaration, _days(1)))
    with pytest.raises(UserError, match=problem):
        merge.merge_statistics(directories)


@pytest.mark.parametrize("feature", FEATURES)
def test_derivations_as_text(feature):
    statistics = DatasetStatistics.of(declare(feature))
    (derivation,) = statistics.derived("train")
    assert Derivation.from_text(derivation.to_text()) == derivation
