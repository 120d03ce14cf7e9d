"""A Python interpreter that has imported what our programs need, and becomes them by forking.

    python -m windtunnel.harness.orchestrate.processes.fork_server FD MODULE...

    {"do": "spawn", "argv": [module, ...], ...} --FD--> {"pid": 4711}     a child becomes the module
    {"do": "poll", "pid": 4711}                 --FD--> {"code": null}    or how it ended
    {"do": "warm"}                              --FD--> {"count": 600}    kernels loaded beforehand

Starting an interpreter and importing numba takes longer than most runs of a short stream, and each
run needs it seven times. A child is as if started afresh: its own group, its place's network, its
log, its variables, `__main__` run anew. It dies with this process, and this one with the harness.
An answer bears the id of its request, since a harness that is interrupted may leave one unread.
Refuses to know what the modules are: they are named by whoever starts it, and those of the subject
never share a zygote with our own.
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
CANNOT_BECOME = 125
"""Exit code of a child that could not be made what it was to be; its log says why."""

_CLONE_NEWNET = 0x40000000
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)


class ForkServerProcess:
    """Answers requests until the harness is gone."""

    def __init__(self, connection: socket.socket, packages: Collection[str]) -> None:
        self._connection = connection
        self._packages = packages
        self._codes: dict[int, int] = {}

    def serve(self) -> Message | None:
        """Return in the zygote when the harness is gone, and in each child what it is to become."""
        while request := self._connection.recv(MESSAGE_BYTES_MAX):
            wanted = json.loads(request)
            if wanted["do"] == "spawn":
                pid = os.fork()
                if pid == 0:
                    self._connection.close()
                    found: Message = wanted
                    return found
                # Both sides do this, so that it is done whoever is looked at first.
                with contextlib.suppress(OSError):
                    os.setpgid(pid, pid)
                # A number that was another's: what became of that one is nobody's affair any more.
                self._codes.pop(pid, None)
                answer: Message = {"pid": pid}
            elif wanted["do"] == "poll":
                answer = {"code": self._poll(wanted["pid"])}
            else:
                answer = {"count": load_kernels(self._packages)}
                gc.freeze()
            answer["id"] = wanted["id"]
            self._connection.send(json.dumps(answer).encode())
        return None

    def _poll(self, pid: int) -> int | None:
        if pid not in self._codes:
            if not process_group.has_ended(pid):
                return None
            process_group.kill(pid)
            _, status = os.waitpid(pid, 0)
            self._codes[pid] = os.waitstatus_to_exitcode(status)
        return self._codes[pid]


def become(wanted: Message, parent: int) -> None:
    """Make this child the process that was asked for, up to its first line."""
    os.setpgid(0, 0)
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(CANNOT_BECOME)
    log = os.open(wanted["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    for descriptor in (1, 2):
        os.dup2(log, descriptor)
    os.close(log)
    if wanted["network"]:
        network = os.open(wanted["network"], os.O_RDONLY)
        if _LIBC.setns(network, _CLONE_NEWNET) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), wanted["network"])
        os.close(network)
    os.chdir(wanted["cwd"])
    os.environ.clear()
    os.environ.update(wanted["env"])
    sys.argv = list(wanted["argv"])


def load_kernels(packages: Collection[str]) -> int:
    """Load every compiled kernel that was kept of some packages' modules; return how many."""
    count = 0
    seen: set[int] = set()
    for name, module in list(sys.modules.items()):
        if _package(name) not in packages:
            continue
        for found in list(vars(module).values()):
            kept = getattr(getattr(found, "_cache", None), "_cache_file", None)
            if kept is not None and id(found) not in seen:
                seen.add(id(found))
                # What cannot be loaded here is loaded, or compiled, by the child that needs it.
                with contextlib.suppress(Exception):
                    count += _load(found, kept)
    return count


def _package(module: str) -> str:
    """`windtunnel.driver` of any module in it."""
    return ".".join(module.split(".")[:2])


def _load(kernel: Any, kept: Any) -> int:
    """Load the builds of one kernel, of which numba keeps an index by signature."""
    signatures = [signature for signature, *_ in kept._load_index()]
    for signature in signatures:
        kernel.compile(signature)
    return len(signatures)


def main(argv: list[str]) -> int:
    """Run the process; see the module's first lines. In a child it ends as the child's program."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    connection = socket.socket(fileno=int(argv[0]))
    for name in argv[1:]:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    parent = os.getpid()
    packages = {_package(name) for name in argv[1:]}
    wanted = ForkServerProcess(connection, packages).serve()
    if wanted is None:
        return 0
    try:
        become(wanted, parent)
    except OSError as error:
        print(f"cannot become {wanted['argv'][0]}: {error}", file=sys.stderr, flush=True)
        os._exit(CANNOT_BECOME)
    _leave(_run(wanted["argv"][0]))


def _run(module: str) -> int:
    """Run a module as the interpreter would and return its exit code."""
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


def _leave(code: int) -> NoReturn:
    """End as an interpreter does, but for freeing what the kernel frees at once.

    To take hundreds of loaded kernels apart takes longer than the run.
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
