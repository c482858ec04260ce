"""Opening a dataset: whole, unchanged and fit for the model, or one line why not."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from pathlib import Path

import helpers_jobs
import pytest

from pipeline import dataset as datasets
from pipeline.types import Column, ColumnType, Declaration, ExitCode, Label, UserError


@pytest.fixture
def directory(small_job, tmp_path) -> Path:
    return Path(shutil.copytree(small_job.dataset_dir, tmp_path / "dataset"))


def _error(directory: Path) -> UserError:
    with pytest.raises(UserError) as caught:
        datasets.open_dataset(str(directory))
    assert "\n" not in str(caught.value)
    return caught.value


def _shard(directory: Path, split: str) -> Path:
    (path,) = directory.glob(f"{split}-*.tfrecord")
    return path


def test_a_dataset_has_every_row_in_a_split(small_job):
    dataset = small_job.dataset()
    assert list(dataset.splits) == ["train", "eval", "test"]
    rows = sum(shards.rows for shards in dataset.splits.values())
    assert rows == helpers_jobs.ROWS
    for split in dataset.splits:
        assert dataset.shards(split) is dataset.splits[split]
        assert all(map(os.path.isfile, dataset.shards(split).files))
    assert dataset.find_damaged() is None


def test_no_directory(tmp_path):
    assert "run preprocess first" in str(_error(tmp_path / "absent"))


def test_no_manifest(directory):
    (directory / "manifest.json").unlink()
    assert "has no finished dataset" in str(_error(directory))


def test_the_manifest_of_another_stage(small_job):
    directory = small_job.model_dir("wide_deep")
    assert "has no finished dataset" in str(_error(directory))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"stage": "preprocess"}'])
def test_a_manifest_that_is_none(directory, text):
    (directory / "manifest.json").write_text(text)
    assert str(directory / "manifest.json") in str(_error(directory))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (["results", "shards"], None),
        (["results", "shards"], {"train": [{}], "eval": [], "test": []}),
        (["results", "shards"], {"train": ["x"]}),
        (["results"], {}),
        (["configuration"], {}),
    ],
)
def test_a_damaged_manifest(directory, place, value):
    path = directory / "manifest.json"
    manifest = json.loads(path.read_text())
    inner = manifest
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    path.write_text(json.dumps(manifest))
    error = _error(directory)
    assert f"{path} is damaged" in str(error)
    assert error.exit_code is ExitCode.BAD_DATA


@pytest.mark.parametrize("split", ["train", "eval", "test"])
@pytest.mark.parametrize("size", [None, 0, 17])
def test_a_shard_of_another_size(directory, split, size):
    path = _shard(directory, split)
    if size is None:
        path.unlink()
    else:
        os.truncate(path, size)
    error = _error(directory)
    found = "is missing" if size is None else f"has {size} bytes"
    assert f"{path} {found}" in str(error)
    assert error.exit_code is ExitCode.BAD_DATA


def test_a_shard_of_the_same_size_is_found_by_its_digest(directory):
    path = _shard(directory, "eval")
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)
    assert datasets.open_dataset(str(directory)).find_damaged() == str(path)
    path.unlink()


def test_a_removed_shard_is_damaged(directory):
    dataset = datasets.open_dataset(str(directory))
    _shard(directory, "test").unlink()
    assert dataset.find_damaged() == str(directory / "test-00000-of-00001.tfrecord")


def test_a_split_without_rows(small_job):
    dataset = small_job.dataset()
    splits = {**dataset.splits, "test": datasets.Shards((), 0)}
    dataset = dataclasses.replace(dataset, splits=splits)
    for split in ("test", "other"):
        with pytest.raises(UserError, match=f"the {split} split has no rows") as caught:
            dataset.shards(split)
        assert caught.value.exit_code is ExitCode.BAD_DATA


def test_a_changed_declaration(directory):
    path = directory / datasets.DECLARATION_FILE
    text = path.read_text(encoding="utf-8")
    assert "min_count: 3" in text
    path.write_text(text.replace("min_count: 3", "min_count: 1"), encoding="utf-8")
    assert f"{path} was changed after" in str(_error(directory))


def test_comments_and_blanks_in_the_declaration_may_change(directory):
    path = directory / datasets.DECLARATION_FILE
    text = path.read_text(encoding="utf-8")
    path.write_text(f"# a remark\n\n{text}", encoding="utf-8")
    datasets.open_dataset(str(directory))


def test_no_declaration(directory):
    path = directory / datasets.DECLARATION_FILE
    path.unlink()
    assert str(path) in str(_error(directory))


# --- fitting a model -------------------------------------------------------------


def _changed(declaration: Declaration, name: str, **changes) -> Declaration:
    columns = dict(declaration.columns)
    columns[name] = dataclasses.replace(columns[name], **changes)
    return dataclasses.replace(declaration, columns=columns)


def _misfit(dataset: datasets.Dataset, model: Declaration) -> str:
    with pytest.raises(UserError) as caught:
        dataset.check_fits(model, "there")
    message = str(caught.value)
    assert f"{dataset.directory} does not fit the model in there: " in message
    return message.partition("there: ")[2]


def test_a_dataset_fits_its_own_model(small_job):
    small_job.dataset().check_fits(small_job.model("wide_deep").declaration, "there")


def test_a_model_may_have_more_defaults_than_the_dataset(small_job):
    dataset = small_job.dataset()
    model = _changed(dataset.declaration, "age", default=1)
    dataset.check_fits(model, "there")


def test_unused_columns_do_not_matter(small_job):
    dataset = small_job.dataset()
    model = _changed(dataset.declaration, "price", type=ColumnType.STRING)
    dataset.check_fits(model, "there")


def test_misfits_are_listed(small_job):
    dataset = small_job.dataset()
    model = dataset.declaration
    columns = {n: c for n, c in model.columns.items() if n != "city"}
    other = dataclasses.replace(
        dataset, declaration=dataclasses.replace(model, columns=columns)
    )
    assert _misfit(other, model) == "column city is absent"
    changed = _changed(model, "age", type=ColumnType.FLOAT)
    changed = _changed(changed, "score", default=None)
    assert _misfit(dataset, changed) == (
        "column age is int instead of float; column score may have missing values,"
        " and the model has no default for them"
    )


def test_labels_must_be_the_models(small_job):
    dataset = small_job.dataset()
    model = dataset.declaration
    more = dataclasses.replace(model, label=Label("bought", ("ja", "nein", "evtl")))
    dataset.check_fits(more, "there")
    less = dataclasses.replace(model, label=Label("bought", ("ja", "evtl")))
    assert _misfit(dataset, less) == "its label is not always one of ja, evtl"
    unlabelled = dataclasses.replace(
        dataset, declaration=dataclasses.replace(model, label=None)
    )
    assert _misfit(unlabelled, model) == "it has no label"
    other = dataclasses.replace(model, label=Label("tag", ("ja", "nein")))
    assert _misfit(dataset, other) == "its label is bought instead of tag"


def test_the_weight_is_needed_too(small_job):
    dataset = small_job.dataset()
    columns = {
        **dataset.declaration.columns,
        "w": Column("w", ColumnType.FLOAT),
    }
    model = dataclasses.replace(dataset.declaration, columns=columns, weight="w")
    assert _misfit(dataset, model) == "column w is absent"
