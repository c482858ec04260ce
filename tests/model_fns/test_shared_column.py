"""One table for several features, under a premade Estimator."""

from __future__ import annotations

import numpy as np
import pytest

from model_fns.shared_column import SharedEmbedding
from pipeline.compat import estimator, tf, tf_keras

_columns = tf.feature_column


def _categories():
    return [
        _columns.categorical_column_with_vocabulary_list(name, ["a", "b"])
        for name in ("from", "to")
    ]


def _ours():
    return [SharedEmbedding("place", tuple(_categories()), ("mean", "sum"), 3)]


def _stock():
    return _columns.shared_embeddings(
        _categories(), 3, shared_embedding_collection_name="place"
    )


def _input_fn():
    features = {"from": [["a"], ["b"]], "to": [["b"], ["b"]]}
    return tf.data.Dataset.from_tensors((features, [[0], [1]])).repeat()


def _trained_table(make, directory) -> tuple[np.ndarray, np.ndarray]:
    """Returns the table before and after training."""
    found = []

    def model_fn(features, labels, mode, config):
        # Stock shared columns are made inside the graph only.
        premade = estimator.DNNClassifier(
            [8],
            make(),
            optimizer=lambda: tf_keras.optimizers.legacy.Adam(lambda: 0.1),
            config=config,
        )
        return premade.model_fn(features, labels, mode, config)

    for steps in (1, 8):
        model = estimator.Estimator(
            model_fn, str(directory), estimator.RunConfig(tf_random_seed=1)
        )
        model.train(_input_fn, max_steps=steps)
        shapes = {n: model.get_variable_value(n) for n in model.get_variable_names()}
        tables = [
            v
            for n, v in shapes.items()
            if v.shape == (2, 3) and not n.endswith(("/m", "/v"))
        ]
        (table,) = tables
        found.append(table)
    return tuple(found)


@pytest.mark.slow
def test_the_table_is_trained(tmp_path):
    before, after = _trained_table(_ours, tmp_path)
    assert (before != after).all()


@pytest.mark.slow
def test_the_stock_column_leaves_its_table_untrained(tmp_path):
    """Why there is a column of our own; if this fails, it can go."""
    before, after = _trained_table(_stock, tmp_path)
    np.testing.assert_array_equal(before, after)


def test_vectors_and_names():
    column = SharedEmbedding("place", tuple(_categories()), ("mean", "sum"), 3)
    assert column.name == "place_shared_embedding"
    assert set(column.parse_example_spec) == {"from", "to"}
    layer = tf_keras.layers.DenseFeatures([column])
    found = layer(
        {"from": tf.constant([["a"], ["b"]]), "to": tf.constant([["b"], ["b"]])}
    )
    assert found.shape == [2, 6]
    (table,) = layer.weights
    np.testing.assert_allclose(found[0], tf.reshape(table, [-1]))
