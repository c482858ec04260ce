"""Verification agrees where it should, and fails where it must."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import re
import shutil
from contextlib import redirect_stdout
from pathlib import Path

import helpers_jobs
import numpy as np
import pytest

from export import (
    requests,
    saved_model,
    verify,
    verify_child,
    verify_requests,
    versions,
)
from input_fns import records
from pipeline import estimators
from pipeline import manifest as manifests
from pipeline.compat import estimator, tf
from pipeline.preprocess import stage
from pipeline.types import Column, ColumnType, Declaration, ExitCode, UserError

ROOT = Path(__file__).parents[2]
_v1 = tf.compat.v1


@dataclasses.dataclass(frozen=True)
class Case:
    """What verify compares.

    Attributes:
      directory: A copy of an export that tests may damage.
    """

    directory: Path
    trained: estimator.Estimator
    checkpoint: str
    records: estimators.records.Records
    declaration: Declaration

    def verify(self, rows: int = 0, **changes) -> verify.Verification:
        case = dataclasses.replace(self, **changes)
        return verify.verify(
            str(case.directory),
            case.trained,
            case.checkpoint,
            case.records,
            case.declaration,
            rows,
        )


@pytest.fixture
def case(small_job, tmp_path) -> Case:
    model = small_job.model("keras_wide_deep")
    newest = versions.find(str(small_job.export_dir("keras_wide_deep")), None)
    shutil.copytree(newest, tmp_path / "model")
    return Case(
        tmp_path / "model",
        estimators.make_estimator(model),
        estimators.latest_checkpoint(model)[0],
        estimators.to_records(small_job.dataset().shards("test")),
        model.declaration,
    )


@pytest.fixture
def in_this_process(monkeypatch):
    """Runs the child's code here, which saves the time to start TensorFlow."""

    def run(model_dir: str, case_dir: str) -> dict:
        with redirect_stdout(io.StringIO()) as out:
            verify_child.main(model_dir, case_dir)
        return {**json.loads(out.getvalue()), "project_modules": []}

    monkeypatch.setattr(verify, "_run_child", run)


def _failure(action, *arguments, **keywords) -> str:
    with pytest.raises(UserError) as caught:
        action(*arguments, **keywords)
    assert caught.value.exit_code is ExitCode.VERIFY_FAILED
    message = str(caught.value)
    assert message.startswith("verify: ") and "\n" not in message
    return message


# --- agreement -----------------------------------------------------------------


@pytest.mark.parametrize("model", helpers_jobs.MODELS)
def test_every_row_of_the_split_agrees(small_job, model):
    directory = versions.find(str(small_job.export_dir(model)), None)
    found = manifests.read(directory).results["verification"]
    assert found["rows"] == small_job.dataset().shards("test").rows > 70
    assert found["signatures"] == ["serving_default", "predict"]
    assert 0 <= found["largest_difference"] <= 1e-5


def test_the_rows_hold_missing_and_unknown_values(small_job):
    dataset = small_job.dataset()
    known, missing = set(), {"score": 0, helpers_jobs.COLOUR: 0, "kind": 0}
    for split in ("train", "test"):
        unknown = 0
        for record in records.serialized_rows(
            estimators.to_records(dataset.shards(split)),
            tuple(dataset.declaration.columns.values()),
        ):
            feature = tf.train.Example.FromString(record).features.feature
            (city,) = feature["city"].bytes_list.value
            unknown += city not in known
            known.update([city] if split == "train" else [])
            for name in missing:
                missing[name] += split == "test" and name not in feature
    assert unknown > 5
    assert min(missing.values()) > 5


@pytest.mark.parametrize("rows", [1, 32, 33, 10**9])
def test_rows_are_taken_in_parts(case, in_this_process, monkeypatch, rows):
    monkeypatch.setattr(verify, "_BATCH", 16)
    monkeypatch.setattr(verify, "_PART_BATCHES", 2)
    found = case.verify(rows=rows)
    assert found.rows == min(rows, case.records.rows)
    assert found.largest_difference <= 1e-6


def test_a_client_sends_nan_and_empty_text_for_no_value():
    columns = [
        Column("f", ColumnType.FLOAT, default=0.5),
        Column("s", ColumnType.STRING, default="x"),
        Column("i", ColumnType.INT, default=7),
        Column("r", ColumnType.FLOAT),
    ]
    example = tf.train.Example()
    example.features.feature["r"].float_list.value.append(1.5)
    spec = requests.raw_spec(columns)
    found = tf.io.parse_example([example.SerializeToString()], spec)
    assert np.isnan(found["f"].numpy()).all()
    assert found["s"].numpy().tolist() == [b""]
    assert found["i"].numpy().tolist() == [7]
    assert found["r"].numpy().tolist() == [1.5]


# --- the child -------------------------------------------------------------------


