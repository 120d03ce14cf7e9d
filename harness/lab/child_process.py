"""The child processes of the API: `windtunnel run`, and the process of a lab."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

END_TIMEOUT_S = 90.0
"""Time limit for a process that is asked to end, which has to remove its lab."""
ERROR_LINES = 20


class Finished(NamedTuple):
    """What a command has printed, and its exit code."""

    output: str
    errors: str
    code: int


def run_command(argv: Sequence[str]) -> Finished:
    """Run a command to its end. An exception, such as a time limit of the test, ends it early."""
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        output, errors = process.communicate()
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        try:
            process.communicate(timeout=END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        raise
    return Finished(output, errors, process.returncode)


def last_lines(text: str) -> str:
    """Return the last lines of what a process has printed."""
    return "\n".join(text.strip().splitlines()[-ERROR_LINES:])


@contextlib.contextmanager
def detached(module: str, name: str, text: str, log: Path) -> Iterator[Iterator[str]]:
    """Start a module as a process that stays when the caller ends, with a text as its input. Yields
    an iterator over the lines that it reports. Its errors go to a log.
    """
    reading, writing = os.pipe()
    with open(reading, encoding="utf-8") as lines:
        with log.open("wb") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", module, name, str(writing)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                pass_fds=[writing],
                start_new_session=True,
                text=True,
            )
        os.close(writing)
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError), process.stdin:
            process.stdin.write(text)
        try:
            yield iter(lines)
        except BaseException:
            process.terminate()
            raise


class ModuleProcess:
    """A module that runs as a process of its own, and inherits one file descriptor.

    It is in a session of its own, so that Ctrl-C reaches only the caller, which ends it in order.
    """

    def __init__(self, module: str, descriptor: int, *arguments: str) -> None:
        # It is closed in `close`.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, str(descriptor), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            pass_fds=[descriptor],
            start_new_session=True,
        )

    def last_errors(self) -> str:
        """Return the last lines that the process has written to stderr."""
        if self._errors.closed:
            return ""
        self._errors.seek(0)
        return last_lines(self._errors.read().decode(errors="replace"))

    def wait(self, timeout_s: float = END_TIMEOUT_S) -> None:
        """Wait until the process has ended. Raises TimeoutExpired if it needs longer."""
        self._process.wait(timeout_s)

    def close(self) -> None:
        """Wait until the process has ended, and kill it if it needs too long."""
        try:
            self.wait()
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()
