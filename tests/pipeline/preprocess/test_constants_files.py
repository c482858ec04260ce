"""Tests of pipeline/preprocess/constants_files.py."""

from __future__ import annotations

import json
import os

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pipeline.preprocess import constants_files
from pipeline.types import Constants, ExitCode, Scaling, UserError

TERMS = st.lists(
    st.binary(max_size=8)
    | st.text("\\nrex\n\r\ufeffé\x85\u2028", max_size=5).map(str.encode),
    min_size=1,
    max_size=20,
    unique=True,
)
SAME_DIRECTORY = settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@given(TERMS)
@example([b""])
@example([b"\\e", b"", b"\\", b"\\n", b"\n", b"\r\n", b"\\xef"])
@example(["\ufeffa".encode(), "\ufeffb".encode(), b"\\xef\xbb\xbf"])
@SAME_DIRECTORY
def test_any_terms_come_back(tmp_path, terms):
    path = str(tmp_path / "terms.txt")
    constants_files.write_vocabulary(path, terms)
    assert constants_files.read_vocabulary(path, len(terms)) == tuple(terms)
    assert constants_files.read_vocabulary(path) == tuple(terms)
    with open(path, "rb") as f:
        content = f.read()
    assert content.count(b"\n") == len(terms) and b"\r" not in content


def test_what_a_file_looks_like(tmp_path):
    path = tmp_path / "terms.txt"
    constants_files.write_vocabulary(str(path), ["Zürich".encode(), b"a\\b\n", b""])
    assert path.read_bytes() == "Zürich\na\\\\b\\n\n\\e\n".encode()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "terms.txt is empty"),
        (b"\xef\xbb\xbfa\nb\n", "terms.txt, line 1: begins with a byte order mark"),
        (b"a\n\nb\n", r"terms.txt, line 2: blank; the empty term is written \\e"),
        (b"a\nb\na\n", "terms.txt, line 3: the same term as line 1"),
        (b"a\nb", "terms.txt, line 2: the last line does not end"),
        (b"a\r\nb\r\n", "terms.txt, line 1: holds a carriage return"),
        (b"a\nx\\t\n", r"terms.txt, line 2: \\t is no escape"),
        (b"a\nx\\\n", r"terms.txt, line 2: \\ is no escape"),
        (b"a\nb\n", "terms.txt, line 2: the file ends after 2 terms, .* says 3"),
        (b"a\nb\nc\nd\n", "line 4: the file ends after 4 terms, .* says 3"),
    ],
)
def test_damage_is_named_with_its_line(tmp_path, content, message):
    path = tmp_path / "terms.txt"
    path.write_bytes(content)
    with pytest.raises(UserError, match=message) as raised:
        constants_files.read_vocabulary(str(path), 3)
    assert raised.value.exit_code is ExitCode.USER_ERROR


def test_a_missing_file(tmp_path):
    with pytest.raises(UserError, match="cannot read vocabulary .*nothing.txt"):
        constants_files.read_vocabulary(str(tmp_path / "nothing.txt"), 3)


@pytest.mark.parametrize("terms", [[], [b"a", b"b", b"a"]])
def test_bad_terms_are_not_written(tmp_path, terms):
    with pytest.raises(ValueError, match="terms must"):
        constants_files.write_vocabulary(str(tmp_path / "terms.txt"), terms)
    assert os.listdir(tmp_path) == []


FINITE = st.floats(allow_nan=False, allow_infinity=False)
NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6) | st.sampled_from(
    ["..", "a/b", "A.txt", "ä b"]
)
CONSTANTS = st.builds(
    Constants,
    st.dictionaries(NAMES, st.builds(Scaling, FINITE, FINITE), max_size=3),
    st.dictionaries(NAMES, st.lists(FINITE, max_size=4).map(tuple), max_size=3),
    st.dictionaries(NAMES, TERMS.map(tuple), max_size=3),
)


@given(CONSTANTS)
@SAME_DIRECTORY
def test_constants_come_back(tmp_path, constants):
    directory = tmp_path / "dataset"
    directory.mkdir(exist_ok=True)
    constants_files.write_constants(str(directory), constants)
    assert constants_files.read_constants(str(directory)) == constants
    assert set(os.listdir(tmp_path)) == {"dataset"}
    assert set(os.listdir(directory)) <= {"constants.json", "vocabularies"}


@pytest.mark.parametrize(
    "value",
    [
        [],
        {"scalings": {}, "boundaries": {}},
        {"scalings": {"x": {"shift": 1}}, "boundaries": {}, "vocabularies": {}},
        {"scalings": {}, "boundaries": {"x": ["1"]}, "vocabularies": {}},
        {"scalings": {}, "boundaries": {"x": [float("nan")]}, "vocabularies": {}},
        {"scalings": {}, "boundaries": {}, "vocabularies": 3},
    ],
)
def test_damaged_constants_are_named(tmp_path, value):
    (tmp_path / "constants.json").write_text(json.dumps(value))
    with pytest.raises(UserError, match="constants.json is damaged"):
        constants_files.read_constants(str(tmp_path))


def test_missing_constants_and_vocabularies(tmp_path):
    with pytest.raises(UserError, match="cannot read .*constants.json"):
        constants_files.read_constants(str(tmp_path))
    constants_files.write_constants(str(tmp_path), Constants({}, {}, {"v": (b"a",)}))
    os.remove(constants_files.vocabulary_path(str(tmp_path), "v"))
    with pytest.raises(UserError, match="cannot read vocabulary .*v.txt"):
        constants_files.read_constants(str(tmp_path))
