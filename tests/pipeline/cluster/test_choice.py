"""Which strategy a cluster gets, and which choices are refused."""

from __future__ import annotations

import dataclasses
import json

import pytest

from pipeline.cluster import choice
from pipeline.flags.cluster import ClusterFlags, DeviceFlags
from pipeline.types import UserError

_PS = {"chief": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]}
_WORKERS = {"worker": ["a:1", "b:1"]}
_CHIEF = {"chief": ["a:1"], "evaluator": ["b:1"]}


def _flags(strategy=None, **devices):
    return dataclasses.replace(
        choice.ALONE.settings, strategy=strategy, devices=DeviceFlags(**devices)
    )


def _variable(cluster, task=None):
    kind = task or next(iter(cluster))
    return json.dumps({"cluster": cluster, "task": {"type": kind, "index": 0}})


@pytest.mark.parametrize(
    ("cluster", "asked", "strategy"),
    [
        (None, None, "none"),
        (None, "mirrored", "mirrored"),
        (None, "multi_worker_mirrored", "mirrored"),
        (_CHIEF, None, "none"),
        (_CHIEF, "central_storage", "central_storage"),
        (_PS, None, "parameter_server"),
        (_PS, "parameter_server_v1", "parameter_server_v1"),
        (_WORKERS, None, "multi_worker_mirrored"),
    ],
)
def test_the_strategy_fits_the_cluster(cluster, asked, strategy):
    variable = cluster and _variable(cluster)
    assert choice.choose(_flags(asked), variable).strategy == strategy


@pytest.mark.parametrize(
    ("cluster", "asked", "said"),
    [
        (None, "parameter_server", "needs a cluster with ps tasks"),
        (_WORKERS, "parameter_server_v1", "needs a cluster with ps tasks"),
        (_PS, "mirrored", "has no use for the ps tasks"),
        (_PS, "none", "has no use for the ps tasks"),
        (_WORKERS, "mirrored", "is for one machine"),
        (_WORKERS, "none", "is for one machine"),
    ],
)
def test_a_strategy_that_does_not_fit_is_refused(cluster, asked, said):
    with pytest.raises(UserError, match=said):
        choice.choose(_flags(asked), cluster and _variable(cluster))


@pytest.mark.parametrize(
    ("strategy", "devices", "said"),
    [
        ("mirrored", {"logical_cpus": 2, "num_gpus": 1}, "not both"),
        ("none", {"logical_cpus": 2}, "needs a strategy over several devices"),
        ("mirrored", {"visible_devices": (0, 0)}, "twice"),
        ("mirrored", {"visible_devices": (0,), "num_gpus": 2}, "more than"),
        ("none", {"memory_growth": True, "memory_fraction": 0.5}, "contradict"),
    ],
)
def test_devices_that_contradict_are_refused(strategy, devices, said):
    with pytest.raises(UserError, match=said):
        choice.choose(_flags(strategy, **devices), None)


def test_each_worker_has_a_number_of_its_own():
    found = [
        choice.choose(_flags(), _variable(_PS, task)) for task in ("chief", "worker")
    ]
    assert [(c.workers, c.worker) for c in found] == [(2, 0), (2, 1)]


def test_the_variable_and_flags_are_not_mixed():
    hosts = (("chief", ("a:1",)),)
    settings = dataclasses.replace(_flags(), hosts=hosts, task_type="chief")
    assert choice.choose(settings, None).cluster.is_leader
    with pytest.raises(UserError, match="by one of them"):
        choice.choose(settings, _variable(_PS))


def test_a_whole_job_is_not_run_in_a_cluster():
    choice.check_alone(_flags(), None)
    with pytest.raises(UserError, match="run preprocess first"):
        choice.check_alone(_flags(), _variable(_PS))


def test_defaults_are_those_of_the_flags():
    assert ClusterFlags(None, "auto", (), None, None, 300, 60) == choice.ALONE.settings
