"""Pipeline-wide value types: what every package may know and none of them owns.

Nothing here imports TensorFlow, Beam or Arrow, so that flags, errors and
declarations can be checked within moments of starting.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping

from pipeline.column_types import Column as Column
from pipeline.column_types import ColumnType as ColumnType
from pipeline.column_types import Default as Default
from pipeline.column_types import OutOfRange as OutOfRange
from pipeline.feature_facts import columns_of as columns_of
from pipeline.feature_facts import fixed_size as fixed_size
from pipeline.feature_facts import groups as groups
from pipeline.feature_facts import is_category as is_category
from pipeline.feature_facts import is_looked_up as is_looked_up
from pipeline.feature_facts import is_number as is_number
from pipeline.feature_facts import tokens_of as tokens_of
from pipeline.feature_settings import FIRST_SECOND as FIRST_SECOND
from pipeline.feature_settings import ISO_DATE as ISO_DATE
from pipeline.feature_settings import LAST_SECOND as LAST_SECOND
from pipeline.feature_settings import Combiner as Combiner
from pipeline.feature_settings import DatePart as DatePart
from pipeline.feature_settings import Scale as Scale
from pipeline.feature_settings import TextSplit as TextSplit
from pipeline.feature_settings import Tokens as Tokens
from pipeline.feature_types import Bucketized as Bucketized
from pipeline.feature_types import Crossed as Crossed
from pipeline.feature_types import Date as Date
from pipeline.feature_types import Feature as Feature
from pipeline.feature_types import Hashed as Hashed
from pipeline.feature_types import Identity as Identity
from pipeline.feature_types import Image as Image
from pipeline.feature_types import Numeric as Numeric
from pipeline.feature_types import Text as Text
from pipeline.feature_types import TokenSequence as TokenSequence
from pipeline.feature_types import Use as Use
from pipeline.feature_types import Vocabulary as Vocabulary
from pipeline.label_types import AnyLabel as AnyLabel
from pipeline.label_types import Distribution as Distribution
from pipeline.label_types import Label as Label
from pipeline.label_types import Labels as Labels
from pipeline.label_types import Task as Task
from pipeline.label_types import label_of as label_of
from pipeline.label_types import labels_of as labels_of
from pipeline.split_types import AnySplit as AnySplit
from pipeline.split_types import ColumnSplit as ColumnSplit
from pipeline.split_types import Split as Split
from pipeline.split_types import TimeSplit as TimeSplit
from pipeline.split_types import WindowSplit as WindowSplit


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
    TIMED_OUT = 8
    """Something that was waited for did not come in time."""
    NOT_BLESSED = 9
    """retrain: the candidate broke a rule; the champion stays."""
    NOTHING_TO_DO = 10
    """retrain, rollback: what was asked for is done already."""
    TOO_FEW_ROWS = 11
    """retrain: too few rows to judge the candidate by; the champion stays."""
    INTERRUPTED = 130
    TRY_AGAIN = 138
    """Another task of the cluster was lost, or files could not be read or written for a
    while; running again goes on. It is the one code that Kubeflow's restart policy
    ExitCode leaves to programs that want to be started again."""
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


@dataclasses.dataclass(frozen=True)
class Declaration:
    """The one declaration of the data: columns, label, split and features.

    It tells preprocessing what to check and which statistics to compute, builds
    the model's inputs, and builds the serving receivers.
    """

    columns: Mapping[str, Column]
    features: Mapping[str, Feature]
    split: AnySplit
    label: AnyLabel | None = None
    weight: str | None = None

    @property
    def labels(self) -> tuple[Label, ...]:
        """All labels: none, one or several."""
        return labels_of(self.label)

    @property
    def input_columns(self) -> tuple[Column, ...]:
        """The columns a model reads, i.e. what a serving request may hold."""
        used = {name for f in self.features.values() for name in columns_of(f)}
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
      scalings: For features that are a number (`is_number`).
      boundaries: For Bucketized features.
      vocabularies: For features that are looked up (`is_looked_up`), most frequent
        first. A value of an int column stands as its decimal text. Features that
        share a table have the same one.
    """

    scalings: Mapping[str, Scaling]
    boundaries: Mapping[str, tuple[float, ...]]
    vocabularies: Mapping[str, tuple[bytes, ...]]
