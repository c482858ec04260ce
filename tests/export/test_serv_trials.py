"""What servers and their clients run into, as tests named after the list of trials.

SERV-1: a request that lacks a value. SERV-2: a signature that is not there. SERV-3: a
version that is loaded while it is written.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import helpers_jobs
import numpy as np
import pytest

from export import probes, requests, versions
from pipeline import estimators
from pipeline.compat import tf

ROOT = Path(__file__).parents[2]
COLOUR = helpers_jobs.COLOUR
DEFAULTS = {COLOUR: b"keine", "score": 0.5, "kind": 1, "tag": b"none"}
REQUIRED = ("age", "city")


@pytest.fixture(scope="module", params=helpers_jobs.MODELS)
def version(request, small_job) -> str:
    return versions.find(str(small_job.export_dir(request.param)), None)


@pytest.fixture(scope="module")
def signatures(version):
    return tf.saved_model.load(version).signatures


@pytest.fixture(scope="module")
def columns(small_job):
    return small_job.model("wide_deep").declaration.input_columns


@pytest.fixture(scope="module")
def row(small_job, columns) -> bytes:
    part = estimators.to_records(small_job.dataset().shards("test"))
    return requests.first_rows(part, columns, 1)[0]


def _with(row: bytes, **values) -> bytes:
    """Returns the row with other values: a list, one value, or None for none."""
    example = tf.train.Example.FromString(row)
    for name, value in values.items():
        feature = example.features.feature[name]
        feature.Clear()
        if value is None:
            del example.features.feature[name]
            continue
        listed = value if isinstance(value, list) else [value]
        kind = {bytes: "bytes_list", int: "int64_list", float: "float_list"}
        getattr(feature, kind[type(listed[0])]).value.extend(listed)
    return example.SerializeToString()


def _ask(signatures, *rows: bytes) -> np.ndarray:
    return signatures["serving_default"](examples=tf.constant(rows))["logits"].numpy()


@pytest.mark.parametrize("name", DEFAULTS)
def test_serv_1_a_missing_value_counts_as_its_default(signatures, row, name):
    without = _ask(signatures, _with(row, **{name: None}))
    with_default = _ask(signatures, _with(row, **{name: DEFAULTS[name]}))
    np.testing.assert_allclose(without, with_default, atol=1e-5)


def test_serv_1_an_unknown_category_is_the_training_path_of_unknown_ones(
    signatures, row
):
    """It gets an id behind the vocabulary's, as in training; verify compares both."""
    known = _with(row, city="Köln".encode())
    unknown = _with(row, city=probes.UNKNOWN.encode())
    ids = signatures["transform"](examples=tf.constant([known, unknown]))["city"]
    vocabulary = 4 - 1  # Köln, Ulm and Beijing occur often enough.
    assert ids.numpy()[0] < vocabulary <= ids.numpy()[1] < vocabulary + 2
    assert np.isfinite(_ask(signatures, unknown)).all()


WRONG = {
    "no age": {"age": None},
    "no city": {"city": None},
    "int for float": {"score": 1},
    "float for int": {"age": 1.5},
    "text for int": {"age": b"1"},
    "int for text": {"city": 1},
    "two values": {"score": [0.5, 0.5]},
    "two values of a required one": {"age": [1, 2]},
}


@pytest.mark.parametrize("changes", WRONG.values(), ids=WRONG)
def test_serv_1_what_is_wrong_is_an_error_that_names_the_feature(
    signatures, row, changes
):
    before = _ask(signatures, row)
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        _ask(signatures, row, _with(row, **changes))
    (name,) = changes
    assert name in str(caught.value)
    np.testing.assert_array_equal(_ask(signatures, row), before)


@pytest.mark.parametrize("name", [COLOUR, "age", "score"])
def test_serv_1_a_tensor_of_a_wrong_type_is_refused(signatures, row, columns, name):
    """TensorFlow tells the input's number only; `serve` tells its name."""
    inputs = requests.raw_inputs([row], columns)
    wrong = tf.constant([1.5], tf.float64)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"input #\d.* expected"):
        signatures["predict"](
            **{n: wrong if n == name else tf.constant(v) for n, v in inputs.items()}
        )


def test_serv_2_the_signatures_are_the_same_for_premade_and_custom(small_job):
    described = []
    for model in helpers_jobs.MODELS:
        directory = versions.find(str(small_job.export_dir(model)), None)
        found = tf.saved_model.load(directory).signatures
        described.append(
            {
                name: (
                    function.structured_input_signature,
                    {
                        n: (o.dtype, o.shape.as_list())
                        for n, o in function.structured_outputs.items()
                    },
                )
                for name, function in found.items()
            }
        )
    names = {"serving_default", "predict", "classify", "regress", "transform"}
    assert set(described[0]) == names
    assert str(described[0]) == str(described[1])


