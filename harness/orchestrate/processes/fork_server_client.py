"""Where processes of our programs come from: zygotes that this process keeps, one a family.

    subject     driver, workloads      --\\
    harness     relay, sampler         ----> ForkedProcess, as if started from a command line

A zygote is started when its family's first program is wanted, and lives as long as this process.
What is no program of ours, such as tcpdump or another driver, is none of its business.
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
from windtunnel.harness.orchestrate.processes.process import Companion, tail_of

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
}
"""What each program imports; by its own name it would be imported a second time."""

SUBJECT = ("windtunnel.driver", "windtunnel.driver.archive", "windtunnel.harness.workload")
OURS = ("windtunnel.harness.middlebox", "windtunnel.harness.capture.counters")
READ_AT_START = ("PYTHON", "NUMBA_", "WINDTUNNEL_KERNEL_CACHE")
"""How variables begin that decide what is imported, and which kernels are loaded."""

END_TIMEOUT_S = 5.0
KILLED_TIMEOUT_S = 60.0
"""Nobody refuses a kill, but it comes late where the machine stands still."""
_MODULE_AT = 2


class ForkedProcess:
    """A child of a zygote; see `LabProcess` for what its methods promise."""

    def __init__(self, name: str, family: ForkServer, pid: int, log: Path) -> None:
        self.name = name
        self.log = log
        self.pid = pid
        self._family = family
        self._code: int | None = None
        # The zygote keeps a dead child until it is asked for it, so this is no other process.
        self._handle = os.pidfd_open(pid)

    def poll(self) -> int | None:
        if self._code is None and self._ended(0.0):
            self._code = self._family.ask({"do": "poll", "pid": self.pid})["code"]
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

    def tell(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, number)

    def terminate(self) -> None:
        self.tell(signal.SIGTERM)

    def kill(self) -> None:
        if self.poll() is None:
            process_group.kill(self.pid)
        self.wait(KILLED_TIMEOUT_S)

    def tail(self, lines: int = 5) -> str:
        return tail_of(self.log, lines)


class ForkServer:
    """A zygote and the connection to it."""

    def __init__(self, programs: Sequence[str], *, env: Mapping[str, str], cwd: Path) -> None:
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        argv = [sys.executable, "-m", fork_server.__name__, str(theirs.fileno())]
        argv += [module for program in programs for module in FORK_SERVERS[program]]
        # A thread of numpy's would not survive the fork, and nobody here multiplies matrices.
        alone = {**env, "OPENBLAS_NUM_THREADS": "1"}
        self._process = Companion(argv, env=alone, cwd=cwd, keep=theirs.fileno())
        theirs.close()
        self._count = 0
        self._is_warm = False
        atexit.register(self.close)

    def ask(self, request: Message) -> Message:
        """Return the answer to a request; LabError if the zygote is gone."""
        self._count += 1
        own = self._count
        try:
            self._ours.send(json.dumps({**request, "id": own}).encode())
            while answer := self._ours.recv(MESSAGE_BYTES_MAX):
                found: Message = json.loads(answer)
                # One that was interrupted while it waited has left its answer to the next.
                if found["id"] == own:
                    return found
        except OSError as error:
            raise LabError(f"a zygote does not answer: {error}") from error
        raise LabError(f"a zygote has ended with exit code {self._process.end(END_TIMEOUT_S)}")

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def warm(self) -> None:
        """Have kernels loaded once for all children to come."""
        if not self._is_warm:
            self._is_warm = True
            self.ask({"do": "warm"})

    def close(self) -> None:
        """Let the zygote end; its children die with it."""
        self._ours.close()
        self._process.end(END_TIMEOUT_S)


_families: dict[str, ForkServer] = {}


@cache
def _has_handles() -> bool:
    """Whether this kernel gives handles of processes, as Linux does since 5.3."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:
        return False
    return True


def knows(argv: Sequence[str], env: Mapping[str, str]) -> bool:
    """Whether a command line starts one of our programs with this interpreter.

    `env` are the variables of this program beside the usual ones. Those that an interpreter reads
    when it starts would come too late for one that is forked: it has imported what it has.
    """
    return (
        _has_handles()
        and not any(name.startswith(READ_AT_START) for name in env)
        and len(argv) > _MODULE_AT
        and list(argv[:_MODULE_AT]) == [sys.executable, "-m"]
        and argv[_MODULE_AT] in FORK_SERVERS
    )


def spawn(
    name: str,
    argv: Sequence[str],
    *,
    usual: Mapping[str, str],
    env: Mapping[str, str],
    cwd: Path,
    log: Path,
    network: Path | None,
) -> ForkedProcess:
    """Start one of our programs, in a network namespace if any; its log is appended to.

    `usual` are the variables of every program, `env` those of this one beside them.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    family = _family_of(argv[_MODULE_AT], usual, cwd)
    request = {
        "do": "spawn",
        "argv": list(argv[_MODULE_AT:]),
        "env": {**usual, **env},
        "cwd": str(cwd),
        "log": str(log.absolute()),
        "network": "" if network is None else str(network),
    }
    return ForkedProcess(name, family, family.ask(request)["pid"], log)


def _family_of(program: str, env: Mapping[str, str], cwd: Path) -> ForkServer:
    programs = SUBJECT if program in SUBJECT else OURS
    key = programs[0]
    if key not in _families or not _families[key].is_alive():
        _families[key] = ForkServer(programs, env=env, cwd=cwd)
    return _families[key]


def prepare(env: Mapping[str, str], cwd: Path) -> None:
    """Start all zygotes, so that they import at the same time while a lab is built."""
    for programs in (SUBJECT, OURS):
        _family_of(programs[0], env, cwd)


def warm() -> None:
    """Have the zygotes that there are load all kernels: it pays when more runs are to come."""
    for family in _families.values():
        family.warm()
