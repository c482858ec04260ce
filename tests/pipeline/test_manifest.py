"""Manifests: fingerprints, and reading what was written or damaged."""

from __future__ import annotations

import copy
import json
import os
import platform
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pipeline
from pipeline import manifest
from pipeline.types import UserError

INPUTS = {"files": [{"path": "a.csv", "bytes": 10, "sha256": "00"}]}
CONFIGURATION = {"seed": 1, "rate": 0.1, "layers": [64, 32], "nested": {"on": True}}

_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
    ),
    max_leaves=8,
)


def fingerprint(stage="train", inputs=INPUTS, configuration=CONFIGURATION) -> str:
    return manifest.fingerprint(stage, inputs, configuration)


def test_fingerprint_is_that_of_equal_values():
    assert fingerprint() == fingerprint(
        "train",
        copy.deepcopy(INPUTS),
        dict(reversed(CONFIGURATION.items())) | {"layers": (64, 32)},
    )


@pytest.mark.parametrize(
    "change",
    [
        {"stage": "evaluate"},
        {"inputs": {}},
        {"inputs": {"files": [{"path": "a.csv", "bytes": 10, "sha256": "01"}]}},
        {"inputs": {"files": [{"path": "b.csv", "bytes": 10, "sha256": "00"}]}},
        {"inputs": {"files": INPUTS["files"] * 2}},
        {"configuration": CONFIGURATION | {"seed": 2}},
        {"configuration": CONFIGURATION | {"seed": "1"}},
        {"configuration": CONFIGURATION | {"seed": 1.0}},
        {"configuration": CONFIGURATION | {"rate": 0.1000000000000001}},
        {"configuration": CONFIGURATION | {"layers": [32, 64]}},
        {"configuration": CONFIGURATION | {"nested": {"on": 1}}},
        {"configuration": CONFIGURATION | {"new": None}},
        {"inputs": CONFIGURATION, "configuration": INPUTS},
    ],
)
def test_fingerprint_changes_with_every_value(change):
    assert fingerprint(**change) != fingerprint()


def test_fingerprint_changes_with_the_version_of_the_pipeline(monkeypatch):
    before = fingerprint()
    monkeypatch.setattr(pipeline, "__version__", "0.0.0-other")
    assert fingerprint() != before


@settings(deadline=None)
@given(st.dictionaries(st.text(), _JSON), st.dictionaries(st.text(), _JSON))
def test_fingerprints_are_equal_as_the_json_is(first, second):
    equal = json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)
    same = fingerprint(configuration=first) == fingerprint(configuration=second)
    assert same == equal


def write(directory) -> manifest.Manifest:
    return manifest.write(
        str(directory), "train", INPUTS, CONFIGURATION, {"rows": 3}, time.monotonic()
    )


def test_what_is_written_is_read(tmp_path):
    written = write(tmp_path)
    assert manifest.read(str(tmp_path)) == written
    assert written.fingerprint == fingerprint()
    assert written.results == {"rows": 3}
    assert 0 <= written.seconds < 60
    assert written.versions["python"] == platform.python_version()
    assert written.versions["pyarrow"]
    assert os.listdir(tmp_path) == [manifest.FILE_NAME]


def test_a_package_that_is_not_installed_has_no_version(monkeypatch):
    monkeypatch.setattr(manifest, "_PACKAGES", ("no-such-package-anywhere",))
    assert manifest.versions()["no-such-package-anywhere"] is None


def test_no_manifest_means_unfinished(tmp_path):
    assert manifest.read(str(tmp_path)) is None
    assert manifest.read(str(tmp_path / "absent")) is None


def _changed(**changes) -> str:
    values = {
        "stage": "train",
        "fingerprint": "0",
        "inputs": {},
        "configuration": {},
        "results": {},
        "versions": {},
        "finished": "",
        "seconds": 1.0,
    } | changes
    return json.dumps({k: v for k, v in values.items() if v is not ...})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not valid JSON"),
        ("{", "is not valid JSON"),
        ('{"stage": "train",}', "is not valid JSON"),
        ("[" * 100_000, "is not valid JSON"),
        ("9" * 5000, "is not valid JSON"),
        ("[]", "is not a manifest of this pipeline"),
        ("null", "is not a manifest of this pipeline"),
        ('"text"', "is not a manifest of this pipeline"),
        ("{}", "is not a manifest of this pipeline"),
        (_changed(owner="me"), "is not a manifest of this pipeline"),
        (_changed(results=...), "needs exactly configuration, fingerprint"),
        (_changed(results=None), "results is no mapping"),
        (_changed(inputs=[]), "inputs is no mapping"),
    ],
)
def test_damaged_manifest(tmp_path, text, said):
    path = tmp_path / manifest.FILE_NAME
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        manifest.read(str(tmp_path))
    assert said in str(caught.value)
    assert str(path) in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_manifest_that_is_not_utf8_or_is_a_directory(tmp_path):
    path = tmp_path / manifest.FILE_NAME
    path.write_bytes(b"\xff")
    with pytest.raises(UserError, match="is not valid JSON"):
        manifest.read(str(tmp_path))
    path.unlink()
    path.mkdir()
    with pytest.raises(UserError, match="cannot read .*: Is a directory"):
        manifest.read(str(tmp_path))


def test_the_unchanged_values_are_a_manifest(tmp_path):
    (tmp_path / manifest.FILE_NAME).write_text(_changed())
    assert manifest.read(str(tmp_path)).stage == "train"


class TestReplaceable:
    """A directory is replaced only where nothing of the user's is lost."""

    def check(self, directory, stage="train"):
        manifest.check_replaceable("model_dir", str(directory), stage)

    def test_absent_and_empty(self, tmp_path):
        self.check(tmp_path / "absent")
        self.check(tmp_path)

    def test_own_result(self, tmp_path):
        write(tmp_path)
        self.check(tmp_path)

    def test_result_of_another_stage(self, tmp_path):
        write(tmp_path)
        with pytest.raises(UserError, match="--model_dir: .* did not write"):
            self.check(tmp_path, "evaluate")

    def test_files_of_the_user(self, tmp_path):
        (tmp_path / "thesis.tex").write_text("x")
        with pytest.raises(UserError, match="--model_dir: .* did not write"):
            self.check(tmp_path)

    def test_file(self, tmp_path):
        (tmp_path / "file").write_text("x")
        with pytest.raises(UserError, match="--model_dir: .* is not a directory"):
            self.check(tmp_path / "file")
