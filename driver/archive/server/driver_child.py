"""A media driver of an archive's own: a child process that lives no longer than its archive.

The archive meets it as it meets any other driver, in shared memory; here are only its command line,
its first word and its end. It has a session of its own, so that Ctrl-C ends the archive first, and
is told to end where the archive is killed. Knows nothing of its settings but the directory.
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
"""A first start may compile its kernels."""
END_LIMIT_S = 30
_PR_SET_PDEATHSIG = 1


class DriverChildError(DriverError):
    """The driver did not start, or has ended by itself."""


class DriverChild:
    """A media driver in a directory, started."""

    def __init__(self, directory: Path, options: Sequence[str]) -> None:
        """`options` are further words of its command line. Raises DriverChildError."""
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
            # Until it is a program of its own a signal would only be noted, in a copy of the note.
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
        descriptor, said = self._process.stdout.fileno(), b""
        while READY not in said:
            readable, _, _ = select.select([descriptor], [], [], READY_LIMIT_S)
            chunk = os.read(descriptor, 65_536) if readable else b""
            if not chunk:
                raise DriverChildError("the media driver did not start; see what it said above")
            said += chunk

    @property
    def failure(self) -> DriverChildError | None:
        """Why there is no driver any more, if so."""
        code = self._process.poll()
        return None if code is None else DriverChildError(f"the media driver ended with {code}")

    def close(self) -> None:
        """End it in good order, or otherwise; may be called again."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(END_LIMIT_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
