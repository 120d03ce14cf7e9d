"""An application as a process of a lab: its launcher, with the application's log."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from windtunnel.harness.artifact.run_dir import ApplicationFiles
from windtunnel.harness.orchestrate.applications import launcher
from windtunnel.harness.orchestrate.lab import LabProcess
from windtunnel.harness.orchestrate.processes.process import tail_of

LOG_BYTES_MAX = 64 << 20
"""Maximum length of an application's log. An application that writes more is killed."""

_SIGNALS = {signal.SIGSTOP: launcher.PAUSE, signal.SIGCONT: launcher.RESUME}
_PROBLEMS = (launcher.CANNOT_START, launcher.LOG_TOO_LONG, launcher.LOG_LOST)


def launcher_command(
    files: ApplicationFiles, command: Sequence[str], folder: Path | None = None
) -> list[str]:
    """Return the command line of the launcher that runs an application's command, in `folder` or,
    without it, in a folder of its own.
    """
    launched = [sys.executable, "-I", "-S", launcher.__file__]
    where = files.folder if folder is None else folder
    return [*launched, str(files.log), str(LOG_BYTES_MAX), str(where), *command]


class ApplicationProcess:
    """An application. Implements `LabProcess`."""

    def __init__(self, launched: LabProcess, files: ApplicationFiles) -> None:
        self.name = launched.name
        self._launched = launched
        self._files = files

    def poll(self) -> int | None:
        return self._launched.poll()

    def wait(self, timeout_s: float) -> int | None:
        return self._launched.wait(timeout_s)

    def send_signal(self, number: int) -> None:
        """Send a signal to the application. SIGSTOP and SIGCONT reach all its processes."""
        self._launched.send_signal(_SIGNALS.get(signal.Signals(number), number))

    def terminate(self) -> None:
        self._launched.terminate()

    def kill(self) -> None:
        self._launched.kill()

    def tail(self, lines: int = 5) -> str:
        """Return the last lines of the application's log, or the reason why it has none."""
        problem, text = self.problem()
        return text if problem == launcher.CANNOT_START else tail_of(self._files.log, lines)

    def problem(self) -> tuple[str, str]:
        """Return why the launcher ended the application or could not start it, as a keyword and a
        text. Both are empty if it did neither.
        """
        last = tail_of(self._files.launcher_log, 1)
        found, _, text = last.partition(": ")
        return (found, text) if found in _PROBLEMS else ("", "")
