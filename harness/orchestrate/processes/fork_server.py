"""The fork server: an interpreter that has imported Windtunnel's programs and forks them.

    python -m windtunnel.harness.orchestrate.processes.fork_server FD MODULE...

    {"operation": "spawn", "argv": [module, ...], ...}  --FD-->  {"pid": 4711}
    {"operation": "poll", "pid": 4711}                  --FD-->  {"code": null}    or the exit code
    {"operation": "load_kernels"}                       --FD-->  {"count": 600}    kernels loaded

Starting an interpreter and importing numba takes longer than most runs of a short stream, and each
run needs it seven times. A forked child behaves like a new process: it has its own process group,
network namespace, log and environment, and runs the module as `__main__`. It dies with the fork
server, and the fork server dies with the harness. A response has the id of its request, because an
interrupted harness may leave a response unread. The caller names the modules to import. Programs of
the driver under test and of the harness are never forked from the same server.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Collection
from typing import Any, NoReturn

from windtunnel.harness.orchestrate.processes import process_group

Message = dict[str, Any]

MESSAGE_BYTES_MAX = 1 << 20
SETUP_FAILED = 125
"""Exit code of a child that could not be set up. The reason is in its log."""

_CLONE_NEWNET = 0x40000000
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)


class ForkServerProcess:
    """A fork server, which serves requests until the harness closes the connection."""

    def __init__(self, connection: socket.socket, packages: Collection[str]) -> None:
        self._connection = connection
        self._packages = packages
        self._codes: dict[int, int] = {}

    def serve(self) -> Message | None:
        """Serve requests until the connection closes. Returns None in the server, and the request
        in a forked child.
        """
        while data := self._next():
            request = json.loads(data)
            if request["operation"] == "spawn":
                pid = os.fork()
                if pid == 0:
                    self._connection.close()
                    child_request: Message = request
                    return child_request
                # Parent and child both set the group, so it is set no matter which of them runs
                # first.
                with contextlib.suppress(OSError):
                    os.setpgid(pid, pid)
                # The process id may be reused: discard the exit code of the previous process with
                # this id.
                self._codes.pop(pid, None)
                answer: Message = {"pid": pid}
            elif request["operation"] == "poll":
                answer = {"code": self._poll(request["pid"])}
            else:
                answer = {"count": load_kernels(self._packages)}
                gc.freeze()
            answer["id"] = request["id"]
            # If the harness has ended, the next request is the end of the connection.
            with contextlib.suppress(ConnectionError):
                self._connection.send(json.dumps(answer).encode())
        return None

    def _next(self) -> bytes:
        """Return the next request, or nothing if the harness has closed the connection, also if it
        has not read all answers.
        """
        try:
            return self._connection.recv(MESSAGE_BYTES_MAX)
        except ConnectionError:
            return b""

    def _poll(self, pid: int) -> int | None:
        if pid not in self._codes:
            if not process_group.has_ended(pid):
                return None
            process_group.kill(pid)
            _, status = os.waitpid(pid, 0)
            self._codes[pid] = os.waitstatus_to_exitcode(status)
        return self._codes[pid]


def set_up_child(request: Message, parent: int) -> None:
    """Set up a forked child as requested: group, death signal, log, network, directory,
    environment.
    """
    os.setpgid(0, 0)
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(SETUP_FAILED)
    log = os.open(request["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    for descriptor in (1, 2):
        os.dup2(log, descriptor)
    os.close(log)
    if request["network"]:
        network = os.open(request["network"], os.O_RDONLY)
        if _LIBC.setns(network, _CLONE_NEWNET) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), request["network"])
        os.close(network)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.argv = list(request["argv"])


def load_kernels(packages: Collection[str]) -> int:
    """Load the cached kernels of all imported modules that belong to the given packages. Returns
    the number of loaded kernels.
    """
    count = 0
    seen: set[int] = set()
    for name, module in list(sys.modules.items()):
        if _package(name) not in packages:
            continue
        for found in list(vars(module).values()):
            load_stored = getattr(found, "load_stored", None)
            if load_stored is not None and id(found) not in seen:
                seen.add(id(found))
                # If a kernel cannot be loaded here, the child that needs it loads or compiles it.
                with contextlib.suppress(Exception):
                    count += load_stored()
    return count


def _package(module: str) -> str:
    """Return the first two components of a module name, such as `windtunnel.driver`."""
    return ".".join(module.split(".")[:2])


def main(argv: list[str]) -> int:
    """Run the fork server. In a forked child, run the requested module."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    connection = socket.socket(fileno=int(argv[0]))
    for name in argv[1:]:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    parent = os.getpid()
    packages = {_package(name) for name in argv[1:]}
    request = ForkServerProcess(connection, packages).serve()
    if request is None:
        return 0
    try:
        set_up_child(request, parent)
    except OSError as error:
        print(f"cannot set up {request['argv'][0]}: {error}", file=sys.stderr, flush=True)
        os._exit(SETUP_FAILED)
    _exit_fast(_run(request["argv"][0]))


def _run(module: str) -> int:
    """Run a module as `python -m` does, and return its exit code."""
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _exit_fast(code: int) -> NoReturn:
    """Exit like a normal Python process, but without destroying any Python objects.

    Destroying hundreds of compiled kernels would take longer than the run.
    """
    for each in threading.enumerate():
        if each is not threading.current_thread() and not each.daemon:
            each.join()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
