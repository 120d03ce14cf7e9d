"""Measures how long a process has been waited for, on a machine that may be busy."""

import time

from windtunnel.harness.capture import process_facts

STEP_NS_MAX = 1_000_000_000
"""Maximum time between two observations that counts. The observing process may itself have been
stopped."""


class Waiting:
    """The time since this object was made, without that in which the main thread of a process
    waited for a processor, or in which it was not observed.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._waited_ns = 0
        self._looked_ns, self._delay_ns = time.monotonic_ns(), process_facts.run_delay_ns(pid)

    def seconds(self) -> float:
        """Return the time so far. Call this at least once a second."""
        now_ns, delay_ns = time.monotonic_ns(), process_facts.run_delay_ns(self._pid)
        step_ns = min(now_ns - self._looked_ns, STEP_NS_MAX)
        self._waited_ns += max(0, step_ns - (delay_ns - self._delay_ns))
        self._looked_ns, self._delay_ns = now_ns, delay_ns
        return self._waited_ns / 1e9