def test_the_child_is_a_stranger(case, tmp_path, monkeypatch):
    """-I keeps out the project, though everything here points to it."""
    marker = tmp_path / "marker"
    (tmp_path / "sitecustomize.py").write_text(f"open({str(marker)!r}, 'w').close()")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(ROOT)]))
    monkeypatch.chdir(ROOT)
    outcomes = []
    run_child = verify._run_child

    def spy(*arguments):
        outcomes.append(run_child(*arguments))
        return outcomes[-1]

    monkeypatch.setattr(verify, "_run_child", spy)
    assert case.verify().rows == case.records.rows
    assert outcomes[0]["project_modules"] == []
    assert not marker.exists()


@pytest.fixture
def child(tmp_path, monkeypatch):
    """Gives a function that puts another program in the child's place."""

    def use(program: str) -> None:
        path = tmp_path / "child.py"
        path.write_text(program)
        monkeypatch.setattr(verify, "_CHILD", str(path))

    return use


def test_a_child_that_knows_the_project_is_a_bug(case, child):
    child(
        "import json\nprint(json.dumps({'largest': {}, 'wrong': [],"
        " 'project_modules': ['export.verify']}))"
    )
    with pytest.raises(RuntimeError, match=r"imported \['export.verify'\]"):
        case.verify(rows=1)


def test_packages_are_where_this_process_has_them(case, child, tmp_path, monkeypatch):
    packages = tmp_path / "lib" / "site-packages"
    packages.mkdir(parents=True)
    monkeypatch.syspath_prepend(str(packages))
    monkeypatch.syspath_prepend(str(tmp_path / "project"))
    child("import sys\nsys.exit(' '.join(sys.argv[3:]))")
    message = _failure(case.verify, rows=1)
    assert str(packages) in message
    assert str(tmp_path / "project") not in message


def test_a_child_without_an_answer_is_ended(case, child, monkeypatch):
    monkeypatch.setattr(verify, "_TIMEOUT_SECONDS", 0.5)
    child("import signal\nsignal.pause()")
    assert "no answer in 0.5 seconds" in _failure(case.verify, rows=1)


