"""What a lab can pause and kill, without asyncio."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from windtunnel.harness.lab.target import Target

Run = Callable[[Coroutine[Any, Any, Any]], Any]
"""Runs a coroutine to its end, in the event loop of the lab."""


class PlainTarget:
    """A program or a driver."""

    def __init__(self, run: Run, target: Target) -> None:
        self._run = run
        self._target = target

    def pause(self) -> None:
        """Pause all its processes until `resume`."""
        self._run(self._target.pause())

    def resume(self) -> None:
        """Resume the paused processes."""
        self._run(self._target.resume())

    def kill(self) -> None:
        """Kill it with SIGKILL. The verdict does not hold that against it."""
        self._run(self._target.kill())

    def restart(self) -> None:
        """Start it again after it was killed."""
        self._run(self._target.restart())

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Pause it for the duration of a `with` block."""
        self.pause()
        try:
            yield
        finally:
            self.resume()
