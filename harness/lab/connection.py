"""The connection to the process of a lab: requests by number, and their answers.

If the program dies, its end of the socket closes, and the process removes the lab.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from typing import Any

from windtunnel.harness.lab.child_process import ModuleProcess
from windtunnel.harness.lab.errors import LabError

LINE_BYTES_MAX = 4 << 20
SERVER = "windtunnel.harness.lab.server"


class Connection:
    """A lab's process, and the requests that it has not answered yet."""

    def __init__(self) -> None:
        self._process: ModuleProcess | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._number = 0
        self._ready: asyncio.Future[dict[str, Any]] | None = None
        self._end: asyncio.Future[dict[str, Any]] | None = None
        self.progress = ""
        """What the process does before the lab is ready, and after it was closed."""

    async def open(self, options: dict[str, Any]) -> dict[str, Any]:
        """Start the process and return its description of the lab, once the lab is ready. Raises
        LabError if it cannot be built.
        """
        loop = asyncio.get_running_loop()
        self._ready, self._end = loop.create_future(), loop.create_future()
        own, other = socket.socketpair()
        self._process = ModuleProcess(SERVER, other.fileno(), str(options.get("fidelity", "netns")))
        other.close()
        reader, self._writer = await asyncio.open_connection(sock=own, limit=LINE_BYTES_MAX)
        self._reading = asyncio.create_task(self._read(reader))
        await self._send({"open": options})
        return await self._ready

    async def request(self, do: str, **fields: Any) -> dict[str, Any]:
        """Make a request and return its answer. Raises LabError if it is refused, or if the lab
        ends first.
        """
        if self._end is None or self._end.done():
            raise LabError(self._end_text())
        self._number += 1
        number = self._number
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        try:
            await self._send({"id": number, "do": do, **fields})
            return await future
        finally:
            self._waiting.pop(number, None)

    async def end(self) -> dict[str, Any]:
        """Close the lab, unless it has ended by itself, and return how it ended."""
        assert self._end is not None
        if not self._end.done():
            with contextlib.suppress(LabError):
                await self.request("close")
        return await self._end

    async def close(self) -> None:
        """Close the connection, and wait until the process has ended."""
        if self._writer is not None:
            self._writer.close()
            with contextlib.suppress(OSError):
                await self._writer.wait_closed()
        if self._reading is not None:
            self._reading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reading
        if self._process is not None:
            await asyncio.to_thread(self._process.close)

    async def _send(self, document: dict[str, Any]) -> None:
        assert self._writer is not None
        try:
            self._writer.write(json.dumps(document).encode() + b"\n")
            await self._writer.drain()
        except ConnectionError:
            pass  # It has ended, and `_read` says why to everything that waits.
        except (OSError, TypeError) as error:
            raise LabError(f"the request cannot be sent: {error}") from error

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while line := await reader.readline():
                self._receive(json.loads(line))
        except ConnectionError:
            pass  # It has ended without reading all requests, or before one was written.
        except (OSError, ValueError) as error:
            self._fail(f"the connection to the lab's process is broken: {error}")
            return
        self._fail(f"the lab's process has ended{self._last_errors()}")

    def _receive(self, document: dict[str, Any]) -> None:
        if "progress" in document:
            self.progress = str(document["progress"])
        elif "ready" in document:
            assert self._ready is not None
            self._ready.set_result(document["ready"])
        elif "failed" in document:
            self._fail(str(document["failed"]))
        elif "end" in document:
            assert self._end is not None
            self._end.set_result(document["end"])
            self._fail(self._end_text())
        else:
            future = self._waiting.get(document.get("id", 0))
            if future is not None and not future.done():
                if "ok" in document:
                    future.set_result(document["ok"])
                else:
                    future.set_exception(LabError(str(document.get("error"))))

    def _fail(self, text: str) -> None:
        """Fail all pending requests."""
        for future in (self._ready, self._end, *self._waiting.values()):
            if future is not None and not future.done():
                future.set_exception(LabError(text))
                # A waiting caller gets the exception. If there is none, asyncio must not report it.
                future.exception()

    def _end_text(self) -> str:
        if self._end is None or not self._end.done():
            return "the lab is not open"
        if error := self._end.exception():
            return str(error)
        end = self._end.result()
        return f"the lab has ended: {end['outcome']}: {end['reason']}"

    def _last_errors(self) -> str:
        """Return the last lines that the process has written, which explain why it has ended."""
        lines = "" if self._process is None else self._process.last_errors()
        return f": {lines}" if lines else ""
