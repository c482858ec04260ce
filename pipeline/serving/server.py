"""Runs the HTTP server until it is told to stop."""

from __future__ import annotations

import importlib.util
import signal
import socket

from export import versions
from pipeline import environment
from pipeline.console import Console
from pipeline.flags.serve import ServeFlags
from pipeline.types import UserError

_PACKAGES = ("starlette", "uvicorn")


def check_installed() -> None:
    """Checks that the web framework is there.

    Raises:
      UserError: It is not.
    """
    for package in _PACKAGES:
        if importlib.util.find_spec(package) is None:
            raise UserError(
                f"serve needs the package {package}, which is not installed: pip install"
                " 'estimator-pipeline[serve]'"
            )


def bind(settings: ServeFlags) -> socket.socket:
    """Returns a listening socket.

    Raises:
      UserError: The address cannot be had.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except (OSError, UnicodeError) as error:
        listener.close()
        raise UserError(
            f"--host={settings.host} --port={settings.port}: cannot listen there"
            f" ({error}); --port=0 takes a free port"
        ) from error
    return listener


def start(
    export_dir: str, version: int | None, settings: ServeFlags, console: Console
) -> None:
    """Serves until SIGTERM or SIGINT; then requests that are in work are answered.

    Raises:
      UserError: A package, a version that can be loaded, or the address is not there.
    """
    check_installed()
    versions.find(export_dir, version)
    # A port in use is said before TensorFlow takes its seconds.
    listener = bind(settings)
    environment.load_tensorflow(console.verbosity)
    _run(listener, export_dir, version, settings, console)


def _run(
    listener: socket.socket,
    export_dir: str,
    version: int | None,
    settings: ServeFlags,
    console: Console,
) -> None:
    import uvicorn

    from pipeline.serving import app
    from pipeline.serving.store import Store

    store = Store(export_dir, version)
    store.watch(settings.poll_seconds)
    host, port = listener.getsockname()[:2]
    config = uvicorn.Config(
        app.make(store, settings.model_name, settings.max_request_mb << 20),
        log_level="error",
        access_log=False,
        timeout_graceful_shutdown=settings.stop_seconds,
        lifespan="off",
    )
    # From here on who knows the address may connect.
    listener.listen()
    shown = f"[{host}]" if ":" in host else host
    console.result(
        f"serving:    version {store.current.number} of {export_dir}\n"
        f"            http://{shown}:{port}/v1/models/{settings.model_name}"
    )
    # When it has stopped, uvicorn raises the signal again: to be ended is no failure.
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        uvicorn.Server(config).run(sockets=[listener])
    finally:
        signal.signal(signal.SIGTERM, before)
        store.close()
        listener.close()
