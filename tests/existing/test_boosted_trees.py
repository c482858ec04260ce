"""tf.estimator's boosted trees: equal to TensorFlow 2.8.4's, resumed, and exported."""

from __future__ import annotations

import csv
import gzip
import json
import pathlib

import boosted_trees
import numpy as np
import pytest

from pipeline import compat_boosted_features
from pipeline.compat import estimator, tf
from pipeline.types import UserError

_HERE = pathlib.Path(__file__).parent
_EXPECTED = json.loads(
    (_HERE / "fixtures" / "boosted_trees_2_8.json").read_text(encoding="utf-8")
)
# The solution of a softmax's matrix, which has no inverse, is not the same one.
_TOLERANCE = {"three": 1e-3}


def _compare(name: str, root: pathlib.Path) -> None:
    found = boosted_trees.run(str(root), name)
    tolerance = _TOLERANCE.get(name, 1e-5)
    assert sorted(found) == sorted(_EXPECTED[name])
    for metric, value in _EXPECTED[name].items():
        assert found[metric] == pytest.approx(value, abs=tolerance), metric


@pytest.mark.parametrize("name", ["centered"])
def test_equal_to_tensorflow_2_8(name, tmp_path):
    _compare(name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({*_EXPECTED} - {"centered"}))
def test_equal_to_tensorflow_2_8_too(name, tmp_path):
    _compare(name, tmp_path)


def _numbers(model_dir: pathlib.Path) -> estimator.Estimator:
    fc = tf.feature_column
    columns = [fc.numeric_column("x"), fc.numeric_column("z")]
    config = estimator.RunConfig(str(model_dir), save_checkpoints_steps=100)
    return estimator.BoostedTreesRegressor(
        columns, 5, n_trees=3, max_depth=2, config=config, quantile_sketch_epsilon=0.1
    )


def _batches(start: int):
    return boosted_trees.input_fn("price", None).skip(start)


def test_a_run_goes_on_in_the_middle_of_a_layer(tmp_path):
    whole = _numbers(tmp_path / "whole")
    whole.train(lambda: _batches(0))
    parts = _numbers(tmp_path / "parts")
    parts.train(lambda: _batches(0), steps=8)
    # Five batches went into the quantiles, which is no step.
    parts.train(lambda: _batches(13))
    assert parts.get_variable_value("global_step") == 30
    for name in whole.get_variable_names():
        expected = whole.get_variable_value(name)
        np.testing.assert_allclose(
            parts.get_variable_value(name), expected, atol=1e-6, err_msg=name
        )
    assert whole.get_variable_value("boosted_trees/finished") == 3


@pytest.mark.slow
def test_more_training_of_grown_trees_changes_nothing(tmp_path):
    trees = _numbers(tmp_path)
    trees.train(lambda: _batches(0))
    before = trees.get_variable_value("boosted_trees/weights")
    trees.train(lambda: _batches(0), steps=20)
    np.testing.assert_array_equal(
        trees.get_variable_value("boosted_trees/weights"), before
    )


def test_quantiles_divide_evenly_and_keep_few_numbers_apart():
    many = np.arange(100, dtype=np.float32)
    few = np.repeat([1.0, 2.0], 50).astype(np.float32)
    found = compat_boosted_features.quantiles(tf.constant(np.stack([many, few], 1)), 5)
    assert found.numpy().tolist() == [
        [19.0, 39.0, 59.0, 79.0],
        [1.0, 2.0, np.inf, np.inf],
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_trees": 0}, "n_trees is 0; it must be > 0"),
        ({"l2_regularization": -1.0}, "l2 is -1.0; it must be >= 0"),
        ({"pruning_mode": "pre"}, "pruning_mode and tree_complexity > 0 need each"),
        ({"pruning_mode": "some"}, "'some', not one of none, pre, post"),
        ({"train_in_memory": True}, "train_in_memory needs n_batches_per_layer=1"),
        ({"n_classes": 3, "center_bias": True}, "center_bias needs one logit"),
    ],
)
def test_wrong_options_say_so(options, message):
    with pytest.raises(ValueError, match=message):
        estimator.BoostedTreesClassifier(boosted_trees.columns(), 5, **options)


