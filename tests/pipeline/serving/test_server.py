"""The server as a process: its API, its limits, its end, and a switch under load."""

from __future__ import annotations

import http.client
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from export import versions
from pipeline.compat import tf
from pipeline.serving import server
from pipeline.types import UserError

ROOT = Path(__file__).parents[3]
MODEL = "keras_wide_deep"
pytestmark = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("starlette", "uvicorn"))),
    reason="needs starlette and uvicorn, the extra serve",
)


class _Process:
    """A server in a process of its own."""

    def __init__(self, export_dir: Path, *flags: str):
        command = [sys.executable, "-m", "pipeline", "serve", "--port=0"]
        self.process = subprocess.Popen(
            [*command, f"--export_dir={export_dir}", *flags],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        self.process.stdout.readline()
        self.url = self.process.stdout.readline().strip()
        assert self.url, self.process.stderr.read()
        self.port = int(self.url.split(":")[2].split("/")[0])

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def ask(self, method: str, path: str, body=None) -> tuple[int, dict]:
        connection = self.connect()
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        connection.request(method, f"/v1/models/model{path}", body)
        response = connection.getresponse()
        assert response.headers["content-type"] == "application/json"
        found = response.status, json.loads(response.read())
        connection.close()
        return found

    def post(self, call: str, body) -> tuple[int, dict]:
        return self.ask("POST", call, body)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=60)
        return self.process.returncode


@pytest.fixture(scope="module")
def version(small_job) -> Path:
    return Path(versions.find(str(small_job.export_dir(MODEL)), None))


@pytest.fixture(scope="module")
def served(version):
    process = _Process(version.parent, "--max_request_mb=1")
    yield process
    process.process.kill()
    process.process.communicate()


@pytest.fixture(scope="module")
def signatures(version):
    return tf.saved_model.load(str(version)).signatures


def _sample(version: Path, name: str) -> dict:
    path = version / "assets.extra" / "sample_requests" / f"{name}.json"
    return json.loads(path.read_text("utf-8"))


def _examples(version: Path) -> tf.Tensor:
    path = version / "assets.extra" / "sample_requests" / "examples.tfrecord"
    return tf.constant(list(tf.data.TFRecordDataset(str(path)).as_numpy_iterator())[:2])


@pytest.mark.parametrize("name", ["predict", "serving_default"])
def test_predict_answers_the_sample_request(served, version, signatures, name):
    status, found = served.post(":predict", _sample(version, name))
    assert status == 200
    wanted = signatures["serving_default"](examples=_examples(version))
    rows = found["predictions"]
    assert len(rows) == 2 and set(rows[0]) == set(wanted)
    for i, row in enumerate(rows):
        np.testing.assert_allclose(
            row["probabilities"], wanted["probabilities"][i], atol=1e-6
        )
        assert row["classes"] == [wanted["classes"][i, 0].numpy().decode()]


def test_predict_by_columns(served, version):
    body = _sample(version, "predict")
    rows = body.pop("instances")
    body["inputs"] = {name: [row[name] for row in rows] for name in rows[0]}
    status, found = served.post(":predict", body)
    by_rows = served.post(":predict", _sample(version, "predict"))[1]["predictions"]
    assert status == 200
    assert found["outputs"]["logits"] == [row["logits"] for row in by_rows]


def test_classify_and_regress(served, version, signatures):
    status, found = served.post(":classify", _sample(version, "classify"))
    wanted = signatures["classify"](inputs=_examples(version))["scores"].numpy()
    assert status == 200
    assert [label for label, _ in found["results"][0]] == ["nein", "ja"]
    scores = [[score for _, score in row] for row in found["results"]]
    np.testing.assert_allclose(scores, wanted, atol=1e-6)
    status, found = served.post(":regress", _sample(version, "regress"))
    wanted = signatures["regress"](inputs=_examples(version))["outputs"].numpy()
    assert status == 200
    np.testing.assert_allclose(found["results"], wanted[:, 0], atol=1e-6)


