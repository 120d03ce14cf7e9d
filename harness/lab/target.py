"""What a lab can pause and kill: a program, or the driver of a host."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from windtunnel.harness.lab.connection import Connection


class Target:
    """A program or a driver."""

    def __init__(self, connection: Connection, **whom: str) -> None:
        self._connection = connection
        self._whom = whom

    async def pause(self) -> None:
        """Pause all its processes until `resume`."""
        await self._event("pause")

    async def resume(self) -> None:
        """Resume the paused processes."""
        await self._event("resume")

    async def kill(self) -> None:
        """Kill it with SIGKILL. The verdict does not hold that against it."""
        await self._event("kill")

    async def restart(self) -> None:
        """Start it again after it was killed."""
        await self._event("restart")

    @asynccontextmanager
    async def paused(self) -> AsyncIterator[None]:
        """Pause it for the duration of an `async with` block."""
        await self.pause()
        try:
            yield
        finally:
            await self.resume()

    async def _event(self, action: str) -> None:
        await self._connection.request("event", action=action, **self._whom)
