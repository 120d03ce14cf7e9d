"""The links of a lab, whose impairments can change at any time, and the drivers of its hosts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Unpack

from windtunnel.harness.lab.connection import Connection
from windtunnel.harness.lab.options import LinkOptions
from windtunnel.harness.lab.target import Target


class Link:
    """A link between two hosts. `Lab.link` returns it.

    Each change has happened when its call returns, and is in `link-changes.json` with its time.
    `to` limits a change to the direction that leads to this host.
    """

    def __init__(self, connection: Connection, between: Sequence[str]) -> None:
        self._connection = connection
        self._between = list(between)

    async def impair(self, *, to: str | None = None, **changes: Unpack[LinkOptions]) -> None:
        """Change some impairments of the link, such as `loss="10%"`. All others remain; None
        removes one.
        """
        await self._request("impair", to, dict(changes))

    async def partition(self, *, to: str | None = None) -> None:
        """Lose every packet, until `reconnect` or `heal`. Packets that are on their way arrive."""
        await self._request("partition", to)

    async def reconnect(self, *, to: str | None = None) -> None:
        """End a partition. The link has the impairments from before it again."""
        await self._request("reconnect", to)

    async def heal(self, *, to: str | None = None) -> None:
        """Return the link to the impairments with which the lab was opened."""
        await self._request("heal", to)

    @asynccontextmanager
    async def partitioned(self, *, to: str | None = None) -> AsyncIterator[None]:
        """Partition the link for the duration of an `async with` block."""
        await self.partition(to=to)
        try:
            yield
        finally:
            await self.reconnect(to=to)

    async def _request(
        self, action: str, to: str | None, impairments: dict[str, object] | None = None
    ) -> None:
        await self._connection.request(
            "link", action=action, between=self._between, to=to, impairments=impairments
        )


class Driver(Target):
    """The media driver of a host. `Lab.driver` returns it."""

    def __init__(self, connection: Connection, host: str) -> None:
        super().__init__(connection, host=host)
        self.host = host