def test_status_and_metadata(served, version):
    status, found = served.ask("GET", "")
    assert status == 200
    assert found == {
        "model_version_status": [
            {
                "version": version.name,
                "state": "AVAILABLE",
                "status": {"error_code": "OK", "error_message": ""},
            }
        ]
    }
    assert served.ask("GET", f"/versions/{version.name}") == (200, found)
    status, found = served.ask("GET", "/metadata")
    signature_def = found["metadata"]["signature_def"]["signature_def"]
    assert status == 200 and found["model_spec"]["version"] == version.name
    age = signature_def["predict"]["inputs"]["age"]
    assert age["dtype"] == "DT_INT64"
    assert age["tensor_shape"]["dim"][0]["size"] == "-1"
    called = served.post(
        f"/versions/{version.name}:predict", _sample(version, "predict")
    )
    assert called[0] == 200


def _row(version, **changes) -> dict:
    body = _sample(version, "predict")
    body["instances"] = [{**body["instances"][0], **changes}]
    return body


MISTAKES = {
    "no json": (":predict", b"{", 400, "not valid JSON"),
    "a list": (":predict", b"[]", 400, "not a JSON object"),
    "nothing": (":predict", b"{}", 400, "either instances or inputs"),
    "signature": (
        ":predict",
        b'{"signature_name": "x", "instances": []}',
        400,
        "there is no signature x; there are classify, predict,",
    ),
    "wrong example": (":predict", b'{"instances": ["no"]}', 400, "parse"),
    "no method": (":guess", b"{}", 404, "there is no method guess"),
    "version": ("/versions/7:predict", b"{}", 404, "version 7 is not served"),
    "too large": (":predict", b" " * (1 << 20) + b"{}", 413, "--max_request_mb"),
    "deep": (":predict", b"[" * 100_000, 400, "not valid JSON"),
    "base64": (":predict", b'{"instances": [{"b64": "\\u00e9"}]}', 400, "not base64"),
    "classify": (":classify", b'{"examples": 1}', 400, "needs examples, a list"),
    "missing": (":classify", b'{"examples": [{"city": "Ulm"}]}', 400, "age"),
    "mixed": (":classify", b'{"examples": [{"age": [1, "a"]}]}', 400, "feature age"),
}


@pytest.mark.parametrize(
    ("call", "body", "status", "message"), MISTAKES.values(), ids=MISTAKES
)
def test_a_mistake_is_told_in_json(served, version, call, body, status, message):
    found = served.post(call, body)
    assert found[0] == status and message in found[1]["error"]
    assert served.post(":predict", _sample(version, "predict"))[0] == 200


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"age": "x"}, 'input age: "x" is not of type int64'),
        ({"age": 1.5}, "input age: 1.5 is not of type int64"),
        ({"age": 2**63}, "input age: 9223372036854775808 is not of type int64"),
        ({"age": None}, "input age: null is not of type int64"),
        ({"age": True}, "input age: true is not of type int64"),
        ({"age": [1]}, "input age: its shape is [1, 1] instead of ['batch']"),
        ({"city": 3}, "input city: 3 is not of type string"),
        ({"more": 3}, "instance 0 has the unknown input more; there are"),
    ],
)
def test_serv_1_a_wrong_input_is_named(served, version, changes, message):
    status, found = served.post(":predict", _row(version, **changes))
    assert status == 400 and message in found["error"]


def test_a_lacking_input_is_named(served, version):
    body = _row(version)
    del body["instances"][0]["age"]
    assert served.post(":predict", body) == (
        400,
        {"error": "instance 0 lacks the input age"},
    )


def test_an_unknown_path_and_verb_are_told_in_json(served):
    assert served.ask("GET", "x/y/z")[0] == 404
    assert served.ask("PUT", "", b"{}")[0] == 405


def test_no_rows_are_answered_with_none(served):
    assert served.post(":predict", {"instances": []}) == (200, {"predictions": []})


# --- the process --------------------------------------------------------------------


