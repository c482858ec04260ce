"""Packaging of the training pipeline."""

from __future__ import annotations

import os
import pathlib
import re

import setuptools

ROOT = pathlib.Path(__file__).resolve().parent

# TensorFlow 2.16 made Keras 3 its Keras and dropped tf.estimator, so beside today's
# TensorFlow the pipeline needs tf-keras, which is Keras 2. TensorFlow 2.15 has Keras 2
# inside and needs no tf-keras. A requirement can't depend on another package's
# version, and an extra can only add, so the older stack is chosen by this environment
# variable when the project is installed; what is not set means today's TensorFlow.
TENSORFLOW_VARIABLE = "ESTIMATOR_PIPELINE_TENSORFLOW"

# Only the releases that the tests run under. TensorFlow, TensorBoard and tf-keras
# break things in minor releases, so each has an upper bound.
TENSORFLOW_STACKS = {
    "2.21": [
        "tensorflow>=2.21,<2.22",
        "tensorboard>=2.21,<2.22",
        "tf-keras>=2.21,<2.22",
    ],
    "2.15": [
        "tensorflow>=2.15.1,<2.16",
        "tensorboard>=2.15.2,<2.16",
        # TensorBoard 2.15 imports pkg_resources, which setuptools 82 removed.
        "setuptools<82",
        # Later ones need a newer protobuf than TensorFlow 2.15 allows.
        "tensorflow-metadata<1.18",
    ],
}

# Whatever the code imports, even what the others would bring along.
REQUIREMENTS = [
    "absl-py>=2.0",
    "apache-beam>=2.77,<3",
    "numpy>=1.26,<3",
    "protobuf>=4.25",
    "pyarrow>=16",
    "PyYAML>=6.0",
    # The store of lineage. 2.1 is to change the default of several things.
    "SQLAlchemy>=2.0.36,<2.1",
    # The last release there will be.
    "tensorflow-estimator==2.15.0",
    "tensorflow-datasets>=4.9.7,<5",
    "tensorflow-metadata>=1.15,<2",
]

TEST_REQUIREMENTS = [
    "hypothesis>=6.100",
    # What `make bench` compares the tabular models with.
    "lightgbm>=4.5",
    # Input functions take its frames, but don't need it.
    "pandas>=2.0",
    "pytest>=8.2",
    # Two test processes at a time: TensorFlow's small graphs keep one core busy.
    "pytest-xdist>=3.5",
    "ruff>=0.9",
]

# What an export to another format needs, and the local server. The tests run with newer
# releases than the lower bounds. The formats' packages break things in minor releases,
# so most have an upper bound.
EXTRAS = {
    "litert": ["ai-edge-litert>=2.1,<3"],
    "onnx": ["tf2onnx>=1.17,<2", "onnxruntime>=1.20,<2"],
    "openvino": ["openvino>=2025.0"],
    "plots": ["matplotlib>=3.8"],
    "serve": ["starlette>=0.46,<2", "uvicorn>=0.34,<1"],
    "tune": ["optuna>=4.0,<6"],
}
# tf2onnx's onnx must fit TensorFlow's ml-dtypes.
ONNX_OF_STACK = {"2.21": ["onnx>=1.19"], "2.15": ["onnx>=1.17,<1.19"]}
# The warm-up requests are compared with the classes of this package.
SERVING_API_OF_STACK = {
    "2.21": ["tensorflow-serving-api>=2.21,<2.22"],
    "2.15": ["tensorflow-serving-api>=2.15.1,<2.16"],
}

PACKAGES = ["pipeline", "input_fns", "model_fns", "export"]


def read_version() -> str:
    """Returns the version that the pipeline package states, without importing it."""
    source = (ROOT / "pipeline" / "__init__.py").read_text(encoding="utf-8")
    match = re.search(r'^__version__ = "([^"]+)"$', source, re.MULTILINE)
    if match is None:
        raise ValueError("pipeline/__init__.py states no __version__.")
    return match.group(1)


def tensorflow_stack() -> list[str]:
    """Returns the requirements of the TensorFlow release that was asked for."""
    release = os.environ.get(TENSORFLOW_VARIABLE) or "2.21"
    if release not in TENSORFLOW_STACKS:
        known = ", ".join(sorted(TENSORFLOW_STACKS))
        raise ValueError(f"{TENSORFLOW_VARIABLE} is {release!r}, not one of {known}.")
    return TENSORFLOW_STACKS[release]


def extras() -> dict[str, list[str]]:
    """Returns the extras; tests need all of them."""
    release = os.environ.get(TENSORFLOW_VARIABLE) or "2.21"
    optional = {**EXTRAS, "onnx": EXTRAS["onnx"] + ONNX_OF_STACK[release]}
    everything = [package for packages in optional.values() for package in packages]
    tests = TEST_REQUIREMENTS + everything + SERVING_API_OF_STACK[release]
    return {**optional, "test": tests, "dev": tests}


def find_packages() -> list[str]:
    """Returns the project's packages with all that is inside them."""
    inside = [f"{package}.*" for package in PACKAGES]
    return setuptools.find_packages(str(ROOT), include=PACKAGES + inside)


setuptools.setup(
    name="estimator-pipeline",
    version=read_version(),
    description="The stages of an Estimator training pipeline and its command line.",
    license="Apache-2.0",
    license_files=["LICENSE"],
    packages=find_packages(),
    python_requires=">=3.10,<3.14",
    install_requires=REQUIREMENTS + tensorflow_stack(),
    extras_require=extras(),
    entry_points={
        "console_scripts": ["estimator-pipeline = pipeline.app:console_main"],
    },
)
