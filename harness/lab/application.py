"""A program that runs on a host of a lab."""

from __future__ import annotations

from pathlib import Path

from windtunnel.harness.lab.connection import Connection
from windtunnel.harness.lab.errors import LabError
from windtunnel.harness.lab.target import Target

LOG_BYTES_MAX = 64 << 20
EXITED_WITHIN_S = 30.0


class Application(Target):
    """A program on a host. `Lab.start` returns it."""

    def __init__(self, connection: Connection, name: str, host: str, log: Path) -> None:
        super().__init__(connection, application=name)
        self.name = name
        """Its name in the verdict and in the names of its files."""
        self.host = host
        self.log = log
        """The file with everything that it prints."""

    async def exited(self, *, within: float = EXITED_WITHIN_S, code: int | None = None) -> int:
        """Wait until the program has ended by itself, and return its exit code.

        Raises LabError if it is still running after `within` seconds, or if the exit code is not 0,
        or `code` if that is given. An exit code of -9 means that signal 9 has ended it.
        """
        found = await self._connection.request(
            "wait", application=self.name, within=within, code=code
        )
        expected, ended = code or 0, int(found["code"])
        if ended != expected:
            text = f"{self.host}/{self.name} ended with exit code {ended}, expected {expected}"
            last = found["log"]
            raise LabError(f"{text}; last log lines: {last}" if last else text)
        return ended

    async def stop(self) -> int:
        """Ask the program to end, with its stop signal, wait for that, and return the exit code."""
        found = await self._connection.request("stop", application=self.name)
        return int(found["code"])

    def log_text(self) -> str:
        """Return what the program has printed so far."""
        with self.log.open("rb") as file:
            return file.read(LOG_BYTES_MAX).decode(errors="replace")
