"""The harness's end of the connection to a host agent, and the processes started through it.

Closing an `AgentLink`, or the death of the harness, kills all processes that were started through
the link.

Each link exchanges messages in a separate thread. If a signal interrupts the harness during a
request, no part of the response must be left for the next request to read.
"""

from __future__ import annotations

import base64
import contextlib
import os
import secrets
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from pathlib import Path

from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.labs import host_agent
from windtunnel.harness.orchestrate.labs.host_agent import Message
from windtunnel.harness.orchestrate.processes.process import tail_of

ANSWER_TIMEOUT_S = 120.0
POLL_S = 0.01
_RETRY_S = 0.05


class AgentLink:
    """A connection to the agent in a container. It can be used from any thread."""

    def __init__(self, place: str, connection: socket.socket) -> None:
        self.place = place
        self._connection = connection
        self._executor = ThreadPoolExecutor(1, f"link-{place}")

    def request(self, operation: str, **values: object) -> Message:
        """Send a request to the agent and return the response.

        Raises LabError if the agent reports an error or has closed the connection.
        """
        try:
            answer = self._executor.submit(
                self._exchange, {"operation": operation, **values}
            ).result()
        except (OSError, ValueError) as error:
            raise LabError(f"the agent in {self.place} does not respond: {error}") from error
        except (CancelledError, RuntimeError) as error:
            raise LabError(f"{operation} in {self.place}: the lab is closed") from error
        if answer is None:
            raise LabError(f"the agent in {self.place} has closed the connection")
        if "error" in answer:
            raise LabError(f"{operation} in {self.place}: {answer['error']}")
        return answer

    def _exchange(self, request: Message) -> Message | None:
        host_agent.send_message(self._connection, request)
        return host_agent.receive_message(self._connection)

    def read(self, path: str) -> bytes:
        return base64.b64decode(self.request("read", path=path)["data"])

    def spawn(
        self,
        name: str,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        log: Path,
        log_in_container: str,
    ) -> AgentProcess:
        """Start a process in the container. Its output goes to the file `log`, which has the path
        `log_in_container` there.
        """
        pid = self.request("spawn", argv=list(argv), env=dict(env), log=log_in_container)["pid"]
        return AgentProcess(name, self, pid, log)

    def run(self, argv: Sequence[str], timeout_s: float = ANSWER_TIMEOUT_S) -> bytes:
        """Run a short command in a container and return its output. Raises LabError if it fails."""
        output = f"/tmp/command-{secrets.token_hex(16)}"
        process = self.spawn(
            f"{self.place}/{argv[0]}", argv, env={}, log=Path(), log_in_container=output
        )
        code = process.wait(timeout_s)
        text = self.read(output)
        if code != 0:
            how = (
                f"did not end within {timeout_s:g} s"
                if code is None
                else f"failed with exit code {code}"
            )
            output_text = text.decode(errors="replace").strip()
            raise LabError(f"`{' '.join(argv)}` in {self.place} {how}: {output_text}")
        return text

    def close(self) -> None:
        """Close the connection. The agent then kills the processes that were started through it.

        Requests that wait for another one's response are not sent any more.
        """
        self._executor.shutdown(cancel_futures=True)
        self._connection.close()


class AgentProcess:
    """A process in a container. Implements `LabProcess`."""

    def __init__(self, name: str, link: AgentLink, pid: int, log: Path) -> None:
        self.name = name
        self._link = link
        self._pid = pid
        self._log = log
        self._code: int | None = None

    def poll(self) -> int | None:
        if self._code is None:
            self._code = self._link.request("poll", pid=self._pid)["code"]
        return self._code

    def wait(self, timeout_s: float) -> int | None:
        deadline_s = time.monotonic() + timeout_s
        while (code := self.poll()) is None and time.monotonic() < deadline_s:
            time.sleep(POLL_S)
        return code

    def send_signal(self, number: int) -> None:
        self._signal(signal.Signals(number), group=False)

    def terminate(self) -> None:
        self._signal(signal.SIGTERM, group=False)

    def kill(self) -> None:
        self._signal(signal.SIGKILL, group=True)
        self.wait(ANSWER_TIMEOUT_S)

    def _signal(self, number: int, *, group: bool) -> None:
        self._link.request("signal", pid=self._pid, number=int(number), group=group)

    def tail(self, lines: int = 5) -> str:
        return tail_of(self._log, lines)


def connect(control: Path, place: str, timeout_s: float) -> AgentLink:
    """Connect to a container's agent. Retries until the agent listens, and raises LabError on
    timeout.
    """
    deadline_s = time.monotonic() + timeout_s
    while True:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(ANSWER_TIMEOUT_S)
        try:
            address, handle = host_agent.socket_address(control, place)
            try:
                connection.connect(address)
            finally:
                os.close(handle)
        except OSError as error:
            connection.close()
            if time.monotonic() > deadline_s:
                raise LabError(
                    f"no agent for {place} could be reached within {timeout_s:g} s: {error}"
                ) from error
            time.sleep(_RETRY_S)
        else:
            return AgentLink(place, connection)


def stop_all(control: Path) -> None:
    """Stop all agents that have a socket in the given folder."""
    for path in sorted(control.glob("*.sock")):
        with contextlib.suppress(LabError):
            link = connect(control, path.stem, timeout_s=0.0)
            link.request("stop")
            link.close()


if __name__ == "__main__":
    if sys.argv[1:] != ["stop"]:
        sys.exit("usage: python -m windtunnel.harness.orchestrate.labs.agent_link stop")
    stop_all(Path(os.environ[host_agent.CONTROL_VARIABLE]))
