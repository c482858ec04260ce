"""Tests of pipeline/preprocess/constants.py."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.preprocess.constants import compute_constants
from pipeline.preprocess.statistics import ColumnStatistics
from pipeline.types import (
    Bucketized,
    Column,
    ColumnType,
    Crossed,
    Declaration,
    ExitCode,
    Hashed,
    Numeric,
    Scale,
    Scaling,
    Split,
    UserError,
    Vocabulary,
)

ARROW = {
    ColumnType.INT: pa.int64(),
    ColumnType.FLOAT: pa.float32(),
    ColumnType.STRING: pa.binary(),
}


def compute(feature, values, kind=ColumnType.FLOAT, default=None, **limits):
    """The constants of one feature on a column `c` of these values."""
    column = Column("c", kind, default=default)
    declaration = Declaration(
        {"c": column}, {feature.name: feature}, Split({"train": 1.0})
    )
    wants = isinstance(feature, Vocabulary)
    statistics = ColumnStatistics(kind, want_values=wants, **limits)
    statistics.add(pa.array(values, ARROW[kind]))
    return compute_constants(declaration, {"c": statistics})


def scaling(scale, values, kind=ColumnType.FLOAT):
    return compute(Numeric("f", "c", scale), values, kind).scalings["f"]


def test_scalings():
    values = [1.0, 2.0, 6.0, None]
    assert scaling(Scale.NONE, values) == Scaling(0, 1)
    zscore = scaling(Scale.ZSCORE, values)
    assert zscore.shift == pytest.approx(3)
    assert zscore.factor == pytest.approx(1 / np.std([1, 2, 6]))
    assert scaling(Scale.MINMAX, values) == Scaling(1, 1 / 5)
    log = scaling(Scale.LOG, [-1.0, 0.0, 9.0])
    logs = np.array([-np.log(2), 0, np.log(10)])
    assert log.shift == pytest.approx(logs.mean())
    assert log.factor == pytest.approx(1 / logs.std())


@pytest.mark.parametrize("scale", [Scale.ZSCORE, Scale.MINMAX, Scale.LOG])
@pytest.mark.parametrize("value", [0.0, 0.1, -7.3, 3e38, 1e-45])
def test_a_constant_column_scales_to_zero(scale, value):
    value = np.float32(value)
    result = scaling(scale, [value] * 7 + [None])
    x = np.sign(value) * np.log1p(np.abs(value)) if scale is Scale.LOG else value
    assert result.factor == 1
    scaled = (x - np.float32(result.shift)) * np.float32(result.factor)
    assert scaled == pytest.approx(0, abs=2e-7 if scale is Scale.LOG else 0)


@given(
    st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1),
    st.sampled_from(list(Scale)),
)
@settings(deadline=None)
def test_constants_are_finite_in_float32(values, scale):
    result = scaling(scale, values)
    assert np.isfinite(np.float32(result.shift))
    with np.errstate(over="ignore"):
        assert np.isfinite(np.float32(result.factor))


def test_boundaries():
    given_ones = Bucketized("f", "c", boundaries=(1.0, 5.5))
    assert compute(given_ones, [3.0]).boundaries == {"f": (1.0, 5.5)}
    quartiles = Bucketized("f", "c", quantiles=4)
    values = list(range(100))
    assert compute(quartiles, values).boundaries["f"] == (25, 50, 75)
    assert compute(quartiles, [0] * 60 + values[:40]).boundaries["f"] == (1, 15)
    assert compute(quartiles, [7.5] * 9 + [None]).boundaries["f"] == (7.5,)
    assert compute(quartiles, [5], ColumnType.INT).boundaries["f"] == (5,)


def test_boundaries_rise_in_float32():
    ints = [2**24 + i for i in range(4)] + [2**62 + i for i in range(3)]
    feature = Bucketized("f", "c", quantiles=7)
    boundaries = compute(feature, ints, ColumnType.INT).boundaries["f"]
    assert np.all(np.diff(np.array(boundaries, np.float32)) > 0)


def vocabulary(values, kind=ColumnType.STRING, default=None, limits=None, **options):
    feature = Vocabulary("f", "c", **options)
    return compute(feature, values, kind, default, **(limits or {})).vocabularies["f"]


def test_vocabulary_order_top_k_and_min_count():
    values = [b"b", b"b", b"a", b"a", b"c", b"d", b"d", b"d", b"\xff", b""]
    assert vocabulary(values) == (b"d", b"a", b"b", b"", b"c", b"\xff")
    assert vocabulary(values, top_k=2) == (b"d", b"a")
    assert vocabulary(values, min_count=2) == (b"d", b"a", b"b")
    assert vocabulary(values, min_count=2, top_k=1) == (b"d",)


def test_ints_stand_as_decimal_text():
    values = [10, 9, 9, -1, 2**63 - 1, -(2**63)]
    assert vocabulary(values, ColumnType.INT) == (
        (b"9", b"-1", b"-9223372036854775808", b"10", b"9223372036854775807")
    )


def test_missing_values_count_as_the_default():
    values = [b"a", b"a", None, None, b"z"]
    assert vocabulary(values) == (b"a", b"z")
    assert vocabulary(values, default="z") == (b"z", b"a")
    assert vocabulary(values, default="ü") == (b"a", "ü".encode(), b"z")
    assert vocabulary([1, None, None], ColumnType.INT, default=-5) == (b"-5", b"1")


def test_an_empty_vocabulary():
    with pytest.raises(UserError, match="feature f: the vocabulary is empty.*min_c"):
        vocabulary([b"a", b"b"], min_count=2)


@pytest.mark.parametrize(
    ("feature", "kind"),
    [
        (Numeric("f", "c"), ColumnType.FLOAT),
        (Numeric("f", "c", Scale.NONE), ColumnType.INT),
        (Bucketized("f", "c", quantiles=3), ColumnType.INT),
        (Vocabulary("f", "c"), ColumnType.STRING),
    ],
)
@pytest.mark.parametrize("values", [[], [None, None]])
def test_a_column_without_values(feature, kind, values):
    with pytest.raises(UserError, match="feature f: column c has no value") as raised:
        compute(feature, values, kind)
    assert raised.value.exit_code is ExitCode.BAD_DATA


def test_nan_and_infinities_are_no_values():
    assert scaling(Scale.MINMAX, [float("nan"), 2.0, float("inf"), 4.0]).shift == 2
    with pytest.raises(UserError, match="no value"):
        scaling(Scale.ZSCORE, [float("nan")])


def test_a_vocabulary_that_cannot_be_exact_is_refused():
    values = [b"often"] * 50 + [b"%03d" % i for i in range(300)]
    limits = {"value_limit": 100}
    with pytest.raises(UserError, match="more than 100 different values.*hashed"):
        vocabulary(values, limits=limits)
    with pytest.raises(UserError, match="more than 100 different values"):
        vocabulary(values, limits=limits, top_k=2)
    assert vocabulary(values, limits=limits, top_k=1) == (b"often",)
    assert vocabulary(values, limits=limits, min_count=20) == (b"often",)


def test_uncounted_values_are_a_bug():
    declaration = Declaration(
        {"c": Column("c", ColumnType.INT)},
        {"f": Vocabulary("f", "c")},
        Split({"train": 1.0}),
    )
    statistics = ColumnStatistics(ColumnType.INT)
    statistics.add(pa.array([1]))
    with pytest.raises(ValueError, match="not counted"):
        compute_constants(declaration, {"c": statistics})


def test_other_features_need_no_constants():
    declaration = Declaration(
        {"c": Column("c", ColumnType.STRING)},
        {"h": Hashed("h", "c", 10), "x": Crossed("x", ("h",), 10)},
        Split({"train": 1.0}),
    )
    constants = compute_constants(declaration, {})
    assert not (constants.scalings or constants.boundaries or constants.vocabularies)
