"""Clusters of rows without a label."""

from __future__ import annotations

import helpers_models as models
import numpy as np
import pytest

from model_fns import premade_hparams, registry
from pipeline.types import Numeric, Vocabulary

KMEANS = registry.find("kmeans")
_FEATURES = [
    Numeric("age", "age"),
    Vocabulary("place", "\u6771\u4eac", embedding=2, use="deep"),
]
_CENTRES = {20: "x", 50: "y", 80: "z"}


def _case(directory):
    """Rows about three points, far from each other."""
    random = np.random.default_rng(2)
    rows = []
    for row in models.rows(120):
        age = int(random.choice(list(_CENTRES)))
        changes = {
            "age": age + int(random.integers(-3, 4)),
            "\u6771\u4eac": _CENTRES[age],
        }
        rows.append(row | changes)
    return models.make_case(directory, rows, None, features=_FEATURES)


def _train(case, directory, steps: int = 30, **settings):
    model = models.build(
        KMEANS, premade_hparams.KMeans(clusters=3, **settings), case, directory
    )
    models.train(model, case, steps)
    return model


@pytest.mark.parametrize("distance", ["squared_euclidean", "cosine"])
@pytest.mark.parametrize("start", ["kmeans_plus_plus", "random"])
def test_clusters_are_found_and_distances_are_to_their_centres(
    tmp_path, distance, start
):
    case = _case(tmp_path / "data")
    model = _train(case, tmp_path / "model", distance=distance, start=start)
    predictions = models.predict(model, case)
    assert len(predictions) == len(case.rows)
    for prediction in predictions:
        assert prediction["all_distances"].shape == (3,)
        nearest = prediction["all_distances"][prediction["cluster_index"]]
        assert nearest == prediction["all_distances"].min()
    if start == "kmeans_plus_plus" and distance == "squared_euclidean":
        groups = {
            (row["\u6771\u4eac"], p["cluster_index"])
            for row, p in zip(case.rows, predictions, strict=True)
        }
        assert len(groups) == 3
    metrics = models.evaluate(model, case)
    mean = np.mean([p["all_distances"].min() for p in predictions])
    assert metrics["average_loss"] == pytest.approx(mean, abs=1e-5)
    assert metrics["global_step"] == 30


def test_centres_are_the_means_of_their_rows(tmp_path):
    """A centre that rows were added to one by one is their mean (Sculley 2010)."""
    case = _case(tmp_path / "data")
    model = _train(case, tmp_path / "model", steps=100)
    centres = models.variables(model)["clusters"]
    # place is one-hot (x, y and one for unknown ones), so what trains no embedding
    # has none.
    assert centres.shape == (3, 4)
    ages = sorted(45 + 15 * centre[0] for centre in centres)
    wanted = [
        np.mean([r["age"] for r in case.rows if r["\u6771\u4eac"] == place])
        for place in _CENTRES.values()
    ]
    np.testing.assert_allclose(ages, wanted, atol=1.0)


def test_fewer_rows_than_clusters_end(tmp_path):
    rows = models.rows(4)
    case = models.make_case(tmp_path / "data", rows, None, features=_FEATURES)
    model = models.build(
        KMEANS, premade_hparams.KMeans(clusters=9), case, tmp_path / "model"
    )
    models.train(model, case, 3)
    assert models.variables(model)["clusters"].shape == (9, 4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"clusters": 1}, "clusters must be from 2 to 65536"),
        ({"distance": "far"}, "distance=far is unknown; it is squared_euclidean, cos"),
        ({"start": "here"}, "start=here is unknown; it is kmeans_plus_plus, random"),
    ],
)
def test_wrong_settings(changes, message):
    with pytest.raises(ValueError, match=message):
        premade_hparams.KMeans(**changes)
