"""Runs Aeron's C driver from the pyaeron package.

    python -m windtunnel.harness.bench.c_driver

It reads the same environment variables as Windtunnel's driver (AERON_DIR, AERON_THREADING_MODE,
...) and exits on SIGTERM or SIGINT. Exit codes: 0 if a signal stopped the driver, 1 if the driver
could not start, 127 if pyaeron is not installed.
"""

import os
import signal
import sys

NOT_INSTALLED = 127


def main() -> int:
    """Run Aeron's C driver until a signal stops it. Returns the exit code."""
    try:
        import pyaeron
    except ImportError as error:
        print(f"the real C driver needs pyaeron: {error}", file=sys.stderr)
        return NOT_INSTALLED
    # The signals are blocked before the driver starts threads, which inherit the mask. Only this
    # thread therefore waits for signals.
    stops = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, stops)
    # pyaeron's defaults would take precedence over the environment variables: with them, spies
    # simulate connections.
    mode = os.environ.get("AERON_THREADING_MODE", "DEDICATED").lower()
    simulates = os.environ.get("AERON_SPIES_SIMULATE_CONNECTION", "false").lower() == "true"
    try:
        with pyaeron.MediaDriver(
            dir=os.environ["AERON_DIR"], threading=mode, spies_simulate_connection=simulates
        ):
            signal.sigwait(stops)
    except (pyaeron.AeronError, ValueError) as error:
        print(f"the real C driver could not start: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
