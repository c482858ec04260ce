"""Tests of pipeline.compat: real TensorFlow, real Estimators.

What depends on what was imported before runs in a Python process of its own.
"""

import importlib
import inspect
import json
import os
import pathlib
import socket
import subprocess
import sys
import textwrap

import pytest

from pipeline import compat_estimator_training, compat_standins
from pipeline.compat import check_versions, estimator, estimator_v1, tf, tf_keras
from pipeline.types import UserError

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_TF_2_15 = tf.__version__.startswith("2.15.")
_needs_removed = pytest.mark.skipif(_TF_2_15, reason="2.15 still has everything")
_PREAMBLE = """
import os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
def line(f):
  try:
    f()
  except Exception as e:
    return f"{type(e).__name__}: {e}"
def input_fn():
  x = [[1.0], [2.0], [3.0], [4.0]]
  y = [[2.0], [4.0], [6.0], [8.0]]
  return tf.data.Dataset.from_tensor_slices(({"x": x}, y)).repeat().batch(2)
def regressor(config):
  columns = [tf.feature_column.numeric_column("x")]
  # A callable: each replica and each task needs an optimizer of its own graph.
  optimizer = lambda: tf_keras.optimizers.legacy.SGD(0.05)
  return estimator.LinearRegressor(columns, config=config, optimizer=optimizer)
"""


def _python(code: str, timeout: float = 180, path: str = "", **env: str) -> list[str]:
    """Runs the code in a new Python process; returns the lines it printed."""
    variables = {k: v for k, v in os.environ.items() if k != "TF_USE_LEGACY_KERAS"}
    variables["PYTHONPATH"] = os.pathsep.join(filter(None, [path, str(_ROOT)]))
    done = subprocess.run(
        [sys.executable, "-c", _PREAMBLE + textwrap.dedent(code)],
        env=variables | env,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("localhost", 0))
        return s.getsockname()[1]


# --- versions ---------------------------------------------------------------


@pytest.mark.parametrize(
    "versions",
    [
        ("2.15.1", "2.15.0", "2.15.0"),
        ("2.16.0rc0", "2.15.0", "2.16.0"),
        ("2.20.0", "2.15.0", "2.20.1"),
        ("2.21.0", "2.15.0", "2.21.0"),
    ],
)
def test_versions_that_fit(versions):
    check_versions(*versions)


@pytest.mark.parametrize(
    ("versions", "message"),
    [
        (("2.15.0", "2.15.0", "2.15.0"), "TensorFlow >=2.15.1,<2.22, found 2.15.0"),
        (("2.22.0", "2.15.0", "2.22.0"), "TensorFlow >=2.15.1,<2.22, found 2.22.0"),
        (("2.22.0.dev20260101", "2.15.0", "2.21.0"), "found 2.22.0.dev20260101"),
        (("1.15.5", None, None), "TensorFlow >=2.15.1,<2.22, found 1.15.5"),
        ((None, None, None), "TensorFlow >=2.15.1,<2.22, found none: pip install"),
        (("2.21.0", None, "2.21.0"), "tensorflow-estimator 2.15, found none"),
        (("2.21.0", "2.14.0", "2.21.0"), "tensorflow-estimator 2.15, found 2.14.0"),
        (("2.21.0", "2.15.0", None), "tf-keras 2.21, found none: pip install 'tf-"),
        (("2.21.0", "2.15.0", "2.20.1"), "tf-keras 2.21, found 2.20.1: pip install"),
        (("2.15.1", "2.15.0", "3.3.3"), "keras 2.15, found 3.3.3: pip install 'keras"),
    ],
)
def test_versions_that_do_not_fit(versions, message):
    with pytest.raises(UserError) as error:
        check_versions(*versions)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def _pretend(directory: pathlib.Path, package: str, version: str) -> str:
    """Makes a path on which a package seems to be installed in another version."""
    info = directory / f"{package}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n"
    )
    return str(directory)


