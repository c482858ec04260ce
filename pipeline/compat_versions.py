"""Which versions of TensorFlow, Keras 2 and Estimators fit; imports none of them."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import re
import sys

from pipeline.types import UserError

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
LEGACY_KERAS = "TF_USE_LEGACY_KERAS"


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


def installed(package: str) -> str | None:
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
        version = installed(name)
        if version:
            return version
    # A TensorFlow of another name: had it tf-keras, it would be 2.16 or newer.
    if importlib.util.find_spec("tf_keras"):
        os.environ[LEGACY_KERAS] = "1"
    # Left-overs of an uninstalled TensorFlow can be imported but have no version.
    return getattr(importlib.import_module("tensorflow"), "__version__", None)


def check_installed() -> tuple[str, str]:
    """Checks the versions that are installed.

    Returns:
      TensorFlow's version, and the package that Keras 2 is beside it.

    Raises:
      UserError: As `check_versions`.
    """
    version = _tensorflow_version()
    package = _keras2_package(version or "")
    check_versions(version, installed("tensorflow-estimator"), installed(package))
    return version or "", package


def choose_keras_2() -> None:
    """Lets TensorFlow, where it is imported from now on, take Keras 2."""
    if _keras2_package(_tensorflow_version() or "") == "tf-keras":
        os.environ[LEGACY_KERAS] = "1"
    else:
        # TensorFlow 2.15 would look for tf-keras, though its own Keras is Keras 2.
        os.environ.pop(LEGACY_KERAS, None)