def test_a_killed_child_is_named(case, child):
    child("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    assert "ended by SIGKILL" in _failure(case.verify, rows=1)


def test_the_childs_last_words_are_shown(case, child):
    child("import os, sys\nos.write(2, b'first\\nlast \\xff word\\n\\n')\nsys.exit(1)")
    message = _failure(case.verify, rows=1)
    assert message.endswith(r"failed in a fresh process: last \xff word")


# --- failures --------------------------------------------------------------------


def test_damaged_variables_do_not_load(case):
    (data,) = (case.directory / "variables").glob("*.data-*")
    content = bytearray(data.read_bytes())
    content[len(content) // 2] ^= 0xFF
    data.write_bytes(content)
    message = _failure(case.verify, rows=20)
    assert "failed in a fresh process" in message


def _write(case: Case, checkpoint: str, directory: Path) -> Path:
    columns = case.declaration.input_columns
    saved_model.write(case.trained, checkpoint, columns, str(directory))
    return directory


def test_another_checkpoint_differs(case, in_this_process, tmp_path):
    other = re.sub(r"-\d+$", "-0", case.checkpoint)
    assert other != case.checkpoint
    directory = _write(case, other, tmp_path / "other")
    message = _failure(case.verify, directory=directory)
    assert "differs from Estimator.predict in" in message
    assert f"of {case.records.rows} rows" in message


def test_answers_that_are_no_numbers_fail_even_if_both_give_them(
    case, in_this_process, tmp_path
):
    reader = tf.train.load_checkpoint(case.checkpoint)
    prefix = str(tmp_path / "nan.ckpt")
    with tf.Graph().as_default(), _v1.Session() as session:
        for name in reader.get_variable_to_shape_map():
            value = reader.get_tensor(name)
            if name.endswith("/kernel"):
                value = np.full_like(value, np.nan)
            _v1.Variable(value, name=name)
        session.run(_v1.global_variables_initializer())
        _v1.train.Saver().save(session, prefix, write_state=False)
    directory = _write(case, prefix, tmp_path / "nan")
    message = _failure(case.verify, directory=directory, checkpoint=prefix)
    assert "nan] instead of [" in message


@pytest.fixture
def edited(case, in_this_process, tmp_path, monkeypatch):
    """Gives a function that exports with edited signatures and verifies that."""

    def verify_edited(change) -> str:
        original = saved_model._signature_defs

        def edit(*arguments):
            signatures = original(*arguments)
            change(signatures)
            return signatures

        monkeypatch.setattr(saved_model, "_signature_defs", edit)
        directory = _write(case, case.checkpoint, tmp_path / "edited")
        return _failure(case.verify, directory=directory)

    return verify_edited


def test_a_lacking_output_is_named(edited):
    message = edited(lambda signatures: signatures["predict"].outputs.pop("classes"))
    assert "output classes of signature predict is not there" in message


def test_a_lacking_signature_is_named(edited):
    message = edited(lambda signatures: signatures.pop("predict"))
    assert "signature predict is not there" in message


def test_the_number_of_further_differences_is_told(edited):
    def swap(signatures):
        outputs = signatures["predict"].outputs
        for name in ("logits", "logistic"):
            outputs[name].CopyFrom(outputs["class_ids"])

    message = edited(swap)
    assert "is int64 of shape" in message and message.endswith("(1 more)")


@pytest.mark.parametrize("dtype", [tf.int64, tf.string])
def test_a_column_that_takes_any_type_is_named(dtype):
    given = {"age": tf.zeros([2], dtype), "city": tf.constant(["a", "b"])}

    def careless(**columns):
        if columns.keys() != given.keys() or columns["city"].dtype != tf.string:
            raise TypeError("no")
        return {}

    (found,) = verify_requests.wrong_columns(careless, "predict", given)
    assert found.startswith("feature age, ") and "of signature predict" in found


def test_tensorflow_refuses_a_wrong_type_itself(case):
    signature = tf.saved_model.load(str(case.directory)).signatures["predict"]
    specs = signature.structured_input_signature[1]
    given = {
        n: tf.constant([""] if s.dtype == tf.string else [1], s.dtype)
        for n, s in specs.items()
    }
    assert verify_requests.wrong_columns(signature, "predict", given) == []


# --- comparing -------------------------------------------------------------------


def _compare(found, wanted, ties=None) -> tuple[float, str]:
    return verify_child._compare(np.array(found), np.array(wanted), ties, 1e-5)


@pytest.mark.parametrize(
    ("found", "wanted", "difference"),
    [
        ([[0.5]], [[0.5]], 0.0),
        ([[0.500004]], [[0.5]], 4e-6),
        ([[1000.004]], [[1000.0]], 4e-6),
        ([[-1000.004]], [[-1000.0]], 4e-6),
    ],
)
def test_small_differences_pass(found, wanted, difference):
    largest, wrong = _compare(found, wanted)
    assert largest == pytest.approx(difference, rel=1e-3) and not wrong


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        ([[0.5], [0.50002]], [[0.5], [0.5]]),
        ([[0.5], [np.nan]], [[0.5], [0.5]]),
        ([[0.5], [np.inf]], [[0.5], [np.inf]]),
        ([[0.5], [1.0]], [[0.5], [-1.0]]),
        ([[b"a"], [b"b"]], [[b"a"], [b"a"]]),
        ([[1], [2]], [[1], [1]]),
    ],
)
def test_a_difference_names_the_row(found, wanted):
    largest, wrong = _compare(found, wanted)
    assert largest > 1e-5
    assert "in 1 of 2 rows, most in row 1: " in wrong


@pytest.mark.parametrize(
    ("found", "wanted"),
    [([0.5], [[0.5]]), ([[1]], [[1.0]]), ([[1.0, 2.0]], [[1.0]])],
)
def test_another_type_or_shape_is_wrong(found, wanted):
    assert " instead of " in _compare(found, wanted)[1]


def test_no_rows_do_not_differ():
    assert _compare(np.zeros([0, 2]), np.zeros([0, 2])) == (0.0, "")


def test_rounding_may_decide_between_equal_classes():
    wanted = {"probabilities": np.array([[0.5, 0.5], [0.7, 0.3], [0.4, 0.400001]])}
    ties = verify_child._ties(wanted, "classes", 1e-5)
    assert ties.tolist() == [True, False, True]
    assert _compare([[1], [0], [0]], [[0], [0], [1]], ties)[1] == ""
    assert "most in row 1" in _compare([[1], [1], [0]], [[0], [0], [1]], ties)[1]
    assert (
        verify_child._ties({"predictions": np.zeros([3, 1])}, "predictions", 1e-5)
        is None
    )


# --- a real job ------------------------------------------------------------------


@pytest.fixture(scope="module")
def census(tmp_path_factory):
    root = tmp_path_factory.mktemp("census")
    example = ROOT / "examples" / "census"
    job = helpers_jobs.Job(root, example / "adult.csv.gz")
    settings = helpers_jobs.data_flags(job.input, example / "features.yaml")
    stage.run(str(job.dataset_dir), stage.plan(settings), helpers_jobs.QUIET)
    return job


@pytest.mark.slow
@pytest.mark.parametrize("model", helpers_jobs.MODELS)
def test_every_row_of_the_census_test_split_agrees(census, model):
    helpers_jobs.train_model(census, model, max_steps=60, batch_size=512, hparams="")
    found = helpers_jobs.export(census, model).manifest.results["verification"]
    written = census.dataset().manifest.results["rows_written"]
    assert found["rows"] == written["test"] > 9_500
    assert found["largest_difference"] <= 1e-5
