"""Which strategy a cluster trains with; all that is known before TensorFlow loads."""

from __future__ import annotations

import dataclasses

from pipeline.cluster import tf_config
from pipeline.cluster.config import PS, ClusterConfig
from pipeline.flags.cluster import ClusterFlags
from pipeline.types import UserError

# By name: what it is for, so that a wrong choice is refused with the right one.
_ON_PS = ("parameter_server", "parameter_server_v1")
_ACROSS_WORKERS = "multi_worker_mirrored"
_WITH_DEVICES = ("mirrored", "central_storage", _ACROSS_WORKERS)


@dataclasses.dataclass(frozen=True)
class Choice:
    """How this process takes part in a training.

    Attributes:
      cluster: Its place.
      strategy: Name of the strategy, one of flags.cluster.STRATEGIES.
      settings: The flags.
    """

    cluster: ClusterConfig
    strategy: str
    settings: ClusterFlags

    @property
    def is_asynchronous(self) -> bool:
        """Whether each worker takes steps of its own, with weights on ps tasks."""
        return self.strategy in _ON_PS

    @property
    def is_in_step(self) -> bool:
        """Whether several processes take each step together."""
        return self.strategy == _ACROSS_WORKERS

    @property
    def workers(self) -> int:
        """Number of processes that read the data; 1 where it is unknown."""
        return 1 if self.cluster.sparse else max(1, len(self.cluster.trainers))

    @property
    def worker(self) -> int:
        """Number of this one among them, the leader being 0."""
        if self.cluster.sparse or self.cluster.task not in self.cluster.trainers:
            return 0
        return self.cluster.trainers.index(self.cluster.task)


def _check_strategy(strategy: str, cluster: ClusterConfig) -> None:
    has_ps = bool(cluster.of_type(PS))
    several = len(cluster.trainers) > 1
    if strategy in _ON_PS and not has_ps:
        raise UserError(
            f"--strategy={strategy} needs a cluster with ps tasks, and there are none;"
            " without them use mirrored (one machine) or multi_worker_mirrored"
        )
    if strategy not in _ON_PS and has_ps:
        raise UserError(
            f"--strategy={strategy} has no use for the ps tasks of the cluster; use"
            " parameter_server, or leave them out"
        )
    if several and strategy not in (*_ON_PS, _ACROSS_WORKERS):
        raise UserError(
            f"--strategy={strategy} is for one machine, and the cluster has"
            f" {len(cluster.trainers)} tasks that train; use {_ACROSS_WORKERS}"
        )


def _check_devices(strategy: str, settings: ClusterFlags) -> None:
    devices = settings.devices
    if devices.logical_cpus > 1:
        if devices.num_gpus:
            raise UserError(
                "--logical_cpus stands for GPUs, so give it or --num_gpus, not both"
            )
        if strategy not in _WITH_DEVICES:
            raise UserError(
                f"--logical_cpus={devices.logical_cpus} needs a strategy over several"
                f" devices: {', '.join(_WITH_DEVICES)}"
            )
    if devices.visible_devices is not None:
        if len(set(devices.visible_devices)) != len(devices.visible_devices):
            raise UserError("--visible_devices names a device twice")
        if devices.num_gpus and devices.num_gpus > len(devices.visible_devices):
            raise UserError(
                f"--num_gpus={devices.num_gpus} is more than --visible_devices allows"
            )
    if devices.memory_growth and devices.memory_fraction is not None:
        raise UserError(
            "--memory_growth and --memory_fraction contradict each other: take memory"
            " as needed, or a share of it at once"
        )


def _default_strategy(cluster: ClusterConfig) -> str:
    if cluster.of_type(PS) or cluster.sparse:
        return "parameter_server"
    return _ACROSS_WORKERS if len(cluster.trainers) > 1 else "none"


def choose(settings: ClusterFlags, variable: str | None) -> Choice:
    """Finds this process' place and strategy.

    Args:
      settings: The flags.
      variable: The value of TF_CONFIG, if it is set.

    Raises:
      UserError: TF_CONFIG or the flags are wrong or contradict each other.
    """
    by_variable = tf_config.parse(variable)
    by_flags = tf_config.from_flags(
        dict(settings.hosts), settings.task_type, settings.task_index
    )
    if by_variable.task is not None and by_flags.task is not None:
        raise UserError(
            "TF_CONFIG is set and --task_type is given: describe the cluster by one of"
            " them"
        )
    cluster = by_flags if by_variable.task is None else by_variable
    strategy = settings.strategy or _default_strategy(cluster)
    if strategy == _ACROSS_WORKERS and len(cluster.trainers) < 2:
        # A worker alone: the devices of this machine.
        strategy = "mirrored"
    _check_strategy(strategy, cluster)
    _check_devices(strategy, settings)
    return Choice(cluster, strategy, settings)


def check_alone(settings: ClusterFlags, variable: str | None) -> None:
    """Checks that a command which is no cluster's is not run in one.

    Raises:
      UserError: It is, or the cluster is described wrongly.
    """
    choice = choose(settings, variable)
    if choice.cluster.is_cluster:
        raise UserError(
            "run does a whole job in one process, and this is one of a cluster: run"
            " preprocess first, then train in the cluster, then evaluate and export"
        )


ALONE = Choice(
    ClusterConfig(), "none", ClusterFlags(None, "auto", (), None, None, 300, 60)
)
"""A process that trains by itself, with the devices that TensorFlow finds."""
