"""Where what Estimator-era code takes from TensorFlow's inside is today.

Data only, with `compat_moved_names` and `compat_contrib`: `compat_hooks` acts on it and
docs/existing.md shows it. Each row was found
by comparing the Python files of TensorFlow's releases 1.15 to 2.21; `gone` is the first
that has the name no more.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Names:
    """Names of a module that are in another module now.

    Attributes:
      module: Where they were.
      gone: The first release without them, for example "2.13".
      target: Where they are now.
      renamed: Their old names with their new ones.
    """

    module: str
    gone: str
    target: str
    renamed: tuple[tuple[str, str], ...]


@dataclasses.dataclass(frozen=True)
class Module:
    """A module, with all below it, that is elsewhere now.

    Attributes:
      module: What it was called.
      gone: The first release without it.
      target: What it is called now.
    """

    module: str
    gone: str
    target: str


@dataclasses.dataclass(frozen=True)
class Removed:
    """A module or name that has no successor.

    Attributes:
      name: What it was called; for a module, all below it as well.
      gone: The first release without it.
      instead: What to do, as the end of a sentence.
    """

    name: str
    gone: str
    instead: str


INSIDE = "tensorflow.python."
_ESTIMATOR = "tensorflow_estimator.python.estimator"


def names(module: str, gone: str, target: str, words: str) -> Names:
    """A row from words such as "stack unstack is_sequence=is_nested"."""
    pairs = (word.partition("=") for word in words.split())
    return Names(
        module, gone, target, tuple((old, new or old) for old, _, new in pairs)
    )


def inside(module: str, gone: str, target: str, words: str) -> Names:
    """The same within tensorflow.python."""
    return names(INSIDE + module, gone, INSIDE + target, words)


def _module(module: str, gone: str, target: str) -> Module:
    return Module(INSIDE + module, gone, INSIDE + target)


def _estimator(module: str, gone: str, target: str) -> Module:
    return Module(INSIDE + module, gone, f"{_ESTIMATOR}.{target}")


ESTIMATORS: tuple[Module, ...] = (
    Module("tensorflow.estimator", "2.16", f"{_ESTIMATOR}.api._v2.estimator"),
    Module("tensorflow.compat.v2.estimator", "2.16", f"{_ESTIMATOR}.api._v2.estimator"),
    Module("tensorflow.compat.v1.estimator", "2.16", f"{_ESTIMATOR}.api._v1.estimator"),
    Module("tensorflow.python.estimator", "2.16", _ESTIMATOR),
    _estimator("tpu._tpu_estimator_embedding", "2.13", "tpu._tpu_estimator_embedding"),
    _estimator("tpu.error_handling", "2.16", "tpu.error_handling"),
    _estimator("tpu.tpu_config", "2.16", "tpu.tpu_config"),
    _estimator("tpu.tpu_context", "2.16", "tpu.tpu_context"),
    _estimator("tpu.tpu_estimator", "2.16", "tpu.tpu_estimator"),
    _estimator("tpu.util", "2.16", "tpu.util"),
)

MODULES: tuple[Module, ...] = (
    _module("data.experimental.ops.distribute_options", "2.7", "data.ops.options"),
    _module("data.experimental.ops.optimization_options", "2.7", "data.ops.options"),
    _module("data.experimental.ops.threading_options", "2.7", "data.ops.options"),
    _module(
        "distribute.distribution_strategy_context", "2.14", "distribute.distribute_lib"
    ),
    _module("eager.profiler_client", "2.20", "profiler.profiler_client"),
    _module("ops.losses.loss_reduction", "2.5", "ops.losses.losses_impl"),
    _module("training.distribute", "2.13", "distribute.distribute_lib"),
    _module(
        "training.distribution_strategy_context", "2.13", "distribute.distribute_lib"
    ),
    _module("training.gen_training_ops", "2.16", "ops.gen_training_ops"),
    _module(
        "training.saving.checkpoint_options", "2.14", "checkpoint.checkpoint_options"
    ),
    _module("training.saving.functional_saver", "2.14", "checkpoint.functional_saver"),
    _module("training.tracking.asset", "2.14", "trackable.asset"),
    _module("training.tracking.autotrackable", "2.14", "trackable.autotrackable"),
    _module("training.tracking.base", "2.14", "trackable.base"),
    _module("training.tracking.base_delegate", "2.14", "trackable.base_delegate"),
    _module("training.tracking.data_structures", "2.14", "trackable.data_structures"),
    _module("training.tracking.graph_view", "2.14", "checkpoint.graph_view"),
    _module("training.tracking.layer_utils", "2.14", "trackable.layer_utils"),
    _module("training.tracking.python_state", "2.14", "trackable.python_state"),
    _module("training.tracking.resource", "2.14", "trackable.resource"),
    _module("training.tracking.trackable_utils", "2.14", "trackable.trackable_utils"),
    _module("training.tracking.util", "2.14", "checkpoint.checkpoint"),
    _module("training.training_ops", "2.16", "ops.gen_training_ops"),
)

REMOVED: tuple[Removed, ...] = (
    Removed(
        "tensorflow.python.estimator.canned.boosted_trees",
        "2.9",
        "use tf.estimator.BoostedTreesClassifier or BoostedTreesRegressor",
    ),
    Removed(
        "tensorflow.python.data.experimental.ops.stats_aggregator",
        "2.6",
        "use TensorFlow's profiler",
    ),
    Removed(
        "tensorflow.python.ops.tensor_forest_ops",
        "2.5",
        "use tf.estimator.BoostedTreesClassifier or BoostedTreesRegressor",
    ),
    Removed(
        "tensorflow.python.training.experimental.loss_scaling_gradient_tape",
        "2.8",
        "use tf.keras.mixed_precision.LossScaleOptimizer",
    ),
)
