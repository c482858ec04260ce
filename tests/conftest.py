"""Lets pytest put this folder on the path, so that tests can import its helpers."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def small_job(tmp_path_factory):
    """A binary classification, both models trained and exported; do not change it."""
    import helpers_jobs

    job = helpers_jobs.make_job(tmp_path_factory.mktemp("small_job"), "binary")
    for model in helpers_jobs.MODELS:
        helpers_jobs.train_model(job, model)
        helpers_jobs.export(job, model)
    return job


@pytest.fixture(scope="session")
def untrained_job(tmp_path_factory):
    """The same, as preprocess left it; do not change it."""
    import helpers_jobs

    return helpers_jobs.make_job(tmp_path_factory.mktemp("untrained_job"), "binary")


@pytest.fixture(scope="session")
def task_jobs(tmp_path_factory, small_job):
    """A job by kind of label, both models trained in each; do not change them."""
    import helpers_jobs

    root = tmp_path_factory.mktemp("tasks")
    jobs = {"binary": small_job}
    for task in ("multi_class", "regression"):
        jobs[task] = helpers_jobs.make_job(root / task, task)
        for model in helpers_jobs.MODELS:
            helpers_jobs.train_model(jobs[task], model, max_steps=2)
    return jobs