def test_an_address_in_use_is_one_line(version):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        settings = server.ServeFlags(port=taken.getsockname()[1])
        with pytest.raises(UserError, match="cannot listen there"):
            server.bind(settings)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(server.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"pip install 'estimator-pipeline\[serve\]'"):
        server.check_installed()


class _Client(threading.Thread):
    """Asks over one connection after the other until it is told to stop."""

    def __init__(self, process: _Process, body: bytes, stop: threading.Event):
        super().__init__()
        self._process, self._body, self._stopped = process, body, stop
        self.answered = 0
        self.wrong: list[str] = []
        self.logits: set[float] = set()

    def run(self):
        while not self._stopped.is_set():
            try:
                connection = self._process.connect()
                for _ in range(20):
                    connection.request("POST", "/v1/models/model:predict", self._body)
                    response = connection.getresponse()
                    content = response.read()
                    if response.status != 200:
                        self.wrong.append(content.decode())
                        return
                    self.answered += 1
                    rows = json.loads(content)["predictions"]
                    self.logits.add(round(rows[0]["logits"][0], 6))
                connection.close()
            except (OSError, http.client.HTTPException) as error:
                self.wrong.append(repr(error))
                return


@pytest.mark.slow
def test_a_switch_of_versions_loses_no_request(small_job, version, tmp_path):
    """Four clients ask while a broken version appears, then a good one, then SIGTERM."""
    other = Path(versions.find(str(small_job.export_dir("wide_deep")), None))
    export_dir = tmp_path / "export"
    shutil.copytree(version, export_dir / "5")
    process = _Process(export_dir, "--poll_seconds=0.1")
    body = json.dumps(_sample(version, "predict")).encode()
    stop = threading.Event()
    clients = [_Client(process, body, stop) for _ in range(4)]

    def states() -> dict[str, str]:
        found = process.ask("GET", "")[1]["model_version_status"]
        return {entry["version"]: entry["state"] for entry in found}

    def wait_for(wanted: dict[str, str]) -> None:
        end = time.monotonic() + 60
        while states() != wanted:
            assert time.monotonic() < end, states()

    try:
        for client in clients:
            client.start()
        (export_dir / "6").mkdir()
        wait_for({"5": "AVAILABLE", "6": "END"})
        shutil.copytree(other, export_dir / ".7")
        (export_dir / ".7").rename(export_dir / "7")
        wait_for({"7": "AVAILABLE", "6": "END"})
        # What was replaced may go: its files are not needed any more.
        shutil.rmtree(export_dir / "5")
        before = sum(client.answered for client in clients)
        while sum(client.answered for client in clients) < before + 100:
            assert all(client.is_alive() for client in clients)
        stop.set()
        for client in clients:
            client.join(60)
        assert process.stop() == 0
    finally:
        stop.set()
        process.process.kill()
        process.process.communicate()
    assert [client.wrong for client in clients] == [[]] * 4
    # Answers of both models, and nothing else.
    assert len(set().union(*(client.logits for client in clients))) == 2


@pytest.mark.slow
def test_sigterm_answers_what_is_in_work(version):
    process = _Process(version.parent)
    try:
        _check_sigterm(process, json.dumps(_sample(version, "predict")).encode())
    finally:
        process.process.kill()
        process.process.communicate()


def _check_sigterm(process: _Process, body: bytes) -> None:
    connection = process.connect()
    connection.putrequest("POST", "/v1/models/model:predict")
    connection.putheader("content-length", str(len(body)))
    connection.endheaders()
    connection.send(body[:10])
    # The server has the request once it answers another one.
    assert process.ask("GET", "")[0] == 200
    process.process.send_signal(signal.SIGTERM)
    end = time.monotonic() + 30
    while True:
        try:
            process.connect().connect()
        except OSError:
            break  # It takes no more requests.
        assert time.monotonic() < end
    connection.send(body[10:])
    response = connection.getresponse()
    assert response.status == 200 and b"predictions" in response.read()
    process.process.communicate(timeout=60)
    assert process.process.returncode == 0
