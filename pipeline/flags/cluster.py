"""Flags: Where training runs: devices, strategy, cluster."""

from __future__ import annotations

import dataclasses

from absl import flags

from pipeline.cluster.config import TASK_TYPES

STRATEGIES = (
    "none",
    "one_device",
    "mirrored",
    "multi_worker_mirrored",
    "parameter_server",
    "parameter_server_v1",
    "central_storage",
)
_COMMUNICATIONS = ("auto", "ring", "nccl")


@dataclasses.dataclass(frozen=True)
class DeviceFlags:
    """How TensorFlow uses this machine.

    Attributes:
      num_gpus: GPUs to train on; None means all that are visible.
      visible_devices: Numbers of the GPUs that may be used; None means all.
      memory_growth: Whether GPU memory is taken as needed, instead of all at once.
      memory_fraction: Share of each GPU's memory; None leaves TensorFlow's default.
      soft_placement: Whether an operation without a kernel for its device goes to
        another one.
      log_placement: Whether to log where each operation runs.
      inter_op_threads: Operations at a time; 0 lets TensorFlow choose.
      intra_op_threads: Threads of an operation; 0 lets TensorFlow choose.
      logical_cpus: CPU devices to divide the CPU into, which stand for GPUs.
    """

    num_gpus: int | None = None
    visible_devices: tuple[int, ...] | None = None
    memory_growth: bool = False
    memory_fraction: float | None = None
    soft_placement: bool = True
    log_placement: bool = False
    inter_op_threads: int = 0
    intra_op_threads: int = 0
    logical_cpus: int = 1


@dataclasses.dataclass(frozen=True)
class ClusterFlags:
    """Where and with whom a process trains.

    Attributes:
      strategy: One of STRATEGIES; None lets the cluster decide.
      communication: How workers that train in step exchange gradients.
      hosts: "host:port" by task type.
      task_type: This process' type; None where TF_CONFIG or nothing says it.
      task_index: This process' index.
      wait_seconds: How long tasks may take to appear.
      lost_seconds: How long a task may be gone before the others give up.
      devices: How TensorFlow uses this machine.
    """

    strategy: str | None
    communication: str
    hosts: tuple[tuple[str, tuple[str, ...]], ...]
    task_type: str | None
    task_index: int | None
    wait_seconds: int
    lost_seconds: int
    devices: DeviceFlags = DeviceFlags()


def _define_cluster(values: flags.FlagValues) -> None:
    flags.DEFINE_enum(
        "strategy",
        None,
        STRATEGIES,
        "How replicas train together. mirrored: the devices of this machine, in step;"
        " multi_worker_mirrored: workers in step (TF 1: CollectiveAllReduce);"
        " parameter_server: each worker on its own, weights on ps tasks;"
        " parameter_server_v1: the same by tf.compat.v1's strategy; central_storage:"
        " weights on the CPU, devices in step. By default parameter_server where the"
        " cluster has ps tasks, multi_worker_mirrored where it has other workers, else"
        " none.",
        flag_values=values,
    )
    flags.DEFINE_enum(
        "communication",
        "auto",
        _COMMUNICATIONS,
        "How workers of multi_worker_mirrored exchange gradients.",
        flag_values=values,
    )
    for role in TASK_TYPES:
        flags.DEFINE_list(
            f"{role}_hosts",
            [],
            f"HOST:PORT of each {role}, in place of TF_CONFIG.",
            flag_values=values,
        )
    flags.DEFINE_enum(
        "task_type",
        None,
        TASK_TYPES,
        "What this process is in the cluster, in place of TF_CONFIG.",
        flag_values=values,
    )
    flags.DEFINE_integer(
        "task_index",
        None,
        "Which of its type this process is, from 0.",
        lower_bound=0,
        flag_values=values,
    )
    flags.DEFINE_integer(
        "wait_seconds",
        300,
        "How long the tasks of a cluster may take to appear, before the others end"
        " and name those that are missing.",
        lower_bound=1,
        flag_values=values,
    )
    flags.DEFINE_integer(
        "lost_seconds",
        60,
        "How long a task may be gone, and may come back, before the others end.",
        lower_bound=1,
        flag_values=values,
    )


def _define_devices(values: flags.FlagValues) -> None:
    flags.DEFINE_integer(
        "num_gpus",
        None,
        "GPUs that a process trains on; 0 for the CPU alone. By default all that are"
        " visible.",
        lower_bound=0,
        flag_values=values,
    )
    flags.DEFINE_list(
        "visible_devices",
        None,
        "Numbers of the GPUs that may be used, e.g. 0,2.",
        flag_values=values,
    )
    flags.DEFINE_bool(
        "memory_growth",
        False,
        "Take GPU memory as it is needed, instead of all at once.",
        flag_values=values,
    )
    flags.DEFINE_float(
        "memory_fraction",
        None,
        "Share of each GPU's memory that may be used, e.g. 0.5.",
        lower_bound=0.01,
        upper_bound=1.0,
        flag_values=values,
    )
    flags.DEFINE_bool(
        "soft_placement",
        True,
        "Place an operation that a device cannot run on another one.",
        flag_values=values,
    )
    flags.DEFINE_bool(
        "log_device_placement",
        False,
        "Log where each operation runs (needs --verbosity=1).",
        flag_values=values,
    )
    for name, what in (
        ("inter_op_threads", "Operations that run at a time"),
        ("intra_op_threads", "Threads that one operation may use"),
    ):
        flags.DEFINE_integer(
            name, 0, f"{what}; 0 for all cores.", lower_bound=0, flag_values=values
        )
    flags.DEFINE_integer(
        "logical_cpus",
        1,
        "CPU devices that stand for GPUs, to try a strategy without any.",
        lower_bound=1,
        upper_bound=16,
        flag_values=values,
    )

    def are_numbers(found: list[str] | None) -> bool:
        return all(part.strip().isdigit() for part in found or ())

    flags.register_validator(
        "visible_devices",
        are_numbers,
        "must be numbers such as 0,2",
        flag_values=values,
    )


def define(values: flags.FlagValues) -> None:
    _define_cluster(values)
    _define_devices(values)


def read(values: flags.FlagValues) -> ClusterFlags:
    visible = values.visible_devices
    return ClusterFlags(
        strategy=values.strategy,
        communication=values.communication,
        hosts=tuple(
            (role, tuple(host.strip() for host in values[f"{role}_hosts"].value))
            for role in TASK_TYPES
        ),
        task_type=values.task_type,
        task_index=values.task_index,
        wait_seconds=values.wait_seconds,
        lost_seconds=values.lost_seconds,
        devices=DeviceFlags(
            num_gpus=values.num_gpus,
            visible_devices=(
                None if visible is None else tuple(int(part) for part in visible)
            ),
            memory_growth=values.memory_growth,
            memory_fraction=values.memory_fraction,
            soft_placement=values.soft_placement,
            log_placement=values.log_device_placement,
            inter_op_threads=values.inter_op_threads,
            intra_op_threads=values.intra_op_threads,
            logical_cpus=values.logical_cpus,
        ),
    )
