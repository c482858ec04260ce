"""Tests of what compat_moved and compat_contrib say, on the TensorFlow there is."""

from __future__ import annotations

import importlib
import importlib.util
import pathlib
import subprocess
import sys

import pytest

from pipeline import compat_hooks, compat_moved_table
from pipeline.compat import estimator, tf, tf_keras
from pipeline.types import UserError

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_HAS_SLIM = importlib.util.find_spec("tf_slim") is not None


def _needs_slim(path: str) -> bool:
    return path.startswith("tf_slim") and not _HAS_SLIM


@pytest.mark.parametrize("row", compat_hooks.modules(), ids=lambda row: row.module)
def test_module_is_there_under_its_old_name(row):
    if _needs_slim(row.target):
        with pytest.raises(ImportError, match="pip install tf-slim"):
            importlib.import_module(row.module)
    else:
        assert importlib.import_module(row.module)


@pytest.mark.parametrize("module", sorted(compat_hooks.names_of_modules()))
def test_names_are_there_where_they_were(module):
    names = compat_hooks.names_of_modules()[module]
    for name, (target, _) in names.items():
        if _needs_slim(target):
            with pytest.raises(UserError, match="pip install tf-slim"):
                getattr(importlib.import_module(module), name)
        else:
            assert getattr(importlib.import_module(module), name) is not None, name


def test_what_only_moved_is_the_same_object():
    old = importlib.import_module("tensorflow.python.util.nest")
    assert old.is_sequence is old.is_nested
    array_ops = importlib.import_module("tensorflow.python.ops.array_ops")
    assert array_ops.stack is tf.stack
    module = importlib.import_module("tensorflow.python.estimator.model_fn")
    assert module.EstimatorSpec is estimator.EstimatorSpec
    old = importlib.import_module("tensorflow.python.estimator.estimator")
    assert old.EstimatorV2 is estimator.Estimator
    tracking = importlib.import_module("tensorflow.python.training.tracking.tracking")
    assert issubclass(tf.Module, tracking.AutoTrackable)
    context = importlib.import_module(
        "tensorflow.python.training.distribution_strategy_context"
    )
    assert context.get_strategy is tf.distribute.get_strategy


def test_ways_to_write_an_import():
    from tensorflow.compat.v1 import estimator as v1_estimator  # noqa: I001
    from tensorflow.estimator.export import ServingInputReceiver
    from tensorflow.python.estimator import keras as estimator_keras
    from tensorflow.python.util.tf_export import estimator_export
    import tensorflow.compat.v1 as v1
    import tensorflow.contrib.rnn as contrib_rnn

    assert v1.estimator.Estimator is v1_estimator.Estimator
    assert v1_estimator.Estimator is tf.compat.v1.estimator.Estimator
    assert ServingInputReceiver is estimator.export.ServingInputReceiver
    assert estimator_keras.model_to_estimator
    assert contrib_rnn.LSTMCell is tf.contrib.rnn.LSTMCell

    @estimator_export("estimator.experimental.own")
    def own():
        return 1

    assert own() == 1


def test_tf_estimator_is_the_estimator():
    assert tf.estimator.Estimator is estimator.Estimator
    assert tf.compat.v2.estimator.Estimator is estimator.Estimator
    assert tf.compat.v1.estimator.Estimator is not estimator.Estimator
    assert tf.keras.estimator.model_to_estimator is (
        tf_keras.estimator.model_to_estimator
    )


@pytest.mark.parametrize(
    ("use", "message"),
    [
        ("tf.contrib.opt.LazyAdamOptimizer", "2.0 removed tensorflow.contrib.opt, and"),
        ("tf.contrib.rnn.UGRNNCell", "removed tensorflow.contrib.rnn.UGRNNCell, and"),
        ("tf.contrib.nothing", "removed tensorflow.contrib.nothing, and"),
    ],
)
def test_use_of_what_has_no_successor_is_one_line(use, message):
    with pytest.raises(AttributeError, match=message) as error:
        eval(use, {"tf": tf})
    assert isinstance(error.value, UserError)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("import tensorflow.contrib.crf", "tensorflow.contrib.crf, and nothing"),
        ("from tensorflow.contrib.rnn import UGRNNCell", "contrib.rnn.UGRNNCell, and"),
        ("from tensorflow.contrib import seq2seq", "contrib.seq2seq, and nothing"),
    ],
)
def test_import_of_what_has_no_successor_is_one_line(statement, message):
    with pytest.raises(ImportError, match=message) as error:
        exec(statement)
    assert isinstance(error.value, UserError)
    assert "\n" not in str(error.value)


def test_what_was_never_there_is_no_concern_of_ours():
    with pytest.raises(AttributeError, match="has no attribute 'nothing'") as error:
        _ = tf.nothing
    assert not isinstance(error.value, UserError)
    assert not hasattr(tf.contrib, "opt")
    with pytest.raises(ModuleNotFoundError) as missing:
        importlib.import_module("tensorflow.nothing")
    assert not isinstance(missing.value, UserError)


def test_installing_again_adds_no_second_finder():
    before = list(sys.meta_path)
    compat_hooks.install()
    assert sys.meta_path == before


def test_documentation_holds_the_table():
    page = (_ROOT / "docs" / "existing.md").read_text(encoding="utf-8")
    for line in compat_moved_table.lines():
        assert line in page.splitlines(), "python -m pipeline.compat_moved_table"


@pytest.mark.slow
def test_import_adds_little():
    # Processor time and a generous limit: `make bench` measures it properly.
    code = """if True:
      import os, time
      os.environ["TF_USE_LEGACY_KERAS"] = "1"
      import tensorflow
      start = time.process_time()
      import pipeline.compat
      print(time.process_time() - start)
    """
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert float(done.stdout) < 1.5
