"""What a command is given."""

from __future__ import annotations

import dataclasses

from pipeline.console import Console
from pipeline.estimator_options import EstimatorOptions
from pipeline.flags.checks import CheckFlags
from pipeline.flags.cluster import ClusterFlags
from pipeline.flags.data import DataFlags
from pipeline.flags.exporting import ExportFlags
from pipeline.flags.input import InputFlags
from pipeline.flags.launcher import LauncherFlags
from pipeline.flags.monitoring import MonitorFlags
from pipeline.flags.paths import Paths
from pipeline.flags.predicting import PredictFlags
from pipeline.flags.retraining import RetrainingFlags
from pipeline.flags.serve import ServeFlags
from pipeline.flags.serving import ServingFlags
from pipeline.flags.showing import ShowFlags
from pipeline.flags.slicing import SlicingFlags
from pipeline.flags.training import TrainingFlags
from pipeline.flags.tuning import TuneFlags


@dataclasses.dataclass(frozen=True)
class Invocation:
    """All that a command was given.

    Attributes:
      arguments: Words after the command that are no flags.
      paths: The job's directories.
      data: Flags about raw data.
      input: Flags about how rows are read.
      training: Flags about training.
      serving: Flags about evaluation, export and prediction.
      slicing: Flags about the details of an evaluation.
      exporting: Flags about what an exported version holds.
      serve: Flags about the local server.
      monitoring: Flags about TensorBoard.
      tuning: Flags about the search for hyper-parameters.
      schema: Path of a schema.
      checks: Flags about checks of a dataset.
      showing: Flags about show.
      options: Further metrics, and how numbers are computed.
      cluster: Flags about devices, strategy and cluster.
      launcher: Flags about a local cluster.
      retraining: Flags about scheduled retraining.
      tf_config: The value of TF_CONFIG, if it is set.
      output: File to write.
      predicting: What predict writes.
      given: Flags that stand on the command line itself.
      flagfile: Text of a flagfile that repeats the command.
      console: Where to print.
    """

    arguments: tuple[str, ...]
    paths: Paths
    data: DataFlags
    input: InputFlags
    training: TrainingFlags
    serving: ServingFlags
    slicing: SlicingFlags
    exporting: ExportFlags
    serve: ServeFlags
    monitoring: MonitorFlags
    tuning: TuneFlags
    schema: str | None
    checks: CheckFlags
    showing: ShowFlags
    options: EstimatorOptions
    cluster: ClusterFlags
    launcher: LauncherFlags
    retraining: RetrainingFlags
    tf_config: str | None
    output: str | None
    predicting: PredictFlags
    given: frozenset[str]
    flagfile: str
    console: Console
