"""Small learnable data and short trainings for tests of models."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from helpers_records import Row, column, constants_for, declare, write_records

from input_fns.records import Records, TrainInput, eval_input_fn, train_input_fn
from pipeline.compat import estimator, tf
from pipeline.types import (
    Bucketized,
    Constants,
    Crossed,
    Declaration,
    Feature,
    Hashed,
    Label,
    Numeric,
    Scale,
    Scaling,
    Vocabulary,
)

ODD_NAME = "Capital Gain (USD)"
"""Not fit for a name in a graph; neither are the Japanese ones, which become one."""
COLUMNS = (
    column("age", "int"),
    column(ODD_NAME, "float"),
    column("marital-status", "string", default="unknown"),
    column("\u65e5\u672c", "int"),
    column("\u6771\u4eac", "string"),
)
LABEL = "Label?"
WEIGHT = "the weight"
FEATURES = (
    Numeric("age", "age", use="both"),
    Numeric("gain", ODD_NAME, Scale.LOG),
    Bucketized("age_bucket", "age", (30.0, 50.0), use="both"),
    Bucketized("gain.bucket", ODD_NAME, (100.0,), embedding=2, use="both"),
    Vocabulary("marital-status", "marital-status", embedding=3),
    Hashed("marital_hashed", "marital-status", 20),
    Vocabulary("number", "\u65e5\u672c"),
    Hashed("number_hashed", "\u65e5\u672c", 11, embedding=2),
    Vocabulary("place", "\u6771\u4eac", oov_buckets=3),
    Crossed("age_x_place", ("age_bucket", "place"), 50),
    Crossed("three", ("marital_hashed", "number", "place"), 100, 4, "both"),
)
FEW_FEATURES = (
    Numeric("age", "age"),
    Bucketized("age_bucket", "age", (50.5,)),
    Vocabulary("marital-status", "marital-status"),
)
MIXED_FEATURES = (
    Numeric("age", "age", use="both"),
    Vocabulary("marital-status", "marital-status", embedding=3),
    Hashed("place", "\u6771\u4eac", 5),
    Crossed("cross", ("marital-status", "place"), 50),
)
_VOCABULARIES = {
    "marital-status": [b"single", b"married", b"unknown"],
    "number": [b"-1", b"0"],
    "place": [b"x", b"y"],
}
_SCALINGS = {"age": Scaling(45, 1 / 15), "gain": Scaling(3, 0.5)}


def rows(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Rows without a label; what a label may depend on is under "score"."""
    random = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        row = {
            "age": int(random.integers(18, 80)),
            ODD_NAME: float(random.exponential(200)),
            "marital-status": [None, "single", "married"][random.integers(3)],
            "\u65e5\u672c": int(random.integers(-1, 3)),
            "\u6771\u4eac": "xyz"[random.integers(3)],
        }
        row["score"] = (row["age"] > 50) + (
            row["marital-status"] == "married"
        )  # 0, 1 or 2
        made.append(row)
    return made


@dataclasses.dataclass(frozen=True)
class Case:
    """Records and what a model needs to train on them."""

    declaration: Declaration
    constants: Constants
    records: Records
    rows: Sequence[Row]


def make_case(
    directory: os.PathLike,
    labelled: Sequence[Row],
    label: Label | None,
    label_kind: str = "string",
    features: Sequence[Feature] = FEW_FEATURES,
    weight: str | None = None,
) -> Case:
    columns = [*COLUMNS, column(LABEL, label_kind)]
    if weight:
        columns.append(column(weight, "float"))
    declaration = declare(columns, features, label, weight)
    constants = constants_for(declaration, _VOCABULARIES, _SCALINGS)
    os.makedirs(directory, exist_ok=True)
    records = write_records(directory, labelled, columns, shards=3)
    return Case(declaration, constants, records, labelled)


