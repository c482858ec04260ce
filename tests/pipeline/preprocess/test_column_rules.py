"""Allowed values: preprocess and the serving graph treat a value alike."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from helpers_records import column
from hypothesis import given, settings
from hypothesis import strategies as st

from input_fns import parsing
from pipeline.compat import tf
from pipeline.preprocess import column_rules
from pipeline.types import ColumnType, OutOfRange

ARROW = {
    ColumnType.INT: pa.int64(),
    ColumnType.FLOAT: pa.float32(),
    ColumnType.STRING: pa.binary(),
}
_NUMBERS = {
    "int": st.sampled_from([-(2**63), -7, -1, 0, 1, 3, 2**53 + 1, 2**63 - 1]),
    "float": st.sampled_from([-3e38, -0.1, 0.0, 0.1, 1e-30, 0.3, 7.0, 3e38]),
}
_TEXTS = st.sampled_from(["", " ", "a", "A", "ü", "other", "a "])


@st.composite
def _cases(draw):
    kind = draw(st.sampled_from(["int", "float", "string"]))
    source = _TEXTS if kind == "string" else _NUMBERS[kind]
    rule = draw(st.sampled_from(OutOfRange))
    changes = {"out_of_range": rule}
    if kind == "string":
        if rule is OutOfRange.CLIP:
            changes["out_of_range"] = rule = OutOfRange.REJECT
        changes["values"] = tuple(draw(st.sets(source, min_size=1)))
    else:
        low, high = sorted(draw(st.tuples(source, source)))
        bounds = draw(st.sampled_from([("min",), ("max",), ("min", "max")]))
        changes |= {k: v for k, v in (("min", low), ("max", high)) if k in bounds}
    if rule is OutOfRange.MISSING or draw(st.booleans()):
        changes["default"] = draw(source)
    return column("c", kind, **changes), draw(st.lists(source, min_size=1, max_size=8))


def _in_preprocess(of, values):
    encoded = [v.encode() if isinstance(v, str) else v for v in values]
    array, failures = column_rules.apply(pa.array(encoded, ARROW[of.type]), of)
    # An absent feature becomes the default when the record is parsed.
    default = of.default.encode() if isinstance(of.default, str) else of.default
    if of.type is ColumnType.FLOAT and default is not None:
        default = float(np.float32(default))
    return [default if v is None else v for v in array.to_pylist()], failures


@given(_cases())
@settings(deadline=None, max_examples=150)
def test_preprocess_and_the_graph_agree_on_every_value(case):
    of, values = case
    wanted, failures = _in_preprocess(of, values)
    for row, value in enumerate(values):
        request = {"c": tf.constant([value], parsing.dtype(of))}
        if row in failures:
            with pytest.raises(tf.errors.InvalidArgumentError, match="feature c has"):
                parsing.apply_range_rule(request, [of])
        else:
            found = parsing.apply_range_rule(request, [of])["c"].numpy().tolist()
            assert found == [wanted[row]]


def test_each_rule():
    def apply(given_, kind="int", **changes):
        return _in_preprocess(column("c", kind, **changes), given_)

    assert apply([1, 5, 9], min=2, max=6, out_of_range=OutOfRange.CLIP)[0] == [2, 5, 6]
    missing = OutOfRange.MISSING
    assert apply([1, 5], min=2, default=-1, out_of_range=missing)[0] == [-1, 5]
    _, failures = apply([1, 5, -1], min=2, max=6, default=-1)
    assert failures == {0: "is not allowed; allowed: 2 to 6"}
    _, failures = apply(["a", "b"], "string", values=("b", "c"))
    assert failures == {0: "is not allowed; allowed: 'b', 'c'"}
    # 0.1 in the file and 0.1 as the bound are the same float32.
    assert apply([np.float32(0.1)], "float", max=0.1)[1] == {}
    above = float(np.nextafter(np.float32(0.1), np.float32(1)))
    assert apply([above], "float", max=0.1)[1] == {
        0: "is not allowed; allowed: at most 0.1"
    }


def test_missing_values_are_not_out_of_range():
    of = column("c", "int", min=5, default=0)
    array, failures = column_rules.apply(pa.array([None, 7], pa.int64()), of)
    assert (array.to_pylist(), failures) == ([None, 7], {})


def test_nan_in_a_request_is_missing_before_it_is_out_of_range():
    of = column("c", "float", min=5, default=0)
    request = parsing.apply_missing_rule({"c": tf.constant([math.nan, 6])}, [of])
    assert parsing.apply_range_rule(request, [of])["c"].numpy().tolist() == [0, 6]