@pytest.mark.parametrize(
    ("package", "version", "message"),
    [
        ("tensorflow", "2.99.0", "needs TensorFlow >=2.15.1,<2.22, found 2.99.0"),
        ("tensorflow_estimator", "2.14.0", "tensorflow-estimator 2.15, found 2.14.0"),
        ("keras" if _TF_2_15 else "tf_keras", "2.1.0", "found 2.1.0: pip install"),
    ],
)
def test_wrong_version_is_one_line_before_tensorflow_is_imported(
    tmp_path, package, version, message
):
    path = _pretend(tmp_path, package, version)
    code = """
      print(line(lambda: __import__("pipeline.compat")))
      print("tensorflow" in sys.modules)
    """
    error, imported = _python(code, path=path)
    assert error.startswith("UserError: ")
    assert message in error
    assert imported == "False"


# --- import state -----------------------------------------------------------


def test_keras_2_is_in_force():
    assert os.environ.get("TF_USE_LEGACY_KERAS") == (None if _TF_2_15 else "1")
    assert tf.keras.Model is tf_keras.Model
    assert tf_keras.__version__.split(".")[:2] == tf.__version__.split(".")[:2]


@pytest.mark.skipif(not _TF_2_15, reason="newer TensorFlow needs the variable")
def test_variable_without_tf_keras_does_not_break_2_15():
    code = """
      from pipeline.compat import tf, tf_keras
      print(tf.keras.Model is tf_keras.Model)
    """
    assert _python(code, TF_USE_LEGACY_KERAS="1")[-1] == "True"


@pytest.mark.skipif(_TF_2_15, reason="2.15 has no Keras 3")
def test_keras_3_in_use_is_one_line():
    # Forks, so that TensorFlow is imported once for all ways of using Keras 3.
    code = """
      import tensorflow as tf
      import keras
      for use in (
          "tf.keras.layers",
          "tf.losses.MeanSquaredError",
          "tf.compat.v2.keras.layers",
          "from tensorflow.keras import layers",
          "tf.keras = keras",
      ):
        if not os.fork():
          exec(use)
          print(use, "->", line(lambda: __import__("pipeline.compat")))
          print(os.environ.get("TF_USE_LEGACY_KERAS"), flush=True)
          os._exit(0)
        os.wait()
      print(tf.__version__, keras.__version__)
    """
    *lines, versions = _python(code)
    tensorflow, keras = versions.split()
    assert keras.startswith("3.")
    assert len(lines) == 10
    for error in lines[0:8:2]:
        assert "-> UserError: " in error
        assert f"TensorFlow {tensorflow} is already in use with Keras {keras}" in error
        assert "import pipeline.compat before" in error
    assert "already in use with another Keras than tf-keras 2." in lines[8]
    # A refused import leaves TensorFlow's choice alone.
    assert lines[1:8:2] == ["None"] * 4


def test_tensorflow_imported_before_but_keras_not_used(tmp_path):
    code = f"""
      import tensorflow
      import keras
      from pipeline.compat import estimator, tf, tf_keras
      from tensorflow.keras import layers
      assert layers.Dense is tf_keras.layers.Dense
      assert tf.losses.MeanSquaredError is tf_keras.losses.MeanSquaredError
      config = estimator.RunConfig(model_dir={str(tmp_path)!r})
      inputs = tf_keras.Input([1], name="x")
      normed = layers.BatchNormalization()(inputs)
      model = tf_keras.Model(inputs, layers.Dense(1)(normed))
      model.compile(tf_keras.optimizers.legacy.SGD(0.05), "mse")
      est = tf_keras.estimator.model_to_estimator(model, config=config)
      est.train(input_fn, steps=3)
      print(est.evaluate(input_fn, steps=1)["global_step"])
    """
    assert _python(code)[-1] == "3"


# --- what is supplied ---------------------------------------------------------


