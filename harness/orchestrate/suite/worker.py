"""The worker process of a pool of runs.

    python -m windtunnel.harness.orchestrate.suite.worker FD COUNT PARENT

    (index, Order) --FD--> a run --FD--> RunEvent* Made      again and again, until told None

It leads a session of its own, so Ctrl-C on the terminal reaches the harness alone. SIGTERM, and the
death of its parent, end it by the way back of its run. Messages are pickled: both ends are the same
program, and nobody else can reach the socket.
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
from windtunnel.harness.orchestrate.run.one_run import make_run, teller

_PR_SET_PDEATHSIG = 1


def serve(connection: Connection, count: int, parent: int, cancellation: Cancellation) -> None:
    """Make runs until told to end; raises Cancelled, or EOFError when the harness is gone."""
    made_count = 0
    while os.getppid() == parent and (task := connection.recv()) is not None:
        index, order = task
        if made_count == 1:
            fork_server_client.warm()
        made_count += 1
        tell = teller(order, index, count, connection.send)
        make_run(order, tell, cancellation, connection.send)


def main(argv: list[str]) -> int:
    """Run the process; see the module's first lines."""
    descriptor, count, parent = (int(each) for each in argv)
    with contextlib.suppress(Cancelled, EOFError, OSError), Cancellation() as cancellation:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        serve(Connection(descriptor), count, parent, cancellation)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
