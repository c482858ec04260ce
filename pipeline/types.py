"""Pipeline-wide value types: what every package may know and none of them owns.

Nothing here imports TensorFlow, Beam or Arrow, so that flags, errors and
declarations can be checked within moments of starting.
"""

from __future__ import annotations

import dataclasses
import enum
import itertools
from collections.abc import Mapping
from typing import ClassVar, Literal, Union

from pipeline.column_types import Column as Column
from pipeline.column_types import ColumnType as ColumnType
from pipeline.column_types import Default as Default
from pipeline.column_types import OutOfRange as OutOfRange
from pipeline.split_types import AnySplit as AnySplit
from pipeline.split_types import ColumnSplit as ColumnSplit
from pipeline.split_types import Split as Split
from pipeline.split_types import TimeSplit as TimeSplit


class ExitCode(enum.IntEnum):
    """Exit codes of the command line; documented in docs/commands.md."""

    OK = 0
    BUG = 1
    """An unexpected error of ours; the traceback is shown."""
    USER_ERROR = 2
    """A wrong flag, file, declaration or value; one line says which."""
    BAD_DATA = 3
    """The data broke a stated limit, e.g. too many rejected rows."""
    LOCKED = 4
    """Another live process is using the directory."""
    VERIFY_FAILED = 5
    """The exported model does not agree with the Estimator."""
    ANOMALIES = 6
    """The check command found something over its limit."""
    WORKER_FAILED = 7
    """A worker process died or made no progress; running again may help."""
    INTERRUPTED = 130
    CLUSTER_FAILED = 138
    """Another task of the cluster was lost; running again goes on. Like all codes from
    128 on, it tells Kubeflow's restart policy ExitCode that a retry may help."""
    PREEMPTED = 143
    """Ended by SIGTERM; running again goes on."""


class UserError(Exception):
    """A mistake of the user's: shown as one line, without a traceback.

    Args:
      message: What is wrong, where (flag, file, line, column or feature), what
        is allowed and what to do.
      exit_code: The exit code of the command.
    """

    def __init__(self, message: str, exit_code: ExitCode = ExitCode.USER_ERROR):
        lines = (line.strip() for line in message.splitlines())
        super().__init__(" ".join(filter(None, lines)))
        self.exit_code = exit_code


class RecordForm(enum.Enum):
    """What a record of a dataset, a tf.Example, holds.

    ROWS: one row; a missing value is an absent feature. BLOCKS: the values of up to
    BLOCK_ROWS rows, a list a feature; a missing value stands as 0 or the empty
    string and its row's place is listed in the feature `missing_feature(NAME)`.
    """

    ROWS = "rows"
    BLOCKS = "blocks"


BLOCK_ROWS = 512


def missing_feature(column: str) -> str:
    """The feature of a block that lists the rows without a value, from 0."""
    return f"{column}:missing"


class Task(enum.Enum):
    """What kind of label is predicted."""

    BINARY = "binary classification"
    MULTI_CLASS = "multi-class classification"
    REGRESSION = "regression"


@dataclasses.dataclass(frozen=True)
class Label:
    """The column to predict.

    Attributes:
      column: Name of a declared, required column.
      classes: The allowed labels in class order (class 0 first), as text; None
        for a regression on a numeric column.
    """

    column: str
    classes: tuple[str, ...] | None = None

    def __post_init__(self):
        if self.classes is None:
            return
        if len(self.classes) < 2 or len(set(self.classes)) != len(self.classes):
            raise ValueError("classes needs at least two different labels")

    @property
    def task(self) -> Task:
        if self.classes is None:
            return Task.REGRESSION
        return Task.BINARY if len(self.classes) == 2 else Task.MULTI_CLASS


class Scale(enum.Enum):
    """How a numeric feature is brought to the size a network likes.

    With x the raw value and statistics over the training split: NONE x; ZSCORE
    (x - mean) / standard deviation; MINMAX (x - min) / (max - min); LOG
    sign(x) * log(1 + |x|), then its z-score.
    """

    NONE = "none"
    ZSCORE = "zscore"
    MINMAX = "minmax"
    LOG = "log"


Use = Literal["wide", "deep", "both"]


