"""What each task of a cluster does, from its start to its end.

The leader trains as a single machine does, and says in cluster.json how far it is. The
others watch that file and the leader's address: they end when it says so, and with an
exit code of their own when it is gone for too long.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

from pipeline import train
from pipeline.cluster import evaluating, peers, running, session, strategies
from pipeline.cluster.choice import Choice
from pipeline.cluster.config import EVALUATOR, PS, describe
from pipeline.cluster.preemption import Preemption
from pipeline.cluster.running import Runner
from pipeline.cluster.session import Session, State
from pipeline.console import Console
from pipeline.dataset import Dataset
from pipeline.flags.training import TrainingFlags
from pipeline.train import TrainResult
from pipeline.types import ExitCode, UserError

_POLL_SECONDS = 0.5


class _Leader:
    """What a task that does not lead knows of the leader."""

    def __init__(self, directory: str, choice: Choice, is_complete: Callable):
        settings = choice.settings
        self._directory = directory
        self._choice = choice
        self._is_complete = is_complete
        self._started = False
        self.watch = peers.Watch(
            peers.watched_by(choice.cluster),
            settings.wait_seconds,
            settings.lost_seconds,
        )

    def _said(self) -> Session | None:
        return session.read(self._directory) if self._started else None

    def is_over(self) -> bool:
        """Whether training has ended well."""
        said = self._said()
        if said is not None and said.state is State.ENDED:
            return True
        return not self._started and self._is_complete()

    def find_failure(self) -> str | None:
        said = self._said()
        if said is None or said.state is not State.FAILED:
            return None
        return f"the {self._choice.cluster.leader} failed: {said.reason}"

    def await_start(self) -> int | None:
        """Waits until training begins.

        Before its address can be connected to, the leader removes what an earlier
        session left, so whatever is read then is of this one.

        Returns:
          The step at which training goes on, or None where nothing is left to do.
        """
        began = time.monotonic()
        leader = self._choice.cluster.leader
        while True:
            # The order matters: first it is seen, then it is read.
            seen = self.watch.has_seen(leader)
            said = session.read(self._directory) if seen else None
            if said is not None and said.state is State.TRAINING:
                self._started = True
                return said.start_step
            if self._is_complete():
                return None
            if said is not None and said.state is State.FAILED:
                self._started = True
                raise UserError(str(self.find_failure()), ExitCode.CLUSTER_FAILED)
            if time.monotonic() - began > self._choice.settings.wait_seconds:
                raise UserError(
                    f"cluster: the {leader} did not begin to train within"
                    f" {self._choice.settings.wait_seconds} seconds (--wait_seconds)",
                    ExitCode.CLUSTER_FAILED,
                )
            time.sleep(_POLL_SECONDS)

    def await_end(self) -> None:
        while not self.is_over():
            failure = self.find_failure()
            if failure is not None:
                raise UserError(f"cluster: {failure}", ExitCode.CLUSTER_FAILED)
            time.sleep(_POLL_SECONDS)


def _lead(
    choice: Choice,
    preemption: Preemption,
    directory: str,
    run: Callable[[Runner, Callable[[int], None]], TrainResult],
) -> TrainResult:
    cluster, settings = choice.cluster, choice.settings
    session.clear(directory)
    over = False

    def say_failed(reason: str) -> None:
        session.write(directory, Session(State.FAILED, reason=reason))

    with contextlib.ExitStack() as stack:
        if not cluster.tf_config() and cluster.task in cluster.addresses:
            # Alone but for an evaluator: TensorFlow opens no port then.
            stack.enter_context(peers.listening(cluster.addresses[cluster.task]))
        watch = peers.Watch(
            peers.watched_by(cluster), settings.wait_seconds, settings.lost_seconds
        )
        stack.enter_context(peers.watched(watch, lambda: over, on_loss=say_failed))
        runner = Runner(strategies.make(choice), preemption)
        try:
            result = run(
                runner,
                lambda step: session.write(directory, Session(State.TRAINING, step)),
            )
        except UserError as error:
            if error.exit_code is not ExitCode.LOCKED:
                say_failed(str(error))
            raise
        except BaseException as error:
            say_failed(repr(error))
            raise
        over = True
        session.write(directory, Session(State.ENDED))
    return result


def _follow(
    choice: Choice,
    preemption: Preemption,
    leader: _Leader,
    make_job: Callable[[Runner, int], train.Job],
    console: Console,
) -> None:
    task = choice.cluster.task
    with peers.watched(leader.watch, leader.is_over, leader.find_failure):
        runner = Runner(strategies.make(choice), preemption)
        if task.type == PS:
            runner.serve()
        start_step = leader.await_start()
        if start_step is None:
            return
        if task.type == EVALUATOR:
            job = make_job(runner, start_step)
            evaluating.follow(
                job.local.model_dir,
                lambda path, last: running.evaluate(
                    job.local, job.evaluation, path, last
                ),
                leader.is_over,
            )
        elif task.type != PS:
            job = make_job(runner, start_step)
            runner.train_and_evaluate(job.trained, job.local, job.train, job.evaluation)
        # Others may still need this task's server.
        leader.await_end()
    console.progress(f"cluster: {task} ends, training is complete")


def run(
    choice: Choice,
    directory: str,
    settings: TrainingFlags,
    dataset: Dataset,
    flagfile: str,
    console: Console,
) -> TrainResult | None:
    """Trains alone, or does this task's part of a training.

    Args:
      choice: The cluster and the strategy.
      directory: The model directory.
      settings: The training flags.
      dataset: What to train on.
      flagfile: Text of a flagfile that repeats this run.
      console: Where to print.

    Returns:
      What train did; None in a task that does not lead.

    Raises:
      UserError: As of `train.run`; or another task was lost or failed
        (CLUSTER_FAILED), or SIGTERM came (PREEMPTED).
    """
    preemption = Preemption()
    arguments = (directory, settings, dataset)

    def is_complete() -> bool:
        return train.find_finished(*arguments) is not None

    with preemption.handled():
        if not choice.cluster.is_cluster:
            runner = Runner(strategies.make(choice), preemption)
            return train.run(*arguments, flagfile, console, runner)
        console.progress(f"cluster: {describe(choice.cluster)}, {choice.strategy}")
        if not choice.cluster.is_leader:
            leader = _Leader(directory, choice, is_complete)
            if not is_complete():
                _follow(
                    choice,
                    preemption,
                    leader,
                    lambda runner, step: train.make_job(
                        *arguments, step, runner, console
                    ),
                    console,
                )
            return None
        if is_complete():
            return train.run(*arguments, flagfile, console)
        return _lead(
            choice,
            preemption,
            directory,
            lambda runner, prepared: train.run(
                *arguments, flagfile, console, runner, prepared
            ),
        )
