"""The page about a training: complete, without a network, and safe."""

from __future__ import annotations

import html.parser
import shutil
from pathlib import Path

import helpers_jobs
import helpers_training
import pytest

from pipeline import app, event_scalars, pages, report_page
from pipeline.types import UserError

MODEL = "wide_deep"
EVIL = "<script>alert('x')</script>"


class _Page(html.parser.HTMLParser):
    def __init__(self, text: str):
        super().__init__()
        self.tags, self.attributes, self.text = [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def job(small_job, tmp_path_factory):
    """A copy with an evaluation, made by the command."""
    root = tmp_path_factory.mktemp("report")
    shutil.copytree(small_job.dataset_dir, root / "dataset")
    job = helpers_jobs.Job(root, small_job.input)
    shutil.copytree(small_job.model_dir(MODEL), job.model_dir(MODEL))
    assert not app.main(
        [
            "evaluate",
            f"--work_dir={root}",
            f"--model={MODEL}",
            "--slices=kind",
            "--slices_min_rows=5",
            "--verbosity=-1",
        ]
    )
    return job


def _check_safe(page: _Page, text: str) -> None:
    assert not {"script", "img", "link", "iframe", "a"} & set(page.tags)
    assert not {"src", "href", "onerror", "onload"} & page.attributes
    assert "default-src 'none'" in text


def test_the_page(job):
    text = (job.model_dir(MODEL) / "report.html").read_text(encoding="utf-8")
    page = _Page(text)
    _check_safe(page, text)
    said = " ".join(page.text)
    for part in ("Metrics", "Curves", "ROC", "Calibration", "Confusion matrix"):
        assert part in said
    for part in ("eval split", "test split, step 4", "Slices", "colour/größe", "kind"):
        assert part in said
    curves = page.tags.count("polyline") + page.tags.count("circle")
    assert curves >= 8


def test_show_makes_the_same_page(job, tmp_path, capsys):
    output = tmp_path / "page.html"
    directory = str(job.model_dir(MODEL))
    assert not app.main(["show", directory, "--format=html", f"--output={output}"])
    assert str(output) in capsys.readouterr().out
    assert output.read_text() == (job.model_dir(MODEL) / "report.html").read_text()


def test_a_model_alone(job, tmp_path):
    alone = tmp_path / "alone/model"
    shutil.copytree(job.model_dir(MODEL), alone)
    said = " ".join(_Page(report_page.render(str(alone))).text)
    assert "Curves" in said and "Confusion" not in said and "Dataset" not in said


def test_no_training(tmp_path):
    with pytest.raises(UserError, match="holds no finished training"):
        report_page.render(str(tmp_path))


def test_a_damaged_evaluation_is_one_line(job, tmp_path):
    evaluation = tmp_path / "evaluation"
    shutil.copytree(job.root / MODEL / "evaluation", evaluation)
    (evaluation / "details.json").write_text("[1]")
    with pytest.raises(UserError, match="is damaged") as caught:
        report_page.render(str(job.model_dir(MODEL)), str(evaluation))
    assert "\n" not in str(caught.value)


def test_names_from_data_are_escaped():
    nan = float("nan")
    text = pages.page(
        EVIL, [pages.chart(EVIL, {EVIL: [(0, 1), (1, nan), (2, 3)]}, EVIL)]
    )
    _check_safe(_Page(text), text)
    assert text.count("&lt;script&gt;") == 5 and "nan" not in text
    assert pages.chart("empty", {"a": [(0, nan)]}, "x") == ""


def test_scalars_as_tensorboard_reads_them(job):
    directory = job.model_dir(MODEL)
    found = event_scalars.read(str(directory))
    assert {"loss", "learning_rate", "gradient_norm/wide"} <= found.keys()
    for tag, points in found.items():
        steps = helpers_training.scalar_steps(directory, tag)
        assert [step for step, _ in points] == steps


def test_a_file_that_is_still_written(job, tmp_path):
    paths = job.model_dir(MODEL).glob("events.*")
    (path,) = [path for path in paths if "hparams" not in path.name]
    whole = path.read_bytes()
    copy = Path(tmp_path / path.name)
    copy.write_bytes(whole[:-3])
    found = event_scalars.read(str(tmp_path))
    assert (
        0
        < sum(map(len, found.values()))
        <= sum(map(len, event_scalars.read(str(path.parent)).values()))
    )
    assert event_scalars.read(str(tmp_path / "none")) == {}
