"""TF_CONFIG, or the flags in its place, to a ClusterConfig; every mistake by name.

Beyond what TensorFlow documents, it takes the forms that cluster managers write: all
roles in `cluster`, `environment`, `master` for the chief (Google's platforms), and
Kubeflow TFJob's sparse cluster, where `worker` is an object of index to address.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from pipeline.cluster.config import (
    CHIEF,
    EVALUATOR,
    PS,
    TASK_TYPES,
    WORKER,
    ClusterConfig,
    Task,
)
from pipeline.types import UserError

VARIABLE = "TF_CONFIG"
_SAMPLE = (
    '{"cluster": {"chief": ["host0:2222"], "worker": ["host1:2222"],'
    ' "ps": ["host2:2222"]}, "task": {"type": "worker", "index": 0}}'
)
_KEYS = ("cluster", "task", "environment", "rpc_layer", "job")
_ADDRESS = re.compile(r"(?:[A-Za-z0-9_](?:[A-Za-z0-9._-]*)|\[[0-9A-Fa-f:.]+\]):(\d+)")
_MAX_SHOWN = 60


class _Wrong(Exception):
    """A part and what is wrong with it."""


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return repr(text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}...")


def _fail(part: str, problem: str) -> NoReturn:
    raise _Wrong(f"{part} {problem}")


def _without_repeats(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        _fail(f'"{repeated}"', "is given twice")
    return found


def _address(part: str, value: Any) -> str:
    if not isinstance(value, str):
        _fail(part, f"is {_shown(value)}, but must be a text such as host1:2222")
    match = _ADDRESS.fullmatch(value)
    if not match or not 0 < int(match.group(1)[:6]) < 65536:
        _fail(part, f"is {_shown(value)}, but must be HOST:PORT such as host1:2222")
    return value


def _role(name: str) -> str:
    role = CHIEF if name == "master" else name
    if role not in TASK_TYPES:
        close = difflib.get_close_matches(name, TASK_TYPES, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        _fail(
            f"{_shown(name)}",
            f"is no task type; there are {', '.join(TASK_TYPES)}{hint}",
        )
    return role


def _tasks_of(name: str, role: str, value: Any) -> Iterable[tuple[Task, str]]:
    part = f"cluster.{name}"
    if isinstance(value, Mapping):
        for index, address in value.items():
            if not re.fullmatch(r"[0-9]{1,6}", index):
                _fail(part, f"has the key {_shown(index)}, but keys are indices")
            yield Task(role, int(index)), _address(f"{part}.{index}", address)
    elif isinstance(value, list):
        for index, address in enumerate(value):
            yield Task(role, index), _address(f"{part}[{index}]", address)
    elif value is not None:
        _fail(part, f'is {_shown(value)}, but must be a list such as ["host1:2222"]')


def _addresses(cluster: Any) -> dict[Task, str]:
    if not isinstance(cluster, Mapping):
        _fail("cluster", "must be an object of task types to lists of addresses")
    found: dict[Task, str] = {}
    place: dict[str, Task] = {}
    for name, value in cluster.items():
        role = _role(name)
        if name == "master" and CHIEF in cluster:
            _fail("cluster", "has both a chief and a master; one of them leads")
        for task, address in _tasks_of(name, role, value):
            if address in place:
                _fail(
                    f"cluster.{name}", f"has {address}, which is {place[address]}, too"
                )
            if task in found:
                _fail(f"cluster.{name}", f"lists index {task.index} twice")
            place[address] = task
            found[task] = address
    if not found:
        _fail("cluster", "is empty")
    return found


def _task(value: Any) -> Task:
    if not isinstance(value, Mapping):
        _fail("task", "must be an object with type and index")
    for key in ("type", "index"):
        if key not in value:
            _fail(f"task.{key}", "is missing")
    if not isinstance(value["type"], str):
        _fail("task.type", f"is {_shown(value['type'])}, but must be a text")
    index = value["index"]
    if isinstance(index, bool) or not isinstance(index, int):
        _fail("task.index", f"is {_shown(index)}, but must be a number such as 0")
    if index < 0:
        _fail("task.index", f"is {index}, but counts from 0")
    return Task(_role(value["type"]), index)


def _check_roles(addresses: Mapping[Task, str], task: Task, sparse: bool) -> None:
    def count(role: str) -> int:
        return sum(t.type == role for t in addresses)

    if count(CHIEF) > 1:
        _fail("cluster.chief", f"lists {count(CHIEF)} tasks, but one leads")
    if count(EVALUATOR) > 1:
        _fail("cluster.evaluator", f"lists {count(EVALUATOR)} tasks, but one evaluates")
    if not sparse and not count(CHIEF) and (count(PS) or not count(WORKER)):
        _fail("cluster.chief", "is missing: with ps, one task must be the chief")
    if task == Task(EVALUATOR) and not count(EVALUATOR):
        return
    if task not in addresses:
        there = count(task.type)
        if not there:
            _fail("task.type", f"is {task.type}, of which the cluster has none")
        _fail(
            "task.index",
            f"is {task.index}, but the cluster has {there} {task.type}, from 0",
        )


def _from_sparse(
    addresses: Mapping[Task, str], task: Task
) -> tuple[dict[Task, str], Task]:
    """Gives the tasks of a sparse cluster the numbers that a full one would.

    There is no chief in it: worker 0 leads. A parameter server is told of itself
    alone, as the only one.
    """

    def numbered(found: Task) -> Task:
        if found.type == WORKER:
            return Task(WORKER, found.index - 1) if found.index else Task(CHIEF)
        return task if task.type == PS else found

    return {numbered(t): address for t, address in addresses.items()}, numbered(task)


def _config(value: Any) -> ClusterConfig:
    if not isinstance(value, Mapping):
        _fail("it", f"is {_shown(value)}, but must be a JSON object")
    for key in value:
        if key not in _KEYS:
            close = difflib.get_close_matches(key, _KEYS, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            _fail(_shown(key), f"is unknown{hint}")
    if not value:
        return ClusterConfig()
    for key in ("cluster", "task"):
        if not value.get(key):
            _fail(key, "is missing or empty")
    addresses, task = _addresses(value["cluster"]), _task(value["task"])
    sparse = isinstance(value["cluster"].get(WORKER), Mapping)
    if sparse:
        addresses, task = _from_sparse(addresses, task)
    _check_roles(addresses, task, sparse)
    return ClusterConfig(addresses, task, sparse)


def parse(text: str | None) -> ClusterConfig:
    """Parses the value of TF_CONFIG.

    Args:
      text: The value; None, blank text and {} stand for a single machine.

    Raises:
      UserError: It is malformed or incomplete; one line names the part and shows a
        correct value.
    """
    if text is None or not text.strip():
        return ClusterConfig()
    try:
        return _config(json.loads(text, object_pairs_hook=_without_repeats))
    except _Wrong as error:
        problem = str(error)
    except RecursionError:
        problem = "it is nested too deeply"
    except ValueError as error:
        quotes = " (JSON has double quotes)" if "'" in text and '"' not in text else ""
        problem = f"it is not valid JSON{quotes}: {error}; it begins {_shown(text)}"
    raise UserError(f"{VARIABLE}: {problem}. A correct one: {_SAMPLE}")


def from_flags(
    hosts: Mapping[str, Sequence[str]], task_type: str | None, task_index: int | None
) -> ClusterConfig:
    """Returns the cluster that flags describe.

    Args:
      hosts: "host:port" lists by task type; empty ones stand for none.
      task_type: This process' type.
      task_index: This process' index; None means 0.

    Raises:
      UserError: They are incomplete or contradict each other.
    """
    given = {role: list(found) for role, found in hosts.items() if found}
    if not given and task_type is None and task_index is None:
        return ClusterConfig()
    if task_type is None or not given:
        absent = "--task_type" if task_type is None else "--chief_hosts"
        raise UserError(
            f"{absent} is missing: a cluster by flags needs the hosts of each task type"
            " and --task_type, e.g. --chief_hosts=host0:2222"
            " --worker_hosts=host1:2222,host2:2222 --task_type=worker --task_index=1"
        )
    try:
        task = {"type": task_type, "index": task_index or 0}
        return _config({"cluster": given, "task": task})
    except _Wrong as error:
        problem = re.sub(r"\bcluster\.(\w+)", r"--\1_hosts", str(error))
        problem = re.sub(r"\btask\.(\w+)", r"--task_\1", problem)
        raise UserError(f"{problem}; each list is HOST:PORT,HOST:PORT") from None
