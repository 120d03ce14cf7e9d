"""The process of the real Aeron C driver, which pyaeron brings along.

    python -m harness.bench.c_driver

It reads the same variables as ours (AERON_DIR, AERON_THREADING_MODE, ...) and ends on SIGTERM or
SIGINT. Exit codes: 0 ended in order, 1 it could not start, 127 pyaeron is not installed.
"""

import os
import signal
import sys
import threading

NOT_INSTALLED = 127


def main() -> int:
    """Run the driver until it is told to stop."""
    try:
        import pyaeron
    except ImportError as error:
        print(f"the real C driver needs pyaeron: {error}", file=sys.stderr)
        return NOT_INSTALLED
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    # pyaeron's own default would win over the variable.
    mode = os.environ.get("AERON_THREADING_MODE", "DEDICATED").lower()
    try:
        with pyaeron.MediaDriver(dir=os.environ["AERON_DIR"], threading=mode):
            stop.wait()
    except (pyaeron.AeronError, ValueError) as error:
        print(f"the real C driver could not start: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
