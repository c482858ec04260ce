"""Stand-in for tf.data.experimental.CheckpointInputPipelineHook, gone since 2.16.

It writes what TensorFlow's wrote (`input.ckpt-*` and `checkpoint_input` beside the
model's checkpoints), so either goes on from the other's files.
"""

from __future__ import annotations

from typing import Any

from tensorflow.python.checkpoint import checkpoint_management
from tensorflow.python.data.experimental.ops import iterator_ops as experimental
from tensorflow.python.data.ops import iterator_ops
from tensorflow.python.framework import ops
from tensorflow.python.training import (
    basic_session_run_hooks,
    saver,
    session_run_hook,
)


class CheckpointInputPipelineHook(session_run_hook.SessionRunHook):
    """Saves and restores where the input of a training run is.

    Args:
      estimator: The Estimator that is trained; its model_dir and its intervals
        between checkpoints are used.
      external_state_policy: What to do where the input depends on a state of its
        own, e.g. a random generator's: "fail" (the default), "warn" or "ignore".
    """

    def __init__(self, estimator: Any, external_state_policy: str | None = None):
        config = estimator.config
        name = "input"
        if config.num_worker_replicas > 1:
            name += f"_{config.task_type}_{config.task_id}"
        self._policy = experimental._convert_external_state_policy_to_enum(
            external_state_policy or "fail"
        )
        self._list_of_files = f"checkpoint_{name}"
        # Not a subclass of it: an Estimator that sees one adds none for the model.
        self._saver_hook = basic_session_run_hooks.CheckpointSaverHook(
            estimator.model_dir,
            save_secs=config.save_checkpoints_secs,
            save_steps=config.save_checkpoints_steps,
            checkpoint_basename=f"{name}.ckpt",
        )
        self._is_new_session = True

    def begin(self) -> None:
        states = [
            iterator_ops._IteratorSaveable(
                iterator, iterator.name, external_state_policy=self._policy
            )
            for iterator in ops.get_collection(iterator_ops.GLOBAL_ITERATORS)
        ]
        self._saver_hook._saver = _Saver(states, self._list_of_files)
        self._saver_hook.begin()

    def after_create_session(self, session: Any, coord: Any) -> None:
        self._is_new_session = True

    def before_run(self, run_context: Any) -> Any:
        # Not earlier: the Estimator's own hook starts the iterator after a session
        # was created, and would undo what is restored.
        if self._is_new_session:
            self._restore_or_save(run_context.session)
            self._is_new_session = False
        return self._saver_hook.before_run(run_context)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self._saver_hook.after_run(run_context, run_values)

    def end(self, session: Any) -> None:
        self._saver_hook.end(session)

    def _restore_or_save(self, session: Any) -> None:
        path = checkpoint_management.latest_checkpoint(
            self._saver_hook._checkpoint_dir, self._list_of_files
        )
        if path:
            self._saver_hook._get_saver().restore(session, path)
            return
        step = session.run(self._saver_hook._global_step_tensor)
        self._saver_hook._save(session, step)
        self._saver_hook._timer.update_last_triggered_step(step)


class _Saver(saver.Saver):
    """Keeps its list of files apart from the one of the model's checkpoints."""

    def __init__(self, states: list[Any], list_of_files: str):
        super().__init__(states, sharded=True)
        self._list_of_files = list_of_files

    def save(self, sess: Any, save_path: str, *args: Any, **kwargs: Any) -> str | None:
        kwargs.setdefault("latest_filename", self._list_of_files)
        return super().save(sess, save_path, *args, **kwargs)
