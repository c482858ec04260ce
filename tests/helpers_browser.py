"""A headless Chromium, driven through its debugging pipe; for pages of scripts."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

_TIMEOUT = 180
_POLL_SECONDS = 0.5
# Text in shadow roots and frames as well, which is where TensorBoard has most of it.
_TEXT = """(() => {
  const deep = node => {
    let text = '';
    for (const child of node.childNodes) {
      if (child.nodeType === 3) text += child.data + ' ';
      if (child.nodeType !== 1 || /^(SCRIPT|STYLE)$/.test(child.tagName)) continue;
      if (child.tagName === 'IFRAME' && child.contentDocument)
        text += deep(child.contentDocument.body || child.contentDocument);
      if (child.shadowRoot) text += deep(child.shadowRoot);
      text += deep(child);
    }
    return text;
  };
  return deep(document.body).replace(/\\s+/g, ' ');
})()"""


def executable() -> str | None:
    """Returns Chromium's path; None where it is not installed."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    return None


class Browser:
    """A page of a running browser."""

    def __init__(self, write: int, read: int):
        self._write, self._read = write, read
        self._number = 0
        self._session: str | None = None
        self._rest = b""
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call(
            "Target.attachToTarget", targetId=target, flatten=True
        )["sessionId"]
        self._call("Page.enable")

    def _call(self, method: str, **parameters) -> dict:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = json.loads(self._next())
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    def _next(self) -> bytes:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], _TIMEOUT)
            assert ready, "the browser does not answer"
            part = os.read(self._read, 1 << 16)
            assert part, "the browser has ended"
            self._rest += part
        message, self._rest = self._rest.split(b"\0", 1)
        return message

    def open(self, address: str) -> None:
        # Else another fragment of the same page would not load it anew.
        self._call("Page.navigate", url="about:blank")
        self._call("Page.navigate", url=address)

    def text(self) -> str:
        """Returns all text of the page, in frames and shadow roots as well."""
        result = self._call("Runtime.evaluate", expression=_TEXT)["result"]
        return result.get("value", "")

    def wait_for(self, *wanted: str) -> str:
        """Waits until all of these are there; returns the page's text."""
        end = time.monotonic() + _TIMEOUT
        while True:
            text = self.text()
            missing = [part for part in wanted if part not in text]
            if not missing:
                return text
            assert time.monotonic() < end, f"{missing} not in: {text[:3000]}"
            # Nothing tells when a page of scripts is done.
            time.sleep(_POLL_SECONDS)

    def evaluate(self, expression: str):
        return self._call("Runtime.evaluate", expression=expression)["result"].get(
            "value"
        )

    def screenshot(self, path: Path) -> None:
        data = self._call("Page.captureScreenshot")["data"]
        path.write_bytes(base64.b64decode(data))


@contextlib.contextmanager
def browser(directory: Path) -> Iterator[Browser]:
    """Starts a browser with a profile of its own in a directory."""
    to_browser, write = os.pipe()
    read, from_browser = os.pipe()
    command = [
        executable(),
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--window-size=1400,1000",
        f"--user-data-dir={directory}",
        "--remote-debugging-pipe",
    ]
    redirected = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
    process = subprocess.Popen(
        ["bash", "-c", redirected, "bash", *command],
        pass_fds=(to_browser, from_browser),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_browser)
    os.close(from_browser)
    try:
        yield Browser(write, read)
    finally:
        process.kill()
        process.wait(timeout=60)
        os.close(write)
        os.close(read)
