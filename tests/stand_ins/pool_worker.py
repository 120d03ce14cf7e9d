"""A worker of the pool without a lab: it follows the command in its order and reports as usual.

    python -m tests.stand_ins.pool_worker FD COUNT PARENT

An order is a word: `pass`, `die`, or `wait`, which lasts until it is stopped.
"""

import contextlib
import os
import sys
import time
from multiprocessing.connection import Connection

from windtunnel.harness.orchestrate.cancel import Cancellation, Cancelled
from windtunnel.harness.orchestrate.event import RunEvent
from windtunnel.harness.orchestrate.run.one_run import CANCELLED, RunResult

WAIT_S = 60.0


def main() -> int:
    descriptor, count, _ = (int(each) for each in sys.argv[1:])
    connection = Connection(descriptor)
    with contextlib.suppress(Cancelled), Cancellation():
        while (task := connection.recv()) is not None:
            index, word = task
            try:
                connection.send(RunEvent("run", index, count, word, seed=os.getpid()))
                if word == "die":
                    os.abort()
                time.sleep(WAIT_S if word == "wait" else 0)
            except Cancelled:
                connection.send(RunResult(CANCELLED, "told to end", 1, 2))
                raise
            connection.send(RunResult("PASS", word, 1, 2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
