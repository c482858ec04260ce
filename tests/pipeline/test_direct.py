"""Raw files without a dataset: the same examples as by way of a dataset (CSV-2)."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path

import helpers_jobs
import numpy as np
import pytest
from helpers_formats import WRITERS
from helpers_stage import all_values, data_flags, opened, preprocess, read_directly
from helpers_stage import records as records_of
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import direct
from pipeline.compat import tf
from pipeline.flags.input import InputFlags
from pipeline.preprocess import stage
from pipeline.types import ColumnType, ExitCode, UserError

DECLARATION = """
label: {column: y, classes: ["no", "yes"]}
split: {fractions: {train: 0.6, eval: 0.3, test: 0.1}}
columns:
  i: {type: int, default: -7}
  f: {type: float, missing: [NA], default: 0.25}
  s: {type: string, default: nothing}
  y: {type: string}
features:
  i: {kind: numeric, scale: minmax}
  f: {kind: bucketized, quantiles: 3}
  s: {kind: vocabulary}
"""
ROWS = st.lists(
    st.tuples(
        st.none() | st.integers(-(2**63), 2**63 - 1),
        st.none() | st.floats(-(2.0**99), 2.0**99, width=32, allow_subnormal=False),
        st.none() | st.text('ab ,"\n\u00e4', max_size=4),
        st.sampled_from(["no", "yes"]),
    ),
    min_size=1,
    max_size=30,
)
KINDS = (ColumnType.INT, ColumnType.FLOAT, ColumnType.STRING, ColumnType.STRING)


def _outcome(read, *arguments, **changes):
    try:
        return read(*arguments, **changes).results, None
    except UserError as error:
        return None, error.exit_code


@pytest.mark.slow
@settings(deadline=None, max_examples=12)
@given(files=st.lists(ROWS, min_size=1, max_size=2), kind=st.sampled_from([*WRITERS]))
def test_CSV_2_both_ways_see_the_same_rows_and_constants(files, kind):
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        (root / "features.yaml").write_text(DECLARATION)
        for number, rows in enumerate(files):
            columns = zip(*rows, strict=True)
            table = {
                n: (k, list(values))
                for n, k, values in zip("ifsy", KINDS, columns, strict=True)
            }
            WRITERS[kind](root / f"{number}.{kind}", table)
        given_ = (root / f"*.{kind}", root / "features.yaml")
        one, failed = _outcome(preprocess, root / "one", *given_)
        two, failed_too = _outcome(read_directly, root / "two", *given_)
        assert failed == failed_too
        if failed is not None:
            return
        for result in ("rows_read", "rows_written", "rows_rejected", "missing_values"):
            assert one[result] == two[result], result
        assert records_of(root / "one") == records_of(root / "two")
        assert opened(root / "one").constants() == opened(root / "two").constants()


def _directly(job: helpers_jobs.Job) -> direct.Dataset:
    plan = stage.plan(helpers_jobs.data_flags(job.input, job.root / "features.yaml"))
    rejects = f"{job.root}/direct.rejects.jsonl"
    return direct.read(plan, 1024, rejects, helpers_jobs.QUIET)


@pytest.mark.parametrize("model", helpers_jobs.MODELS)
def test_CSV_2_the_same_seed_gives_the_same_model(small_job, tmp_path, model):
    found = []
    for number, dataset in enumerate((small_job.dataset(), _directly(small_job))):
        directory = str(tmp_path / str(number))
        settings_ = helpers_jobs.training_flags(model)
        done = helpers_jobs.run_training(directory, settings_, dataset)
        reader = tf.train.load_checkpoint(directory)
        variables = {
            n: reader.get_tensor(n) for n in reader.get_variable_to_shape_map()
        }
        found.append((done.manifest.results["metrics"], variables))
    (metrics, variables), (others, other_variables) = found
    assert metrics == others
    for name, value in variables.items():
        np.testing.assert_array_equal(value, other_variables[name], name)


def test_the_fingerprint_is_that_of_files_and_declaration(small_job, tmp_path):
    first = _directly(small_job)
    assert _directly(small_job).manifest.fingerprint == first.manifest.fingerprint
    changed = tmp_path / "rows.csv"
    text = small_job.input.read_bytes()
    changed.write_bytes(text[:-2] + b"9\n")
    other = small_job.root / "features.yaml"
    plan = stage.plan(data_flags(changed, other))
    found = direct.read(plan, 1024, str(tmp_path / "r.jsonl"), helpers_jobs.QUIET)
    assert found.manifest.fingerprint != first.manifest.fingerprint


def test_too_much_for_memory_points_to_preprocess(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,y\n" + f"{'a' * 1000},yes\n" * 2000)
    features = tmp_path / "features.yaml"
    features.write_text(
        'label: {column: y, classes: ["no", "yes"]}\n'
        "columns: {x: {type: string}, y: {type: string}}\n"
        "features: {x: {kind: hashed, buckets: 5}}\n"
    )
    with pytest.raises(UserError, match="--direct_mb=1 MiB.*run preprocess"):
        direct.read(
            stage.plan(data_flags(path, features)),
            1,
            str(tmp_path / "r.jsonl"),
            helpers_jobs.QUIET,
        )


def test_synthetic_rows_train_from_memory(small_job, tmp_path):
    done = helpers_jobs.run_training(
        tmp_path / "model",
        helpers_jobs.training_flags("wide_deep", max_steps=3),
        small_job.dataset(),
        reading=InputFlags(input_fn="synthetic"),
    )
    assert done.manifest.results["global_step"] == 3


def test_a_model_of_synthetic_rows_is_not_gone_on_with(small_job, tmp_path):
    dataset = small_job.dataset()
    flags = helpers_jobs.training_flags("wide_deep", max_steps=1)
    directory = str(tmp_path / "model")
    synthetic = InputFlags(input_fn="synthetic")
    helpers_jobs.run_training(directory, flags, dataset, reading=synthetic)
    more = dataclasses.replace(flags, max_steps=2)
    with pytest.raises(UserError, match="input_fn synthetic -> rows of the dataset"):
        helpers_jobs.run_training(directory, more, dataset)


def test_data_that_end_end_the_training(small_job, tmp_path):
    dataset = small_job.dataset()
    rows = dataset.shards("train").rows
    flags = helpers_jobs.training_flags("wide_deep", max_steps=10_000, epochs=2.0)
    done = helpers_jobs.run_training(
        tmp_path / "model",
        flags,
        dataset,
        reading=InputFlags(repeat=False),
    )
    assert 2 * rows % 32
    assert done.manifest.results["global_step"] == 2 * rows // 32 + 1


def test_training_does_not_evaluate_nothing(small_job, tmp_path):
    with pytest.raises(UserError, match="--drop_remainder leaves out all"):
        helpers_jobs.run_training(
            tmp_path / "model",
            helpers_jobs.training_flags("wide_deep", max_steps=1),
            small_job.dataset(),
            reading=InputFlags(repeat=False, drop_remainder=True),
        )
    assert not (tmp_path / "model").exists()


# --- damaged record files ----------------------------------------------------------


TFR = """
label: {column: y, classes: [0, 1]}
split: {fractions: {train: 0.98, eval: 0.01, test: 0.01}}
columns: {n: {type: int}, y: {type: int}}
features: {n: {kind: numeric}}
"""


def _tfrecords(folder: Path, ending: str = "") -> list[Path]:
    from helpers_formats import example, write_records

    folder.mkdir()
    (folder / "features.yaml").write_text(TFR)
    return [
        write_records(
            folder / f"train-{file}.tfrecord{ending}",
            [example({"n": 100 * file + i, "y": i % 2}) for i in range(100)],
        )
        for file in range(4)
    ]


def test_TFR_1_a_damaged_file_is_named_or_its_rest_counted(tmp_path):
    path = _tfrecords(tmp_path / "data")[3]
    path.write_bytes(path.read_bytes()[:-7])
    files = tmp_path / "data" / "train*"
    features = tmp_path / "data" / "features.yaml"
    with pytest.raises(UserError, match="train-3.tfrecord: record 100") as caught:
        read_directly(tmp_path / "d", files, features)
    assert caught.value.exit_code is ExitCode.BAD_DATA
    found = read_directly(tmp_path / "d", files, features, skip_bad_records=True)
    assert found.results["rows_read"] == 399
    (loss,) = found.results["lost"]
    assert (loss["path"], loss["record"]) == (str(path), 100)


@pytest.mark.parametrize("endings", [("", ""), (".gz", ".gz"), (".gz", "")])
def test_TFR_2_compression_is_told_by_content(tmp_path, endings):
    written, named = endings
    for path in _tfrecords(tmp_path / "data", written):
        path.rename(path.with_name(path.name.removesuffix(written) + named))
    files = tmp_path / "data" / "train*"
    read_directly(tmp_path / "d", files, tmp_path / "data" / "features.yaml")
    ids = sorted(row["n"] for row in all_values(tmp_path / "d"))
    assert ids == list(range(400))
