"""The HTTP application: paths, limits and JSON errors around `rest` and `store`.

GET  /v1/models/NAME[/versions/N]                       status
GET  /v1/models/NAME[/versions/N]/metadata              signatures
POST /v1/models/NAME[/versions/N]:predict|classify|regress
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pipeline.compat import tf
from pipeline.serving import rest
from pipeline.serving.rest import BadRequest
from pipeline.serving.store import Store, Version

_log = logging.getLogger(__name__)
_METHODS = ("predict", "classify", "regress")


def _json(value: Any, status: int = 200) -> Response:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    content = text.encode("utf-8", errors="surrogatepass")
    return Response(content, status, media_type="application/json")


def _signature(version: Version, name: str):
    if name not in version.signatures:
        raise BadRequest(
            f"there is no signature {name}; there are"
            f" {', '.join(sorted(version.signatures))}"
        )
    return version.signatures[name]


def answer(version: Version, method: str, body: bytes) -> dict[str, Any]:
    """Returns what a call answers.

    Raises:
      BadRequest: The call cannot be answered.
    """
    request = rest.parse(body)
    default = rest.DEFAULT_SIGNATURE if method == "predict" else method
    name = request.get("signature_name", default) or default
    if not isinstance(name, str):
        raise BadRequest("signature_name is not text")
    signature = _signature(version, name)
    takes = version.kinds.get(name)
    if method != "predict" and takes != method:
        raise BadRequest(f"signature {name} is not one of {method}")
    try:
        if method == "predict":
            specs = signature.structured_input_signature[1]
            outputs = signature(**rest.predict_inputs(request, specs))
            return rest.predict_answer(outputs, "instances" in request)
        outputs = signature(inputs=rest.examples(request))
    except tf.errors.InvalidArgumentError as error:
        raise BadRequest(error.message) from None
    if method == "classify":
        return rest.classify_answer(outputs)
    return rest.regress_answer(outputs)


class _Api:
    """The handlers of one model."""

    def __init__(self, store: Store, name: str, max_bytes: int):
        self._store = store
        self._name = name
        self._max_bytes = max_bytes

    def _version(self, request: Request) -> Version:
        """Returns the version that a request is for; the request keeps it."""
        current = self._store.current
        asked = request.path_params.get("version")
        name = request.path_params["name"]
        if name != self._name:
            raise BadRequest(f"there is no model {name}; there is {self._name}", 404)
        if asked not in (None, str(current.number)):
            raise BadRequest(
                f"version {asked} is not served; {current.number} is", status=404
            )
        return current

    async def _body(self, request: Request) -> bytes:
        parts, size = [], 0
        async for part in request.stream():
            size += len(part)
            if size > self._max_bytes:
                raise BadRequest(
                    f"the body has more than {self._max_bytes:,} bytes, the limit of"
                    " --max_request_mb",
                    status=413,
                )
            parts.append(part)
        return b"".join(parts)

    async def status(self, request: Request) -> Response:
        version = self._version(request)
        states = [(version.number, "AVAILABLE", "OK", "")]
        if "version" not in request.path_params:
            states += [
                (number, "END", "UNKNOWN", reason)
                for number, reason in self._store.failed.items()
            ]
        return _json(
            {
                "model_version_status": [
                    {
                        "version": str(number),
                        "state": state,
                        "status": {"error_code": code, "error_message": message},
                    }
                    for number, state, code, message in states
                ]
            }
        )

    async def metadata(self, request: Request) -> Response:
        version = self._version(request)
        spec = {"name": self._name, "signature_name": "", "version": version.number}
        spec["version"] = str(version.number)
        found = {"signature_def": {"signature_def": dict(version.metadata)}}
        return _json({"model_spec": spec, "metadata": found})

    async def call(self, request: Request) -> Response:
        method = request.path_params["method"]
        if method not in _METHODS:
            raise BadRequest(
                f"there is no method {method}; there are {', '.join(_METHODS)}", 404
            )
        version = self._version(request)
        body = await self._body(request)
        return _json(await run_in_threadpool(answer, version, method, body))


async def _failed(request: Request, error: Exception) -> Response:
    del request
    if isinstance(error, BadRequest):
        return _json({"error": str(error)}, error.status)
    if isinstance(error, HTTPException):
        return _json({"error": error.detail}, error.status_code)
    _log.error("a request failed", exc_info=error)
    return _json({"error": "the server failed; its log has the reason"}, 500)


def make(store: Store, name: str, max_bytes: int) -> Starlette:
    """Returns the application.

    Args:
      store: The versions.
      name: Under which the model is served.
      max_bytes: Size of the largest body.
    """
    api = _Api(store, name, max_bytes)
    routes = []
    for model in ("/v1/models/{name}/versions/{version}", "/v1/models/{name}"):
        handlers: dict[str, tuple[Callable[[Request], Awaitable[Response]], str]] = {
            "/metadata": (api.metadata, "GET"),
            ":{method}": (api.call, "POST"),
            "": (api.status, "GET"),
        }
        for suffix, (handler, verb) in handlers.items():
            routes.append(Route(model + suffix, handler, methods=[verb]))
    return Starlette(
        routes=routes,
        exception_handlers={
            BadRequest: _failed,
            HTTPException: _failed,
            Exception: _failed,
        },
    )
