"""A client of the fork servers, which fork Windtunnel's programs.

    subject     driver, workloads      --\\
    harness     relay, sampler         ----> ForkedProcess, which behaves like a new process
    simulator                          --/

There is one server for the programs of the driver under test, one for those of the harness, and one
for the simulator. A server is started with the first of its programs, and lives as long as this
process. Other programs, such as tcpdump or another driver, are not forked.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.processes import fork_server, process_group
from windtunnel.harness.orchestrate.processes.fork_server import MESSAGE_BYTES_MAX, Message
from windtunnel.harness.orchestrate.processes.process import HelperProcess, LocalProcess, tail_of

FORK_SERVERS: dict[str, tuple[str, ...]] = {
    "windtunnel.driver": (
        "windtunnel.driver.media_driver.context",
        "windtunnel.driver.media_driver.media_driver",
    ),
    "windtunnel.driver.archive": ("windtunnel.driver.archive.tool.program",),
    "windtunnel.harness.workload": (
        "windtunnel.harness.workload.options",
        "windtunnel.harness.workload.publisher",
        "windtunnel.harness.workload.archive.recorder",
        "windtunnel.harness.workload.archive.replayer",
        "windtunnel.harness.workload.archive.replicator",
        "windtunnel.harness.workload.saboteur",
        "windtunnel.harness.workload.subscriber",
    ),
    "windtunnel.harness.middlebox": (
        "windtunnel.harness.middlebox.relay.relay",
        "windtunnel.harness.middlebox.relay.report",
        "windtunnel.harness.middlebox.relay.neighbour",
        "windtunnel.harness.scenario.resolved.case",
    ),
    "windtunnel.harness.capture.counters": (
        "windtunnel.harness.capture.sampler",
        "windtunnel.harness.scenario.schema.units",
    ),
    "windtunnel.harness.simulator": (
        "windtunnel.driver.media_driver.media_driver",
        "windtunnel.harness.simulator.run_case",
    ),
}
"""The modules that a fork server imports for each program. The program's main module is not among
them, because it runs as `__main__` and would be imported a second time."""

SUBJECT_PROGRAMS = ("windtunnel.driver", "windtunnel.driver.archive", "windtunnel.harness.workload")
HARNESS_PROGRAMS = ("windtunnel.harness.middlebox", "windtunnel.harness.capture.counters")
SIMULATOR_PROGRAMS = ("windtunnel.harness.simulator",)
STARTUP_VARIABLES = ("PYTHON", "NUMBA_", "WINDTUNNEL_KERNEL_CACHE")
"""Prefixes of environment variables that affect imports or the loading of compiled kernels."""

END_TIMEOUT_S = 5.0
KILLED_TIMEOUT_S = 60.0
"""Time limit for a killed process to end, which may take long on an overloaded machine."""
_MODULE_AT = 2


class ForkedProcess:
    """A child of a fork server. Implements `LabProcess`."""

    def __init__(self, name: str, server: ForkServer, pid: int, log: Path) -> None:
        self.name = name
        self.log = log
        self.pid = pid
        self._server = server
        self._code: int | None = None
        # The server only reaps a dead child when it is polled, so the process id cannot be reused
        # here.
        self._handle = os.pidfd_open(pid)

    def poll(self) -> int | None:
        if self._code is None and self._ended(0.0):
            self._code = self._server.exchange({"operation": "poll", "pid": self.pid})["code"]
            os.close(self._handle)
        return self._code

    def _ended(self, timeout_s: float) -> bool:
        waiting = select.poll()
        waiting.register(self._handle, select.POLLIN)
        return bool(waiting.poll(timeout_s * 1000))

    def wait(self, timeout_s: float) -> int | None:
        if self._code is None:
            self._ended(timeout_s)
        return self.poll()

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        if self.poll() is None:
            process_group.kill(self.pid)
        self.wait(KILLED_TIMEOUT_S)

    def tail(self, lines: int = 5) -> str:
        return tail_of(self.log, lines)


class ForkServer:
    """A fork server process and the connection to it."""

    def __init__(self, programs: Sequence[str], *, env: Mapping[str, str], cwd: Path) -> None:
        self._socket, child_socket = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        argv = [sys.executable, "-m", fork_server.__name__, str(child_socket.fileno())]
        argv += [module for program in programs for module in FORK_SERVERS[program]]
        # numpy's threads would not survive the fork.
        single_threaded = {**env, "OPENBLAS_NUM_THREADS": "1"}
        self._process = HelperProcess(
            argv, env=single_threaded, cwd=cwd, keep=child_socket.fileno()
        )
        child_socket.close()
        self._count = 0
        self._has_kernels = False
        atexit.register(self.close)

    def exchange(self, request: Message) -> Message:
        """Send a request and return the response. Raises LabError if the server has ended."""
        self._count += 1
        own = self._count
        try:
            self._socket.send(json.dumps({**request, "id": own}).encode())
            while answer := self._socket.recv(MESSAGE_BYTES_MAX):
                found: Message = json.loads(answer)
                # Skip the response to a request that was interrupted while it waited.
                if found["id"] == own:
                    return found
        except OSError as error:
            raise LabError(f"a fork server does not respond: {error}") from error
        raise LabError(f"a fork server has ended with exit code {self._process.end(END_TIMEOUT_S)}")

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def load_kernels(self) -> None:
        """Load all compiled kernels in the fork server, so that the children that it forks inherit
        them.
        """
        if not self._has_kernels:
            self._has_kernels = True
            self.exchange({"operation": "load_kernels"})

    def close(self) -> None:
        """End the server and all of its children."""
        self._socket.close()
        self._process.end(END_TIMEOUT_S)


_servers: dict[str, ForkServer] = {}


@cache
def _has_handles() -> bool:
    """Return whether Linux supports process file descriptors (pidfd): version 5.3 or later."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:
        return False
    return True


