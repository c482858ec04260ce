"""The projector: each embedding has as many labels as rows, in their order."""

from __future__ import annotations

import re
from pathlib import Path

import helpers_training
import pytest

from pipeline import projector
from pipeline.compat import tf

DECLARATION = """
label: {column: y, classes: ["no", "yes"]}
columns:
  x: {type: float}
  c: {type: string}
  k: {type: string}
  y: {type: string}
features:
  x: {kind: numeric}
  word: {kind: vocabulary, column: c, embedding: 3, oov_buckets: 2}
  k: {kind: vocabulary}
"""


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    root = tmp_path_factory.mktemp("data") / "d"
    return helpers_training.make_dataset(root, DECLARATION, helpers_training.rows(300))


def _tables(directory: Path) -> dict[str, list[str]]:
    text = (directory / "projector_config.pbtxt").read_text()
    found = re.findall(r'tensor_name: "(.+)"\n +metadata_path: "(.+)"', text)
    return {name: (directory / path).read_text().splitlines() for name, path in found}


@pytest.mark.parametrize("model", ["wide_deep", "keras_wide_deep"])
def test_labels(tmp_path, dataset, model):
    helpers_training.train(tmp_path, dataset, model=model, max_steps=2)
    ((name, labels),) = _tables(tmp_path).items()
    shapes = tf.train.load_checkpoint(str(tmp_path)).get_variable_to_shape_map()
    assert shapes[name] == [len(labels), 3]
    terms = [t.decode() for t in dataset.constants().vocabularies["word"]]
    assert labels == [*terms, "(out of vocabulary 0)", "(out of vocabulary 1)"]
    assert set(terms) == {"a", "b", "c"}


def test_labels_stay_on_their_lines():
    assert projector._label(b"") == "(empty)"
    assert projector._label(b"a\tb\n") == "a\\tb\\n"
    assert projector._label("grün".encode()) == "grün"
