"""TF_CONFIG: each mistake is named in one line, each right form is understood."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.cluster import tf_config
from pipeline.cluster.config import TASK_TYPES, ClusterConfig, Task, describe
from pipeline.types import UserError

CLUSTER = {
    "chief": ["a:1"],
    "worker": ["b:1", "c:1"],
    "ps": ["d:1"],
}


def text(cluster=None, task=None, **more):
    value = {"cluster": cluster or CLUSTER, "task": task or ("worker", 1), **more}
    if isinstance(value["task"], tuple):
        kind, index = value["task"]
        value["task"] = {"type": kind, "index": index}
    return json.dumps(value)


def without(role):
    return {name: hosts for name, hosts in CLUSTER.items() if name != role}


@pytest.mark.parametrize("value", [None, "", " \n", "{}"])
def test_a_single_machine(value):
    config = tf_config.parse(value)
    assert config == ClusterConfig()
    assert config.is_leader
    assert not config.is_cluster
    assert config.tf_config() == {}


def test_a_cluster():
    config = tf_config.parse(text())
    assert config.task == Task("worker", 1)
    assert config.leader == Task("chief")
    assert not config.is_leader
    assert [str(task) for task in config.trainers] == [
        "chief 0",
        "worker 0",
        "worker 1",
    ]
    assert config.tf_config() == json.loads(text())
    assert describe(config) == "worker 1 of 1 chief, 2 worker, 1 ps"


WRONG = {
    "broken JSON": ('{"cluster": ', "not valid JSON"),
    "single quotes": ("{'cluster': {}}", "double quotes"),
    "a list": ("[]", "must be a JSON object"),
    "a text": ('"chief"', "must be a JSON object"),
    "a number": ("3", "must be a JSON object"),
    "deep": ("[" * 100_000, "nested too deeply"),
    "unknown key": (text(clusters={}), "did you mean cluster?"),
    "key twice": ('{"task": {}, "task": {}}', '"task" is given twice'),
    "no task": (json.dumps({"cluster": CLUSTER}), "task is missing"),
    "no cluster": (json.dumps({"task": {"type": "worker", "index": 0}}), "cluster is"),
    "no index": (text(task={"type": "worker"}), "task.index is missing"),
    "no type": (text(task={"index": 0}), "task.type is missing"),
    "index is text": (text(task=("worker", "0")), "task.index is '0'"),
    "index is true": (text(task=("worker", True)), "task.index is 'true'"),
    "index is a float": (text(task=("worker", 0.0)), "task.index is '0.0'"),
    "index below 0": (text(task=("worker", -1)), "task.index is -1"),
    "index too high": (text(task=("worker", 2)), "the cluster has 2 worker, from 0"),
    "misspelt type": (text(task=("wroker", 0)), "did you mean worker?"),
    "type is a number": (text(task=(3, 0)), "task.type is '3'"),
    "misspelt role": (text({**CLUSTER, "pss": ["e:1"]}), "did you mean ps?"),
    "task without hosts": (text(without("ps"), ("ps", 0)), "the cluster has none"),
    "no chief": (text(without("chief")), "cluster.chief is missing"),
    "only ps": (text({"ps": ["a:1"]}, ("ps", 0)), "cluster.chief is missing"),
    "two chiefs": (text({**CLUSTER, "chief": ["a:1", "e:1"]}), "lists 2 tasks"),
    "chief and master": (text({**CLUSTER, "master": ["e:1"]}), "both a chief and a"),
    "two evaluators": (text({**CLUSTER, "evaluator": ["e:1", "f:1"]}), "one evaluates"),
    "second evaluator": (text(task=("evaluator", 1)), "of which the cluster has none"),
    "empty host": (text({**CLUSTER, "ps": [""]}), "cluster.ps[0] is ''"),
    "host without port": (text({**CLUSTER, "ps": ["d"]}), "must be HOST:PORT"),
    "port 0": (text({**CLUSTER, "ps": ["d:0"]}), "must be HOST:PORT"),
    "port too high": (text({**CLUSTER, "ps": ["d:65536"]}), "must be HOST:PORT"),
    "huge port": (text({**CLUSTER, "ps": ["d:" + "9" * 5000]}), "must be HOST:PORT"),
    "blank in host": (text({**CLUSTER, "ps": [" d:1"]}), "must be HOST:PORT"),
    "scheme": (text({**CLUSTER, "ps": ["grpc://d:1"]}), "must be HOST:PORT"),
    "host is text": (text({**CLUSTER, "ps": "d:1"}), "must be a list"),
    "host is null": (text({**CLUSTER, "ps": [None]}), "must be a text"),
    "address twice": (text({**CLUSTER, "ps": ["a:1"]}), "which is chief 0, too"),
    "cluster is empty": (text({"chief": []}), "cluster is empty"),
    "cluster is a list": (text([1]), "cluster must be an object"),
    "task is a list": (text(task=[1]), "task must be an object"),
    "sparse key": (text({"worker": {"x": "a:1"}, "ps": ["b:1"]}), "keys are indices"),
}


@pytest.mark.parametrize(("value", "said"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_named_with_a_correct_sample(value, said):
    with pytest.raises(UserError) as caught:
        tf_config.parse(value)
    message = str(caught.value)
    assert message.startswith("TF_CONFIG: ")
    assert said in message
    assert "\n" not in message
    assert len(message) < 500
    tf_config.parse(message.split("A correct one: ")[1])


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["cluster", "task", "type", "index", *TASK_TYPES, "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=40) | _JSON.map(json.dumps))
def test_any_value_is_a_cluster_or_one_line(value):
    try:
        config = tf_config.parse(value)
    except UserError as error:
        assert str(error).startswith("TF_CONFIG: ")
    else:
        assert config == tf_config.parse(value)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_right_value_with_one_part_replaced(data):
    value = json.loads(text({**CLUSTER, "evaluator": ["e:1"]}))
    place = data.draw(
        st.sampled_from([("cluster",), ("task",), ("task", "type"), ("task", "index")])
        | st.sampled_from([("cluster", role) for role in TASK_TYPES])
    )
    part = value
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = data.draw(_JSON)
    try:
        config = tf_config.parse(json.dumps(value))
    except UserError as error:
        assert str(error).startswith("TF_CONFIG: ")
    else:
        assert config.task in config.addresses or config.task == Task("evaluator")


@pytest.mark.parametrize("inside", [False, True])
def test_the_evaluator_works_alone(inside):
    cluster = {**CLUSTER, "evaluator": ["e:1"]} if inside else CLUSTER
    config = tf_config.parse(text(cluster, ("evaluator", 0)))
    assert config.has_evaluator
    assert config.is_cluster
    assert not config.is_leader
    assert config.tf_config() == {}


def test_others_do_not_see_the_evaluator():
    config = tf_config.parse(text({**CLUSTER, "evaluator": ["e:1"]}))
    assert config.has_evaluator
    assert "evaluator" not in config.tf_config()["cluster"]


def test_a_master_is_the_chief():
    cluster = {"master": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]}
    config = tf_config.parse(text(cluster, ("master", 0), environment="cloud"))
    assert config.task == Task("chief")
    assert config.tf_config()["cluster"]["chief"] == ["a:1"]


def test_workers_in_step_need_no_chief():
    config = tf_config.parse(text({"worker": ["a:1", "b:1"]}, ("worker", 0)))
    assert config.leader == Task("worker", 0)
    assert config.is_leader


def test_all_roles_as_kubeflow_writes_them():
    hosts = {
        role: [f"job-{role}-{i}.ns.svc:2222" for i in range(count)]
        for role, count in {"chief": 1, "worker": 2, "ps": 2, "evaluator": 1}.items()
    }
    for role, found in hosts.items():
        for index in range(len(found)):
            config = tf_config.parse(text(hosts, (role, index), environment="cloud"))
            assert config.task == Task(role, index)
            assert config.leader == Task("chief")


def test_a_chief_alone_is_a_single_machine():
    config = tf_config.parse(text({"chief": ["a:1"]}, ("chief", 0)))
    assert not config.is_cluster
    assert config.tf_config() == {}


@pytest.mark.parametrize(("index", "task"), [("0", "chief 0"), ("2", "worker 1")])
def test_a_sparse_cluster(index, task):
    cluster = {"worker": {index: "a:1"}, "ps": ["b:1", "c:1"]}
    config = tf_config.parse(text(cluster, ("worker", int(index))))
    assert config.sparse
    assert str(config.task) == task
    assert config.is_leader == (index == "0")
    written = config.tf_config()["cluster"]
    assert written["ps"] == ["b:1", "c:1"]
    assert "chief" in written


def test_a_parameter_server_of_a_sparse_cluster_knows_itself_only():
    config = tf_config.parse(text({"worker": {}, "ps": ["b:1"]}, ("ps", 3)))
    assert config.task == Task("ps", 3)
    assert config.tf_config()["cluster"]["ps"] == {"3": "b:1"}


def test_flags_say_the_same():
    hosts = {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1"]}
    assert tf_config.from_flags(hosts, "worker", 1) == tf_config.parse(text())
    assert tf_config.from_flags({"chief": []}, None, None) == ClusterConfig()


@pytest.mark.parametrize(
    ("hosts", "task_type", "said"),
    [
        ({"chief": ["a:1"]}, None, "--task_type is missing"),
        ({}, "worker", "--chief_hosts is missing"),
        ({"chief": ["a"], "worker": ["b:1"]}, "chief", "--chief_hosts[0] is 'a'"),
        ({"chief": ["a:1"]}, "worker", "--task_type is worker"),
        ({"worker": ["a:1"], "ps": ["b:1"]}, "worker", "--chief_hosts is missing"),
    ],
)
def test_wrong_flags_are_named(hosts, task_type, said):
    with pytest.raises(UserError, match=said.replace("[", r"\[")):
        tf_config.from_flags(hosts, task_type, None)
