"""What each task of a cluster does, from its start to its end.

The leader trains as a single machine does, and says in cluster.json how far it is. The
others watch that file and the leader's address: they end when it says so, and with an
exit code of their own when it is gone for too long.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from pipeline import after_evaluation, checkpoints, evaluations
from pipeline.cluster import evaluating, peers, session, strategies
from pipeline.cluster.choice import Choice
from pipeline.cluster.config import EVALUATOR, PS, ClusterConfig, describe
from pipeline.cluster.preemption import Ended, Preemption
from pipeline.cluster.running import Job, Runner
from pipeline.cluster.session import Session, State
from pipeline.console import Console
from pipeline.types import ExitCode, UserError

Lead = Callable[[Runner, Callable[[int], None]], Any]
MakeJob = Callable[[Runner, int], Job]
Explained = Callable[[], contextlib.AbstractContextManager[None]]
_POLL_SECONDS = 0.5
_OVER_SECONDS = 10


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
                raise UserError(str(self.find_failure()), ExitCode.TRY_AGAIN)
            if time.monotonic() - began > self._choice.settings.wait_seconds:
                raise UserError(
                    f"cluster: the {leader} did not begin to train within"
                    f" {self._choice.settings.wait_seconds} seconds (--wait_seconds)",
                    ExitCode.TRY_AGAIN,
                )
            time.sleep(_POLL_SECONDS)

    def await_failure(self) -> None:
        """Waits until the leader has ended, after SIGTERM; not for ever."""
        end = time.monotonic() + _OVER_SECONDS
        while time.monotonic() < end:
            if self.find_failure() is not None or self.is_over():
                return
            time.sleep(_POLL_SECONDS)

    def await_end(self) -> None:
        while not self.is_over():
            failure = self.find_failure()
            if failure is not None:
                raise UserError(f"cluster: {failure}", ExitCode.TRY_AGAIN)
            time.sleep(_POLL_SECONDS)


def _lead(
    choice: Choice,
    preemption: Preemption,
    directory: str,
    lead: Lead,
) -> Any:
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
        preemption.install()
        try:
            result = lead(
                runner,
                lambda step: session.write(directory, Session(State.TRAINING, step)),
            )
        except Ended as ended:
            say_failed(str(ended))
            raise
        except UserError as error:
            if error.exit_code is not ExitCode.LOCKED:
                say_failed(str(error))
            raise
        except BaseException as error:
            first_line = f"{error}\n".split("\n", 1)[0]
            say_failed(f"{type(error).__name__}: {first_line}")
            raise
        over = True
        session.write(directory, Session(State.ENDED))
    return result


def _evaluate(job: Job, path: str, is_final: bool) -> None:
    """Evaluates a checkpoint in the evaluator, unless the leader has done so."""
    local, spec = job.local, job.evaluation
    step = int(path.rsplit("-", 1)[1])
    if any(e.global_step == step for e in evaluations.read(local.model_dir)):
        return
    with checkpoints.pinned(lambda: path, local.model_dir) as pinned:
        metrics = after_evaluation.evaluate(local, spec, pinned)
        after_evaluation.export(local, spec, pinned, metrics, is_final)


def _serve(preemption: Preemption, leader: _Leader) -> None:
    """Waits in a parameter server, also after SIGTERM: the leader needs it to save."""
    preemption.begin_session()
    try:
        if leader.await_start() is not None:
            leader.await_end()
    except UserError:
        if preemption.requested.is_set():
            preemption.end()
        raise
    finally:
        preemption.end_session()


def _train(runner: Runner, job: Job, leader: _Leader) -> None:
    """Trains in a worker."""
    try:
        runner.train_and_evaluate(job)
    except UserError as error:
        if (
            error.exit_code is ExitCode.PREEMPTED
            and runner.distribution.choice.is_in_step
        ):
            # The leader may be about to get this worker's part of what both save.
            leader.await_failure()
        raise


def _follow(
    choice: Choice,
    preemption: Preemption,
    leader: _Leader,
    make_job: MakeJob,
    explained: Explained,
    console: Console,
) -> None:
    task = choice.cluster.task
    # The evaluator may take long over the last checkpoint; a worker has nothing to add.
    over_seconds = math.inf if task.type == EVALUATOR else _OVER_SECONDS

    def code() -> ExitCode:
        # The leader's end is then no failure; without it a step never comes to an end.
        asked = preemption.requested.is_set()
        return ExitCode.PREEMPTED if asked else ExitCode.TRY_AGAIN

    with peers.watched(
        leader.watch,
        leader.is_over,
        leader.find_failure,
        over_seconds=over_seconds,
        code=code,
    ):
        runner = Runner(strategies.make(choice), preemption)
        preemption.install()
        if task.type == PS:
            runner.serve()
            _serve(preemption, leader)
            return
        start_step = leader.await_start()
        if start_step is None:
            return
        job = make_job(runner, start_step)
        with explained():
            if task.type == EVALUATOR:
                evaluating.follow(
                    job.local.model_dir,
                    lambda path, last: _evaluate(job, path, last),
                    leader.is_over,
                )
            else:
                _train(runner, job, leader)
        # Others may still need this task's server.
        leader.await_end()
    console.progress(f"cluster: {task} ends, training is complete")


@contextlib.contextmanager
def _failures_leave(choice: Choice) -> Iterator[None]:
    """Ends the process where the body fails in a cluster."""
    try:
        yield
    except UserError as error:
        if not choice.cluster.is_cluster:
            raise
        peers.leave(f"error: {error}", error.exit_code)
    except Exception:
        if not choice.cluster.is_cluster:
            raise
        peers.leave(traceback.format_exc(), ExitCode.BUG)


def run(
    choice: Choice,
    directory: str,
    is_complete: Callable[[], bool],
    lead: Lead,
    make_job: MakeJob,
    explained: Explained,
    console: Console,
) -> Any:
    """Trains alone, or does this task's part of a training.

    Args:
      choice: The cluster and the strategy.
      directory: The model directory.
      is_complete: Whether there is nothing left to do.
      lead: Trains, from the preparation of the directory to the results in it; what
        it is given second is to be called with the first step once the directory is
        ready. Runs in the leader alone.
      make_job: Builds what another task trains or evaluates, given the first step.
      explained: In its body, another task's errors become lines for the user.
      console: Where to print.

    Returns:
      What `lead` returned; None in a task that does not lead.

    Where it fails in a cluster, the process ends: with TRY_AGAIN if another task
    was lost or failed, with PREEMPTED after SIGTERM.

    Raises:
      UserError: As of `lead`, alone; or SIGTERM came (PREEMPTED).
    """
    preemption = Preemption()
    with _failures_leave(choice), preemption.handled():
        if choice.cluster.is_cluster:
            console.progress(f"cluster: {describe(choice.cluster)}, {choice.strategy}")
        if not choice.cluster.is_leader:
            if not is_complete():
                leader = _Leader(directory, choice, is_complete)
                _follow(choice, preemption, leader, make_job, explained, console)
            return None
        if choice.cluster.is_cluster and not is_complete():
            return _lead(choice, preemption, directory, lead)
        alone = choice
        if choice.cluster.is_cluster:
            # Nothing is left to do, so nobody needs to be waited for.
            alone = dataclasses.replace(
                choice, cluster=ClusterConfig(), strategy="none"
            )
        runner = Runner(strategies.make(alone), preemption)
        return lead(runner, lambda start_step: None)
