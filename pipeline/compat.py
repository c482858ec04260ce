"""The only door to TensorFlow, Keras 2 and Estimators.

Everybody imports from here and nobody imports tensorflow, keras or
tensorflow_estimator directly, because the order matters:

    from pipeline.compat import estimator, tf, tf_keras

`estimator` is what tf.estimator was in TensorFlow 2.15, `estimator_v1` what
tf.compat.v1.estimator was; `tf_keras` is the Keras 2 that tf.keras stands for.
"""

from __future__ import annotations

import importlib
import os
import sys
import types

from pipeline import compat_hooks
from pipeline.compat_versions import (
    LEGACY_KERAS,
    check_installed,
    check_versions,
    choose_keras_2,
    installed,
)
from pipeline.types import UserError

__all__ = ["check_versions", "estimator", "estimator_v1", "tf", "tf_keras"]


def _uses_keras_3(tensorflow: types.ModuleType) -> bool:
    """Whether some lazily loaded part of TensorFlow has become Keras 3 already.

    Importing TensorFlow does not yet decide between Keras 2 and 3; the first use of
    tf.keras, tf.losses and the like does, each for itself. `vars`, since looking at
    an attribute of one that is undecided would make it decide.
    """
    from_keras_3 = f"{os.sep}_tf_keras{os.sep}"
    return any(
        from_keras_3 in str(vars(part).get("__file__"))
        for namespace in (tensorflow, tensorflow.compat.v1, tensorflow.compat.v2)
        for part in list(vars(namespace).values())
        if isinstance(part, types.ModuleType)
    )


def _load() -> tuple[types.ModuleType, types.ModuleType]:
    """Checks versions, then imports TensorFlow with Keras 2 in force."""
    version, package = check_installed()
    if "tensorflow" in sys.modules and _uses_keras_3(sys.modules["tensorflow"]):
        raise UserError(
            f"TensorFlow {version} is already in use with Keras"
            f" {installed('keras')}, Estimators need Keras 2: import pipeline.compat"
            f" before using tf.keras, or set {LEGACY_KERAS}=1 before starting Python"
        )
    choose_keras_2()
    tensorflow = importlib.import_module("tensorflow")
    keras2 = importlib.import_module(package.replace("-", "_"))
    if tensorflow.keras.Model is not keras2.Model:
        raise UserError(
            f"TensorFlow {version} is already in use with another Keras than"
            f" {package} {keras2.__version__}: import pipeline.compat first"
        )
    # Where TensorFlow was imported before the variable was set, the statement
    # `import tensorflow.keras` would still find Keras 3.
    directory = os.path.join(os.path.dirname(keras2.__file__), "api", "_v2")
    if directory not in tensorflow.__path__:
        tensorflow.__path__.insert(0, directory)
    return tensorflow, keras2


tf, tf_keras = _load()

# Imports TensorFlow, hence not at the top.
importlib.import_module("pipeline.compat_standins").install()
compat_hooks.install()

_API = "tensorflow_estimator.python.estimator.api"
estimator = importlib.import_module(f"{_API}._v2.estimator")
estimator_v1 = importlib.import_module(f"{_API}._v1.estimator")