def test_installing_again_changes_nothing():
    assert compat_standins.install() == ()


@pytest.mark.skipif(not _TF_2_15, reason="newer TensorFlow misses something")
def test_nothing_is_patched_on_2_15():
    home = pathlib.Path(tf.__file__).parent
    for name in compat_standins._MODULES:
        assert home in pathlib.Path(importlib.import_module(name).__file__).parents
    # Nothing of ours was reachable for TensorFlow even before this file's imports.
    code = """
      import pipeline.compat
      print("pipeline.compat_estimator_training" in sys.modules)
    """
    assert _python(code)[-1] == "False"


@_needs_removed
def test_supplied_modules_are_found_under_their_names():
    for name in compat_standins._MODULES:
        module = importlib.import_module(name)
        assert sys.modules[name] is module
        parent, _, child = name.rpartition(".")
        assert getattr(importlib.import_module(parent), child) is module
    tf_export = importlib.import_module("tensorflow.python.util.tf_export")
    assert tf_export.ESTIMATOR_API_NAME == "estimator"
    name = tf_export.get_canonical_name_for_symbol(estimator.Estimator, "estimator")
    assert name == "estimator.Estimator"


@_needs_removed
def test_removed_modules_fail_when_used():
    embedding = importlib.import_module("tensorflow.python.tpu.tpu_embedding")
    message = "TensorFlow 2.16 removed tensorflow.python.tpu.tpu_embedding"
    with pytest.raises(UserError, match=message) as error:
        _ = embedding.TPUEmbedding
    assert "\n" not in str(error.value)
    with pytest.raises(UserError, match=message):
        embedding.AdagradParameters(0.1)
    support = importlib.import_module("tensorflow.python.tpu.session_support")
    with pytest.raises(UserError, match=r"\(start_worker_watchdog\) cannot be used"):
        support.start_worker_watchdog(None)
    assert not hasattr(embedding, "TPUEmbedding")
    # Autograph walks over all modules with inspect.
    assert inspect.getmodule(embedding.AdagradParameters) is embedding


# --- RunConfig --------------------------------------------------------------

