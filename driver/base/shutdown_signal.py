"""Being asked to end, by a signal or by another thread: a note that is left, and may be waited for.

An event of the threading module will not do in a signal's handler: to set it takes a lock, which
the very thread that the signal interrupted may hold.
"""

import queue
import signal
from contextlib import suppress
from typing import Self


class ShutdownSignal:
    """Whether anybody asked that something ends; once asked, it stays so."""

    def __init__(self) -> None:
        self.is_left = False
        # The one queue whose `put` may interrupt another call of it in the same thread. Source:
        # documentation of CPython's queue.SimpleQueue.
        self._bell: queue.SimpleQueue[None] = queue.SimpleQueue()

    @classmethod
    def on_signals(cls) -> Self:
        """One that hears of the first SIGINT or SIGTERM; later ones are ignored, to the very end.

        While an interpreter leaves, it would take back what it does on a signal, but not this.
        """
        note, numbers = cls(), (signal.SIGINT, signal.SIGTERM)

        def hear(*_: object) -> None:
            for number in numbers:
                signal.signal(number, signal.SIG_IGN)
            note.leave()

        for number in numbers:
            signal.signal(number, hear)
        return note

    def leave(self) -> None:
        """Ask; safe in a signal's handler, and in any thread."""
        self.is_left = True
        self._bell.put(None)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until somebody asks, for at most `timeout_s`. Returns whether anybody has.

        A signal that comes just before the thread goes to sleep does not wake it: whoever waits
        for one gives a limit, and looks again.
        """
        if not self.is_left:
            with suppress(queue.Empty):
                self._bell.get(timeout=timeout_s)
                # Another may be waiting, too.
                self._bell.put(None)
        return self.is_left
