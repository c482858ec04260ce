"""DataFrames and NumPy dicts follow the rules that files follow."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from helpers_records import column, declare

from input_fns.order import eval_input_fn, train_input_fn
from input_fns.records import TrainInput
from pipeline import frames
from pipeline.types import ExitCode, Label, Numeric, OutOfRange, UserError, Vocabulary

COLUMNS = (
    column("i", "int", default=-7),
    column("f", "float", default=0.25, missing=("?",)),
    column("s", "string", default="nothing", missing=("?",)),
    column("r", "int"),
    column("c", "int", min=0, max=9, out_of_range=OutOfRange.CLIP, default=5),
    column("y", "string"),
    column("unused", "int"),
)
FEATURES = [Numeric(n, n) for n in "ifrc"] + [Vocabulary("s", "s")]
DECLARATION = declare(COLUMNS, FEATURES, Label("y", ("no", "yes")))
GOOD = {
    "i": [1, 2, 3],
    "f": [0.5, 1.5, 2.5],
    "s": ["a", "b", "ä"],
    "r": [1, 2, 3],
    "c": [1, 2, 3],
    "y": ["no", "yes", "no"],
}


def _rows(frame):
    table = frames.table_of(frame, DECLARATION)
    (batch,) = eval_input_fn(table, DECLARATION, 100)().as_numpy_iterator()
    features, labels = batch
    return {**{n: v.tolist() for n, v in features.items()}, "y": labels.tolist()}


KINDS = {
    "pandas": pd.DataFrame,
    "pandas nullable": lambda v: pd.DataFrame(v).convert_dtypes(),
    "numpy": lambda v: {n: np.array(a) for n, a in v.items()},
    "numpy objects": lambda v: {n: np.array(a, object) for n, a in v.items()},
    "lists": dict,
    "categories": lambda v: pd.DataFrame(v).astype({"s": "category"}),
    "another index": lambda v: pd.DataFrame(v, index=[7, 3, 5]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_values_and_types(kind):
    rows = _rows(KINDS[kind](GOOD))
    assert rows == {
        **{n: v for n, v in GOOD.items() if n in "ifrc"},
        "s": [b"a", b"b", "ä".encode()],
        "y": [b"no", b"yes", b"no"],
    }


MISSING = {
    "None": lambda: None,
    "NaN": lambda: float("nan"),
    "numpy NaN": lambda: np.float32("nan"),
    "NA": lambda: pd.NA,
}


@pytest.mark.parametrize("kind", ["pandas", "numpy objects", "pandas nullable"])
@pytest.mark.parametrize("missing", MISSING)
def test_missing_becomes_the_default(kind, missing):
    nothing = MISSING[missing]()
    frame = GOOD | {n: [nothing, *GOOD[n][1:]] for n in "ifs"}
    rows = _rows(KINDS[kind](frame))
    assert rows["i"] == [-7, 2, 3]
    assert rows["f"] == [0.25, 1.5, 2.5]
    assert rows["s"] == [b"nothing", b"b", "ä".encode()]


def test_masked_values_and_markers_are_missing():
    masked = np.ma.MaskedArray([1, 2, 3], [True, False, False])
    rows = _rows(GOOD | {"i": masked, "f": [" ?", "1.5", ""], "s": ["?", "", "x"]})
    assert rows["i"] == [-7, 2, 3]
    assert rows["f"] == [0.25, 1.5, 0.25]
    assert rows["s"] == [b"nothing", b"nothing", b"x"]


def test_rules_of_columns_hold():
    assert _rows(GOOD | {"c": [-5, 50, 3]})["c"] == [0, 9, 3]


BAD = {
    "missing where required": ({"r": [1, None, 3]}, ["row 1", "column r", "required"]),
    "no number": ({"r": ["1", "2", "x"]}, ["row 2", "column r", "'x'"]),
    "not whole": ({"i": [1.5, 2, 3]}, ["row 0", "column i", "1.5"]),
    "no class": ({"y": ["no", "yes", "maybe"]}, ["row 2", "column y", "maybe"]),
    "a column less": ({"r": None}, ["no column r", "there are i, f"]),
    "two dimensions": ({"r": np.zeros((3, 2))}, ["column r", "(3, 2)"]),
    "other lengths": ({"r": [1, 2]}, ["different numbers of rows"]),
    "mixed": ({"r": [1, "x", {}]}, ["column r"]),
    "dates": ({"r": np.zeros(3, "datetime64[s]")}, ["column r", "timestamp"]),
}


@pytest.mark.parametrize("case", BAD)
def test_what_breaks_a_rule_is_named(case):
    changes, parts = BAD[case]
    frame = {n: v for n, v in (GOOD | changes).items() if v is not None}
    with pytest.raises(UserError) as caught:
        frames.table_of(frame, DECLARATION)
    assert all(part in str(caught.value) for part in parts), str(caught.value)
    by_value = "row " in str(caught.value)
    assert (caught.value.exit_code is ExitCode.BAD_DATA) == by_value


def test_training_on_a_frame_is_shuffled_and_resumed():
    frame = pd.DataFrame({n: v * 20 for n, v in GOOD.items()})
    frame["r"] = range(60)
    table = frames.table_of(frame, DECLARATION)

    def drawn(start_step, steps):
        options = TrainInput(7, 20, seed=1, start_step=start_step)
        dataset = train_input_fn(table, DECLARATION, options)().take(steps)
        return [f["r"].tolist() for f, _ in dataset.as_numpy_iterator()]

    assert drawn(5, 10) == drawn(0, 15)[5:]
    assert drawn(0, 3) != [list(range(7 * n, 7 * n + 7)) for n in range(3)]
