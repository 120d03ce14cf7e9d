"""Process 1 of a container: starts, signals and reaps processes when the harness asks it to.

    harness ---connects---> <control>/<place>.sock        one harness at a time
            ---4 bytes length, JSON request----->
            <--4 bytes length, JSON answer-------         {"error": text} if it cannot be done

    spawn   argv, env, log        -> pid         leads its own session; output goes to the log
    poll    pid                   -> code        null while it lives, minus the signal's number
    signal  pid, number, group    -> {}          no error if it has ended
    read    path                  -> data        a small file, base64
    fresh   path                  -> {}          an empty directory, for its owner alone
    stop                          -> {}          the agent ends after a moment

The connection is the lifeline: when it closes, everything that was started is killed, and the agent
waits for the next harness. It needs nothing but the standard library, and no container engine.
Refuses to know what it runs.
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
"""Names the folder of the sockets; every container of a lab shares it."""

IDLE_TIMEOUT_S = 900.0
"""Without a harness for so long, there is none: longer than judging a run takes."""

STOP_DELAY_S = 2.0
"""`docker compose` ends everything with the first container that ends: that is the harness."""

REQUEST_LENGTH_MAX = 16 << 20
_HEADER_LENGTH = 4

Message = dict[str, Any]


def send_message(connection: socket.socket, message: Message) -> None:
    """Send one request or answer."""
    body = json.dumps(message).encode()
    connection.sendall(len(body).to_bytes(_HEADER_LENGTH, "big") + body)


def receive_message(connection: socket.socket) -> Message | None:
    """Return the next request or answer, or None if the other side has closed."""
    header = _receive(connection, _HEADER_LENGTH)
    if header is None:
        return None
    length = int.from_bytes(header, "big")
    if length > REQUEST_LENGTH_MAX:
        raise ValueError(f"a message of {length} bytes; at most {REQUEST_LENGTH_MAX} are taken")
    body = _receive(connection, length)
    if body is None:
        return None
    message = json.loads(body)
    if not isinstance(message, dict):
        raise ValueError(f"expected a JSON object and found {type(message).__name__}")
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
    """Return an address that binds or connects to the socket of a place, and a handle to close.

    A socket's path may have 107 bytes at most, and a clone may lie deeper than that: the folder is
    named by the handle instead.
    """
    handle = os.open(control, os.O_PATH | os.O_DIRECTORY)
    return f"/proc/self/fd/{handle}/{place}.sock", handle


class Children:
    """The processes that were started here, and how they ended."""

    def __init__(self) -> None:
        self._alive: set[int] = set()
        self._codes: dict[int, int] = {}

    def reap(self, *_: object) -> None:
        """Collect every child that has ended, also those that others left to process 1."""
        # As a handler it would come in between, and take the child that is being looked at.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        try:
            while (pid := self._ended_child()) is not None:
                if pid in self._alive:
                    # Now, while its number is its own: once reaped it may become anybody's.
                    self.signal(pid, signal.SIGKILL, group=True)
                pid, status = os.waitpid(pid, 0)
                self._alive.discard(pid)
                self._codes[pid] = os.waitstatus_to_exitcode(status)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _ended_child(self) -> int | None:
        """A child that has ended and is not reaped yet."""
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return None
        return None if ended is None else ended.si_pid

    def spawn(self, argv: list[str], env: Mapping[str, str], log: str) -> int:
        Path(log).parent.mkdir(parents=True, exist_ok=True)
        # A child that ends before it is noted must not be reaped before it is noted.
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
            raise ValueError(f"process {pid} was not started here")
        return self._codes[pid]

    def signal(self, pid: int, number: int, *, group: bool) -> None:
        if pid not in self._alive:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            (os.killpg if group else os.kill)(pid, number)

    def kill_all(self) -> None:
        """Kill the group of every process that lives, and forget them all."""
        for pid in list(self._alive):
            self.signal(pid, signal.SIGKILL, group=True)
        while self._alive:
            time.sleep(0.005)
            self.reap()
        self._codes.clear()


class Agent:
    """Answers the requests of one harness after the other."""

    def __init__(self) -> None:
        self.children = Children()
        self.stopping = False
        self._answers: dict[str, Callable[[Message], Message]] = {
            "spawn": self._on_spawn,
            "poll": self._on_poll,
            "signal": self._on_signal,
            "read": self._on_read,
            "fresh": self._on_fresh,
            "stop": self._on_stop,
        }

    def serve(self, connection: socket.socket) -> None:
        """Answer until the other side closes, then kill what it had started."""
        try:
            while not self.stopping and (request := receive_message(connection)) is not None:
                send_message(connection, self._answer(request))
        except (OSError, ValueError) as error:
            print(f"agent: connection given up: {error}", file=sys.stderr, flush=True)
        finally:
            self.children.kill_all()

    def _answer(self, request: Message) -> Message:
        try:
            return self._answers[request["what"]](request)
        except KeyError as error:
            return {"error": f"the request lacks or names an unknown {error}"}
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

    def _on_fresh(self, request: Message) -> Message:
        shutil.rmtree(request["path"], ignore_errors=True)
        Path(request["path"]).mkdir(mode=0o700, parents=True)
        return {}

    def _on_stop(self, request: Message) -> Message:
        self.stopping = True
        return {}


def listen(control: Path, place: str) -> socket.socket:
    """Make the socket of a place anew; everybody who may enter its folder may connect."""
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
    """Serve the place named by the only argument until stopped, idle for long, or terminated."""
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
        print(f"agent: no harness for {IDLE_TIMEOUT_S:g} s", file=sys.stderr, flush=True)
        return 1
    finally:
        agent.children.kill_all()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