_CLUSTER = {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1"]}


def _run_config(monkeypatch, tf_config=None, **kwargs):
    monkeypatch.setenv("TF_CONFIG", json.dumps(tf_config or {}))
    return estimator.RunConfig(**kwargs)


def _strategy():
    return tf.distribute.OneDeviceStrategy("/cpu:0")


def test_run_config_local(monkeypatch):
    config = _run_config(monkeypatch, train_distribute=_strategy())
    assert config._distribute_coordinator_mode is None
    assert config.is_chief
    assert config.num_worker_replicas == 1
    assert config.global_id_in_cluster == 0


def test_run_config_cluster_runs_independent_workers(monkeypatch):
    tf_config = {"cluster": _CLUSTER, "task": {"type": "worker", "index": 1}}
    config = _run_config(monkeypatch, tf_config, train_distribute=_strategy())
    assert config._distribute_coordinator_mode == "independent_worker"
    assert config.cluster_spec.as_dict() == _CLUSTER
    assert config.master == ""


@pytest.mark.parametrize("which", ["eval_distribute only", "master"])
def test_run_config_cluster_without_coordinator(monkeypatch, which):
    cluster = dict(_CLUSTER)
    name = "eval_distribute"
    if which == "master":
        cluster["master"] = cluster.pop("chief")
        name = "train_distribute"
    tf_config = {"cluster": cluster, "task": {"type": "worker", "index": 1}}
    config = _run_config(monkeypatch, tf_config, **{name: _strategy()})
    assert config._distribute_coordinator_mode is None
    assert config.master == "grpc://c:1"
    assert config.num_worker_replicas == 3
    assert config.global_id_in_cluster == 2
    assert list(config.session_config.device_filters) == [
        "/job:ps",
        "/job:worker/task:1",
    ]


def _distribute_config(**kwargs):
    module = importlib.import_module("tensorflow.python.distribute.distribute_config")
    return module.DistributeConfig(**kwargs)


def test_run_config_remote_cluster(monkeypatch):
    strategy = _strategy()
    experimental = _distribute_config(
        train_distribute=strategy, eval_distribute=strategy, remote_cluster=_CLUSTER
    )
    config = _run_config(monkeypatch, experimental_distribute=experimental)
    assert config.train_distribute is strategy
    assert config.eval_distribute is strategy
    assert config._distribute_coordinator_mode == "standalone_client"
    tf_config = {"cluster": _CLUSTER, "task": {"type": "worker", "index": 1}}
    with pytest.raises(ValueError, match="remote_cluster"):
        _run_config(monkeypatch, tf_config, experimental_distribute=experimental)


@pytest.mark.parametrize("name", ["train_distribute", "eval_distribute"])
def test_run_config_strategy_given_twice(monkeypatch, name):
    experimental = _distribute_config(**{name: _strategy()})
    with pytest.raises(ValueError, match=name):
        _run_config(
            monkeypatch, experimental_distribute=experimental, **{name: _strategy()}
        )


@pytest.mark.parametrize(
    ("task_type", "task_id", "is_chief", "global_id", "workers", "servers"),
    [
        ("chief", 0, True, 0, 3, 1),
        ("worker", 1, False, 2, 3, 1),
        ("ps", 0, False, 3, 3, 1),
        ("evaluator", 0, True, None, 0, 0),
        (None, None, True, 0, 3, 1),
    ],
)
def test_task_of_a_cluster(
    monkeypatch, tmp_path, task_type, task_id, is_chief, global_id, workers, servers
):
    cluster = dict(_CLUSTER)
    if task_type == "evaluator":
        cluster["evaluator"] = ["e:1"]
    tf_config = {"cluster": cluster, "task": {"type": "worker", "index": 0}}
    config = _run_config(monkeypatch, tf_config, train_distribute=_strategy())
    est = estimator.Estimator(lambda features: None, str(tmp_path), config)
    strategy = _strategy()
    with compat_estimator_training.coordinator._WorkerContext(
        strategy, tf.train.ClusterSpec(cluster), task_type, task_id
    ):
        local, chief = compat_estimator_training._for_current_task(
            est, "train", strategy
        )
    assert chief == local.config.is_chief == is_chief
    assert local.config.global_id_in_cluster == global_id
    assert local.config.num_worker_replicas == workers
    assert local.config.num_ps_replicas == servers
    assert local._config.train_distribute is local._train_distribution is strategy
    assert local.config._distribute_coordinator_mode is None
    assert bool(local.config.cluster_spec) == (task_type != "evaluator")
    assert est.config._distribute_coordinator_mode == "independent_worker"


def test_train_in_a_cluster_says_what_to_call(monkeypatch, tmp_path):
    tf_config = {
        "cluster": {"worker": ["b:1"]},
        "task": {"type": "worker", "index": 0},
    }
    config = _run_config(monkeypatch, tf_config, train_distribute=_strategy())
    est = estimator.Estimator(_model_fn, str(tmp_path), config)
    with pytest.raises(ValueError, match="train_and_evaluate|STANDALONE_CLIENT"):
        est.train(_input_fn, steps=1)


# --- Estimators -------------------------------------------------------------


def _input_fn(repeat: bool = True):
    ages = [[float(age)] for age in range(20, 60)]
    jobs = [[b"farmer" if age % 2 else b"clerk"] for age in range(20, 60)]
    labels = [[int(age >= 40)] for age in range(20, 60)]
    features = {"age": ages, "job": jobs}
    dataset = tf.data.Dataset.from_tensor_slices((features, labels))
    return (dataset.repeat() if repeat else dataset).batch(20)


def _wide_and_deep(model_dir):
    age = tf.feature_column.numeric_column("age", normalizer_fn=lambda x: x / 40 - 1)
    job = tf.feature_column.categorical_column_with_vocabulary_list(
        "job", ["farmer", "clerk"]
    )
    legacy = tf_keras.optimizers.legacy
    est = estimator.DNNLinearCombinedClassifier(
        model_dir=str(model_dir),
        linear_feature_columns=[age, job],
        linear_optimizer=legacy.Ftrl(0.1),
        dnn_feature_columns=[age, tf.feature_column.embedding_column(job, 2)],
        dnn_hidden_units=[8],
        dnn_optimizer=legacy.Adagrad(0.1),
        config=estimator.RunConfig(tf_random_seed=1),
    )
    spec = tf.feature_column.make_parse_example_spec([age, job])
    return est, spec


def test_premade_wide_and_deep(tmp_path):
    est, spec = _wide_and_deep(tmp_path / "model")
    est.train(_input_fn, steps=60)
    metrics = est.evaluate(lambda: _input_fn(repeat=False))
    assert metrics["global_step"] == 60
    assert metrics["accuracy"] > 0.8
    predictions = list(est.predict(lambda: _input_fn(repeat=False)))
    assert len(predictions) == 40

    receiver = estimator.export.build_parsing_serving_input_receiver_fn(spec)
    exported = est.export_saved_model(str(tmp_path / "export"), receiver)
    loaded = tf.saved_model.load(exported.decode())
    examples = []
    for features, _ in _input_fn(repeat=False).unbatch():
        example = tf.train.Example()
        example.features.feature["age"].float_list.value[:] = features["age"].numpy()
        example.features.feature["job"].bytes_list.value[:] = features["job"].numpy()
        examples.append(example.SerializeToString())
    served = loaded.signatures["predict"](tf.constant(examples))
    served_rows = served["probabilities"].numpy()
    for served_row, predicted in zip(served_rows, predictions, strict=True):
        assert served_row == pytest.approx(predicted["probabilities"], abs=1e-6)


def _model_fn(features, labels, mode):
    training = mode == estimator.ModeKeys.TRAIN
    model = tf_keras.Sequential(
        [tf_keras.layers.BatchNormalization(), tf_keras.layers.Dense(1)]
    )
    logits = model(features["age"], training=training)
    loss = tf.reduce_mean(
        tf_keras.losses.binary_crossentropy(labels, logits, from_logits=True)
    )
    train_op = None
    if training:
        optimizer = tf_keras.optimizers.legacy.Adam(0.1)
        optimizer.iterations = tf.compat.v1.train.get_or_create_global_step()
        train_op = tf.group(
            *optimizer.get_updates(loss, model.trainable_weights), *model.updates
        )
    return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def test_custom_model_fn_with_batch_normalization(tmp_path):
    est = estimator.Estimator(_model_fn, str(tmp_path))
    est.train(_input_fn, steps=30)
    assert est.evaluate(_input_fn, steps=2)["global_step"] == 30
    (name,) = [n for n in est.get_variable_names() if n.endswith("moving_mean")]
    assert est.get_variable_value(name) > 5  # from 0 towards the mean age, 39.5


def test_model_to_estimator(tmp_path):
    inputs = tf_keras.Input([1], name="age")
    hidden = tf_keras.layers.BatchNormalization()(inputs)
    outputs = tf_keras.layers.Dense(1, activation="sigmoid")(hidden)
    model = tf_keras.Model(inputs, outputs)
    optimizer = tf_keras.optimizers.legacy.Adam(0.1)
    model.compile(optimizer, "binary_crossentropy", metrics=["accuracy"])
    est = tf_keras.estimator.model_to_estimator(model, model_dir=str(tmp_path))

    def input_fn():
        return _input_fn().map(lambda f, y: ({"age": f["age"]}, y))

    est.train(input_fn, steps=20)
    metrics = est.evaluate(input_fn, steps=2)
    assert metrics["global_step"] == 20
    assert 0 <= metrics["accuracy"] <= 1


def test_train_and_evaluate_local(tmp_path):
    est, spec = _wide_and_deep(tmp_path)
    receiver = estimator.export.build_parsing_serving_input_receiver_fn(spec)
    metrics, exports = estimator.train_and_evaluate(
        est,
        estimator.TrainSpec(_input_fn, max_steps=20),
        estimator.EvalSpec(
            lambda: _input_fn(repeat=False),
            steps=None,
            exporters=estimator.FinalExporter("final", receiver),
        ),
    )
    assert metrics["global_step"] == 20
    assert (pathlib.Path(exports[0].decode()) / "saved_model.pb").exists()


def test_v1_estimators_are_the_old_classes():
    assert estimator_v1.DNNClassifier is not estimator.DNNClassifier
    assert estimator_v1.DNNClassifier.__name__ == "DNNClassifier"
    assert estimator_v1.tpu.TPUEstimator


# --- distribution -----------------------------------------------------------


def test_mirrored_strategy_over_two_devices(tmp_path):
    code = f"""
      from pipeline.compat import estimator, tf, tf_keras
      cpu = tf.config.list_physical_devices("CPU")[0]
      two = [tf.config.LogicalDeviceConfiguration()] * 2
      tf.config.set_logical_device_configuration(cpu, two)
      strategy = tf.distribute.MirroredStrategy(
          ["/cpu:0", "/cpu:1"], tf.distribute.ReductionToOneDevice())
      config = estimator.RunConfig({str(tmp_path)!r}, train_distribute=strategy)
      est = regressor(config)
      est.train(input_fn, steps=40)
      # One replica for evaluation, which with two reports wrong numbers.
      metrics = est.evaluate(input_fn, steps=2)
      assert tf.keras.Model is tf_keras.Model
      print(strategy.num_replicas_in_sync, metrics["global_step"], metrics["loss"])
    """
    replicas, step, loss = _python(code)[-1].split()
    assert (replicas, step) == ("2", "40")
    assert float(loss) < 1


def test_multi_worker_cluster_of_one(tmp_path):
    tf_config = {
        "cluster": {"worker": [f"localhost:{_free_port()}"]},
        "task": {"type": "worker", "index": 0},
    }
    code = f"""
      from pipeline.compat import estimator, tf, tf_keras
      strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy()
      config = estimator.RunConfig({str(tmp_path)!r}, train_distribute=strategy)
      estimator.train_and_evaluate(
          regressor(config),
          estimator.TrainSpec(input_fn, max_steps=5),
          estimator.EvalSpec(input_fn))
      print(config._distribute_coordinator_mode)
      print(tf.train.latest_checkpoint({str(tmp_path)!r}))
    """
    mode, checkpoint = _python(code, TF_CONFIG=json.dumps(tf_config))[-2:]
    assert mode == "independent_worker"
    assert checkpoint.endswith("model.ckpt-5")


def test_remote_cluster(tmp_path):
    cluster = {"worker": [f"localhost:{_free_port()}", f"localhost:{_free_port()}"]}
    code = f"""
      from pipeline.compat import estimator, tf, tf_keras
      from tensorflow.python.distribute import distribute_config
      cluster = {cluster!r}
      servers = [tf.distribute.Server(cluster, "worker", i) for i in (0, 1)]
      strategy = tf.distribute.MirroredStrategy(
          cross_device_ops=tf.distribute.ReductionToOneDevice())
      config = estimator.RunConfig(
          {str(tmp_path)!r},
          experimental_distribute=distribute_config.DistributeConfig(
              train_distribute=strategy,
              eval_distribute=strategy,
              remote_cluster=cluster))
      est = regressor(config)
      est.train(input_fn, steps=20)
      print(est.evaluate(input_fn, steps=2)["global_step"])
    """
    assert _python(code)[-1] == "20"
