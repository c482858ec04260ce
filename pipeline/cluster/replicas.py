"""What Estimators get wrong over several replicas, put right."""

from __future__ import annotations

import re

from pipeline.compat import estimator, tf

_v1 = tf.compat.v1
_COPY = re.compile(r"/replica_[0-9]+$")


def with_mean_loss(made: estimator.Estimator, replicas: int) -> estimator.Estimator:
    """Returns an Estimator whose reported loss is the mean over the replicas.

    An Estimator adds the replicas' losses, expecting that each was divided by their
    number, as heads do for the gradients but not for what they report.
    """
    if replicas == 1:
        return made

    def model_fn(features, labels, mode, config):
        spec = made.model_fn(features, labels, mode, config)
        if mode != estimator.ModeKeys.TRAIN:
            return spec
        return spec._replace(loss=spec.loss / replicas)

    return estimator.Estimator(model_fn, config=made.config)


class SaveOneReplica(_v1.train.SessionRunHook):
    """Keeps the replicas' own copies of optimizer slots out of checkpoints.

    Each slot is saved and restored as one variable that sets all copies. TensorFlow
    would save the copies as well, so that a checkpoint could only be used by as many
    replicas as wrote it; under central storage it fails, since a slot and its copy
    have one name.
    """

    def begin(self):
        found = _v1.get_collection_ref(_v1.GraphKeys.GLOBAL_VARIABLES)
        # The variable that stands for all copies comes after them.
        whole = {variable.name.split(":")[0]: variable for variable in found}
        found[:] = [
            variable
            for name, variable in whole.items()
            if _COPY.sub("", name) == name or _COPY.sub("", name) not in whole
        ]