def test_serv_2_transform_is_the_same_for_premade_and_custom(small_job, row):
    answers = []
    for model in helpers_jobs.MODELS:
        directory = versions.find(str(small_job.export_dir(model)), None)
        found = tf.saved_model.load(directory).signatures["transform"]
        answers.append(found(examples=tf.constant([row, row])))
    declared = small_job.model("wide_deep").declaration.features
    assert set(answers[0]) == set(declared)
    for name, value in answers[0].items():
        assert value.shape[0] == 2
        np.testing.assert_array_equal(value, answers[1][name])


@pytest.mark.parametrize("size", [0, 1, 3])
def test_serv_2_answers_have_the_rows_of_the_request(signatures, row, columns, size):
    rows = tf.constant([row] * size, tf.string)
    for name, function in signatures.items():
        (_, inputs) = function.structured_input_signature
        given = {next(iter(inputs)): rows}
        if name == "predict":
            values = requests.raw_inputs([row], columns)
            given = {n: tf.constant([*v] * size, v.dtype) for n, v in values.items()}
            given = {n: tf.cast(v, inputs[n].dtype) if v.dtype != inputs[n].dtype
                     else v for n, v in given.items()}  # fmt: skip
        for output, value in function(**given).items():
            assert value.shape[0] == size, (name, output)
    probabilities = signatures["serving_default"](examples=rows)["probabilities"]
    np.testing.assert_allclose(probabilities.numpy().sum(axis=1), 1, atol=1e-6)


@pytest.mark.slow
def test_serv_2_saved_model_cli_runs_the_default(version, signatures, row, tmp_path):
    """In a process of its own, as a client without this project would."""
    features = {}
    for name, feature in tf.train.Example.FromString(row).features.feature.items():
        features[name] = [*getattr(feature, feature.WhichOneof("kind")).value]
    command = [sys.executable, "-m", "tensorflow.python.tools.saved_model_cli", "run"]
    command += ["--dir", version, "--tag_set", "serve", "--outdir", str(tmp_path)]
    command += ["--signature_def", "serving_default"]
    command += ["--input_examples", f"examples={[features]!r}"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = np.load(tmp_path / "logits.npy")
    np.testing.assert_allclose(found, _ask(signatures, row), atol=1e-6)


_SERVER = """
import os, sys
import tensorflow as tf

export_dir, stop = sys.argv[1:]
seen = set()
print("ready", flush=True)
while True:
    last = os.path.exists(stop)
    for name in sorted(os.listdir(export_dir)):
        if name.isdigit() and name not in seen:
            seen.add(name)
            try:
                signatures = tf.saved_model.load(os.path.join(export_dir, name)).signatures
                signatures["serving_default"](examples=tf.constant([], tf.string))
                print("loaded", name, flush=True)
            except Exception as error:
                print("failed", name, repr(error)[:500], flush=True)
    if last:
        break
"""

_EXPORT = """
import sys
sys.path[:0] = {path!r}
from pathlib import Path
import helpers_jobs
job = helpers_jobs.Job(Path({root!r}), Path({input!r}))
for rows in {rows!r}:
    from pipeline import export_model
    export_model.run({export_dir!r}, job.model("keras_wide_deep"), job.dataset(),
        helpers_jobs.serving_flags(verify_rows=rows, keep_versions=9),
        helpers_jobs.QUIET)
    print("exported", flush=True)
"""


def _exporting(job, export_dir: Path, rows: list[int], tmp_path) -> subprocess.Popen:
    program = _EXPORT.format(
        path=[str(ROOT), str(ROOT / "tests")],
        root=str(job.root),
        input=str(job.input),
        export_dir=str(export_dir),
        rows=rows,
    )
    return subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        start_new_session=True,
    )


def _wait_for(condition, seconds: float) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


@pytest.mark.slow
def test_serv_3_a_server_never_sees_a_version_that_does_not_load(small_job, tmp_path):
    """A process polls; exports run, are killed in the middle, and run again."""
    export_dir = tmp_path / "export"
    export_dir.mkdir()
    stop = tmp_path / "stop"
    server = subprocess.Popen(
        [sys.executable, "-c", _SERVER, str(export_dir), str(stop)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    try:
        assert server.stdout.readline() == "ready\n"
        first = _exporting(small_job, export_dir, [1, 2], tmp_path)
        assert first.communicate(timeout=200)[0] == "exported\n" * 2

        killed = _exporting(small_job, export_dir, [3], tmp_path)
        _wait_for(
            lambda: any(export_dir.glob(".*.tmp-*/saved_model.pb")) or killed.poll(),
            100,
        )
        os.killpg(killed.pid, signal.SIGKILL)
        killed.communicate(timeout=60)
        assert len(versions.versions(str(export_dir))) == 2
        assert any(export_dir.glob(".*.tmp-*")), (
            "the kill came too late to try anything"
        )

        again = _exporting(small_job, export_dir, [3], tmp_path)
        assert again.communicate(timeout=200)[0] == "exported\n"
        assert not any(export_dir.glob(".*.tmp-*"))
        stop.touch()
        lines = server.communicate(timeout=100)[0].splitlines()
    finally:
        server.kill()
        server.communicate()
    there = versions.versions(str(export_dir))
    assert len(there) == 3
    assert sorted(lines) == [f"loaded {number}" for number in there]
