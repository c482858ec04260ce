"""Flags about devices: what TensorFlow is told, as far as a CPU shows it."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.cluster import choice, strategies
from pipeline.flags import cluster as flags
from pipeline.flags.cluster import DeviceFlags
from pipeline.types import UserError

ROOT = Path(__file__).parents[3]
_SECONDS = 300


def _read(*arguments: str) -> DeviceFlags:
    values = flags.flags.FlagValues()
    flags.define(values)
    values(["program", *arguments])
    return flags.read(values).devices


def test_by_default_tensorflow_decides():
    config = strategies.session_config(_read())
    assert config.allow_soft_placement
    assert not config.log_device_placement
    assert not config.device_count
    assert not config.gpu_options.allow_growth
    assert config.gpu_options.per_process_gpu_memory_fraction == 0
    assert config.gpu_options.visible_device_list == ""


def test_each_flag_arrives():
    config = strategies.session_config(
        _read(
            "--visible_devices=0, 2",
            "--memory_growth",
            "--nosoft_placement",
            "--log_device_placement",
            "--inter_op_threads=3",
            "--intra_op_threads=2",
            "--logical_cpus=4",
        )
    )
    assert config.gpu_options.visible_device_list == "0,2"
    assert config.gpu_options.allow_growth
    assert not config.allow_soft_placement
    assert config.log_device_placement
    assert config.inter_op_parallelism_threads == 3
    assert config.intra_op_parallelism_threads == 2
    assert config.device_count["CPU"] == 4
    config = strategies.session_config(_read("--memory_fraction=0.5", "--num_gpus=0"))
    assert config.gpu_options.per_process_gpu_memory_fraction == 0.5
    assert config.device_count["GPU"] == 0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--num_gpus=1"], "--num_gpus=1: this machine has 0 GPUs"),
        (["--visible_devices=3"], "--visible_devices: there is no GPU 3"),
    ],
)
def test_gpus_that_are_not_there(given, said):
    settings = dataclasses.replace(choice.ALONE.settings, devices=_read(*given))
    with pytest.raises(UserError, match=said):
        strategies.make(choice.choose(settings, None))


_PROGRAM = """
import sys
from pipeline.cluster import choice, strategies
from pipeline.compat import tf
from pipeline.flags import cluster as flags
values = flags.flags.FlagValues()
flags.define(values)
values(sys.argv)
made = strategies.make(choice.choose(flags.read(values), None))
threading = tf.config.threading
print(
    type(made.strategy).__name__,
    made.replicas,
    len(tf.config.list_logical_devices("CPU")),
    threading.get_inter_op_parallelism_threads(),
    threading.get_intra_op_parallelism_threads(),
    tf.config.get_soft_device_placement(),
)
"""


@pytest.mark.parametrize(
    ("given", "made"),
    [
        (["--num_gpus=0", "--nosoft_placement"], "NoneType 1 1 0 0 False"),
        (
            ["--strategy=mirrored", "--logical_cpus=3", "--inter_op_threads=2"],
            "MirroredStrategy 3 3 2 0 True",
        ),
        (
            ["--strategy=multi_worker_mirrored", "--intra_op_threads=1"],
            "MirroredStrategy 1 1 0 1 True",
        ),
    ],
)
def test_what_a_process_is_made_of(given, made):
    """In a process of its own, since devices can be configured once."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, *given],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines()[-1] == made


@pytest.mark.slow
def test_placements_are_logged_and_xla_compiles(untrained_job, tmp_path):
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pipeline", "train", "--verbosity=1"),
            f"--dataset_dir={untrained_job.dataset_dir}",
            f"--model_dir={tmp_path}/model",
            *("--model=keras_wide_deep", "--hparams=hidden_units=[8]"),
            *("--batch_size=32", "--max_steps=2", "--log_device_placement", "--xla"),
            *("--strategy=one_device", "--inter_op_threads=1", "--intra_op_threads=1"),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "/job:localhost/replica:0/task:0/device:CPU:0" in done.stderr
    assert "Compiled cluster using XLA" in done.stderr
