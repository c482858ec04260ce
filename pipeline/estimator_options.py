"""How an Estimator is run, apart from what it learns. Imports no TensorFlow."""

from __future__ import annotations

import dataclasses
import os

from model_fns import hparams, metric_names
from model_fns.metric_names import Metric
from model_fns.registry import Model
from pipeline.types import Declaration, UserError

_XLA_FLAGS = "TF_XLA_FLAGS"
_XLA_ON_CPU = "--tf_xla_cpu_global_jit"


@dataclasses.dataclass(frozen=True)
class EstimatorOptions:
    """Options of a command that trains or evaluates; no checkpoint depends on them.

    Attributes:
      metrics: Further metrics.
      mixed_precision: Whether Keras layers compute in bfloat16; variables, and the
        loss, stay float32.
      xla: Whether parts of the graph are compiled by XLA.
    """

    metrics: tuple[Metric, ...] = ()
    mixed_precision: bool = False
    xla: bool = False

    def as_json(self) -> dict[str, object]:
        """Returns what is not as by default."""
        values = {
            "metrics": [str(metric) for metric in self.metrics],
            "mixed_precision": self.mixed_precision,
            "xla": self.xla,
        }
        return {name: value for name, value in values.items() if value}

    def check(self, model: Model, declaration: Declaration) -> None:
        """Checks that each option has an effect on a model and its label.

        Raises:
          UserError: One has none.
        """
        metric_names.check(self.metrics, declaration)
        if self.mixed_precision and not issubclass(
            model.hparams, (hparams.Custom, hparams.Free)
        ):
            raise UserError(
                f"--mixed_precision has no effect on {model.name}, which is not made"
                " of Keras layers of ours; leave it out"
            )

    def prepare(self) -> None:
        """Sets what TensorFlow reads when it is imported."""
        if self.xla and _XLA_ON_CPU not in os.environ.get(_XLA_FLAGS, ""):
            given = os.environ.get(_XLA_FLAGS, "")
            os.environ[_XLA_FLAGS] = f"{given} {_XLA_ON_CPU}".strip()


DEFAULT_OPTIONS = EstimatorOptions()
