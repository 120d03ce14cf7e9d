"""The process of the real Aeron C driver, which pyaeron contains.

    python -m windtunnel.harness.bench.c_driver

It reads the same variables as ours (AERON_DIR, AERON_THREADING_MODE, ...) and exits on SIGTERM or
SIGINT. Exit codes: 0 stopped by a signal, 1 it could not start, 127 pyaeron is not installed.
"""

import os
import signal
import sys

NOT_INSTALLED = 127


def main() -> int:
    """Run the driver until a stop signal."""
    try:
        import pyaeron
    except ImportError as error:
        print(f"the real C driver needs pyaeron: {error}", file=sys.stderr)
        return NOT_INSTALLED
    # Blocked before the driver starts threads, so that they inherit the mask and only this one
    # waits.
    stops = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, stops)
    # pyaeron's own default would take precedence over the variable.
    mode = os.environ.get("AERON_THREADING_MODE", "DEDICATED").lower()
    try:
        with pyaeron.MediaDriver(dir=os.environ["AERON_DIR"], threading=mode):
            signal.sigwait(stops)
    except (pyaeron.AeronError, ValueError) as error:
        print(f"the real C driver could not start: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
