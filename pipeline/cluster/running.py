"""Runs an Estimator's training as a task of a cluster, or alone."""

from __future__ import annotations

import dataclasses
import os
import shutil
from typing import Any

from input_fns.shares import Shard
from pipeline import environment
from pipeline.cluster.choice import ALONE
from pipeline.cluster.preemption import EvaluationHook, Preemption, PreemptionHook
from pipeline.cluster.replicas import SaveOneReplica, with_mean_loss
from pipeline.cluster.session import StopTogether
from pipeline.cluster.strategies import Distribution
from pipeline.compat import estimator, tf
from pipeline.hooks_nan import NanWeightsListener
from pipeline.stopping_hooks import TimeBudgetHook


@dataclasses.dataclass(frozen=True)
class Job:
    """A training that is ready to run.

    Attributes:
      trained: The Estimator, made with `distribution.run_config()`.
      local: The same on one replica, for evaluations.
      train: What to train.
      evaluation: What to evaluate at each checkpoint.
      guard: Refuses checkpoints of weights that are no numbers.
      time_budget: The hook that pauses training, if there is one.
    """

    trained: estimator.Estimator
    local: estimator.Estimator
    train: estimator.TrainSpec
    evaluation: estimator.EvalSpec
    guard: NanWeightsListener
    time_budget: TimeBudgetHook | None


@dataclasses.dataclass(frozen=True)
class Runner:
    """How this process trains, and what ends it.

    Attributes:
      distribution: The strategy, and the place in the cluster.
      preemption: Whether SIGTERM came.
    """

    distribution: Distribution
    preemption: Preemption

    @property
    def is_plain(self) -> bool:
        """Whether the process trains by itself and without a strategy."""
        choice = self.distribution.choice
        return self.distribution.strategy is None and not choice.cluster.is_cluster

    @property
    def evaluates(self) -> bool:
        """Whether it has to evaluate its checkpoints, since nobody else does.

        Outside of a cluster train_and_evaluate does.
        """
        cluster = self.distribution.choice.cluster
        return cluster.is_cluster and cluster.is_leader and not cluster.has_evaluator

    def saves_to(self, directory: str) -> str | None:
        """Returns where this process saves checkpoints of a model directory, if it does.

        Saving takes part in collective operations, so that workers in step have to
        save all at once; those that do not lead do it aside, as TensorFlow has it.
        """
        choice = self.distribution.choice
        if choice.cluster.is_leader:
            return directory
        task = choice.cluster.task
        if choice.is_in_step and task in choice.cluster.trainers:
            return os.path.join(directory, f"tmp_{task.type}_{task.index}")
        return None

    def evaluation_hooks(self) -> list[tf.compat.v1.train.SessionRunHook]:
        """Returns hooks for each evaluation: SIGTERM ends it."""
        return [EvaluationHook(self.preemption)]

    def environment(self):
        """In the body, TensorFlow knows the cluster: for the RunConfig that trains."""
        return environment.tf_config(self.distribution.choice.cluster.tf_config())

    def shard(self) -> Shard:
        """Returns this worker's share of the rows, where each reads its own.

        Workers with a strategy are told by it instead.
        """
        choice = self.distribution.choice
        if choice.strategy != "parameter_server":
            return Shard()
        return Shard(choice.workers, choice.worker)

    def own_steps(self, step: int) -> int:
        """Returns the steps of this worker among so many of all workers."""
        choice = self.distribution.choice
        if not choice.is_asynchronous:
            return step
        return step // choice.workers

    def train_and_evaluate(self, job: Job) -> dict[str, Any] | None:
        """Trains up to max_steps; see tf.estimator.train_and_evaluate.

        Returns:
          The metrics of the last checkpoint; None where there was no evaluation of
          it, as in a cluster.

        Raises:
          UserError: SIGTERM came (PREEMPTED).
        """
        cluster = self.distribution.choice.cluster
        replicas = self.distribution.replicas
        hooks = list(job.train.hooks)
        if replicas > 1:
            hooks.append(SaveOneReplica())
        directory = job.trained.model_dir
        aside = self.saves_to(directory)
        if not cluster.is_leader:
            # What a killed run saved aside, nothing would ever remove.
            _remove(aside)
        together = None
        if self.distribution.choice.is_in_step:
            together = StopTogether(directory)
        hooks.append(PreemptionHook(self.preemption, aside, [job.guard], together))
        spec = job.train._replace(hooks=tuple(hooks))
        with self.environment():
            trained = with_mean_loss(job.trained, replicas)
            try:
                result = estimator.train_and_evaluate(trained, spec, job.evaluation)
            finally:
                self.preemption.end_session()
        if not cluster.is_leader:
            _remove(aside)
        return result[0] if result else None

    def serve(self) -> tf.distribute.Server:
        """Starts the server of a parameter server; it serves until the process ends."""
        value = self.distribution.choice.cluster.tf_config()
        cluster = {
            job: {int(i): host for i, host in hosts.items()}
            if isinstance(hosts, dict)
            else hosts
            for job, hosts in value["cluster"].items()
        }
        return tf.distribute.Server(
            tf.train.ClusterSpec(cluster),
            job_name=value["task"]["type"],
            task_index=value["task"]["index"],
            config=self.distribution.run_config()["session_config"],
        )


def _remove(directory: str | None) -> None:
    if directory is not None:
        shutil.rmtree(directory, ignore_errors=True)


def alone() -> Runner:
    """Returns a Runner for a process by itself, with what devices there are."""
    return Runner(Distribution(ALONE, None), Preemption())
