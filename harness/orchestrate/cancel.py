"""Converts SIGINT, SIGTERM and SIGHUP into an exception, which is deferred in critical sections.

    with Cancellation() as cancellation:
        ...                          a signal raises Cancelled here
        with cancellation.shielded():
            ...                      a signal is deferred to the end of this block

Handlers are only installed in the main thread. This module handles no signals in other threads.
SIGHUP stays ignored if it is, as in a process that nohup has started.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SIGNAL_EXIT_BASE = 128


class Cancelled(BaseException):
    """Raised when a signal stops the harness. This is not an error."""

    def __init__(self, signal_number: int) -> None:
        self.signal_number = signal_number
        self.exit_code = SIGNAL_EXIT_BASE + signal_number
        super().__init__(f"cancelled by {signal.Signals(signal_number).name}")


class Cancellation:
    """A context manager that raises Cancelled on the first signal, and ignores later signals."""

    def __init__(self, signals: Sequence[signal.Signals] = SIGNALS) -> None:
        self._signals = signals
        self._before: dict[int, Any] = {}
        self._pending: int | None = None
        self._shields = 0
        self._raised = False

    def __enter__(self) -> Cancellation:
        if threading.current_thread() is threading.main_thread():
            for number in self._signals:
                before = signal.getsignal(number)
                if number != signal.SIGHUP or before is not signal.SIG_IGN:
                    self._before[number] = before
                    signal.signal(number, self._on_signal)
            _active.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()
        if self in _active:
            _active.remove(self)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._raised or self._pending is not None:
            return
        if self._shields:
            self._pending = number
        else:
            self._raised = True
            raise Cancelled(number)

    @contextmanager
    def shielded(self) -> Iterator[None]:
        """Defer signals until the block ends. A pending signal then raises Cancelled."""
        self._shields += 1
        try:
            yield
        finally:
            self._shields -= 1
        if self._pending is not None and not self._shields:
            number, self._pending = self._pending, None
            self._raised = True
            raise Cancelled(number)


_active: list[Cancellation] = []
"""Those of the main thread, the innermost last."""


def shielded() -> AbstractContextManager[None]:
    """Return a context manager that defers signals to the end of its block, for code that a signal
    must not interrupt between a change and the note of it. It has no effect without a Cancellation
    and in other threads.
    """
    if _active and threading.current_thread() is threading.main_thread():
        return _active[-1].shielded()
    return nullcontext()
