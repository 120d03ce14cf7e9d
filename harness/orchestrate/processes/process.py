"""Processes on this machine: short commands that must succeed, and long-running processes.

Each long-running process leads a session, so Ctrl-C on the terminal only reaches the harness, which
then ends its processes in order.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.processes import process_group

COMMAND_TIMEOUT_S = 30.0
TAIL_BYTES = 16384
STDERR = 2
POLL_S = 0.005


def run(argv: Sequence[str], *, stdin: str = "", timeout_s: float = COMMAND_TIMEOUT_S) -> bytes:
    """Run a short command and return its stdout. Raises LabError with its stderr if it fails."""
    try:
        done = subprocess.run(
            argv,
            input=stdin.encode(),
            capture_output=True,
            timeout=timeout_s,
            check=False,
            start_new_session=True,
        )
    except FileNotFoundError as error:
        raise LabError(f"the program {argv[0]!r} is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise LabError(f"`{' '.join(argv)}` did not end within {timeout_s:g} s") from error
    if done.returncode != 0:
        text = (done.stderr or done.stdout).decode(errors="replace").strip()
        raise LabError(f"`{' '.join(argv)}` failed with exit code {done.returncode}: {text}")
    return done.stdout


def run_in_foreground(argv: Sequence[str], *, env: Mapping[str, str]) -> int:
    """Run a command on the harness's terminal. Returns its exit code, or 128 + N for signal N."""
    return run_together([argv], env=env)[0]


def run_together(
    commands: Iterable[Sequence[str]], *, env: Mapping[str, str], stdout_to_stderr: bool = False
) -> list[int]:
    """Run commands at the same time on the harness's terminal. Returns their exit codes, or 128 + N
    for signal N. An exception, such as Ctrl-C, ends all of them.
    """
    # The children inherit this descriptor as their stderr, regardless of where `sys.stderr` writes.
    stdout = STDERR if stdout_to_stderr else None
    running: list[subprocess.Popen[bytes]] = []
    try:
        for argv in commands:
            running.append(subprocess.Popen(argv, env=dict(env), stdout=stdout))
        codes = [each.wait() for each in running]
    except BaseException:
        for each in running:
            each.terminate()
        for each in running:
            each.wait()
        raise
    return [code if code >= 0 else 128 - code for code in codes]


def with_parent_death_signal(argv: Sequence[str], signal_name: str = "KILL") -> list[str]:
    """Return a command whose process gets a signal when its parent process dies. If `setpriv` is
    not installed, the command is returned unchanged.
    """
    wrapper = ["setpriv", "--pdeathsig", signal_name, "--"] if shutil.which("setpriv") else []
    return [*wrapper, *argv]


def tail_of(log: Path, lines: int = 5) -> str:
    """Return the last non-empty lines of a log file, or "" if the file does not exist."""
    try:
        with log.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
    return "\n".join([line for line in text.splitlines() if line.strip()][-lines:])


class LocalProcess:
    """A long-running process on this machine. Implements `LabProcess`."""

    def __init__(
        self, name: str, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, log: Path
    ) -> None:
        self.name = name
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            try:
                self._popen = subprocess.Popen(
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=dict(env),
                    cwd=cwd,
                    start_new_session=True,
                )
            except OSError as error:
                raise LabError(f"{name} cannot be started: {error}") from error

    @property
    def pid(self) -> int:
        return self._popen.pid

    def poll(self) -> int | None:
        if self._popen.returncode is None and process_group.has_ended(self.pid):
            process_group.kill(self.pid)
        return self._popen.poll()

    def wait(self, timeout_s: float) -> int | None:
        deadline_s = time.monotonic() + timeout_s
        while (code := self.poll()) is None and time.monotonic() < deadline_s:
            time.sleep(POLL_S)
        return code

    def send_signal(self, number: int) -> None:
        # Popen is not used, because it would reap a dead process before its group is killed.
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        if self.poll() is None:
            process_group.kill(self.pid)
        self._popen.wait()

    def tail(self, lines: int = 5) -> str:
        return tail_of(self.log, lines)


class HelperProcess:
    """A process in a separate session that inherits one file descriptor from the harness."""

    def __init__(
        self, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, keep: int
    ) -> None:
        try:
            self._popen = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                env=dict(env),
                cwd=cwd,
                pass_fds=(keep,),
                start_new_session=True,
            )
        except OSError as error:
            raise LabError(f"{' '.join(argv)} cannot be started: {error}") from error

    def terminate(self) -> None:
        self._popen.terminate()

    def poll(self) -> int | None:
        return self._popen.poll()

    def end(self, timeout_s: float) -> int:
        """Wait until the process ends, and kill it if it does not end in time. Returns its exit
        code.
        """
        try:
            return self._popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            return self._popen.wait()


class CleanupWatchdog:
    """A cleanup watchdog process, which cleans up if the harness dies, and the pipe to it."""

    def __init__(self, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path) -> None:
        self._popen = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=dict(env),
            cwd=cwd,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        return self._popen.pid

    def release(self, word: bytes) -> None:
        """Make the watchdog end without cleaning up, and wait until it has ended."""
        assert self._popen.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._popen.stdin.write(word)
            self._popen.stdin.flush()
        with contextlib.suppress(BrokenPipeError):
            self._popen.stdin.close()
        self._popen.wait()
