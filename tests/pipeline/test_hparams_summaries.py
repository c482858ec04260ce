"""The HParams dashboard: each run once, with its settings and metrics."""

from __future__ import annotations

from pathlib import Path

import helpers_training
import pytest
from tensorboard.plugins.hparams import metadata

from pipeline import event_scalars


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return helpers_training.small_dataset(tmp_path_factory.mktemp("data"))


def _started(directory: Path) -> list:
    return [
        metadata.parse_session_start_info_plugin_data(
            value.metadata.plugin_data.content
        )
        for event in helpers_training.events(directory)
        for value in event.summary.value
        if value.tag == metadata.SESSION_START_INFO_TAG
    ]


def test_settings_of_a_run(tmp_path, dataset):
    hparams = "hidden_units=[4],learning_rate=0.02"
    for max_steps in (4, 4, 8):
        helpers_training.train(tmp_path, dataset, hparams=hparams, max_steps=max_steps)
    (found,) = _started(tmp_path)
    assert found.group_name == str(tmp_path)
    assert found.hparams["learning_rate"].number_value == 0.02
    assert found.hparams["hidden_units"].string_value == "[4]"
    assert found.hparams["model"].string_value == "wide_deep"
    assert found.hparams["max_steps"].number_value == 8
    assert found.hparams["dropout"].number_value == 0
    # Metrics come from the curves.
    assert "auc" in event_scalars.read(str(tmp_path / "eval"))
