"""Learning-rate schedules: functions of the number of updates so far."""

from __future__ import annotations

import math

from model_fns import hparams
from pipeline.compat import tf, tf_keras


class Schedule(tf_keras.optimizers.schedules.LearningRateSchedule):
    """The rate that the settings ask for.

    With n the updates so far, r `learning_rate` and w `warmup_steps`, the rate is
    r * min(1, (n + 1) / w) * decay(n), where decay is 1 (constant);
    decay_rate^(n / decay_steps) (exponential); the factor of the last boundary that n
    has reached, 1 before the first (piecewise); or, with f `final_rate` and
    p = min(1, max(0, n - w) / decay_steps), f + (1 - f) (1 + cos(pi p)) / 2 (cosine,
    Loshchilov and Hutter 2017, without restarts).

    Nothing of it is in a checkpoint, so training that goes on takes the settings of
    the day.
    """

    def __init__(self, settings: hparams.Optimization):
        super().__init__()
        self._settings = settings

    def __call__(self, step: tf.Tensor) -> tf.Tensor:
        """Returns the rate, a float32 scalar, after so many updates."""
        settings = self._settings
        updates = tf.cast(step, tf.float32)
        rate = settings.learning_rate * self._decay(updates)
        if settings.warmup_steps:
            rate *= tf.minimum(1.0, (updates + 1) / settings.warmup_steps)
        return rate

    def _decay(self, updates: tf.Tensor) -> tf.Tensor:
        settings = self._settings
        if settings.schedule == "exponential":
            return tf.pow(settings.decay_rate, updates / settings.decay_steps)
        if settings.schedule == "piecewise":
            reached = tf.searchsorted(
                tf.constant(settings.boundaries, tf.float32),
                updates[tf.newaxis],
                side="right",
            )[0]
            return tf.gather(tf.constant([1.0, *settings.factors]), reached)
        if settings.schedule == "cosine":
            after = tf.maximum(0.0, updates - settings.warmup_steps)
            part = tf.minimum(1.0, after / settings.decay_steps)
            wave = (1 + tf.cos(math.pi * part)) / 2
            return settings.final_rate + (1 - settings.final_rate) * wave
        return tf.constant(1.0)

    def get_config(self) -> dict:
        return {"settings": self._settings}
