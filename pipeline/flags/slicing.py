"""Flags: Metrics by slice, and plots of an evaluation."""

from __future__ import annotations

import dataclasses

from absl import flags

from pipeline.types import Declaration, UserError

_MAX_COUNT = 2**31 - 1


@dataclasses.dataclass(frozen=True)
class SlicingFlags:
    """Settings of evaluate about its details, as given.

    Attributes:
      columns: Columns by whose values metrics are given.
      min_rows: Values with fewer rows are left out.
      plots: Whether plots are drawn for TensorBoard.
    """

    columns: tuple[str, ...] = ()
    min_rows: int = 100
    plots: bool = False

    def as_json(self) -> dict[str, object]:
        """Returns what is not as by default, of what has an effect on files."""
        if not self.columns:
            return {}
        return {"slices": list(self.columns), "slices_min_rows": self.min_rows}

    def check(self, declaration: Declaration) -> None:
        """Checks that the columns are there.

        Raises:
          UserError: One is not.
        """
        for name in self.columns:
            if name not in declaration.columns:
                raise UserError(
                    f"--slices: there is no column {name}; there are"
                    f" {', '.join(declaration.columns)}"
                )


DEFAULT = SlicingFlags()


def define(values: flags.FlagValues) -> None:
    flags.DEFINE_list(
        "slices",
        [],
        "Columns by whose values metrics are given as well, e.g. gender,education: in"
        " slices.csv of the evaluation, in TensorBoard and in the report. Of numbers"
        " with many values, by quarters.",
        flag_values=values,
    )
    flags.DEFINE_integer(
        "slices_min_rows",
        100,
        "Values with fewer rows are left out.",
        lower_bound=1,
        upper_bound=_MAX_COUNT,
        flag_values=values,
    )
    flags.DEFINE_bool(
        "plots",
        False,
        "Also draw ROC, calibration and confusion matrix as images for TensorBoard;"
        " needs matplotlib (extra plots).",
        flag_values=values,
    )


def read(values: flags.FlagValues) -> SlicingFlags:
    return SlicingFlags(
        columns=tuple(dict.fromkeys(name.strip() for name in values.slices)),
        min_rows=values.slices_min_rows,
        plots=values.plots,
    )
