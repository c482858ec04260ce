"""A cluster: its tasks, where each listens, and which one this process is."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType

CHIEF = "chief"
WORKER = "worker"
PS = "ps"
EVALUATOR = "evaluator"
TASK_TYPES = (CHIEF, WORKER, PS, EVALUATOR)
# TensorFlow demands a chief, and a worker of a sparse cluster never talks to it.
_UNKNOWN_CHIEF = "unknown.invalid:1"


@dataclasses.dataclass(frozen=True, order=True)
class Task:
    """One process of a cluster.

    Attributes:
      type: One of TASK_TYPES.
      index: From 0, among the tasks of its type.
    """

    type: str
    index: int = 0

    def __post_init__(self):
        if self.type not in TASK_TYPES:
            raise ValueError(f"no task type {self.type}")
        if self.index < 0:
            raise ValueError("index must be at least 0")

    def __str__(self):
        return f"{self.type} {self.index}"


@dataclasses.dataclass(frozen=True)
class ClusterConfig:
    """The cluster that this process belongs to; without tasks, a single machine.

    `chief` leads: it alone writes checkpoints, summaries and results. In a cluster of
    workers that train in step the chief may be missing; worker 0 leads then.

    Attributes:
      addresses: "host:port" by task. An evaluator may have none, since nobody talks
        to it.
      task: This process; None on a single machine.
      sparse: Whether `addresses` lists only the parameter servers and this task, so
        that workers can come and go; how many there are is unknown.
    """

    addresses: Mapping[Task, str] = dataclasses.field(
        default_factory=lambda: MappingProxyType({})
    )
    task: Task | None = None
    sparse: bool = False

    def __post_init__(self):
        if bool(self.addresses) != (self.task is not None):
            raise ValueError("a cluster has tasks, and one of them is this process")
        if self.task is None:
            return
        if self.task not in self.addresses and self.task != Task(EVALUATOR):
            raise ValueError(f"{self.task} is not in the cluster")
        if len(set(self.addresses.values())) != len(self.addresses):
            raise ValueError("two tasks have the same address")

    def of_type(self, task_type: str) -> tuple[Task, ...]:
        """Returns the tasks of a type, by index."""
        return tuple(sorted(t for t in self.addresses if t.type == task_type))

    @property
    def is_cluster(self) -> bool:
        """Whether there is more than one process."""
        others = {*self.addresses} - {self.task}
        return self.task is not None and (bool(others) or self.sparse)

    @property
    def leader(self) -> Task:
        """The task that writes: the chief, else worker 0."""
        without_chief = not self.sparse and Task(CHIEF) not in self.addresses
        return Task(WORKER) if without_chief else Task(CHIEF)

    @property
    def is_leader(self) -> bool:
        return self.task is None or self.task == self.leader

    @property
    def trainers(self) -> tuple[Task, ...]:
        """The tasks that take training steps, the leader first."""
        return (*self.of_type(CHIEF), *self.of_type(WORKER))

    @property
    def servers(self) -> tuple[Task, ...]:
        """The tasks that others connect to."""
        return (*self.trainers, *self.of_type(PS))

    @property
    def has_evaluator(self) -> bool:
        """Whether this task knows of an evaluator.

        One that is not listed in the cluster is unknown to all others.
        """
        return bool(self.of_type(EVALUATOR)) or self.task == Task(EVALUATOR)

    def tf_config(self) -> dict:
        """Returns what TensorFlow takes as TF_CONFIG in this process; {} if alone.

        The evaluator is left out: it works alone, from checkpoints.
        """
        if self.task is None or self.task.type == EVALUATOR or not self.is_cluster:
            return {}
        if len(self.servers) < 2 and not self.sparse:
            return {}
        cluster: dict[str, dict[str, str] | list[str]] = {}
        for task_type in (CHIEF, WORKER, PS):
            tasks = self.of_type(task_type)
            if [task.index for task in tasks] == list(range(len(tasks))):
                addresses = [self.addresses[task] for task in tasks]
            else:
                addresses = {str(t.index): self.addresses[t] for t in tasks}
            if tasks:
                cluster[task_type] = addresses
        if self.sparse:
            cluster.setdefault(CHIEF, {"0": _UNKNOWN_CHIEF})
        task = {"type": self.task.type, "index": self.task.index}
        return {"cluster": cluster, "task": task}


def describe(config: ClusterConfig) -> str:
    """Returns a line for people, e.g. "worker 0 of 1 chief, 2 worker, 1 ps"."""
    if config.task is None:
        return "a single machine"
    counts = [f"{len(found)} {t}" for t in TASK_TYPES if (found := config.of_type(t))]
    return f"{config.task} of {', '.join(counts)}"
