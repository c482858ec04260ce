"""The models command, and the page that lists the models."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from model_fns import hparams, hparams_help, registry
from pipeline import show_models
from pipeline.types import Task, UserError

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
_SHARED = (hparams.Objective, hparams.Optimization, hparams.Custom)


def test_all_models():
    lines = list(show_models.describe([]))
    assert all(len(line) <= 88 and "\n" not in line for line in lines)
    text = "\n".join(lines)
    for name, model in registry.MODELS.items():
        assert f"{name}: {model.summary}" in lines
        for setting in hparams_help.settings(model.hparams):
            assert f"    {setting.name} ({setting.type}; {setting.default}): " in text


def test_one_model():
    lines = list(show_models.describe(["kmeans"]))
    assert lines[:4] == [
        "kmeans: premade mini-batch k-means over feature columns",
        "  does clustering, without a label",
        "  --hparams (type; default):",
        "    clusters (whole number; 8): Number of clusters.",
    ]
    assert not any("wide_deep" in line for line in lines)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["wide_depe"], "^models wide_depe is unknown; did you mean wide_deep"),
        (["dcn", "deepfm"], "^models takes the name of one model"),
    ],
)
def test_wrong_names(names, message):
    with pytest.raises(UserError, match=message):
        list(show_models.describe(names))


def test_the_command_imports_no_tensorflow():
    program = (
        "import sys; from pipeline import app; code = app.main(['models', 'dcn']);"
        "sys.exit(code or any(m.startswith('tensorflow') for m in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("dcn: deep & cross network")


def _own(model: registry.Model) -> list[hparams_help.Setting]:
    """Returns what the model takes beside the settings that several share."""
    shared = {
        s.name
        for kind in _SHARED
        if issubclass(model.hparams, kind)
        for s in hparams_help.settings(kind)
    }
    return [s for s in hparams_help.settings(model.hparams) if s.name not in shared]


def _row(model: registry.Model) -> str:
    does = "every kind of label" if model.tasks == tuple(Task) else model.does
    own = ", ".join(f"`{s.name}` ({s.default})" for s in _own(model))
    shared = [k.__name__ for k in _SHARED if issubclass(model.hparams, k)]
    if "Custom" in shared:
        shared = ["Custom"]
    groups = {"Objective": "loss", "Optimization": "optimizer", "Custom": "all below"}
    also = " and ".join(groups[name] for name in shared)
    return f"| `{model.name}` | {model.summary} | {does} | {own} | {also} |"


@pytest.mark.parametrize("name", registry.MODELS)
def test_the_page_lists_the_model(name):
    assert _row(registry.find(name)) in PAGE.splitlines()


def test_the_page_lists_no_other_model():
    names = re.findall(r"^\| `(\w+)` \|", PAGE.partition("\n## ")[0], re.M)
    assert names == list(registry.MODELS)


@pytest.mark.parametrize("kind", _SHARED)
def test_the_page_lists_what_models_share(kind):
    for setting in hparams_help.settings(kind):
        meaning = setting.meaning.replace("|", "\\|")
        row = f"| `{setting.name}` | {setting.default} | {meaning} |"
        assert row in PAGE.splitlines()
