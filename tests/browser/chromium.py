"""Headless Chromium, controlled by its DevTools protocol over a pair of pipes without a package.

    test --{"id": 1, ...}\\0--> descriptor 3 | browser | descriptor 4 --responses, events--> test

Collects everything that the page prints to the console, throws or requests from the network.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
)
RESPONSE_TIMEOUT_S = 40.0


def program() -> str | None:
    """Return the path of a Chromium on this machine, or None."""
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


class Browser:
    """One browser with one page."""

    def __init__(self, profile: Path, width: int = 1280, height: int = 900) -> None:
        found = program()
        assert found is not None, "no Chromium on this machine"
        commands_read, self._commands = os.pipe()
        self._responses, responses_write = os.pipe()

        def connect() -> None:
            # Duplicate to high numbers first: 3 and 4 may be among the four descriptors.
            os.dup2(commands_read, 103)
            os.dup2(responses_write, 104)
            os.dup2(103, 3)
            os.dup2(104, 4)

        command = [found, *FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}"]
        self._process = subprocess.Popen(
            [*command, "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=connect,
            close_fds=False,
        )
        os.close(commands_read)
        os.close(responses_write)
        self._last_id = 0
        self._rest = b""
        self._session: str | None = None
        self.complaints: list[str] = []
        "Errors and warnings on the console, and uncaught exceptions."
        self.requests: list[str] = []
        "Addresses that the page requested, except data: and blob:."

    def __enter__(self) -> "Browser":
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(each["targetId"] for each in targets if each["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=page, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._commands)
        os.close(self._responses)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send one command and return its result; events that arrive before it are kept."""
        self._last_id += 1
        message = {"id": self._last_id, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            response = self._next()
            if response.get("id") == self._last_id:
                assert "error" not in response, f"{method}: {response['error']}"
                result: dict[str, Any] = response["result"]
                return result
            self._note(response)

    def _next(self) -> dict[str, Any]:
        deadline_s = time.monotonic() + RESPONSE_TIMEOUT_S
        while b"\0" not in self._rest:
            left_s = max(0.0, deadline_s - time.monotonic())
            ready, _, _ = select.select([self._responses], [], [], left_s)
            assert ready, f"the browser sent nothing for {RESPONSE_TIMEOUT_S:g} s"
            piece = os.read(self._responses, 1 << 20)
            assert piece, "the browser has ended"
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\0")
        parsed: dict[str, Any] = json.loads(line)
        return parsed

    def _note(self, event: dict[str, Any]) -> None:
        method, parameters = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.complaints.append(str(parameters["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in (
            "error",
            "warning",
            "assert",
        ):
            self.complaints.append(str([each.get("value", each) for each in parameters["args"]]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.complaints.append(str(parameters["entry"]))
        elif method == "Network.requestWillBeSent":
            url = parameters["request"]["url"]
            if not url.startswith(("data:", "blob:")):
                self.requests.append(url)

    def open(self, path: Path) -> None:
        """Load a local file and wait until it is loaded."""
        self.call("Page.navigate", url=path.resolve().as_uri())
        self.wait_for("document.readyState === 'complete' && location.protocol === 'file:'")

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression, awaited if it is a promise."""
        result = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait_for(self, expression: str, timeout_s: float = RESPONSE_TIMEOUT_S) -> None:
        """Wait until an expression is true."""
        deadline_s = time.monotonic() + timeout_s
        while not self.evaluate(f"Boolean({expression})"):
            assert time.monotonic() < deadline_s, f"still not true: {expression}"
            time.sleep(0.05)

    def resize(self, width: int, height: int, mobile: bool = False) -> None:
        """Set the size of the page, as of a screen or of a phone."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=2 if mobile else 1,
            mobile=mobile,
        )

    def prefer_dark(self, dark: bool) -> None:
        """Set the colour scheme that the user prefers."""
        value = "dark" if dark else "light"
        feature = {"name": "prefers-color-scheme", "value": value}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def drag(self, x: float, y: float, to_x: float, to_y: float) -> None:
        """Press the left button, move in steps, and release it."""
        self._mouse("mouseMoved", x, y)
        self._mouse("mousePressed", x, y, button="left", clickCount=1)
        for step in range(1, 6):
            share = step / 5
            at_x, at_y = x + (to_x - x) * share, y + (to_y - y) * share
            self._mouse("mouseMoved", at_x, at_y, button="left", buttons=1)
        self._mouse("mouseReleased", to_x, to_y, button="left", clickCount=1)

    def point(self, x: float, y: float) -> None:
        """Move the pointer to a place."""
        self._mouse("mouseMoved", x, y)

    def _mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def screenshot(self, path: Path) -> None:
        """Write a screenshot of the page as PNG."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))
