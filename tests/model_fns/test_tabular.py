"""The tabular models from tf.keras layers: their formulas, and what is theirs alone."""

from __future__ import annotations

import itertools

import helpers_models as models
import numpy as np
import pytest

from model_fns import registry, tabular_hparams, tabular_layers
from pipeline.compat import tf
from pipeline.types import Numeric, Vocabulary

WIDE_DEEP = registry.find("keras_wide_deep")


def _cross(rank: int, experts: int, first, x) -> tuple[np.ndarray, dict]:
    """Returns a cross layer's outputs and its weights, the bias made not 0."""
    layer = tabular_layers.CrossLayer(rank, experts, seed=3, name="cross")
    inputs = (tf.constant(first), tf.constant(x))
    layer(inputs)
    for weight in layer.trainable_variables:
        if "bias" in weight.name:
            weight.assign(np.random.default_rng(9).normal(size=weight.shape))
    weights = {
        w.name.split(":")[0].removeprefix("cross/"): w.numpy()
        for w in layer.trainable_variables
    }
    return layer(inputs).numpy(), weights


@pytest.fixture
def rows():
    random = np.random.default_rng(4)
    return [random.normal(size=(5, 6)).astype(np.float32) for _ in range(2)]


def test_full_cross_layer(rows):
    first, x = rows
    found, w = _cross(0, 1, first, x)
    wanted = [
        x0 * (w["kernel"].T @ x1 + w["bias"]) + x1
        for x0, x1 in zip(first, x, strict=True)
    ]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
    assert w.keys() == {"kernel", "bias"}


def test_low_rank_cross_layer(rows):
    first, x = rows
    found, w = _cross(2, 1, first, x)
    v, u = w["down/kernel"][0], w["up/kernel"][0].T
    assert v.shape == u.shape == (6, 2)
    wanted = [
        x0 * (u @ (v.T @ x1) + w["bias"]) + x1 for x0, x1 in zip(first, x, strict=True)
    ]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_mixture_of_cross_layers(rows):
    """As the paper writes it, with x0 and the bias inside of the sum."""
    first, x = rows
    found, w = _cross(2, 3, first, x)
    wanted = []
    for x0, x1 in zip(first, x, strict=True):
        gates = np.exp(x1 @ w["gate/kernel"])
        gates /= gates.sum()
        total = x1.copy()
        for i, gate in enumerate(gates):
            v, u = w["down/kernel"][i], w["up/kernel"][i].T
            inner = np.tanh(w["inner/kernel"][i].T @ np.tanh(v.T @ x1))
            total += gate * x0 * (u @ inner + w["bias"])
        wanted.append(total)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_pairwise_products_are_those_of_all_pairs():
    vectors = np.random.default_rng(1).normal(size=(4, 5, 2, 3)).astype(np.float32)
    wanted = sum(
        np.sum(vectors[:, i] * vectors[:, j], axis=-1)
        for i, j in itertools.combinations(range(5), 2)
    )
    found = tabular_layers.pairwise_products(tf.constant(vectors)).numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_one_field_has_no_pairs():
    found = tabular_layers.pairwise_products(tf.ones([3, 1, 2, 4]))
    np.testing.assert_array_equal(found, np.zeros([3, 2]))


# Only both together tell: neither feature alone says anything of the label.
_PAIR = [
    Vocabulary("marital-status", "marital-status", embedding=4, use="deep"),
    Vocabulary("place", "\u6771\u4eac", embedding=4, use="deep"),
]


def _pair_case(directory):
    rows = []
    for row in models.rows(256, seed=2):
        row["marital-status"] = row["marital-status"] or "single"
        same = (row["marital-status"] == "single") == (row["\u6771\u4eac"] == "x")
        rows.append(row | {models.LABEL: "j\u00e1" if same else "no"})
    label = models.LABEL_KINDS["binary"][0]
    return models.make_case(directory, rows, label, features=_PAIR)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("deepfm", {}),
        ("dcn", {}),
        ("dcn", {"rank": 3}),
        ("dcn", {"rank": 3, "experts": 2}),
    ],
)
def test_products_of_features_are_learned(tmp_path, name, changes):
    """The network beside is too small to learn them."""
    case = _pair_case(tmp_path / "data")
    settings = registry.find(name).hparams(
        hidden_units=(1,), dropout=0.0, learning_rate=0.05, batch_norm=False, **changes
    )
    model = models.build(registry.find(name), settings, case, tmp_path / "model")
    models.train(model, case, 120)
    assert models.evaluate(model, case)["accuracy"] > 0.95