def label_case(
    directory: os.PathLike,
    kind: str = "binary",
    features: Sequence[Feature] = FEW_FEATURES,
    count: int = 192,
) -> Case:
    """A case with one of the kinds of label in LABEL_KINDS."""
    label, label_kind, of_score = LABEL_KINDS[kind]
    labelled = [row | {LABEL: of_score(row["score"])} for row in rows(count)]
    return make_case(directory, labelled, label, label_kind, features)


LABEL_KINDS = {
    "binary": (
        Label(LABEL, ("no", "j\u00e1")),
        "string",
        lambda s: ["no", "j\u00e1"][s > 0],
    ),
    "binary of -1 and 1": (Label(LABEL, ("-1", "1")), "int", lambda s: [-1, 1][s > 0]),
    "classes": (Label(LABEL, ("C", "A", "B")), "string", lambda s: "ABC"[s]),
    "classes of 1 to 3": (Label(LABEL, ("1", "2", "3")), "int", lambda s: s + 1),
    "regression": (Label(LABEL), "float", lambda s: 2.0 * s - 1),
}


def build(
    model, settings, case: Case, directory: os.PathLike, seed: int = 1, **run_config
) -> estimator.Estimator:
    config = estimator.RunConfig(
        model_dir=str(directory), tf_random_seed=seed, **run_config
    )
    return model.build(case.declaration, case.constants, settings, config)


def train(
    model: estimator.Estimator, case: Case, max_steps: int, start_step: int = 0
) -> None:
    options = TrainInput(32, 1000, seed=3, start_step=start_step)
    model.train(
        train_input_fn(case.records, case.declaration, options), max_steps=max_steps
    )


def evaluate(model: estimator.Estimator, case: Case) -> dict[str, float]:
    return model.evaluate(eval_input_fn(case.records, case.declaration, 100))


def predict(model: estimator.Estimator, case: Case) -> list[dict[str, np.ndarray]]:
    return list(model.predict(eval_input_fn(case.records, case.declaration, 100)))


def variables(model: estimator.Estimator) -> dict[str, np.ndarray]:
    """All variables of the newest checkpoint, those of optimizers included."""
    reader = tf.train.load_checkpoint(model.latest_checkpoint())
    return {
        name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()
    }


def assert_same_variables(first: estimator.Estimator, second: estimator.Estimator):
    """Asserts equality up to 1e-6, the global step included."""
    found, wanted = variables(first), variables(second)
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        np.testing.assert_allclose(
            found[name], value, rtol=1e-6, atol=1e-6, err_msg=name
        )


# --- what every model must do; a test module calls these for its model ------------


def check_label_is_learned(
    model, settings, directory, kind: str, features=FEW_FEATURES
) -> None:
    """Trains, evaluates and predicts; predictions must fit the labels."""
    case = label_case(directory / "data", kind, features)
    trained = build(model, settings, case, directory / "model")
    train(trained, case, 100)
    metrics = evaluate(trained, case)
    predictions = predict(trained, case)
    assert metrics["global_step"] == 100
    assert len(predictions) == len(case.rows)
    labels = [row[LABEL] for row in case.rows]
    if kind == "regression":
        found = [p["predictions"][0] for p in predictions]
        error = np.mean(np.square(np.subtract(found, labels)))
        assert error < 0.3
        assert metrics["average_loss"] == pytest.approx(error, rel=1e-4)
        assert metrics["label/mean"] == pytest.approx(np.mean(labels), abs=1e-5)
        return
    found = [p["classes"][0].decode() for p in predictions]
    accuracy = np.mean([f == str(y) for f, y in zip(found, labels, strict=True)])
    assert accuracy > 0.9
    assert metrics["accuracy"] == pytest.approx(accuracy, abs=1e-6)


def check_runs(model, settings, directory, features: Sequence[Feature]) -> None:
    """Trains to exactly the asked step, and evaluates and predicts every row."""
    case = label_case(directory / "data", features=features)
    trained = build(model, settings, case, directory / "model")
    train(trained, case, 30)
    metrics = evaluate(trained, case)
    assert metrics["global_step"] == 30
    assert metrics["average_loss"] < 0.67  # Guessing: 0.693
    assert len(predict(trained, case)) == len(case.rows)


