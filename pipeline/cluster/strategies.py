"""From settings to a tf.distribute strategy and a RunConfig.

Make the strategy before anything else uses TensorFlow: devices can no longer be
configured afterwards, and workers in step start their servers with it.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from pipeline import environment
from pipeline.cluster import dense_gradients
from pipeline.cluster.choice import Choice
from pipeline.cluster.config import CHIEF, PS, WORKER
from pipeline.compat import tf
from pipeline.flags.cluster import DeviceFlags
from pipeline.types import UserError

_v1 = tf.compat.v1
_COMMUNICATION = tf.distribute.experimental.CommunicationImplementation


@dataclasses.dataclass(frozen=True)
class Distribution:
    """How an Estimator of this process trains.

    Attributes:
      choice: The place in the cluster, and the flags.
      strategy: The strategy to train with; None for a process that trains by itself
        or with parameter servers.
    """

    choice: Choice
    strategy: tf.distribute.Strategy | None

    @property
    def replicas(self) -> int:
        """Replicas that share the batch of a step."""
        return 1 if self.strategy is None else self.strategy.num_replicas_in_sync

    def run_config(self) -> dict[str, Any]:
        """Returns arguments of a RunConfig that trains.

        Make and use that RunConfig within `environment.tf_config(...)`. One that
        evaluates or exports takes `local_run_config` instead: under several replicas
        an Estimator's metrics are wrong.
        """
        arguments = self.local_run_config()
        if self.strategy is not None:
            arguments["train_distribute"] = self.strategy
        if self.choice.cluster.tf_config():
            session = arguments["session_config"]
            session.device_filters.extend(_device_filters(self.choice))
            # Workers that start late would do no harm; waiting for them would.
            arguments["experimental_max_worker_delay_secs"] = 0
            arguments["session_creation_timeout_secs"] = max(
                1, self.choice.settings.wait_seconds
            )
        return arguments

    def local_run_config(self) -> dict[str, Any]:
        """Returns arguments of a RunConfig that works on one replica."""
        return {"session_config": session_config(self.choice.settings.devices)}


def session_config(devices: DeviceFlags) -> _v1.ConfigProto:
    """Returns the configuration of the sessions that an Estimator makes."""
    config = _v1.ConfigProto(
        allow_soft_placement=devices.soft_placement,
        log_device_placement=devices.log_placement,
        inter_op_parallelism_threads=devices.inter_op_threads,
        intra_op_parallelism_threads=devices.intra_op_threads,
    )
    # As in an Estimator's own default.
    config.graph_options.rewrite_options.meta_optimizer_iterations = 1
    if devices.logical_cpus > 1:
        config.device_count["CPU"] = devices.logical_cpus
    if devices.num_gpus == 0:
        config.device_count["GPU"] = 0
    config.gpu_options.allow_growth = devices.memory_growth
    if devices.memory_fraction is not None:
        config.gpu_options.per_process_gpu_memory_fraction = devices.memory_fraction
    if devices.visible_devices is not None:
        config.gpu_options.visible_device_list = ",".join(
            map(str, devices.visible_devices)
        )
    return config


def _device_filters(choice: Choice) -> list[str]:
    """Returns which tasks a session sees: a worker that is gone must not stop others."""
    task = choice.cluster.task
    if not choice.is_asynchronous:
        return []
    if task.type == PS:
        return [f"/job:{PS}", f"/job:{WORKER}", f"/job:{CHIEF}"]
    return [f"/job:{PS}", f"/job:{task.type}/task:{task.index}"]


def _configure(devices: DeviceFlags) -> list[str]:
    """Configures devices; returns those to train on.

    Raises:
      UserError: There are fewer GPUs than asked for.
    """
    gpus = tf.config.list_physical_devices("GPU")
    if devices.visible_devices is not None:
        absent = [n for n in devices.visible_devices if n >= len(gpus)]
        if absent:
            raise UserError(
                f"--visible_devices: there is no GPU {absent[0]}; this machine has"
                f" {len(gpus)}"
            )
        gpus = [gpus[n] for n in devices.visible_devices]
    wanted = len(gpus) if devices.num_gpus is None else devices.num_gpus
    if wanted > len(gpus):
        raise UserError(
            f"--num_gpus={wanted}: this machine has {len(gpus)} GPUs that TensorFlow"
            " can use"
        )
    gpus = gpus[:wanted]
    # What is as it is by default is not set: where rows of the user's own were read
    # before, TensorFlow is in use, and devices cannot be set any more.
    if gpus != tf.config.get_visible_devices("GPU"):
        tf.config.set_visible_devices(gpus, "GPU")
    for gpu in gpus:
        tf.config.experimental.set_memory_growth(gpu, devices.memory_growth)
    tf.config.set_soft_device_placement(devices.soft_placement)
    threading = tf.config.threading
    if devices.inter_op_threads:
        threading.set_inter_op_parallelism_threads(devices.inter_op_threads)
    if devices.intra_op_threads:
        threading.set_intra_op_parallelism_threads(devices.intra_op_threads)
    if devices.logical_cpus > 1:
        (cpu,) = tf.config.list_physical_devices("CPU")
        parts = [tf.config.LogicalDeviceConfiguration()] * devices.logical_cpus
        tf.config.set_logical_device_configuration(cpu, parts)
        return [f"/cpu:{n}" for n in range(devices.logical_cpus)]
    return [f"/gpu:{n}" for n in range(len(gpus))] or ["/cpu:0"]


def _on_cpu(names: list[str]) -> bool:
    return names[0].startswith("/cpu")


def _mirrored(names: list[str]) -> tf.distribute.Strategy:
    # The default ways of reducing wait for each other for ever on CPU devices.
    reduction = tf.distribute.ReductionToOneDevice() if _on_cpu(names) else None
    return tf.distribute.MirroredStrategy(names, reduction)


def _strategy(choice: Choice, names: list[str]) -> tf.distribute.Strategy | None:
    if choice.strategy in ("none", "parameter_server"):
        return None
    if choice.strategy == "one_device":
        return tf.distribute.OneDeviceStrategy(names[0])
    if choice.strategy == "mirrored":
        return _mirrored(names)
    if choice.strategy == "central_storage":
        return tf.distribute.experimental.CentralStorageStrategy(names, "/cpu:0")
    if choice.strategy == "parameter_server_v1":
        return _v1.distribute.experimental.ParameterServerStrategy()
    # Estimators know this class, and not its newer name, by the name of its type.
    return dense_gradients.make_dense(
        tf.distribute.experimental.MultiWorkerMirroredStrategy(
            _COMMUNICATION[choice.settings.communication.upper()]
        )
    )


def make(choice: Choice) -> Distribution:
    """Configures this process' devices and makes the strategy.

    Workers in step wait here for each other.

    Raises:
      UserError: The machine lacks what was asked for.
    """
    trains = choice.cluster.task is None or choice.cluster.task in (
        choice.cluster.trainers
    )
    try:
        names = _configure(choice.settings.devices)
    except RuntimeError as error:
        raise UserError(
            f"flags about devices come too late ({error}): a module of --input_fn,"
            " --model or --metrics used TensorFlow when it was imported; let it do so in"
            " its functions only"
        ) from error
    if not trains:
        return Distribution(choice, None)
    with environment.tf_config(choice.cluster.tf_config()):
        return Distribution(choice, _strategy(choice, names))
