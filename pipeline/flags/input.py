"""Flags: How rows are read for training and evaluation."""

from __future__ import annotations

import dataclasses
from typing import Any

from absl import flags

ALL_ROWS = "all"
DATASET = "dataset"
DIRECT = "direct"
SYNTHETIC = "synthetic"
NO_CACHE = "none"
MEMORY_CACHE = "memory"
_MAX_COUNT = 2**31 - 1


@dataclasses.dataclass(frozen=True)
class InputFlags:
    """Settings of the input functions, as given.

    Attributes:
      input_fn: "dataset", "direct", "synthetic", or MODULE:FUNCTION; None reads the
        dataset where there is one, else --input.
      shuffle_mb: Memory for the rows that are shuffled at a time, in MiB.
      shuffle_rows: Their number, "all", or None where shuffle_mb decides.
      read_files_at_once: Files that are read side by side.
      cache: "none", "memory", or a directory.
      prefetch_batches: Batches made ready ahead of the model.
      input_threads: Threads of the input's own; None shares TensorFlow's.
      deterministic: Whether the order of rows is the same each time.
      repeat: Whether training data go on after the last epoch, so that the last
        batch is full.
      drop_remainder: Whether a last batch that is short is left out.
      direct_mb: Most MiB of rows that are read without a dataset.
    """

    input_fn: str | None = None
    shuffle_mb: int = 64
    shuffle_rows: str | None = None
    read_files_at_once: int = 4
    cache: str = NO_CACHE
    prefetch_batches: int = 2
    input_threads: int | None = None
    deterministic: bool = True
    repeat: bool = True
    drop_remainder: bool = False
    direct_mb: int = 1024

    def deciding(self) -> dict[str, Any]:
        """Returns the settings that decide which rows training sees, and in what order.

        With the dataset, the batch size and the seed nothing else does.
        """
        read = None if self.input_fn in (DATASET, DIRECT) else self.input_fn
        values = {
            "input_fn": read or "rows of the dataset",
            "shuffle_mb": self.shuffle_mb if self.shuffle_rows is None else None,
            "shuffle_rows": self.shuffle_rows,
            "read_files_at_once": self.read_files_at_once,
            "repeat": self.repeat,
        }
        return {name: value for name, value in values.items() if value is not None}


DEFAULT = InputFlags()


def define(values: flags.FlagValues) -> None:
    flags.DEFINE_string(
        "input_fn",
        None,
        "Where training rows come from: dataset (what preprocess wrote), direct (the"
        " files of --input, without preprocess), synthetic (random rows from memory,"
        " to find out what reading costs), or PACKAGE.MODULE:FUNCTION, an input_fn of"
        " your own. Without it the dataset if there is one, else --input.",
        flag_values=values,
    )
    flags.DEFINE_integer(
        "shuffle_mb",
        64,
        "MiB of rows among which the next training row is drawn; held in memory,"
        " about three times over at the most.",
        lower_bound=1,
        upper_bound=_MAX_COUNT,
        flag_values=values,
    )
    flags.DEFINE_string(
        "shuffle_rows",
        None,
        "Number of rows among which the next training row is drawn, in place of"
        " --shuffle_mb; 1 does not shuffle, all takes the whole split.",
        flag_values=values,
    )
    flags.DEFINE_integer(
        "read_files_at_once",
        4,
        "Files of a dataset that are read side by side; part of the order of rows.",
        lower_bound=1,
        upper_bound=1024,
        flag_values=values,
    )
    flags.DEFINE_string(
        "cache",
        NO_CACHE,
        "Keep the split's rows in memory after they were read once (memory), or copy"
        " the dataset's files to a directory on this machine first (its path). The"
        " order of rows stays the same.",
        flag_values=values,
    )
    flags.DEFINE_integer(
        "prefetch_batches",
        2,
        "Batches made ready ahead of the model.",
        lower_bound=0,
        upper_bound=10_000,
        flag_values=values,
    )
    flags.DEFINE_integer(
        "input_threads",
        None,
        "Threads for reading and parsing alone; by default they are shared with the"
        " model.",
        lower_bound=1,
        upper_bound=1024,
        flag_values=values,
    )
    flags.DEFINE_bool(
        "deterministic",
        True,
        "Keep the order of rows the same each time; without it, reading that does not"
        " wait may be faster, and resumed training does not see quite the rows it"
        " would have.",
        flag_values=values,
    )
    flags.DEFINE_bool(
        "repeat",
        True,
        "Fill the last training batch with rows of the next epoch; without it the data"
        " end after --epochs, and the last batch may be short.",
        flag_values=values,
    )
    flags.DEFINE_bool(
        "drop_remainder",
        False,
        "Leave out a last batch that is short, of training with --norepeat and of"
        " evaluation; without it every row is evaluated.",
        flag_values=values,
    )
    flags.DEFINE_integer(
        "direct_mb",
        1024,
        "Most MiB of rows that are read into memory without a dataset; for more,"
        " run preprocess.",
        lower_bound=1,
        upper_bound=_MAX_COUNT,
        flag_values=values,
    )

    flags.register_validator(
        "shuffle_rows", _is_row_count, "must be 1 or more, or all", flag_values=values
    )
    flags.register_validator(
        "cache",
        lambda cache: bool(cache.strip()),
        "must be none, memory or a directory",
        flag_values=values,
    )
    flags.register_validator(
        "input_fn",
        lambda name: name is None or is_input_fn(name),
        "must be dataset, direct, synthetic, or PACKAGE.MODULE:FUNCTION",
        flag_values=values,
    )


def is_input_fn(name: str) -> bool:
    """Whether --input_fn may be this."""
    if name in (DATASET, DIRECT, SYNTHETIC):
        return True
    module, colon, function = name.partition(":")
    return bool(colon) and all(
        part.isidentifier() for part in [*module.split("."), *function.split(".")]
    )


def _is_row_count(text: str | None) -> bool:
    if text is None or text == ALL_ROWS:
        return True
    return text.isascii() and text.isdigit() and 1 <= int(text) <= _MAX_COUNT


def read(values: flags.FlagValues) -> InputFlags:
    return InputFlags(
        input_fn=values.input_fn,
        shuffle_mb=values.shuffle_mb,
        shuffle_rows=values.shuffle_rows,
        read_files_at_once=values.read_files_at_once,
        cache=values.cache.strip(),
        prefetch_batches=values.prefetch_batches,
        input_threads=values.input_threads,
        deterministic=values.deterministic,
        repeat=values.repeat,
        drop_remainder=values.drop_remainder,
        direct_mb=values.direct_mb,
    )
