"""Stand-in for tensorflow.python.distribute.estimator_training.

The five functions through which tensorflow-estimator 2.15 runs an Estimator that has
a distribution strategy. TensorFlow still has the distribute coordinator, which starts
the tasks of a cluster; these tell it what an Estimator does in each task.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from tensorflow.python.distribute import distribute_coordinator as coordinator
from tensorflow.python.distribute import (
    distribute_coordinator_context,
    multi_worker_util,
)
from tensorflow.python.platform import tf_logging as logging
from tensorflow.python.training import server_lib

# One process drives the servers of a remote cluster.
_STANDALONE_CLIENT = coordinator.CoordinatorMode.STANDALONE_CLIENT
# Each task of a TF_CONFIG cluster is a process that runs the same program.
_INDEPENDENT_WORKER = coordinator.CoordinatorMode.INDEPENDENT_WORKER


def init_run_config(config: Any, tf_config: dict[str, Any]) -> None:
    """Completes a RunConfig that has a distribution strategy.

    Args:
      config: The RunConfig, which calls this at the end of its constructor.
      tf_config: The parsed TF_CONFIG.

    Raises:
      ValueError: Something is given in two places.
    """
    experimental = config._experimental_distribute
    for name in ("train_distribute", "eval_distribute"):
        strategy = getattr(experimental, name, None)
        if not strategy:
            continue
        if getattr(config, f"_{name}"):
            raise ValueError(
                f"{name} is set twice: in RunConfig and in experimental_distribute"
            )
        setattr(config, f"_{name}", strategy)

    # A local run's settings; in a cluster each task later gets its own.
    config._init_distributed_setting_from_environment_var({})
    config._distribute_coordinator_mode = None
    cluster = server_lib.ClusterSpec(tf_config.get("cluster", {}))
    remote_cluster = getattr(experimental, "remote_cluster", None)

    if config._train_distribute and remote_cluster:
        if cluster:
            raise ValueError(
                "the cluster is set twice: in TF_CONFIG and in"
                " experimental_distribute.remote_cluster"
            )
        config._distribute_coordinator_mode = _STANDALONE_CLIENT
        config._cluster_spec = remote_cluster
    elif config._train_distribute and cluster and "master" not in cluster.jobs:
        config._distribute_coordinator_mode = _INDEPENDENT_WORKER
        config._cluster_spec = cluster
    else:
        config._init_distributed_setting_from_environment_var(tf_config)
        config._maybe_overwrite_session_config_for_distributed_training()
    logging.info(
        "RunConfig: distribute coordinator mode %s", config._distribute_coordinator_mode
    )


def should_run_distribute_coordinator(config: Any) -> bool:
    """Whether train_and_evaluate has to run as part of a cluster."""
    if getattr(config, "_distribute_coordinator_mode", None) is None:
        return False
    if not config.cluster_spec:
        logging.warning("RunConfig has no cluster: train_and_evaluate runs locally")
        return False
    return True


def train_and_evaluate(
    estimator: Any, train_spec: Any, eval_spec: Any, executor_cls: Callable[..., Any]
) -> None:
    """Runs this process's part of train_and_evaluate in a cluster.

    Args:
      estimator: The Estimator.
      train_spec: Its TrainSpec.
      eval_spec: Its EvalSpec.
      executor_cls: Makes the object that evaluates in the evaluator task.
    """
    mode = estimator.config._distribute_coordinator_mode
    if mode is None:
        raise ValueError("the RunConfig has no distribute coordinator mode")

    def train(strategy):
        local, is_chief = _for_current_task(estimator, "train", strategy)
        # A standalone client runs all workers; hooks there belong to the chief's graph.
        wants_hooks = is_chief or mode == _INDEPENDENT_WORKER
        local.train(
            input_fn=train_spec.input_fn,
            max_steps=train_spec.max_steps,
            hooks=list(train_spec.hooks) if wants_hooks else [],
        )

    def evaluate(strategy):
        local, _ = _for_current_task(estimator, "eval", strategy)
        executor_cls(local, train_spec, eval_spec)._start_continuous_evaluation()

    config = estimator.config
    coordinator.run_distribute_coordinator(
        train,
        config.train_distribute,
        evaluate,
        config.eval_distribute,
        mode=mode,
        # An independent worker must read its own task from TF_CONFIG.
        cluster_spec=config.cluster_spec if mode == _STANDALONE_CLIENT else None,
        session_config=config.session_config,
    )


def estimator_train(
    estimator: Any, train_distributed_fn: Callable[..., Any], hooks: Sequence[Any]
) -> Any:
    """Runs Estimator.train on a remote cluster."""
    return _run_on_remote_cluster(estimator, "train", train_distributed_fn, hooks)


def estimator_evaluate(
    estimator: Any, evaluate_distributed_fn: Callable[..., Any], hooks: Sequence[Any]
) -> Any:
    """Runs Estimator.evaluate on a remote cluster; returns the metrics."""
    return _run_on_remote_cluster(estimator, "eval", evaluate_distributed_fn, hooks)


def _run_on_remote_cluster(
    estimator: Any, role: str, run: Callable[..., Any], hooks: Sequence[Any]
) -> Any:
    config = estimator._config
    strategy = getattr(config, f"_{role}_distribute")
    call = {"train": "Estimator.train", "eval": "Estimator.evaluate"}[role]
    cluster = multi_worker_util.normalize_cluster_spec(config.cluster_spec)
    if config._distribute_coordinator_mode != _STANDALONE_CLIENT:
        raise ValueError(
            f"{call} cannot run in a TF_CONFIG cluster with {role}_distribute:"
            " call train_and_evaluate"
        )
    if "evaluator" in cluster.jobs:
        raise ValueError(
            f"{call} cannot use an evaluator task: call train_and_evaluate"
        )
    if strategy.extended.experimental_between_graph:
        raise ValueError(
            f"{call} cannot run {type(strategy).__name__} on a remote cluster:"
            " call train_and_evaluate"
        )

    def run_task(strategy):
        local, is_chief = _for_current_task(estimator, role, strategy)
        return run(local, strategy, hooks if is_chief else [])

    return coordinator.run_distribute_coordinator(
        run_task,
        strategy,
        mode=_STANDALONE_CLIENT,
        cluster_spec=cluster,
        session_config=config.session_config,
    )


def _for_current_task(estimator: Any, role: str, strategy: Any) -> tuple[Any, bool]:
    """Returns a copy of the Estimator for this thread's task, and if it is chief."""
    task = distribute_coordinator_context.get_current_worker_context()
    local = copy.deepcopy(estimator)
    config = local._config
    setattr(config, f"_{role}_distribute", strategy)
    setattr(local, f"_{role}_distribution", strategy)
    # Else the copy's train or evaluate would come back here.
    config._distribute_coordinator_mode = None

    cluster = task.cluster_spec
    in_cluster = bool(cluster) and task.task_type != "evaluator"
    jobs = cluster.as_dict() if in_cluster else {}
    config._service = None
    config._task_type = task.task_type
    config._task_id = task.task_id
    config._is_chief = task.is_chief
    config._master = config._evaluation_master = task.master_target
    # An evaluator works alone: it must not see the other tasks.
    config._cluster_spec = cluster if in_cluster else server_lib.ClusterSpec({})
    config._num_ps_replicas = len(jobs.get("ps", ()))
    config._num_worker_replicas = len(jobs.get("chief", ())) + len(
        jobs.get("worker", ())
    )
    config._global_id_in_cluster = None
    if in_cluster:
        config._global_id_in_cluster = _global_id(cluster, task)
    elif not cluster:
        config._num_worker_replicas = 1
        config._global_id_in_cluster = 0
    return local, task.is_chief


def _global_id(cluster: Any, task: Any) -> int:
    """This task's number when the chief is counted first and ps tasks last."""
    if not task.task_type:
        return 0
    order = sorted(cluster.jobs, key=lambda job: (job == "ps", job != "chief", job))
    before = order[: order.index(task.task_type)]
    return sum(cluster.num_tasks(job) for job in before) + task.task_id
