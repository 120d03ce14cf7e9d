"""The last one out: cleans up after a harness that was killed before it could do so itself.

    harness ---pipe---> keeper        "done" and end of file: the lab went down in an orderly way
                                      end of file alone: the harness is gone, clean up

It is started before a lab changes anything, in a session of its own, so neither Ctrl-C nor the
death of the harness reaches it.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from windtunnel.harness.orchestrate.teardown import clean

DONE = b"done\n"


def main(argv: list[str]) -> int:
    """Wait for the end of stdin; clean up what the record names unless told that all is done."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    path = Path(argv[0])
    if sys.stdin.buffer.read() == DONE:
        return 0
    clean.remove_recorded(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
