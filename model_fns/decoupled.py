"""Optimizers that the Keras which Estimators need does not have: AdamW and Lion."""

from __future__ import annotations

from pipeline.compat import tf, tf_keras

_legacy = tf_keras.optimizers.legacy


def _decays(variable: tf.Variable) -> bool:
    """Whether weight decay counts: biases, scales and the like are left alone."""
    return variable.shape.rank >= 2


class AdamW(_legacy.Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019).

    Before Adam's own step, w -= learning_rate * weight_decay * w, for variables of at
    least two dimensions; the whole of them, where a batch uses some rows only.
    """

    def __init__(self, learning_rate, weight_decay: float, name="AdamW", **kwargs):
        super().__init__(learning_rate, name=name, **kwargs)
        self._weight_decay = weight_decay

    def _decayed(self, variable: tf.Variable, apply_state) -> list[tf.Operation]:
        if not self._weight_decay or not _decays(variable):
            return []
        rate = apply_state[(variable.device, variable.dtype.base_dtype)]["lr_t"]
        return [variable.assign_sub(rate * self._weight_decay * variable)]

    def _resource_apply_dense(self, grad, var, apply_state=None):
        with tf.control_dependencies(self._decayed(var, apply_state)):
            return super()._resource_apply_dense(grad, var, apply_state)

    def _resource_apply_sparse(self, grad, var, indices, apply_state=None):
        with tf.control_dependencies(self._decayed(var, apply_state)):
            return super()._resource_apply_sparse(grad, var, indices, apply_state)

    def get_config(self) -> dict:
        return {**super().get_config(), "weight_decay": self._weight_decay}


class Lion(_legacy.Optimizer):
    """Lion (Chen et al. 2023, "Symbolic Discovery of Optimization Algorithms").

    With gradient g and momentum m: w -= learning_rate * (sign(b1 m + (1 - b1) g) +
    weight_decay * w), then m = b2 m + (1 - b2) g. It wants a learning rate some 3 to
    10 times below Adam's. Weight decay is as in `AdamW`.
    """

    def __init__(
        self,
        learning_rate,
        weight_decay: float = 0.0,
        beta_1: float = 0.9,
        beta_2: float = 0.99,
        name="Lion",
        **kwargs,
    ):
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", learning_rate)
        self._weight_decay = weight_decay
        self._beta_1 = beta_1
        self._beta_2 = beta_2

    def _create_slots(self, var_list):
        for variable in var_list:
            self.add_slot(variable, "momentum")

    def _resource_apply_dense(self, grad, var, apply_state=None):
        rate = apply_state[(var.device, var.dtype.base_dtype)]["lr_t"]
        momentum = self.get_slot(var, "momentum")
        step = tf.sign(self._beta_1 * momentum + (1 - self._beta_1) * grad)
        if self._weight_decay and _decays(var):
            step += self._weight_decay * var
        new = self._beta_2 * momentum + (1 - self._beta_2) * grad
        with tf.control_dependencies([step, new]):
            return tf.group(var.assign_sub(rate * step), momentum.assign(new))

    def _resource_apply_sparse(self, grad, var, indices, apply_state=None):
        # The sign of the momentum moves every row, whichever a batch uses.
        dense = tf.scatter_nd(indices[:, tf.newaxis], grad, tf.shape(var))
        return self._resource_apply_dense(dense, var, apply_state)

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "learning_rate": self._serialize_hyperparameter("learning_rate"),
            "weight_decay": self._weight_decay,
            "beta_1": self._beta_1,
            "beta_2": self._beta_2,
        }
