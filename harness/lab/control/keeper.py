"""The process that keeps a lab up: passes the requests of commands on to the lab, one by one.

    python -m windtunnel.harness.lab.control.keeper NAME FD < options as JSON

    windtunnel lab start --socket--> keeper --socket pair--> process of the lab

It writes lines of JSON to the descriptor: what it is doing, and then that the lab is ready, or why
not. It ends with `down`, or with SIGTERM, and takes the lab down.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from windtunnel.harness.lab.connection import Connection
from windtunnel.harness.lab.control.control_socket import LINE_BYTES_MAX, is_up, socket_path
from windtunnel.harness.lab.errors import LabError

DOWN = "down"
_POLL_S = 0.2


class Keeper:
    """A lab, and the socket at which it is reached."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection = Connection()
        self._is_over = asyncio.Event()
        self._end: dict[str, Any] = {}

    async def run(self, options: dict[str, Any], report: Callable[[dict[str, Any]], None]) -> None:
        """Open the lab, and keep it until it is taken down."""
        opening = asyncio.create_task(self._connection.open(options))
        said = ""
        while not opening.done():
            await asyncio.wait([opening], timeout=_POLL_S)
            if self._connection.progress != said:
                said = self._connection.progress
                report({"progress": said})
        try:
            description = await opening
            server = await asyncio.start_unix_server(
                self._serve, path=str(self._path), limit=LINE_BYTES_MAX
            )
        except (LabError, OSError) as error:
            report({"failed": str(error)})
            await self._connection.close()
            return
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, self._is_over.set)
        report({"ready": description})
        async with server:
            await self._is_over.wait()
        self._path.unlink(missing_ok=True)
        with contextlib.suppress(LabError):
            await self._connection.end()
        await self._connection.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        try:
            request = json.loads(await reader.readline())
            answer: dict[str, Any] = {"ok": await self._answer(request)}
        except (LabError, OSError, ValueError, TypeError, KeyError) as error:
            answer = {"error": str(error) or repr(error)}
        with contextlib.suppress(OSError):
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()
        writer.close()
        if self._end:
            self._is_over.set()

    async def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        do = request.pop("do")
        if do != DOWN:
            return await self._connection.request(str(do), **request)
        try:
            self._end = await self._connection.end()
        except LabError as error:
            self._end = {"outcome": "HARNESS", "reason": str(error), "run_dir": ""}
        return self._end


def main() -> int:
    """Keep a lab. Returns the exit code."""
    name, descriptor = sys.argv[1], int(sys.argv[2])
    options = json.load(sys.stdin)
    path = socket_path(name)
    with os.fdopen(descriptor, "w", encoding="utf-8") as output:

        def report(document: dict[str, Any]) -> None:
            # If the command was interrupted, it no longer reads; the lab is then of no use.
            with contextlib.suppress(OSError, ValueError):
                output.write(json.dumps(document) + "\n")
                output.flush()
                if "progress" not in document:
                    output.close()

        if is_up(name):
            report({"failed": f"lab {name!r} is up already: `windtunnel lab down` ends it"})
            return 1
        path.unlink(missing_ok=True)
        asyncio.run(Keeper(path).run(options, report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
