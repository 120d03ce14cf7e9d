"""The cleanup watchdog, a process that cleans up after a killed harness.

    harness ---pipe---> watchdog      "done" and end of file: the lab has gone down properly
                                      end of file alone: the harness is dead, clean up

The watchdog is started before a lab changes anything. It has a separate session, so neither Ctrl-C
nor the death of the harness ends it.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from windtunnel.harness.orchestrate.teardown import clean

DONE = b"done\n"


def main(argv: list[str]) -> int:
    """Wait for the end of stdin, then remove everything that a lab's record names, unless `DONE`
    was read.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    path = Path(argv[0])
    if sys.stdin.buffer.read() == DONE:
        return 0
    clean.remove_recorded(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
