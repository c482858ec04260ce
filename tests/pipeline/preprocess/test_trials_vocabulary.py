"""Trials of ids and vocabularies: one rule in training, evaluation and serving."""

from __future__ import annotations

import json

import helpers_jobs
import numpy as np
import pytest

from export import saved_model
from input_fns import records
from pipeline import declaration as declarations
from pipeline import estimators
from pipeline.compat import tf
from pipeline.console import Console
from pipeline.flags.data import DataFlags
from pipeline.preprocess import constants_files, stage
from pipeline.types import UserError

IDS = (3, -1, 10, 12)
DECLARATION = """
label: {column: y, classes: ["0", "1"]}
split: {by: column, column: part, values: {train: [t], eval: [e], test: [x]}}
columns:
  id: {type: int}
  part: {type: string}
  y: {type: int}
features:
  id: {kind: identity, buckets: 10, embedding: 2}
"""


def _preprocess(directory, declaration, text):
    directory.mkdir()
    (directory / "features.yaml").write_text(declaration, encoding="utf-8")
    (directory / "rows.csv").write_bytes(text)
    flags = DataFlags(
        str(directory / "rows.csv"),
        str(directory / "features.yaml"),
        None,
        0.0,
        64,
        (),
    )
    stage.run(str(directory / "dataset"), stage.plan(flags), Console(-1))
    return helpers_jobs.Job(directory, directory / "rows.csv")


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    # The label of all ids that are out of range is 1, of id 3 it is 0.
    rows = [f"{i},{part},{int(i != 3)}" for part in "tex" for i in IDS * 16]
    text = "\n".join(["id,part,y", *rows]) + "\n"
    return _preprocess(
        tmp_path_factory.mktemp("ids") / "job", DECLARATION, text.encode()
    )


def test_ids_out_of_range_are_counted(job):
    statistics = json.loads((job.dataset_dir / "statistics.json").read_text())
    for split in ("train", "eval", "test"):
        assert statistics[split]["id"]["outside"] == 48


@pytest.mark.parametrize("name", helpers_jobs.MODELS)
def test_one_rule_in_training_evaluation_and_serving(job, name, tmp_path):
    model = helpers_jobs.train_model(job, name, max_steps=60, checkpoint_steps=60)
    made = estimators.make_estimator(model)
    test = estimators.to_records(job.dataset().shards("test"))
    declaration = model.declaration

    metrics = made.evaluate(records.eval_input_fn(test, declaration, 64))
    assert metrics["accuracy"] == 1.0
    saved_model.write(
        made,
        estimators.latest_checkpoint(model)[0],
        declaration.input_columns,
        str(tmp_path / "1"),
    )
    serve = tf.saved_model.load(str(tmp_path / "1")).signatures["predict"]
    # A bad id neither fails nor changes the other rows of its batch.
    asked = tf.constant([*IDS, 2**62, -(2**63)], tf.int64)
    probabilities = serve(id=asked)["probabilities"].numpy()
    np.testing.assert_allclose(probabilities[1:], probabilities[1:2].repeat(5, 0))
    alone = serve(id=asked[:1])["probabilities"].numpy()
    np.testing.assert_allclose(probabilities[:1], alone, rtol=1e-6)
    assert probabilities[:, 1].round().tolist() == [0, 1, 1, 1, 1, 1]


def test_a_huge_number_of_ids_is_refused_at_once(tmp_path):
    path = tmp_path / "features.yaml"
    path.write_text(DECLARATION.replace("buckets: 10", f"buckets: {2**40}"))
    with pytest.raises(UserError, match="buckets would need 36,864 GiB"):
        declarations.load(str(path))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"a\n\nb\n", "line 2: blank"),
        (b"a\nb\na\n", "line 3: the same term as line 1"),
        (b"\xef\xbb\xbfa\nb\n", "line 1: begins with a byte order mark"),
        (b"b\na \n", "line 2: ends in a blank"),
        (b"", "is empty"),
        (b"a\r\nb\r\n", "line 1: holds a carriage return"),
    ],
)
def test_a_vocabulary_edited_by_hand_is_refused(tmp_path, content, problem):
    path = tmp_path / "v.txt"
    path.write_bytes(content)
    with pytest.raises(UserError, match=f"v.txt.*{problem}"):
        constants_files.read_vocabulary(str(path))


def test_preprocess_writes_no_vocabulary_that_it_cannot_read(tmp_path):
    declaration = """
split: {by: column, column: part, values: {train: [t], eval: [e], test: [x]}}
columns:
  word: {type: string, default: "none"}
  part: {type: string}
features:
  word: {kind: vocabulary}
"""
    words = [
        b'""',
        b'"a\nb"',
        b'"a\r\nb"',
        b"a ",
        b"a",
        b"\xef\xbb\xbfa",
        b'"\\n"',
        b"\xff",
    ]
    text = b"word,part\n" + b"".join(word + b",t\n" for word in words)
    job = _preprocess(tmp_path / "job", declaration, text)
    (terms,) = constants_files.read_constants(
        str(job.dataset_dir)
    ).vocabularies.values()
    expected = {
        *(b"none", b"a\nb", b"a\r\nb", b"a ", b"a"),
        *(b"\xef\xbb\xbfa", b"\\n", b"\xff"),
    }
    assert set(terms) == expected
    size = json.loads((job.dataset_dir / "constants.json").read_text())["vocabularies"]
    lines = (job.dataset_dir / "vocabularies" / "word.txt").read_bytes().count(b"\n")
    assert size == {"word": len(terms)} and lines == len(terms)
