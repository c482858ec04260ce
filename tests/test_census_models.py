"""Each model of the registry on Census, for a short time, against the baseline."""

from __future__ import annotations

import json

import pytest

from model_fns import hparams, registry
from pipeline import app
from pipeline.types import Task

_OVER_BASELINE = 0.36
"""In AUC, where the baseline has 0.5; two epochs."""
_MODELS = [n for n, m in registry.MODELS.items() if Task.BINARY in m.tasks]


def _run(command: str, work, *flags: str) -> None:
    arguments = ["--flagfile=examples/census/census.flags", f"--work_dir={work}"]
    assert app.main([command, *arguments, *flags]) == 0


@pytest.fixture(scope="module")
def auc_of(tmp_path_factory, request):
    """Returns a function from a model's name to its AUC on the test split."""
    work = tmp_path_factory.mktemp("census")
    monkeypatch = pytest.MonkeyPatch()
    request.addfinalizer(monkeypatch.undo)
    monkeypatch.chdir(request.config.rootpath)
    _run("preprocess", work)
    known: dict[str, float] = {}

    def auc(name: str) -> float:
        if name not in known:
            # A rate at which two epochs come a long way.
            fast = issubclass(registry.find(name).hparams, hparams.Optimization)
            _run(
                "train",
                work,
                f"--model={name}",
                f"--hparams={'learning_rate=0.01' if fast else ''}",
                "--max_steps=134",
                "--checkpoint_steps=134",
            )
            _run("evaluate", work, f"--model={name}")
            metrics = work / name / "evaluation" / "metrics.json"
            known[name] = json.loads(metrics.read_text())["auc"]
        return known[name]

    return auc


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in _MODELS if n != "baseline"])
def test_it_beats_the_baseline(auc_of, name):
    assert auc_of("baseline") == pytest.approx(0.5, abs=1e-6)
    assert auc_of(name) - auc_of("baseline") >= _OVER_BASELINE
