"""A shutdown request, made by a signal handler or by another thread.

`threading.Event` is not safe in a signal handler: `set` acquires a lock that the interrupted thread
may hold.
"""

import queue
import signal
from contextlib import suppress
from typing import Self


class ShutdownSignal:
    """A flag that is set once. Threads can wait for the flag."""

    def __init__(self) -> None:
        self.is_set = False
        # SimpleQueue is the only queue whose `put` is reentrant within a thread. Source:
        # documentation of CPython's queue.SimpleQueue.
        self._wakeups: queue.SimpleQueue[None] = queue.SimpleQueue()

    @classmethod
    def on_signals(cls) -> Self:
        """Return a ShutdownSignal that the first SIGINT, SIGTERM or SIGHUP sets. Later signals are
        ignored, and SIGHUP if it was ignored before, as in a process that nohup has started.

        Later signals are still ignored while the interpreter shuts down, because it resets Python
        signal handlers to the default, but not SIG_IGN.
        """
        shutdown, numbers = cls(), [signal.SIGINT, signal.SIGTERM]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            numbers.append(signal.SIGHUP)

        def on_signal(*_: object) -> None:
            for number in numbers:
                signal.signal(number, signal.SIG_IGN)
            shutdown.set()

        for number in numbers:
            signal.signal(number, on_signal)
        return shutdown

    def set(self) -> None:
        """Request the shutdown. This is safe in a signal handler and in any thread."""
        self.is_set = True
        self._wakeups.put(None)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait up to `timeout_s` for the shutdown request. Returns whether it was made.

        A signal that arrives just before the thread blocks does not wake the thread. Callers that
        wait for a signal must therefore wait repeatedly, with a timeout.
        """
        if not self.is_set:
            with suppress(queue.Empty):
                self._wakeups.get(timeout=timeout_s)
                # Wake the next waiting thread.
                self._wakeups.put(None)
        return self.is_set
