"""What cannot be done in a cluster is refused before anything is trained."""

from __future__ import annotations

import json

import helpers_training
import pytest

from pipeline import train_plan
from pipeline.cluster import choice, command
from pipeline.types import UserError

_PS = {"chief": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]}
_IN_STEP = {"worker": ["a:1", "b:1"]}
_EARLY = {"early_stopping_metric": "loss", "early_stopping_patience": 2}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return helpers_training.small_dataset(tmp_path_factory.mktemp("dataset"))


def _check(cluster, dataset, directory, **changes):
    kind = cluster and next(iter(cluster))
    task = {"type": kind, "index": 0}
    variable = cluster and json.dumps({"cluster": cluster, "task": task})
    plan = train_plan.plan(
        str(directory), helpers_training.settings(**changes), dataset
    )
    command.check_plan(choice.choose(choice.ALONE.settings, variable), plan)


@pytest.mark.parametrize(
    ("cluster", "changes", "said"),
    [
        (_PS, {"steps_per_run": 5}, "--steps_per_run=5: in a cluster"),
        (_PS, {"max_train_seconds": 5}, "--max_train_seconds is for one machine"),
        (
            _IN_STEP,
            {"checkpoint_secs": 5, "checkpoint_steps": None},
            "in step save all at the same step",
        ),
        (_IN_STEP, _EARLY, "workers in step cannot stop early"),
    ],
)
def test_what_tasks_would_do_each_for_itself_is_refused(
    dataset, tmp_path, cluster, changes, said
):
    _check(None, dataset, tmp_path / "m", **changes)
    with pytest.raises(UserError, match=said):
        _check(cluster, dataset, tmp_path / "m", **changes)


def test_workers_of_parameter_servers_may_stop_early(dataset, tmp_path):
    _check(_PS, dataset, tmp_path / "m", **_EARLY)
