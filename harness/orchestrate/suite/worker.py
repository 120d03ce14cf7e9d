"""A worker process of the pool, which executes one run after another.

    python -m windtunnel.harness.orchestrate.suite.worker FD COUNT PARENT

    (index, RunSpec) --FD--> a run --FD--> RunEvent* RunResult      repeatedly, until None

A worker leads a session, so Ctrl-C on the terminal only reaches the harness. On SIGTERM, and on the
death of its parent, the worker first finishes its run with all cleanup. Messages are pickled: both
ends are the same program, and no other process has access to the socket.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from multiprocessing.connection import Connection

from windtunnel.harness.orchestrate.cancel import Cancellation, Cancelled
from windtunnel.harness.orchestrate.processes import fork_server_client
from windtunnel.harness.orchestrate.run.one_run import event_emitter, execute_run

_PR_SET_PDEATHSIG = 1


def serve(connection: Connection, count: int, parent: int, cancellation: Cancellation) -> None:
    """Execute runs until the harness sends None. Raises Cancelled, or EOFError if the harness is
    dead.
    """
    run_count = 0
    while os.getppid() == parent and (task := connection.recv()) is not None:
        index, spec = task
        if run_count == 1:
            fork_server_client.load_kernels()
        run_count += 1
        emit = event_emitter(spec, index, count, connection.send)
        execute_run(spec, emit, cancellation, connection.send)


def main(argv: list[str]) -> int:
    """Run a worker process. The arguments are a file descriptor, the number of runs and the
    parent's process id.
    """
    descriptor, count, parent = (int(each) for each in argv)
    with contextlib.suppress(Cancelled, EOFError, OSError), Cancellation() as cancellation:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        serve(Connection(descriptor), count, parent, cancellation)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