FEATURE_PARTS = {
    "wide categories": [Vocabulary("marital-status", "marital-status", use="wide")],
    "wide numbers": [Numeric("age", "age", use="wide")],
    "deep numbers": [Numeric("age", "age")],
    "deep one-hot": [Vocabulary("marital-status", "marital-status", use="deep")],
    "deep embedding": [Hashed("h", "marital-status", 9, embedding=2, use="deep")],
    "both and nothing else": [Numeric("age", "age", use="both")],
}


def check_bad_label_is_shown(model, settings, directory) -> None:
    case = label_case(directory / "data", "classes of 1 to 3")
    label = Label(LABEL, ("0", "1", "2"))
    case = dataclasses.replace(
        case, declaration=dataclasses.replace(case.declaration, label=label)
    )
    trained = build(model, settings, case, directory / "model")
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"(?s)label Label\?.*classes 0, 1, 2.*3"
    ):
        train(trained, case, 5)
    assert trained.latest_checkpoint() is None or variables(trained)["global_step"] == 0


def check_weight_of_zero_removes_rows(model, settings, directory) -> None:
    """Labels of rows with weight 0 change nothing."""
    trained = []
    for other in ("no", "j\u00e1"):
        labelled = []
        for i, row in enumerate(rows(96)):
            ignored = i % 3 == 0
            y = other if ignored else LABEL_KINDS["binary"][2](row["score"])
            labelled.append(row | {LABEL: y, WEIGHT: 0.0 if ignored else 1.5})
        case = make_case(
            directory / f"data {other}",
            labelled,
            LABEL_KINDS["binary"][0],
            weight=WEIGHT,
        )
        trained.append(build(model, settings, case, directory / f"model {other}"))
        train(trained[-1], case, 8)
        metrics = evaluate(trained[-1], case)
        counted = [row for row in labelled if row[WEIGHT]]
        share = np.mean([row[LABEL] != "no" for row in counted])
        assert metrics["label/mean"] == pytest.approx(share, abs=1e-5)
    assert_same_variables(*trained)


def check_same_seed_same_model(model, settings, directory) -> None:
    case = label_case(directory / "data", features=MIXED_FEATURES)
    trained = []
    for i in range(2):
        trained.append(build(model, settings, case, directory / f"model{i}", 7))
        train(trained[-1], case, 10)
    assert_same_variables(*trained)


def check_other_seed_other_model(model, settings, directory) -> None:
    case = label_case(directory / "data", features=MIXED_FEATURES)
    found = []
    for seed in (7, 8):
        trained = build(model, settings, case, directory / f"model{seed}", seed)
        train(trained, case, 1)
        found.append(variables(trained))
    kernels = [name for name in found[0] if name.endswith(("kernel", "clusters"))]
    assert any((found[0][name] != found[1][name]).any() for name in kernels)


def check_resumed_equals_uninterrupted(model, settings, directory) -> None:
    case = label_case(directory / "data", features=MIXED_FEATURES)
    whole = build(model, settings, case, directory / "whole")
    train(whole, case, 20)
    for start_step, max_steps in ((0, 10), (10, 20)):
        parts = build(model, settings, case, directory / "parts")
        train(parts, case, max_steps, start_step)
    assert_same_variables(parts, whole)


def check_new_learning_rate_counts(model, settings, directory, **rates) -> None:
    """Training that goes on at a rate of almost 0 must change almost nothing."""
    case = label_case(directory / "data")
    trained = build(model, settings, case, directory / "model")
    train(trained, case, 3)
    before = variables(trained)
    settings = dataclasses.replace(settings, **rates)
    trained = build(model, settings, case, directory / "model")
    train(trained, case, 6, start_step=3)
    assert variables(trained)["global_step"] == 6
    for name, value in variables(trained).items():
        if name.split("/")[-1] in ("kernel", "embeddings", "gamma"):
            np.testing.assert_allclose(value, before[name], atol=1e-6, err_msg=name)
