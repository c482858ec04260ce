"""A browser opens TensorBoard and the report page on a finished run.

Screenshots are in pytest's temporary directory, or in DASHBOARD_SCREENSHOTS.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import helpers_browser
import helpers_monitor
import helpers_training
import pytest

from pipeline import app

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        helpers_browser.executable() is None,
        reason="no chromium here (Debian's package chromium)",
    ),
]


@pytest.fixture(scope="module")
def work_dir(tmp_path_factory) -> Path:
    """Two trainings of a model, evaluated with slices."""
    root = tmp_path_factory.mktemp("work")
    dataset = helpers_training.small_dataset(root)
    for seed, rate in ((1, "0.01"), (2, "0.03")):
        place = [
            f"--work_dir={root}",
            f"--dataset_dir={dataset.directory}",
            f"--model_dir={root}/seed{seed}/model",
            f"--evaluation_dir={root}/seed{seed}/evaluation",
            "--verbosity=-1",
        ]
        trained = [
            "train",
            *place,
            f"--seed={seed}",
            f"--hparams=hidden_units=[4],learning_rate={rate}",
            "--max_steps=30",
            "--eval_steps=10",
            "--summary_steps=5",
            "--batch_size=16",
        ]
        assert app.main(trained) == 0
        evaluated = ["evaluate", *place, "--slices=c", "--slices_min_rows=1"]
        assert app.main(evaluated) == 0
    return root


@pytest.fixture(scope="module")
def address(work_dir) -> Iterator[str]:
    process = helpers_monitor.start(work_dir)
    try:
        (found,) = re.findall(r"http\S+", process.stdout.readline())
        yield found
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)


@pytest.fixture(scope="module")
def browser(tmp_path_factory) -> Iterator[helpers_browser.Browser]:
    with helpers_browser.browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture
def screenshots(tmp_path) -> Path:
    path = Path(os.environ.get("DASHBOARD_SCREENSHOTS") or tmp_path)
    path.mkdir(parents=True, exist_ok=True)
    return path


@pytest.mark.parametrize(
    ("dashboard", "wanted"),
    [
        ("timeseries", ("gradient_norm", "seed1/model", "seed2/model/eval")),
        ("scalars", ("learning_rate", "loss", "speed", "memory", "seed1/model")),
        ("histograms", ("weights", "seed2/model")),
        ("hparams", ("learning_rate", "hidden_units", "0.03", "eval")),
        ("pr_curves", ("pr_curve", "seed1/model/eval_test")),
        ("text", ("slices", "average_loss", "rows")),
    ],
)
def test_a_dashboard_shows_data(address, browser, screenshots, dashboard, wanted):
    browser.open(f"{address}#{dashboard}")
    text = browser.wait_for(*wanted)
    browser.screenshot(screenshots / f"{dashboard}.png")
    assert "No dashboards are active" not in text


def test_the_report_page(work_dir, browser, screenshots):
    browser.open(f"file://{work_dir}/seed1/model/report.html")
    browser.wait_for("Metrics", "gradient_norm", "Calibration", "Slices", "auc")
    browser.screenshot(screenshots / "report.png")
    drawn = browser.evaluate(
        "[...document.querySelectorAll('polyline')].filter("
        "line => line.getBoundingClientRect().width > 50).length"
    )
    assert drawn >= 8
    wide = "document.documentElement.scrollWidth <= window.innerWidth"
    assert browser.evaluate(wide)