@pytest.mark.parametrize(
    "changes", [{}, {"rank": 3}, {"rank": 3, "experts": 2}, {"structure": "stacked"}]
)
def test_every_form_of_dcn_goes_on_as_it_would_have(tmp_path, changes):
    settings = tabular_hparams.Dcn(hidden_units=(8,), dropout=0.3, **changes)
    models.check_resumed_equals_uninterrupted(registry.find("dcn"), settings, tmp_path)


@pytest.mark.parametrize(("structure", "width"), [("parallel", 8 + 4), ("stacked", 4)])
def test_what_the_logits_of_dcn_read(tmp_path, structure, width):
    """Two embeddings of 4 make 8 numbers, on which the network has a layer of 4."""
    case = _pair_case(tmp_path / "data")
    settings = tabular_hparams.Dcn(hidden_units=(4,), structure=structure)
    model = models.build(registry.find("dcn"), settings, case, tmp_path / "model")
    models.train(model, case, 1)
    (kernel,) = (
        value
        for name, value in models.variables(model).items()
        if name.endswith("logits/kernel")
    )
    assert kernel.shape == (width, 1)


def test_batch_norm_decides_variables(tmp_path):
    case = models.label_case(tmp_path / "data")
    for batch_norm in (True, False):
        settings = tabular_hparams.Network(hidden_units=(4,), batch_norm=batch_norm)
        model = models.build(WIDE_DEEP, settings, case, tmp_path / str(batch_norm))
        models.train(model, case, 2)
        names = models.variables(model)
        assert any("moving_mean" in name for name in names) == batch_norm
    assert "batch_norm" in settings.DECIDES_VARIABLES


def test_a_model_without_a_deep_part_has_a_bias(tmp_path):
    """It alone can answer for a category that training never saw."""
    features = [Vocabulary("place", "\u6771\u4eac", use="wide")]
    rows = [row | {models.LABEL: 1, "\u6771\u4eac": "x"} for row in models.rows(64)]
    label = models.Label(models.LABEL, ("0", "1"))
    case = models.make_case(tmp_path / "data", rows, label, "int", features)
    settings = tabular_hparams.Network(learning_rate=0.02)
    model = models.build(WIDE_DEEP, settings, case, tmp_path / "model")
    models.train(model, case, 30)
    unseen = [row | {"\u6771\u4eac": "never seen"} for row in rows[:1]]
    case = models.make_case(tmp_path / "unseen", unseen, label, "int", features)
    (prediction,) = models.predict(model, case)
    assert prediction["probabilities"][1] > 0.55


def test_l2_holds_for_all_weights(tmp_path):
    """The training loss holds the sum of their squares."""
    features = [
        Vocabulary("marital-status", "marital-status", use="wide"),
        Numeric("age", "age", use="both"),
    ]
    case = models.label_case(tmp_path / "data", features=features)
    settings = tabular_hparams.Network(hidden_units=(16,), learning_rate=0.02)
    model = models.build(WIDE_DEEP, settings, case, tmp_path / "model")
    models.train(model, case, 20)
    plain = models.evaluate(model, case)
    weights = [
        value
        for name, value in models.variables(model).items()
        if name.endswith(("embeddings", "kernel"))
    ]
    assert len(weights) == 4
    regularised = models.build(
        WIDE_DEEP,
        tabular_hparams.Network(hidden_units=(16,), l2=0.5),
        case,
        tmp_path / "model",
    )
    # The head reports `loss` with and `average_loss` without regularisation.
    metrics = models.evaluate(regularised, case)
    penalty = 0.5 * sum(np.sum(np.square(w)) for w in weights)
    assert metrics["average_loss"] == pytest.approx(plain["average_loss"], rel=1e-6)
    assert metrics["loss"] - plain["loss"] == pytest.approx(penalty, rel=1e-4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cross_layers": 0}, "cross_layers"),
        ({"rank": -1}, "rank"),
        ({"experts": 2}, "experts above 1 need a rank"),
        ({"structure": "beside"}, "structure=beside is unknown; it is parallel"),
        ({"batch_norm_momentum": 1.0}, "batch_norm_momentum"),
        ({"dropout": 1.0}, "dropout"),
        ({"hidden_units": ()}, "hidden_units"),
        ({"learning_rate": 0.0}, "learning_rate"),
    ],
)
def test_wrong_settings(changes, message):
    with pytest.raises(ValueError, match=message):
        tabular_hparams.Dcn(**changes)
