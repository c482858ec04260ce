"""Tests of pipeline/preprocess/byte_text.py."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.preprocess import byte_text


@given(st.binary() | st.text().map(lambda s: s.encode("utf-8", "surrogatepass")))
@example(b"\\x41")
@example(b"\\\xff\\\\x")
@example("é\ud800".encode("utf-8", "surrogatepass"))
def test_round_trip_through_json_in_utf8(value):
    text = byte_text.to_text(value)
    stored = json.dumps(text, ensure_ascii=False).encode("utf-8")
    assert byte_text.to_bytes(json.loads(stored)) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("Zürich 東京".encode(), "Zürich 東京"),
        (b"a\\b", "a\\\\b"),
        (b"\xff\x00", "\\xff\x00"),
        (b"", ""),
    ],
)
def test_what_it_looks_like(value, text):
    assert byte_text.to_text(value) == text
