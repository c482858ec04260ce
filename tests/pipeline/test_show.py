"""What show says of each kind of directory, and of damaged ones."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import helpers_jobs
import pytest

from export import versions
from pipeline import evaluate, show
from pipeline.types import UserError

MODEL = "wide_deep"


@pytest.fixture(scope="module")
def evaluation(small_job, tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("work") / "evaluation"
    evaluate.run(
        str(directory),
        small_job.model(MODEL),
        small_job.dataset(),
        "eval",
        helpers_jobs.QUIET,
    )
    return directory


def _show(directory) -> list[str]:
    lines = list(show.describe(str(directory)))
    assert not any("\n" in line for line in lines)
    return lines


def _error(directory) -> str:
    with pytest.raises(UserError) as caught:
        list(show.describe(str(directory)))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_dataset(small_job):
    lines = _show(small_job.dataset_dir)
    rows = helpers_jobs.ROWS
    assert lines[0].startswith(f"dataset {small_job.dataset_dir}, finished 2")
    assert lines[1].startswith(f"  from {small_job.input} (")
    assert f"rows read {rows:,} = written {rows:,} + rejected 0" in lines
    (train,) = [line for line in lines if line.startswith("  train: ")]
    assert train.endswith(" rows in 1 shard(s)")
    table = lines[lines.index("columns of the train split:") + 1 :]
    assert table[0].split() == [
        *("name", "type", "missing", "mean", "std", "min", "max", "top", "values")
    ]
    assert len(table) == 1 + len(helpers_jobs.HEADER)
    (colour,) = [line for line in table if helpers_jobs.COLOUR in line]
    assert "%" in colour and "blau (" in colour
    (age,) = [line for line in table if line.startswith("  age ")]
    assert age.split()[-2:] == ["-1", "60"]


def test_rejects_of_a_dataset(small_job, tmp_path):
    directory = shutil.copytree(small_job.dataset_dir, tmp_path / "dataset")
    rejects = [
        {"file": "a.csv", "line": line, "column": "age", "reason": f"no {line}"}
        for line in range(7)
    ]
    path = directory / "rejects.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in rejects))
    _edit(
        directory / "manifest.json",
        lambda m: m["results"].update(
            rejected_by_column={"age": 6, "": 1},
            first_reason={"age": "no 0", "": "has 2 fields"},
        ),
    )
    lines = _show(directory)
    assert "  rejected 6 for column age: no 0" in lines
    assert "  rejected 1 for broken rows: has 2 fields" in lines
    assert lines[-6] == f"first rejects (all in {path}):"
    assert lines[-1] == "  a.csv:4: no 4"


def test_a_model(small_job):
    lines = _show(small_job.model_dir(MODEL))
    assert lines[0].startswith(f"model {small_job.model_dir(MODEL)}, trained by 2")
    assert "  model: wide_deep" in lines and "  seed: 1" in lines
    place = lines.index("metrics of the eval split at step 4:")
    assert any(line.startswith("  auc: 0.") for line in lines[place:])


def test_an_evaluation(evaluation, small_job):
    lines = _show(evaluation)
    rows = small_job.dataset().shards("eval").rows
    assert f"evaluation {evaluation}: {rows} rows of the eval split" in lines[0]
    assert any(line.startswith("  accuracy: 0.") for line in lines)


def test_an_export(small_job):
    directory = versions.find(str(small_job.export_dir(MODEL)), None)
    lines = _show(directory)
    assert lines[0].startswith(f"export {directory}, finished 2")
    assert lines[1] == "  global step: 4"
    assert (
        lines[2]
        == "  signatures: classify, predict, regress, serving_default, transform"
    )
    rows = small_job.dataset().shards("test").rows
    assert lines[3].startswith(f"  verified on {rows} rows; largest difference ")


def test_a_work_directory_shows_all_of_it(small_job):
    text = "\n".join(_show(small_job.root))
    for directory in (
        small_job.dataset_dir,
        *map(small_job.model_dir, helpers_jobs.MODELS),
    ):
        assert f" {directory}," in text
    assert text.count("\nexport ") == 2 and text.count("\nmodel ") == 2


def test_a_trailing_slash_changes_nothing(small_job):
    lines = _show(f"{small_job.dataset_dir}/")
    assert lines[1:] == _show(small_job.dataset_dir)[1:]


def test_nothing(tmp_path):
    assert (
        _error(tmp_path / "absent") == f"show: there is no directory {tmp_path}/absent"
    )
    assert "holds nothing that a stage finished" in _error(tmp_path)
    (tmp_path / "file").touch()
    assert "there is no directory" in _error(tmp_path / "file")


def test_killed_work_is_not_shown(small_job, tmp_path):
    shutil.copytree(small_job.dataset_dir, tmp_path / ".dataset.tmp-1")
    assert "holds nothing" in _error(tmp_path)


def test_a_stage_that_show_does_not_know(small_job, tmp_path):
    directory = shutil.copytree(small_job.dataset_dir, tmp_path / "dataset")
    _edit(directory / "manifest.json", lambda m: m.update(stage="bless"))
    assert "holds nothing" in _error(directory)
    assert "holds nothing" in _error(tmp_path)


# --- damage ----------------------------------------------------------------------


def _edit(path: Path, change) -> None:
    value = json.loads(path.read_text(encoding="utf-8"))
    change(value)
    path.write_text(json.dumps(value), encoding="utf-8")


@pytest.fixture(params=["dataset", "model", "evaluation", "export"])
def stage_dir(request, small_job, evaluation, tmp_path) -> Path:
    source = {
        "dataset": small_job.dataset_dir,
        "model": small_job.model_dir(MODEL),
        "evaluation": evaluation,
        "export": versions.find(str(small_job.export_dir(MODEL)), None),
    }[request.param]
    return Path(shutil.copytree(source, tmp_path / "copy"))


@pytest.mark.parametrize("text", ["", "{", "[1]", '"text"', "\x00"])
def test_a_manifest_that_is_none(stage_dir, text):
    (stage_dir / "manifest.json").write_text(text)
    assert str(stage_dir / "manifest.json") in _error(stage_dir)


@pytest.mark.parametrize("results", [{}, {"metrics": 1, "shards": 2, "global_step": 3}])
def test_a_manifest_without_results(stage_dir, results):
    _edit(stage_dir / "manifest.json", lambda m: m.update(results=results))
    assert f"a file in {stage_dir} is damaged or missing" in _error(stage_dir)


@pytest.fixture
def dataset_dir(small_job, tmp_path) -> Path:
    return Path(shutil.copytree(small_job.dataset_dir, tmp_path / "dataset"))


@pytest.mark.parametrize("name", ["statistics.json", "rejects.jsonl"])
def test_a_missing_file(dataset_dir, name):
    (dataset_dir / name).unlink()
    assert name in _error(dataset_dir)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"train": null}',
        '{"train": {"age": {}}}',
        '{"train": {"age": {"numbers": 1, "values": 2}}}',
    ],
)
def test_damaged_statistics(dataset_dir, text):
    (dataset_dir / "statistics.json").write_text(text)
    assert str(dataset_dir) in _error(dataset_dir)


@pytest.mark.parametrize("text", ["{\n", "[]\n", "{}\n", "\xff\n"])
def test_damaged_rejects(dataset_dir, text):
    (dataset_dir / "rejects.jsonl").write_bytes(text.encode("latin-1"))
    assert str(dataset_dir) in _error(dataset_dir)


def test_values_stay_on_their_line(dataset_dir):
    def change(statistics):
        statistics["train"]["tag"]["values"]["top"] = [
            ["a\nb\x1b[2J", 3],
            ["x" * 100, 2],
        ]

    _edit(dataset_dir / "statistics.json", change)
    (line,) = [line for line in _show(dataset_dir) if line.startswith("  tag ")]
    assert r"a\nb\x1b[2J (3), " in line
    assert f"{'x' * 37}... (2)" in line
    assert os.linesep not in line
