"""The manifests in deploy/: fields that exist, and commands that run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from pipeline.cluster import tf_config
from pipeline.cluster.config import TASK_TYPES
from pipeline.types import ExitCode

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / "deploy").glob("*.yaml"))
_SECONDS = 400
# Fields of Kubernetes 1.31 and of Kubeflow's training operator 1.9, by where they stand;
# "*" is any name, [] an element of a list. Only objects that stand in the files.
_CONTAINER = """args command env envFrom image imagePullPolicy lifecycle livenessProbe name
    ports readinessProbe resizePolicy resources restartPolicy securityContext
    startupProbe stdin stdinOnce terminationMessagePath terminationMessagePolicy tty
    volumeDevices volumeMounts workingDir"""
_POD = {
    "": "metadata spec",
    "spec": """activeDeadlineSeconds affinity automountServiceAccountToken containers
        dnsConfig dnsPolicy enableServiceLinks hostAliases hostIPC hostNetwork hostPID
        hostname imagePullSecrets initContainers nodeName nodeSelector os preemptionPolicy
        priority priorityClassName restartPolicy runtimeClassName schedulerName
        securityContext serviceAccountName shareProcessNamespace subdomain
        terminationGracePeriodSeconds tolerations topologySpreadConstraints volumes""",
    "spec.containers[]": _CONTAINER,
    "spec.containers[].ports[]": "containerPort hostIP hostPort name protocol",
    "spec.containers[].resources": "claims limits requests",
    "spec.containers[].resources.limits": "cpu memory nvidia.com/gpu",
    "spec.containers[].resources.requests": "cpu memory nvidia.com/gpu",
    "spec.containers[].volumeMounts[]": "mountPath mountPropagation name readOnly subPath",
    "spec.volumes[]": "configMap emptyDir hostPath name nfs persistentVolumeClaim secret",
    "spec.volumes[].persistentVolumeClaim": "claimName readOnly",
}
_TOP = {"": "apiVersion kind metadata spec", "metadata": "annotations labels name"}


def _below(place: str, fields: dict[str, str]) -> dict[str, str]:
    return {f"{place}.{name}".rstrip("."): value for name, value in fields.items()}


_JOB = {
    "": "metadata spec",
    "spec": """activeDeadlineSeconds backoffLimit completionMode completions
        parallelism podFailurePolicy suspend template ttlSecondsAfterFinished""",
    **_below("spec.template", _POD),
}
FIELDS = {
    ("kubeflow.org/v1", "TFJob"): {
        **_TOP,
        "spec": "enableDynamicWorker runPolicy successPolicy tfReplicaSpecs",
        "spec.runPolicy": """activeDeadlineSeconds backoffLimit cleanPodPolicy managedBy
            schedulingPolicy suspend ttlSecondsAfterFinished""",
        "spec.tfReplicaSpecs": "Chief Master Worker PS Evaluator",
        "spec.tfReplicaSpecs.*": "replicas restartPolicy template",
        **_below("spec.tfReplicaSpecs.*.template", _POD),
    },
    ("batch/v1", "Job"): {**_JOB, **_TOP},
    ("batch/v1", "CronJob"): {
        **_TOP,
        "spec": """concurrencyPolicy failedJobsHistoryLimit jobTemplate schedule
            startingDeadlineSeconds successfulJobsHistoryLimit suspend timeZone""",
        **_below("spec.jobTemplate", _JOB),
    },
    ("v1", "PersistentVolumeClaim"): {
        **_TOP,
        "spec": "accessModes resources selector storageClassName volumeMode volumeName",
        "spec.resources": "limits requests",
        "spec.resources.requests": "storage",
    },
}


def _load(path: Path) -> dict:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def _check(value, place: str, fields: dict[str, str]) -> None:
    if isinstance(value, list):
        for element in value:
            _check(element, f"{place}[]", fields)
    elif isinstance(value, dict):
        unknown = value.keys() - set(fields[place].split())
        assert not unknown, f"{place}: {unknown}"
        for name, inner in value.items():
            below = "*" if place == "spec.tfReplicaSpecs" else name
            _check(inner, f"{place}.{below}".lstrip("."), fields)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_fields_exist(path):
    value = _load(path)
    _check(value, "", FIELDS[value["apiVersion"], value["kind"]])


def test_what_the_operator_asks_of_a_job():
    job = _load(ROOT / "deploy" / "tfjob.yaml")
    for role, replicas in job["spec"]["tfReplicaSpecs"].items():
        assert role.lower() in (*TASK_TYPES, "master")
        # It retries a task that ends with one of these, and 143, after SIGTERM.
        assert replicas["restartPolicy"] == "ExitCode"
        pod = replicas["template"]["spec"]
        (container,) = pod["containers"]
        # TF_CONFIG is put into the container of this name, with the port of this name.
        assert container["name"] == "tensorflow"
        assert [port["name"] for port in container["ports"]] == ["tfjob-port"]
        assert pod["terminationGracePeriodSeconds"] > 30
        names = {volume["name"] for volume in pod["volumes"]}
        assert {mount["name"] for mount in container["volumeMounts"]} <= names
    assert ExitCode.TRY_AGAIN == 138
    assert ExitCode.PREEMPTED == 143


@pytest.mark.parametrize("name", ["preprocess.yaml", "tfjob.yaml"])
def test_the_steps_of_the_job_share_the_volume(name):
    claim = _load(ROOT / "deploy" / "volume.yaml")
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    claimed = f"claimName: {claim['metadata']['name']}"
    assert claimed in (ROOT / "deploy" / name).read_text()


def _as_the_operator_says(job: dict) -> dict[tuple[str, int], str]:
    """Returns the TF_CONFIG of each task of a TFJob."""
    counts = {
        role.lower(): replicas.get("replicas", 1)
        for role, replicas in job["spec"]["tfReplicaSpecs"].items()
    }
    cluster = {
        role: [f"census-{role}-{number}.default.svc:2222" for number in range(count)]
        for role, count in counts.items()
    }
    return {
        (role, number): json.dumps(
            {
                "cluster": cluster,
                "task": {"type": role, "index": number},
                "environment": "cloud",
            }
        )
        for role, count in counts.items()
        for number in range(count)
    }


def test_each_task_of_the_job_finds_its_place():
    variables = _as_the_operator_says(_load(ROOT / "deploy" / "tfjob.yaml"))
    assert len(variables) == 5
    for (role, number), value in variables.items():
        config = tf_config.parse(value)
        assert (config.task.type, config.task.index) == (role, number)
        assert str(config.leader) == "chief 0"
        assert config.has_evaluator


def _command(container: dict, work: Path) -> list[str]:
    words = [*container["command"], *container["args"]]
    assert words[0] == "python"
    return [sys.executable, *(word.replace("/work", str(work)) for word in words[1:])]


@pytest.mark.slow
def test_the_commands_run(tmp_path):
    """Those of a chief alone, since the hosts of the job are the cluster's."""
    (tmp_path / "raw").mkdir()
    lines = [f"{n % 7},w{n % 3},{'yn'[n % 2]}" for n in range(400)]
    (tmp_path / "raw" / "a.csv").write_text("\n".join(["x,c,y", *lines]) + "\n")
    (tmp_path / "features.yaml").write_text(
        "label: {column: y, classes: [n, y]}\n"
        "columns: {x: {type: float}, c: {type: string}, y: {type: string}}\n"
        "features: {x: {kind: numeric}, c: {kind: vocabulary}}\n"
    )
    (tmp_path / "census.flags").write_text("--max_steps=3\n--batch_size=32\n")
    job = _load(ROOT / "deploy" / "preprocess.yaml")
    training = _load(ROOT / "deploy" / "tfjob.yaml")["spec"]["tfReplicaSpecs"]["Chief"]
    for pod in (job["spec"]["template"], training["template"]):
        (container,) = pod["spec"]["containers"]
        done = subprocess.run(
            _command(container, tmp_path),
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
        )
        assert done.returncode == 0, done.stderr[-3000:]
    manifest = json.loads((tmp_path / "model" / "manifest.json").read_text())
    assert manifest["results"]["global_step"] == 3