def can_fork(argv: Sequence[str], env: Mapping[str, str]) -> bool:
    """Return whether a fork server can execute a command line in place of a new interpreter.

    The command line must start one of Windtunnel's programs with this interpreter. `env` has the
    program's environment variables in addition to the common ones. Variables that an interpreter
    reads at startup have no effect on a forked program, so they exclude forking.
    """
    return (
        _has_handles()
        and not any(name.startswith(STARTUP_VARIABLES) for name in env)
        and len(argv) > _MODULE_AT
        and list(argv[:_MODULE_AT]) == [sys.executable, "-m"]
        and argv[_MODULE_AT] in FORK_SERVERS
    )


def spawn(
    name: str,
    argv: Sequence[str],
    *,
    common: Mapping[str, str],
    env: Mapping[str, str],
    cwd: Path,
    log: Path,
    network: Path | None,
) -> ForkedProcess:
    """Fork one of Windtunnel's programs, inside a network namespace if one is given.

    `common` has the environment variables of all programs, and `env` those of this program only.
    Output is appended to `log`.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    server = _server_of(argv[_MODULE_AT], common, cwd)
    request = {
        "operation": "spawn",
        "argv": list(argv[_MODULE_AT:]),
        "env": {**common, **env},
        "cwd": str(cwd),
        "log": str(log.absolute()),
        "network": "" if network is None else str(network),
    }
    return ForkedProcess(name, server, server.exchange(request)["pid"], log)


def start(
    name: str,
    argv: Sequence[str],
    *,
    command: Sequence[str],
    common: Mapping[str, str],
    env: Mapping[str, str],
    cwd: Path,
    log: Path,
    network: Path | None,
) -> LocalProcess | ForkedProcess:
    """Fork one of Windtunnel's programs, see `spawn`, or execute `command` for any other one."""
    if can_fork(argv, env):
        return spawn(name, argv, common=common, env=env, cwd=cwd, log=log, network=network)
    return LocalProcess(name, command, env={**common, **env}, cwd=cwd, log=log)


def _server_of(program: str, env: Mapping[str, str], cwd: Path) -> ForkServer:
    groups = (SUBJECT_PROGRAMS, SIMULATOR_PROGRAMS)
    programs = next((each for each in groups if program in each), HARNESS_PROGRAMS)
    key = programs[0]
    if key not in _servers or not _servers[key].is_alive():
        _servers[key] = ForkServer(programs, env=env, cwd=cwd)
    return _servers[key]


def start_servers(env: Mapping[str, str], cwd: Path) -> None:
    """Start the fork servers of a real run. They import their modules while a lab is built."""
    for programs in (SUBJECT_PROGRAMS, HARNESS_PROGRAMS):
        _server_of(programs[0], env, cwd)


def load_kernels() -> None:
    """Load all compiled kernels in the running fork servers, so that the programs of later runs
    inherit them.
    """
    for server in _servers.values():
        server.load_kernels()
