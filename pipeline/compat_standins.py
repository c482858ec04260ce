"""Stand-ins for the parts of TensorFlow that tensorflow-estimator 2.15 misses.

Import this only after TensorFlow and call `install`; `pipeline.compat` does both.
What a TensorFlow still has is left alone, so on 2.15 nothing is changed.
"""

from __future__ import annotations

import functools
import importlib
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Callable
from typing import Any

from tensorflow.python.util import tf_export

from pipeline.types import UserError


class RemovedFromTensorFlowError(UserError, AttributeError):
    """Something was used that TensorFlow removed and nothing here replaces.

    It is an AttributeError too, so that `hasattr` on a stand-in says False.
    """


def install() -> tuple[str, ...]:
    """Supplies what is missing; returns the names of what this call supplied."""
    supplied = []
    if not hasattr(tf_export, "ESTIMATOR_API_NAME"):
        _add_export_tables()
        supplied.append(f"{tf_export.__name__}.ESTIMATOR_API_NAME")
    for name, make in _MODULES.items():
        if importlib.util.find_spec(name) is None:
            _add_module(name, make(name))
            supplied.append(name)
    return tuple(supplied)


# Removed in 2.16 with tf.estimator: the names under which its symbols are exported.
def _add_export_tables() -> None:
    row = type(tf_export.API_ATTRS[tf_export.TENSORFLOW_API_NAME])
    tf_export.API_ATTRS["estimator"] = row(
        "_estimator_api_names", "_estimator_api_constants"
    )
    tf_export.API_ATTRS_V1["estimator"] = row(
        "_estimator_api_names_v1", "_estimator_api_constants_v1"
    )
    tf_export.ESTIMATOR_API_NAME = "estimator"


def _add_module(name: str, module: types.ModuleType) -> None:
    sys.modules[name] = module
    parent, _, child = name.rpartition(".")
    setattr(importlib.import_module(parent), child, module)


def _estimator_training(name: str) -> types.ModuleType:
    del name  # It is a module of ours under TensorFlow's name.
    return importlib.import_module("pipeline.compat_estimator_training")


def _removed_module(
    name: str, what: str, classes: tuple[str, ...] = ()
) -> types.ModuleType:
    """A module that can be imported but fails when it is used.

    Args:
      name: Its name.
      what: What it was for, for the error message.
      classes: Names of classes that must exist; making an instance fails.
    """

    def error(attribute: str) -> RemovedFromTensorFlowError:
        return RemovedFromTensorFlowError(
            f"{what} ({attribute}) cannot be used: TensorFlow 2.16 removed {name}"
            " together with tf.estimator; train on CPU or GPU, or use TensorFlow 2.15"
        )

    def missing_attribute(attribute: str) -> Any:
        # Python itself asks for these of every module, e.g. inspect for __file__.
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        raise error(attribute)

    def removed_class(class_name: str) -> type:
        def init(self, *unused_args, **unused_kwargs):
            raise error(class_name)

        return type(class_name, (), {"__init__": init, "__module__": name})

    # With a spec, so that a second find_spec finds the module.
    spec = importlib.machinery.ModuleSpec(name, loader=None)
    module = importlib.util.module_from_spec(spec)
    vars(module).update({c: removed_class(c) for c in classes})
    vars(module)["__getattr__"] = missing_attribute
    return module


_MODULES: dict[str, Callable[[str], types.ModuleType]] = {
    # Removed in 2.16 with tf.estimator: how Estimators run under a strategy.
    "tensorflow.python.distribute.estimator_training": _estimator_training,
    # Removed in 2.16 with tf.estimator: the embeddings of TPUEstimator.
    "tensorflow.python.tpu.tpu_embedding": functools.partial(
        _removed_module,
        what="embedding on a TPU",
        # Taken when tensorflow-estimator is imported, for isinstance checks.
        classes=(
            "AdagradParameters",
            "AdamParameters",
            "FtrlParameters",
            "MomentumParameters",
            "ProximalAdagradParameters",
            "RMSPropParameters",
            "StochasticGradientDescentParameters",
        ),
    ),
    # Removed in 2.16 with tf.estimator: the gradients of those embeddings.
    "tensorflow.python.tpu.tpu_embedding_gradient": functools.partial(
        _removed_module, what="embedding on a TPU"
    ),
    # Removed in 2.16 with tf.estimator: TPUEstimator's watch over TPU workers.
    "tensorflow.python.tpu.session_support": functools.partial(
        _removed_module, what="training on a TPU"
    ),
}
