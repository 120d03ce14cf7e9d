"""A media driver as a child process, which ends together with the archive.

The archive uses it like any other driver, through shared memory. This module only starts the
process, waits until it is ready, and ends it. The driver runs in a separate process session, so
Ctrl-C stops the archive first. The operating system sends the driver SIGTERM when the archive dies.
This module sets only the driver's directory.
"""

import ctypes
import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from windtunnel.driver.base.errors import DriverError

READY = b"driver ready"
READY_LIMIT_S = 300
"""The time limit in seconds for the driver's start. The first start may have to compile kernels."""
END_LIMIT_S = 30
_PR_SET_PDEATHSIG = 1


class DriverChildError(DriverError):
    """The driver did not start, or has ended unexpectedly."""


class DriverChild:
    """A media driver that runs in a child process."""

    def __init__(self, directory: Path, options: Sequence[str]) -> None:
        """Start a driver, with additional command-line options. Raises DriverChildError if the
        driver does not start.
        """
        command = [
            sys.executable,
            "-P",
            "-m",
            "windtunnel.driver",
            *options,
            "--dir",
            str(directory),
        ]
        libc, archive = ctypes.CDLL(None, use_errno=True), os.getpid()

        def die_with_parent() -> None:
            # Until exec, the inherited handler would only set a flag in this copy of the parent.
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() != archive:
                os._exit(1)

        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                start_new_session=True, preexec_fn=die_with_parent,
            )  # fmt: skip
        except OSError as error:
            raise DriverChildError(f"cannot start {command[0]}: {error.strerror}") from error
        try:
            self._await_ready()
        except BaseException:
            self.close()
            raise

    def _await_ready(self) -> None:
        assert self._process.stdout is not None
        descriptor, output = self._process.stdout.fileno(), b""
        while READY not in output:
            readable, _, _ = select.select([descriptor], [], [], READY_LIMIT_S)
            chunk = os.read(descriptor, 65_536) if readable else b""
            if not chunk:
                raise DriverChildError("the media driver did not start; see its output above")
            output += chunk

    @property
    def failure(self) -> DriverChildError | None:
        """A DriverChildError if the driver has ended, or None if it is still running."""
        code = self._process.poll()
        return (
            None if code is None else DriverChildError(f"the media driver exited with code {code}")
        )

    def close(self) -> None:
        """Terminate the driver, or kill it after a timeout. Repeated calls have no effect."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(END_LIMIT_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