def test_columns_that_trees_cannot_read_say_so():
    fc = tf.feature_column
    words = fc.categorical_column_with_hash_bucket("word", 10)
    with pytest.raises(UserError, match="cannot read the column word_embedding"):
        estimator.BoostedTreesRegressor([fc.embedding_column(words, 2)], 1)
    pair = fc.bucketized_column(fc.numeric_column("pair", shape=2), [0.0])
    with pytest.raises(UserError, match="pair_bucketized has several numbers a row"):
        estimator.BoostedTreesRegressor([pair], 1)


def test_a_cluster_is_refused(monkeypatch, tmp_path):
    cluster = {"chief": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]}
    config = {"cluster": cluster, "task": {"type": "chief", "index": 0}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    trees = _numbers(tmp_path)
    with pytest.raises(UserError, match="train in one process"):
        trees.model_fn(None, None, estimator.ModeKeys.TRAIN, trees.config)


def _census(test: bool):
    path = _HERE.parents[1] / "examples" / "census" / "adult.csv.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    rows = [row for number, row in enumerate(rows) if (number % 5 == 0) == test]
    features = {
        "age": np.array([row["age"] for row in rows], np.float32),
        "hours": np.array([row["hours-per-week"] for row in rows], np.float32),
        "education": np.array([row["education"] for row in rows]),
        "status": np.array([row["marital-status"] for row in rows]),
    }
    label = np.array([row["income"].strip().startswith(">50K") for row in rows])
    return features, label.astype(np.int32)


@pytest.mark.slow
def test_census_trains_beats_its_baseline_and_is_served(tmp_path):
    fc = tf.feature_column
    train, test = _census(False), _census(True)
    age = fc.bucketized_column(fc.numeric_column("age"), [20, 25, 30, 40, 50, 60])
    education = fc.categorical_column_with_vocabulary_list(
        "education", sorted(set(train[0]["education"]))
    )
    status = fc.categorical_column_with_vocabulary_list(
        "status", sorted(set(train[0]["status"]))
    )
    columns = [age, fc.numeric_column("hours"), education, status]
    indicators = [fc.indicator_column(c) for c in columns[2:]]
    trees = estimator.BoostedTreesClassifier(
        [*columns[:2], *indicators],
        n_batches_per_layer=1,
        model_dir=str(tmp_path),
        n_trees=30,
        max_depth=4,
        learning_rate=0.3,
        train_in_memory=True,
    )

    def input_fn(rows, batch_size):
        return tf.data.Dataset.from_tensor_slices(rows).batch(batch_size).cache()

    trees.train(lambda: input_fn(train, len(train[1])).repeat())
    metrics = trees.evaluate(lambda: input_fn(test, 2000))
    assert metrics["accuracy"] > metrics["accuracy_baseline"] + 0.05
    assert metrics["auc"] > 0.87

    spec = fc.make_parse_example_spec(columns)
    receiver = estimator.export.build_parsing_serving_input_receiver_fn(spec)
    exported = trees.export_saved_model(str(tmp_path / "export"), receiver)
    loaded = tf.saved_model.load(exported.decode())
    first = {name: values[:20] for name, values in test[0].items()}
    examples = [_example({k: v[i] for k, v in first.items()}) for i in range(20)]
    served = loaded.signatures["predict"](tf.constant(examples))["probabilities"]
    predicted = trees.predict(lambda: input_fn((first, test[1][:20]), 20))
    np.testing.assert_allclose(
        served.numpy(), [row["probabilities"] for row in predicted], atol=1e-6
    )


def _example(row) -> bytes:
    example = tf.train.Example()
    for name, value in row.items():
        feature = example.features.feature[name]
        if isinstance(value, str):
            feature.bytes_list.value.append(value.encode())
        else:
            feature.float_list.value.append(value)
    return example.SerializeToString()
