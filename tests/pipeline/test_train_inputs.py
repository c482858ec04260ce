"""From flags to input functions, through the train and evaluate stages."""

from __future__ import annotations

import dataclasses
import shutil

import helpers_jobs
import numpy as np
import pytest

from pipeline import app, evaluate, model_dir, record_cache, train_inputs
from pipeline.compat import tf
from pipeline.console import Console
from pipeline.dataset import Shards
from pipeline.flags.input import InputFlags
from pipeline.types import Column, ColumnType, ExitCode, RecordForm, UserError

COLUMNS = (
    Column("i", ColumnType.INT),
    Column("f", ColumnType.FLOAT),
    Column("s", ColumnType.STRING),
)


def _shards(form=RecordForm.BLOCKS, rows=1000, size=64_000):
    return Shards(("a",), rows, form, (rows,), size)


@pytest.mark.parametrize(
    ("settings", "shards", "rows"),
    [
        # 64 bytes a row in the file, and 8 + 4 + 24 of its tensors.
        ({"shuffle_mb": 1}, _shards(rows=10**6, size=64 * 10**6), 10_485),
        ({"shuffle_mb": 1}, _shards(RecordForm.ROWS, 10**6, 64 * 10**6), 11_915),
        ({}, _shards(), 1000),
        ({"shuffle_mb": 1}, _shards(rows=3, size=3 << 30), 1),
        ({"shuffle_rows": "7"}, _shards(), 7),
        ({"shuffle_rows": "5000"}, _shards(), 5000),
        ({"shuffle_rows": "all"}, _shards(), 1000),
    ],
)
def test_the_window_in_rows_follows_from_bytes(settings, shards, rows):
    found = train_inputs.shuffle_rows(InputFlags(**settings), shards, COLUMNS)
    assert found == rows


def _train(job, directory, settings, **changes):
    return helpers_jobs.run_training(
        directory,
        helpers_jobs.training_flags("wide_deep", **changes),
        job.dataset(),
        Console(0),
        settings,
    )


def test_INP_1_all_rows_print_an_estimate(small_job, tmp_path, capsys):
    _train(small_job, tmp_path / "m", InputFlags(shuffle_rows="all"), max_steps=1)
    rows = small_job.dataset().shards("train").rows
    said = capsys.readouterr().err
    assert f"--shuffle_rows=all holds {rows} rows in memory, about 0 MiB" in said


def _variables(directory):
    reader = tf.train.load_checkpoint(str(directory))
    return {n: reader.get_tensor(n) for n in reader.get_variable_to_shape_map()}


def test_a_cache_and_other_ways_to_read_give_the_same_model(small_job, tmp_path):
    ways = {
        "plain": InputFlags(),
        "memory": InputFlags(cache="memory"),
        "tuned": InputFlags(prefetch_batches=5, input_threads=1),
    }
    for name, settings in ways.items():
        _train(small_job, tmp_path / name, settings, max_steps=4)
    plain = _variables(tmp_path / "plain")
    for name in ("memory", "tuned"):
        for variable, value in _variables(tmp_path / name).items():
            np.testing.assert_array_equal(value, plain[variable], f"{name} {variable}")


def test_a_copy_on_this_machine(small_job, tmp_path):
    dataset = small_job.dataset()
    cache = tmp_path / "cache"
    copy = record_cache.copied(dataset, str(cache), helpers_jobs.QUIET)
    shards = copy.shards("train")
    assert all(path.startswith(f"{cache}/") for path in shards.files)
    for one, other in zip(shards.files, dataset.shards("train").files, strict=True):
        with open(one, "rb") as a, open(other, "rb") as b:
            assert a.read() == b.read()
    assert copy.constants() == dataset.constants()
    assert copy.manifest == dataset.manifest and copy.find_damaged() is None
    again = record_cache.copied(dataset, str(cache), helpers_jobs.QUIET)
    assert again.splits == copy.splits


def test_a_damaged_file_is_not_copied(small_job, tmp_path):
    job = dataclasses.replace(small_job, root=tmp_path / "job")
    shutil.copytree(small_job.dataset_dir, job.dataset_dir)
    (path,) = job.dataset().shards("eval").files
    with open(path, "r+b") as f:
        f.seek(20)
        byte = f.read(1)
        f.seek(20)
        f.write(bytes([byte[0] ^ 1]))
    with pytest.raises(UserError, match="damaged") as caught:
        record_cache.copied(job.dataset(), str(tmp_path / "c"), helpers_jobs.QUIET)
    assert path in str(caught.value)
    assert caught.value.exit_code is ExitCode.BAD_DATA


def test_LOOP_4_evaluation_is_one_pass(small_job, tmp_path):
    dataset = small_job.dataset()
    model = small_job.model("wide_deep")
    metrics = []
    for number in range(2):
        done = evaluate.run(
            str(tmp_path / str(number)), model, dataset, "test", helpers_jobs.QUIET
        )
        assert done.results["rows"] == dataset.shards("test").rows
        metrics.append(done.results["metrics"])
    assert metrics[0] == metrics[1]


