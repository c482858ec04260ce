"""The only door to TensorFlow, Keras 2 and Estimators.

Everybody imports from here and nobody imports tensorflow, keras or
tensorflow_estimator directly, because the order matters:

    from pipeline.compat import estimator, tf, tf_keras

`estimator` is what tf.estimator was in TensorFlow 2.15, `estimator_v1` what
tf.compat.v1.estimator was; `tf_keras` is the Keras 2 that tf.keras stands for.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import re
import sys
import types

from pipeline.types import UserError

__all__ = ["check_versions", "estimator", "estimator_v1", "tf", "tf_keras"]

_TESTED = ((2, 15, 1), (2, 22, 0))
_TESTED_TEXT = "TensorFlow >=2.15.1,<2.22"
_TENSORFLOW_NAMES = (
    "tensorflow",
    "tensorflow-cpu",
    "tensorflow-intel",
    "tensorflow-macos",
    "tensorflow-cpu-aws",
    "tf-nightly",
    "tf-nightly-cpu",
)
_LEGACY_KERAS = "TF_USE_LEGACY_KERAS"


def check_versions(
    tensorflow: str | None, estimator: str | None, keras2: str | None
) -> None:
    """Checks that the versions fit together.

    Args:
      tensorflow: Version of TensorFlow; None where a package is not installed.
      estimator: Version of tensorflow-estimator.
      keras2: Version of tf-keras; for TensorFlow 2.15, which has Keras 2 as its
        own Keras, the version of keras.

    Raises:
      UserError: They do not; one line says which and what to install.
    """
    if tensorflow is None or not _TESTED[0] <= _numbers(tensorflow) < _TESTED[1]:
        raise UserError(
            f"needs {_TESTED_TEXT}, found {tensorflow or 'none'}:"
            " pip install 'tensorflow>=2.15.1,<2.22'"
        )
    if estimator is None or _numbers(estimator)[:2] != (2, 15):
        raise UserError(
            f"TensorFlow {tensorflow} needs tensorflow-estimator 2.15,"
            f" found {estimator or 'none'}: pip install tensorflow-estimator==2.15.0"
        )
    major, minor = _numbers(tensorflow)[:2]
    package = _keras2_package(tensorflow)
    if keras2 is None or _numbers(keras2)[:2] != (major, minor):
        raise UserError(
            f"TensorFlow {tensorflow} needs {package} {major}.{minor}, found"
            f" {keras2 or 'none'}: pip install '{package}=={major}.{minor}.*'"
        )


def _numbers(version: str) -> tuple[int, ...]:
    """The leading numbers: (2, 21, 0) for 2.21.0, 2.21.0rc1 and 2.21.0.dev5."""
    match = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(n) for n in match.group().split(".")) if match else ()


def _keras2_package(tensorflow: str) -> str:
    return "keras" if _numbers(tensorflow)[:2] < (2, 16) else "tf-keras"


def _installed(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _tensorflow_version() -> str | None:
    """TensorFlow's version, without importing it where that is possible."""
    if "tensorflow" in sys.modules:
        return sys.modules["tensorflow"].__version__
    if importlib.util.find_spec("tensorflow") is None:
        return None
    for name in _TENSORFLOW_NAMES:
        version = _installed(name)
        if version:
            return version
    # A TensorFlow of another name: had it tf-keras, it would be 2.16 or newer.
    if importlib.util.find_spec("tf_keras"):
        os.environ[_LEGACY_KERAS] = "1"
    # Left-overs of an uninstalled TensorFlow can be imported but have no version.
    return getattr(importlib.import_module("tensorflow"), "__version__", None)


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
    version = _tensorflow_version()
    package = _keras2_package(version or "")
    check_versions(version, _installed("tensorflow-estimator"), _installed(package))

    if "tensorflow" in sys.modules and _uses_keras_3(sys.modules["tensorflow"]):
        raise UserError(
            f"TensorFlow {version} is already in use with Keras"
            f" {_installed('keras')}, Estimators need Keras 2: import pipeline.compat"
            f" before using tf.keras, or set {_LEGACY_KERAS}=1 before starting Python"
        )
    if package == "tf-keras":
        os.environ[_LEGACY_KERAS] = "1"
    else:
        # TensorFlow 2.15 would look for tf-keras, though its own Keras is Keras 2.
        os.environ.pop(_LEGACY_KERAS, None)

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

_API = "tensorflow_estimator.python.estimator.api"
estimator = importlib.import_module(f"{_API}._v2.estimator")
estimator_v1 = importlib.import_module(f"{_API}._v1.estimator")
