"""SIGTERM where there is nothing to save."""

from __future__ import annotations

import os
import signal
import time

import pytest

from pipeline.cluster.preemption import Ended, Preemption
from pipeline.compat import tf, tf_keras
from pipeline.types import ExitCode, UserError


class _Terminated(tf_keras.layers.Layer):
    """Gets SIGTERM in the midst of AutoGraph and Keras, which wrap what is raised."""

    def call(self, inputs):
        os.kill(os.getpid(), signal.SIGTERM)
        return inputs


def test_it_ends_the_making_of_a_graph_with_its_own_code():
    with (
        pytest.raises(UserError, match="^ended by SIGTERM") as caught,
        Preemption().handled(),
        tf.Graph().as_default(),
    ):
        _Terminated()(tf.constant([1.0]))
    assert caught.value.exit_code is ExitCode.PREEMPTED


class _Dropped:
    """Gets SIGTERM where nothing that is raised arrives."""

    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        for _ in range(1000):
            pass


def test_it_comes_again_where_python_drops_what_is_raised(capsys):
    with pytest.raises(UserError, match="^ended by SIGTERM"), Preemption().handled():
        _Dropped()
        time.sleep(15)
    assert "Traceback" not in capsys.readouterr().err


def test_with_something_that_answers_it_only_sets_a_mark():
    preemption = Preemption()
    with preemption.handled():
        preemption.begin_session()
        os.kill(os.getpid(), signal.SIGTERM)
        assert preemption.requested.wait(60)
        preemption.end_session()
        with pytest.raises(Ended):
            preemption.end()


def test_the_handler_is_taken_back():
    before = signal.getsignal(signal.SIGTERM)
    with Preemption().handled():
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before