def test_a_rest_that_is_dropped_is_not_counted(small_job, tmp_path):
    # Fewer rows than one batch, so nothing would be left.
    with pytest.raises(UserError, match="--drop_remainder"):
        evaluate.run(
            str(tmp_path / "e"),
            small_job.model("wide_deep"),
            small_job.dataset(),
            "test",
            helpers_jobs.QUIET,
            reading=InputFlags(drop_remainder=True),
        )


# --- which data ---------------------------------------------------------------------

BAD_INPUTS = {
    "typo": ("none*.csv", "'none*.csv'"),
    "directory": (".", "is a directory"),
    "home": ("~/none/*.csv", "'~/none/*.csv'"),
    "one part": ("{csv},none.csv", "'none.csv'"),
    "blank": (" none.csv", "'none.csv'"),
    "empty": (",", "--input is empty"),
}


@pytest.mark.parametrize("command", ["train", "evaluate", "export"])
@pytest.mark.parametrize("case", BAD_INPUTS)
def test_INP_2_patterns_are_checked_first(small_job, tmp_path, capsys, command, case):
    value, part = BAD_INPUTS[case]
    work = tmp_path / "w"
    arguments = [
        f"--input={value.format(csv=small_job.input)}",
        f"--features={small_job.root / 'features.yaml'}",
        f"--work_dir={work}",
    ]
    if command != "train":
        arguments.append(f"--model_dir={small_job.model_dir('wide_deep')}")
    assert app.main([command, *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: --input") and part in line, line
    assert not work.exists()


CONTRADICTIONS = {
    "both": (["--input=a.csv", "--dataset_dir=d"], ["--input", "--dataset_dir"]),
    "direct without": (["--input_fn=direct"], ["--input_fn=direct needs --input"]),
    "rules without": (["--features=f.yaml"], ["--features has no effect"]),
    "schema without": (["--schema=f.pbtxt"], ["--schema has no effect"]),
    "copy of nothing": (["--input=a.csv", "--cache=c"], ["--cache=c", "in memory"]),
    "half an epoch": (["--norepeat", "--epochs=1.5"], ["--norepeat", "--epochs=1.5"]),
    "no function": (["--input_fn=no_such:f"], ["--input_fn=no_such:f", "no module"]),
    "no name": (["--input_fn=f"], ["--input_fn=f", "PACKAGE.MODULE:FUNCTION"]),
    "no rows": (["--shuffle_rows=0"], ["--shuffle_rows=0", "1 or more, or all"]),
    "half a row": (["--shuffle_rows=1.5"], ["--shuffle_rows=1.5"]),
}


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_flags_that_contradict_each_other(tmp_path, monkeypatch, capsys, case):
    monkeypatch.chdir(tmp_path)
    arguments, parts = CONTRADICTIONS[case]
    assert app.main(["train", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert all(part in line for part in parts), line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["evaluate", "export"])
def test_only_training_takes_other_rows(command, capsys):
    assert app.main([command, "--input_fn=synthetic"]) == 2
    assert "is for training" in capsys.readouterr().err


def test_run_writes_a_dataset(capsys):
    assert app.main(["run", "--input=a.csv", "--input_fn=direct"]) == 2
    assert "--input_fn=direct has no effect on run" in capsys.readouterr().err


def test_all_commands_without_a_dataset(small_job, tmp_path):
    raw = [
        f"--input={small_job.input}",
        f"--features={small_job.root / 'features.yaml'}",
    ]
    work = [f"--work_dir={tmp_path}", "--verbosity=-1"]
    training = ["--max_steps=2", "--hparams=hidden_units=[4]"]
    assert app.main(["train", *raw, *work, *training]) == 0
    assert app.main(["evaluate", *raw, *work]) == 0
    assert app.main(["export", *raw, *work]) == 0
    assert not (tmp_path / "dataset").exists()
    # The flagfile that train leaves behind means the same.
    flags = (tmp_path / "wide_deep" / "model" / "flags.txt").read_text()
    assert flags.endswith("--input_fn=direct\n")
    again = [f"--flagfile={tmp_path / 'wide_deep' / 'model' / 'flags.txt'}"]
    assert app.main(["train", *again]) == 0
    # In a flagfile --input may be meant for preprocess, whose dataset then is read.
    shutil.copytree(small_job.dataset_dir, tmp_path / "dataset")
    (tmp_path / "job.flags").write_text("\n".join([*raw, *work, *training]))
    other = f"--model_dir={tmp_path / 'other'}"
    assert app.main(["train", f"--flagfile={tmp_path / 'job.flags'}", other]) == 0
    trained = model_dir.open_model(str(tmp_path / "other")).training
    assert trained.dataset == small_job.dataset().manifest.fingerprint
