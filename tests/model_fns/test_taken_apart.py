"""Strings are taken apart alike in preprocess (Arrow) and in the graph (TensorFlow)."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from model_fns import dates, tokens
from pipeline.compat import tf
from pipeline.preprocess import dates as arrow_dates
from pipeline.preprocess import tokens as arrow_tokens
from pipeline.types import DatePart, Text, TextSplit, Tokens

_ODD = [b" ", b"\t", b"\x1f", b"\x00", b"\xff", b"\xc3", b"\xc3\x84", b"A", b"b"]
_ODD += [b"|", b",", b"\n", b"\r", b"\x0b", b"\xe2\x80\x83", "\U0001f600".encode()]
_ODD += ["\u0130\u03a3e\u0301".encode(), b"\xed\xa0\x80", b"\xf4\x90\x80\x80"]
_TEXTS = st.lists(st.sampled_from(_ODD), max_size=12).map(b"".join) | st.one_of(
    st.text(max_size=20).map(lambda t: t.encode("utf-8", "surrogatepass")),
    st.binary(max_size=20),
)


def _text(split: TextSplit, pattern: str | None = None, **changes) -> Tokens:
    return Text("t", "t", split=split, pattern=pattern, **changes).tokens


_WAYS = st.one_of(
    st.builds(
        Tokens, st.sampled_from(["|", ", ", " ", "aa", "ä", "\n"]), most=st.none() | st.integers(1, 3)
    ),
    st.builds(
        _text,
        st.sampled_from([TextSplit.WHITESPACE, TextSplit.CHARACTERS]),
        lower=st.booleans(),
        ngrams=st.integers(1, 4),
    ),
    st.builds(
        _text,
        st.just(TextSplit.REGEX),
        st.sampled_from([r"\W+", "[,|]", "b*", r"(?i)a", r"\pL", ".", "^", r"\b"]),
        lower=st.booleans(),
        ngrams=st.integers(1, 3),
    ),
)  # fmt: skip


@settings(deadline=None, max_examples=300)
@given(st.lists(_TEXTS, max_size=6), _WAYS)
def test_tokens_are_the_same(texts, how):
    by_graph = tokens.split(tf.constant(texts, tf.string, [len(texts)]), how)
    by_arrow = arrow_tokens.split(pa.array([None, *texts], pa.binary()), how)
    # Preprocess counts them; their order is of no account there.
    assert sorted(by_arrow.to_pylist()) == sorted(by_graph.flat_values.numpy().tolist())


def _tokens(text: str, how: Tokens) -> list[str]:
    (row,) = tokens.split(tf.constant([text]), how).to_list()
    return [token.decode() for token in row]


def test_tokens_in_order():
    assert _tokens(" b || a|", Tokens("|")) == ["b", "a"]
    assert _tokens("a|b|c", Tokens("|", most=2)) == ["a", "b"]
    assert _tokens("|x|y|z", Tokens("|", most=2)) == ["x", "y"]
    assert _tokens("a, b ,c", Tokens(", ")) == ["a", "b ,c"]
    assert _tokens("", Tokens("|")) == []
    words = _text(TextSplit.WHITESPACE, lower=True, ngrams=2)
    assert _tokens("  The CAT\n sat Ä ", words) == [
        *("the", "cat", "sat", "Ä", "the cat", "cat sat", "sat Ä")
    ]
    characters = _text(TextSplit.CHARACTERS, ngrams=2)
    assert _tokens("aä日", characters) == ["a", "ä", "日", "aä", "ä日"]
    assert _tokens("a1b22c", _text(TextSplit.REGEX, "[0-9]+")) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("weights", "wanted"),
    [
        (b"1|2|3|4", [1, 3]),
        (b" 0.5 |2|.25", [0.5, 0.25]),
        (b"", [1, 1]),
        (b"7", [7, 1]),
        (b"1e40|2|-3", [1, 0]),
        (b"0x10|2|1,5", [1, 1]),
    ],
)
def test_weights_stand_at_the_place_of_their_token(weights, wanted):
    found = tokens.split_weighted(
        tf.constant([b"", b"a||b"]), tf.constant([b"9|9", weights]), Tokens("|")
    )
    assert [part.to_list() for part in found] == [[[], [b"a", b"b"]], [[], wanted]]


_EPOCH = datetime.datetime(1970, 1, 1)
_PARTS = {
    DatePart.YEAR: lambda t: t.year,
    DatePart.TIMESTAMP: lambda t: (t - _EPOCH) // datetime.timedelta(seconds=1),
    DatePart.QUARTER: lambda t: (t.month - 1) // 3,
    DatePart.MONTH: lambda t: t.month - 1,
    DatePart.WEEK: lambda t: t.isocalendar()[1] - 1,
    DatePart.DAY: lambda t: t.day - 1,
    DatePart.DAY_OF_YEAR: lambda t: t.timetuple().tm_yday - 1,
    DatePart.WEEKDAY: lambda t: t.weekday(),
    DatePart.HOUR: lambda t: t.hour,
    DatePart.MINUTE: lambda t: t.minute,
    DatePart.SECOND: lambda t: t.second,
}
_TIMES = st.datetimes(datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31))


def _by_graph(value: tf.Tensor, part: DatePart) -> list:
    if part.size is None:
        return dates.part_number(value, part).numpy().tolist()
    return dates.part_ids(value, part).numpy().tolist()


@settings(deadline=None, max_examples=60)
@given(st.lists(_TIMES, min_size=1, max_size=20))
@example([datetime.datetime(1, 1, 1), datetime.datetime(2000, 2, 29, 23, 59, 59)])
@example(
    [datetime.datetime(1969, 12, 31, 23, 59, 59, 5), datetime.datetime(1900, 3, 1)]
)
@example([datetime.datetime(9999, 12, 31, 23, 59, 59), datetime.datetime(2021, 1, 3)])
def test_parts_of_dates_are_those_of_datetime(times):
    texts = tf.constant([t.isoformat() for t in times])
    seconds = [(t - _EPOCH) // datetime.timedelta(seconds=1) for t in times]
    for part, wanted in _PARTS.items():
        expected = [wanted(t) for t in times]
        assert _by_graph(texts, part) == expected, part
        assert _by_graph(tf.constant(seconds, tf.int64), part) == expected, part
        if part.size is not None:
            assert all(0 <= e < part.size for e in expected), part


_FORMS = {
    b"2024-02-29": 19782,
    b" 2024-02-29\n": 19782,
    b"1970-01-02T00:00Z": 1,
    b"1970-01-02 00:00:00": 1,
    b"1970-01-02T00:00:00.123456789Z": 1,
    b"2023-02-29": None,
    b"1900-02-29": None,
    b"2024-04-31": None,
    b"2024-00-10": None,
    b"2024-13-10": None,
    b"2024-01-00": None,
    b"0000-01-01": None,
    b"2024-1-1": None,
    b"2024-01-01T24:00": None,
    b"2024-01-01T10": None,
    b"2024-01-01T10:00:60": None,
    b"2024-01-01T10:00+01:00": None,
    b"2024-01-01T10:00:00.": None,
    b"12024-01-01": None,
    b"2024-01-01\x00": None,
    b"\xd9\xa12024-01-01": None,
    b"": None,
    b"no": None,
}


def test_what_is_a_date():
    days = dates.part_number(tf.constant(list(_FORMS)), DatePart.TIMESTAMP) // 86400
    wanted = [np.nan if day is None else day for day in _FORMS.values()]
    np.testing.assert_array_equal(days, wanted)
    found = arrow_dates.seconds(pa.array([*_FORMS, None], pa.binary())) // 86400
    assert found.tolist() == [day for day in _FORMS.values() if day is not None]
    ids = dates.part_ids(tf.constant(list(_FORMS)), DatePart.MONTH).numpy()
    assert [i == 12 for i in ids] == [day is None for day in _FORMS.values()]


_DATE_TEXTS = st.one_of(
    st.sampled_from(list(_FORMS)),
    st.binary(max_size=12),
    st.from_regex(rb"\A[0-9]{4}-[01][0-9]-[0-3][0-9]([T ][0-2][0-9]:[0-5][0-9](:[0-6][0-9])?Z?)?\Z"),
)  # fmt: skip


@settings(deadline=None, max_examples=200)
@given(st.lists(_DATE_TEXTS, max_size=10), st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_dates_are_the_same_in_preprocess(texts, numbers):
    columns = (
        (pa.array(texts, pa.binary()), tf.constant(texts, tf.string, [len(texts)])),
        (
            pa.array(numbers, pa.int64()),
            tf.constant(numbers, tf.int64, [len(numbers)]),
        ),
    )
    for part in (DatePart.YEAR, DatePart.TIMESTAMP):
        for array, tensor in columns:
            found = dates.part_number(tensor, part).numpy()
            expected = arrow_dates.numbers(array, part)
            np.testing.assert_array_equal(found[~np.isnan(found)], expected)