@dataclasses.dataclass(frozen=True)
class Numeric:
    """A number, scaled. Model input: float32 of shape [batch, 1]."""

    KIND: ClassVar[str] = "numeric"

    name: str
    column: str
    scale: Scale = Scale.ZSCORE
    use: Use = "deep"


@dataclasses.dataclass(frozen=True)
class Bucketized:
    """A number cut at boundaries; bucket i holds boundaries[i-1] <= x < boundaries[i].

    Attributes:
      boundaries: Rising cut points, or None when `quantiles` asks for cut points
        that divide the training split into that many parts.
    """

    KIND: ClassVar[str] = "bucketized"

    name: str
    column: str
    boundaries: tuple[float, ...] | None = None
    quantiles: int | None = None
    embedding: int | None = None
    use: Use = "wide"

    def __post_init__(self):
        if (self.boundaries is None) == (self.quantiles is None):
            raise ValueError("give either boundaries or quantiles")
        if self.boundaries is not None and (
            not self.boundaries
            or any(a >= b for a, b in itertools.pairwise(self.boundaries))
        ):
            raise ValueError("boundaries must be a rising list of numbers")


@dataclasses.dataclass(frozen=True)
class Vocabulary:
    """A string or int looked up among the values of the training split.

    Ids are 0 for the most frequent value upwards; values outside the vocabulary
    are hashed into `oov_buckets` further ids.

    Attributes:
      top_k: Keep at most so many values; None keeps all.
      min_count: Keep values seen at least so often.
      embedding: Width of the learned vector in deep models; None gives one-hot.
    """

    KIND: ClassVar[str] = "vocabulary"

    name: str
    column: str
    top_k: int | None = None
    min_count: int = 1
    oov_buckets: int = 1
    embedding: int | None = None
    use: Use = "both"


@dataclasses.dataclass(frozen=True)
class Hashed:
    """A string or int hashed into buckets, for values that cannot be listed."""

    KIND: ClassVar[str] = "hashed"

    name: str
    column: str
    buckets: int
    embedding: int | None = None
    use: Use = "both"


@dataclasses.dataclass(frozen=True)
class Identity:
    """An int that is an id: 0 to buckets - 1; all others share the id `buckets`.

    Preprocess counts those others in the statistics.
    """

    KIND: ClassVar[str] = "identity"

    name: str
    column: str
    buckets: int
    embedding: int | None = None
    use: Use = "both"


@dataclasses.dataclass(frozen=True)
class Crossed:
    """The combination of several features' values, hashed into buckets.

    Attributes:
      of: Names of features (bucketized, vocabulary, hashed or identity ones).
    """

    KIND: ClassVar[str] = "crossed"

    name: str
    of: tuple[str, ...]
    buckets: int
    embedding: int | None = None
    use: Use = "wide"


Feature = Union[Numeric, Bucketized, Vocabulary, Hashed, Identity, Crossed]


@dataclasses.dataclass(frozen=True)
class Declaration:
    """The one declaration of the data: columns, label, split and features.

    It tells preprocessing what to check and which statistics to compute, builds
    the model's inputs, and builds the serving receivers.
    """

    columns: Mapping[str, Column]
    features: Mapping[str, Feature]
    split: AnySplit
    label: Label | None = None
    weight: str | None = None

    @property
    def input_columns(self) -> tuple[Column, ...]:
        """The columns a model reads, i.e. what a serving request may hold."""
        used = {f.column for f in self.features.values() if not isinstance(f, Crossed)}
        return tuple(c for c in self.columns.values() if c.name in used)


@dataclasses.dataclass(frozen=True)
class Scaling:
    """Constants of a numeric feature: scaled = (x - shift) * factor."""

    shift: float
    factor: float


@dataclasses.dataclass(frozen=True)
class Constants:
    """What preprocessing computed for the model's graph, by feature name.

    Attributes:
      scalings: For Numeric features.
      boundaries: For Bucketized features.
      vocabularies: For Vocabulary features, most frequent first. A value of an
        int column stands as its decimal text.
    """

    scalings: Mapping[str, Scaling]
    boundaries: Mapping[str, tuple[float, ...]]
    vocabularies: Mapping[str, tuple[bytes, ...]]
