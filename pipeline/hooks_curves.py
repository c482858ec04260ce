"""What a training writes for TensorBoard beside the Estimator's own curves."""

from __future__ import annotations

import os
import resource
import time

from model_fns.step_loop import StepLoop
from pipeline import batches
from pipeline.compat import tf

_v1 = tf.compat.v1
# Fetching a number costs a share of a small model's step.
_SAMPLED_CALLS = 10
_HISTOGRAM_VALUES = 50_000
_MIB = 1 << 20
EXAMPLES = "speed/examples_per_second"
WAITING = "speed/input_wait_share"
MEMORY = "memory/process_mib"


def _memory_mib() -> float:
    """Returns the resident memory of this process."""
    try:
        with open("/proc/self/statm", encoding="ascii") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / _MIB
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / _MIB


def _write(directory: str, step: int, values: dict[str, float]) -> None:
    summary = _v1.Summary(
        value=[
            _v1.Summary.Value(tag=tag, simple_value=value)
            for tag, value in values.items()
        ]
    )
    _v1.summary.FileWriterCache.get(directory).add_summary(summary, step)


class SpeedHook(_v1.train.SessionRunHook):
    """Writes speed, the share of time that steps wait for rows, and memory.

    It stands before hooks that save or evaluate, whose time is no part of the speed.
    The share is of every tenth step's time. It is left out where the rows can't be
    looked at, see `batches.Arrivals`.

    Args:
      directory: The model directory.
      batch_size: Examples in a step.
      every_steps: Steps between points, at multiples of it, or one at the end.
      loop: Which steps a call of the session runs.
      sees_input: Whether the graph is one that `batches.arrivals` is for.
    """

    def __init__(
        self,
        directory: str,
        batch_size: int,
        every_steps: int,
        loop: StepLoop,
        sees_input: bool,
    ):
        self._directory = directory
        self._batch_size = batch_size
        self._every = every_steps
        self._loop = loop
        self._sees_input = sees_input

    def begin(self):
        self._global_step = _v1.train.get_global_step()
        self._arrivals = batches.arrivals() if self._sees_input else None

    def after_create_session(self, session, coord):
        del coord
        self._step = self._last = int(session.run(self._global_step))
        self._calls = 0
        self._has_reported = False
        self._clear()

    def _clear(self) -> None:
        self._seconds = self._sampled_seconds = self._waited = 0.0

    def before_run(self, run_context):
        del run_context
        # The steps of which ProgressHook fetches the loss: each further set of what is
        # fetched makes TensorFlow optimise the graph once more.
        self._is_sample = self._step % _SAMPLED_CALLS == 0
        self._began = time.perf_counter()
        if not self._is_sample:
            return None
        fetched = {"step": self._global_step}
        if self._arrivals is not None:
            fetched["waited"] = self._arrivals.waited
        return _v1.train.SessionRunArgs(fetched)

    def after_run(self, run_context, run_values):
        seconds = time.perf_counter() - self._began
        before, self._step = self._step, self._loop.end_of_call(self._step)
        self._calls += 1
        if self._calls == 1:
            # It also optimises the graph and fills buffers.
            self._last = self._step
            return
        self._seconds += seconds
        if self._is_sample:
            # Other workers count as well.
            self._step = max(self._step, int(run_values.results["step"]))
            self._sampled_seconds += seconds
            self._waited += run_values.results.get("waited", 0.0)
        if self._step // self._every > before // self._every:
            self._report(run_context.session)

    def end(self, session):
        # A point of the few steps since the last one would tell nothing.
        if not self._has_reported:
            self._report(session)

    def _report(self, session) -> None:
        step = int(session.run(self._global_step))
        if step <= self._last or not self._seconds:
            return
        rows = (step - self._last) * self._batch_size
        values = {EXAMPLES: rows / self._seconds, MEMORY: _memory_mib()}
        if self._arrivals is not None and self._sampled_seconds:
            values[WAITING] = min(1.0, max(0.0, self._waited / self._sampled_seconds))
        _write(self._directory, step, values)
        self._step = self._last = step
        self._has_reported = True
        self._clear()


class HistogramsListener(_v1.train.CheckpointSaverListener):
    """Writes a histogram of each trainable variable with each checkpoint.

    Of a large variable it takes values at equal distances. Checkpoints write all
    values, so that these histograms cost little beside.

    Args:
      directory: The model directory.
    """

    def __init__(self, directory: str):
        self._directory = directory

    def begin(self):
        self._is_first = True
        self._summary = None
        made = [
            tf.raw_ops.HistogramSummary(
                tag=f"weights/{variable.op.name}", values=_some_values(variable)
            )
            for variable in _v1.trainable_variables()
            if variable.shape.is_fully_defined()
            and variable.dtype.is_floating
            and "/replica_" not in variable.op.name
        ]
        if made:
            self._summary = tf.raw_ops.MergeSummary(inputs=made)

    def after_save(self, session, global_step_value):
        first, self._is_first = self._is_first, False
        # Where training goes on, the weights at its start were written before.
        if first or self._summary is None:
            return
        writer = _v1.summary.FileWriterCache.get(self._directory)
        writer.add_summary(session.run(self._summary), global_step_value)


def _some_values(variable: tf.Variable) -> tf.Tensor:
    distance = -(-variable.shape.num_elements() // _HISTOGRAM_VALUES)
    return tf.reshape(variable, [-1])[:: max(distance, 1)]
