"""Process 1 of a container, which starts, signals and reaps processes for the harness.

    harness ---connects---> <control>/<place>.sock        one harness at a time
            ---4 bytes length, JSON request----->
            <--4 bytes length, JSON response-----         {"error": text} on failure

    spawn   argv, env, log        -> pid         leads a session; writes its output to the log
    poll    pid                   -> code        null while alive, -N if signal N ended it
    signal  pid, number, group    -> {}          no error if it has ended
    read    path                  -> data        a small file, base64
    empty_directory   path        -> {}          created with mode 0700
    stop                          -> {}          the agent ends after `STOP_DELAY_S`

When the connection closes, the agent kills all processes that were started through it, and waits
for the next harness. It uses only the standard library and no container engine.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

CONTROL_VARIABLE = "WINDTUNNEL_CONTROL"
"""Environment variable with the folder of the agents' sockets, which a lab's containers share."""

IDLE_TIMEOUT_S = 900.0
"""Time without a connection after which the agent ends. The judge of a run takes less time."""

STOP_DELAY_S = 2.0
"""Delay before the agent ends. `docker compose` stops all containers when the first one ends and
uses its exit code, so the harness must end first."""

REQUEST_LENGTH_MAX = 16 << 20
_HEADER_LENGTH = 4

Message = dict[str, Any]


def send_message(connection: socket.socket, message: Message) -> None:
    """Send one request or response."""
    body = json.dumps(message).encode()
    connection.sendall(len(body).to_bytes(_HEADER_LENGTH, "big") + body)


def receive_message(connection: socket.socket) -> Message | None:
    """Receive the next request or response. Returns None if the peer has closed the connection."""
    header = _receive(connection, _HEADER_LENGTH)
    if header is None:
        return None
    length = int.from_bytes(header, "big")
    if length > REQUEST_LENGTH_MAX:
        raise ValueError(
            f"expected a message of at most {REQUEST_LENGTH_MAX} bytes, found {length}"
        )
    body = _receive(connection, length)
    if body is None:
        return None
    message = json.loads(body)
    if not isinstance(message, dict):
        raise ValueError(f"expected a JSON object, found {type(message).__name__}")
    return message


def _receive(connection: socket.socket, length: int) -> bytes | None:
    data = bytearray()
    while len(data) < length:
        piece = connection.recv(length - len(data))
        if not piece:
            return None
        data += piece
    return bytes(data)


def socket_address(control: Path, place: str) -> tuple[str, int]:
    """Return the address of an agent's socket, and a file descriptor to close after use.

    A socket path can have at most 107 bytes, which the path of a clone may exceed. The address
    therefore refers to the folder by its file descriptor.
    """
    handle = os.open(control, os.O_PATH | os.O_DIRECTORY)
    return f"/proc/self/fd/{handle}/{place}.sock", handle


class Children:
    """The processes that the agent has started, and their exit codes."""

    def __init__(self) -> None:
        self._alive: set[int] = set()
        self._codes: dict[int, int] = {}

    def reap(self, *_: object) -> None:
        """Reap all children that have ended, including orphans inherited by process 1."""
        # SIGCHLD is blocked because its handler would reap the child that is examined here.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        try:
            while (pid := self._ended_child()) is not None:
                if pid in self._alive:
                    # This happens before the child is reaped. Afterwards the kernel may reuse its
                    # process id.
                    self.signal(pid, signal.SIGKILL, group=True)
                pid, status = os.waitpid(pid, 0)
                self._alive.discard(pid)
                self._codes[pid] = os.waitstatus_to_exitcode(status)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _ended_child(self) -> int | None:
        """Return the id of a child that has ended and is not reaped yet, or None if none has."""
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return None
        return None if ended is None else ended.si_pid

    def spawn(self, argv: list[str], env: Mapping[str, str], log: str) -> int:
        Path(log).parent.mkdir(parents=True, exist_ok=True)
        # A child may end before it is in `_alive`, but must not be reaped before then.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        try:
            pid = os.posix_spawnp(
                argv[0],
                argv,
                {**os.environ, **env},
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644),
                    (os.POSIX_SPAWN_DUP2, 1, 2),
                ],
                setsid=True,
                setsigmask=[],
                setsigdef=[signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGCHLD],
            )
            self._alive.add(pid)
            self._codes.pop(pid, None)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        return pid

    def code(self, pid: int) -> int | None:
        if pid in self._alive:
            return None
        if pid not in self._codes:
            raise ValueError(f"process {pid} was not started by this agent")
        return self._codes[pid]

    def signal(self, pid: int, number: int, *, group: bool) -> None:
        if pid not in self._alive:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            (os.killpg if group else os.kill)(pid, number)

    def kill_all(self) -> None:
        """Kill the process groups of all live processes, and discard all exit codes."""
        for pid in list(self._alive):
            self.signal(pid, signal.SIGKILL, group=True)
        while self._alive:
            time.sleep(0.005)
            self.reap()
        self._codes.clear()


class Agent:
    """The agent in a container, which starts and signals processes for one harness at a time."""

    def __init__(self) -> None:
        self.children = Children()
        self.stopping = False
        self._answers: dict[str, Callable[[Message], Message]] = {
            "spawn": self._on_spawn,
            "poll": self._on_poll,
            "signal": self._on_signal,
            "read": self._on_read,
            "empty_directory": self._on_empty_directory,
            "stop": self._on_stop,
        }

    def serve(self, connection: socket.socket) -> None:
        """Serve requests until the harness closes the connection. Then kill the processes that it
        started.
        """
        try:
            while not self.stopping and (request := receive_message(connection)) is not None:
                send_message(connection, self._answer(request))
        except (OSError, ValueError) as error:
            print(f"agent: connection closed after an error: {error}", file=sys.stderr, flush=True)
        finally:
            self.children.kill_all()

    def _answer(self, request: Message) -> Message:
        try:
            return self._answers[request["operation"]](request)
        except KeyError as error:
            return {"error": f"missing field or unknown operation: {error}"}
        except (OSError, ValueError, TypeError) as error:
            return {"error": f"{error}"}

    def _on_spawn(self, request: Message) -> Message:
        return {"pid": self.children.spawn(request["argv"], request["env"], request["log"])}

    def _on_poll(self, request: Message) -> Message:
        self.children.reap()
        return {"code": self.children.code(request["pid"])}

    def _on_signal(self, request: Message) -> Message:
        self.children.signal(request["pid"], request["number"], group=request["group"])
        return {}

    def _on_read(self, request: Message) -> Message:
        return {"data": base64.b64encode(Path(request["path"]).read_bytes()).decode()}

    def _on_empty_directory(self, request: Message) -> Message:
        shutil.rmtree(request["path"], ignore_errors=True)
        folder = Path(request["path"])
        folder.mkdir(parents=True)
        # Applications in containers of their own are in this group, whatever their user is.
        folder.chmod(0o770)
        return {}

    def _on_stop(self, request: Message) -> Message:
        self.stopping = True
        return {}


def listen(control: Path, place: str) -> socket.socket:
    """Create the agent's socket. Every user who can enter the socket's folder has access to it."""
    control.mkdir(parents=True, exist_ok=True)
    address, handle = socket_address(control, place)
    try:
        Path(address).unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(address)
        Path(address).chmod(0o666)
        listener.listen(1)
    finally:
        os.close(handle)
    return listener


def _on_terminate(number: int, frame: FrameType | None) -> None:
    raise SystemExit(0)


def main(argv: list[str]) -> int:
    """Run the agent of the host in argv until it is stopped, terminated or idle for too long."""
    place = argv[0]
    agent = Agent()
    signal.signal(signal.SIGTERM, _on_terminate)
    signal.signal(signal.SIGINT, _on_terminate)
    signal.signal(signal.SIGCHLD, agent.children.reap)
    listener = listen(Path(os.environ[CONTROL_VARIABLE]), place)
    listener.settimeout(IDLE_TIMEOUT_S)
    print(f"agent: {place} is ready", flush=True)
    try:
        while not agent.stopping:
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(None)
                agent.serve(connection)
        time.sleep(STOP_DELAY_S)
    except TimeoutError:
        print(f"agent: no harness connected for {IDLE_TIMEOUT_S:g} s", file=sys.stderr, flush=True)
        return 1
    finally:
        agent.children.kill_all()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
