"""Starts and supervises a User Mode Linux kernel that runs one command.

The command's output is passed on immediately. The kernel's messages go to a log, whose end is shown
after an error. SIGINT and SIGTERM are forwarded to the command inside, which cleans up and ends. A
second signal or a timeout kills the kernel. If this process is killed, the kernel dies too.
"""

import contextlib
import fcntl
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import BinaryIO

from windtunnel.harness.installation import ROOT
from windtunnel.harness.uml.boot_request import BootRequest, Exit
from windtunnel.harness.uml.inside import SIGNALS, UP
from windtunnel.harness.uml.kernel import Kernel

MODULES = ("veth", "bridge", "sch_netem")
INSIDE_VARIABLE = "WINDTUNNEL_KERNEL"
"""Environment variable that is set for the command inside the User Mode Linux kernel.

The command then includes `--kernel` in the command line that repeats a run.
"""
MEMORY = "2G"
BOOT_TIMEOUT_S = 180.0
POLL_S = 0.1
LOG_LINES = 20
FOLDER_PREFIX = "windtunnel-uml-"
CLAIM_FILE = "claim"
DISK_FILE = "disk"
SIGNALLED = 128
FIRST_PROCESS = ("sh", "-c", '"$@"; exit $?', "sh")


class BootError(Exception):
    """Raised if a User Mode Linux kernel fails. The message gives the reason and the end of the
    kernel's log.
    """


@dataclass(frozen=True)
class Command:
    """A command to run inside User Mode Linux, and its timeout."""

    argv: Sequence[str]
    timeout_s: float
    disk_bytes: int = 0
    """Size of a temporary, initially empty disk at /dev/ubda, or 0 for no disk."""
    modules: Sequence[str] = ()
    """Kernel modules to load in addition to those that every lab requires."""


def run(kernel: Kernel, command: Command) -> int:
    """Run a command inside User Mode Linux. Returns the command's exit code. Raises BootError if
    the command could not be run to its end.
    """
    with own_folder() as folder:
        _prepare(folder, kernel, command)
        with _Machine(folder, kernel, command) as machine:
            machine.wait()
        ended = Exit.read(folder)
        if ended is not None and ended.code is not None:
            return ended.code
        if machine.signals:
            return SIGNALLED + machine.signals[0]
        problem = machine.problem or (ended.problem if ended else _unexpected_end(machine.log))
        last_lines = "\n".join(machine.log.splitlines()[-LOG_LINES:])
        raise BootError(f"{problem}\n{last_lines}".rstrip())


@contextlib.contextmanager
def own_folder() -> Iterator[Path]:
    """Create a temporary folder and remove it at the end of the `with` block. If this process is
    killed, `windtunnel clean` removes the folder.
    """
    with tempfile.TemporaryDirectory(prefix=FOLDER_PREFIX) as name, _claim(Path(name)):
        yield Path(name)


def finish(commands: Sequence[Sequence[str]]) -> None:
    """Run commands in parallel on this machine, discard their output, and wait for all of them."""
    running = [
        subprocess.Popen(each, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for each in commands
    ]
    for each in running:
        each.wait()


def remove_leftovers() -> list[str]:
    """Remove the folders left by User Mode Linux kernels whose parent process was killed. Returns
    one line of text per folder.

    Other users can create files with the same prefix, so only this user's directories are removed.
    If a folder cannot be removed, BootError is raised after all others have been removed.
    """
    removed, problems = [], []
    for folder in sorted(Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*")):
        try:
            status = folder.lstat()
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
                continue
            claim = os.open(folder / CLAIM_FILE, os.O_RDWR)
        except OSError:
            continue
        try:
            fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        finally:
            os.close(claim)
        try:
            shutil.rmtree(folder)
            removed.append(f"folder {folder}")
        except OSError as error:
            problems.append(f"folder {folder}: {error}")
    if problems:
        raise BootError("\n".join(problems))
    return removed


def _claim(folder: Path) -> BinaryIO:
    """Lock the folder's claim file, to mark the folder as in use until this process ends."""
    claim = (folder / CLAIM_FILE).open("wb")
    fcntl.flock(claim, fcntl.LOCK_EX)
    return claim


def _prepare(folder: Path, kernel: Kernel, command: Command) -> None:
    BootRequest(
        argv=list(command.argv),
        cwd=os.getcwd(),
        environment={**os.environ, "PYTHONUNBUFFERED": "1", INSIDE_VARIABLE: "uml"},
        modules_folder=str(kernel.modules),
        modules=[*MODULES, *command.modules],
    ).write(folder)
    init = folder / "init"
    # The kernel starts its first process with an almost empty environment.
    path = os.environ.get("PATH", os.defpath)
    init.write_text(
        f"#!/bin/sh\nexport PATH='{path}:/usr/sbin:/sbin' HOME='{Path.home()}'\n"
        f"cd '{ROOT}'\nexec '{sys.executable}' -m windtunnel.harness.uml.inside '{folder}'\n"
    )
    init.chmod(0o755)
    if command.disk_bytes:
        with (folder / DISK_FILE).open("wb") as disk:
            # The disk is a sparse file.
            disk.truncate(command.disk_bytes)


class _Machine:
    """A running User Mode Linux kernel. It is killed when the `with` block ends."""

    def __init__(self, folder: Path, kernel: Kernel, command: Command) -> None:
        self.signals: list[int] = []
        self.problem = ""
        self.log = ""
        """The kernel's messages, once the `with` block has ended."""
        self._log_path = folder / "console.log"
        self._timeout_s = command.timeout_s
        self._up = threading.Event()
        self._handlers: dict[int, object] = {}
        self._stdout, self._stderr, self._signals = os.pipe(), os.pipe(), os.pipe()
        consoles = (
            f"con1=null,fd:{self._stdout[1]}",
            f"con2=null,fd:{self._stderr[1]}",
            f"con3=fd:{self._signals[0]},null",
        )
        self._argv = [
            *_death_wrapper(),
            *(str(kernel.program), "rootfstype=hostfs", "rootflags=/", "rw", f"mem={MEMORY}"),
            *(f"init={folder / 'init'}", f"uml_dir={folder}", "quiet"),
            *("con=null", "con0=null,fd:1", *consoles),
            *([f"ubd0={folder / DISK_FILE}"] if command.disk_bytes else []),
        ]

    def __enter__(self) -> "_Machine":
        child_fds = (self._stdout[1], self._stderr[1], self._signals[0])
        with self._log_path.open("wb") as log:
            self._popen = subprocess.Popen(
                self._argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=child_fds,
                start_new_session=True,
            )
        for end in child_fds:
            os.close(end)
        self._copies = [
            threading.Thread(target=_copy, args=(self._stdout[0], sys.stdout.buffer, None)),
            threading.Thread(target=_copy, args=(self._stderr[0], sys.stderr.buffer, self._up)),
        ]
        for copy in self._copies:
            copy.start()
        for number in (signal.SIGINT, signal.SIGTERM):
            self._handlers[number] = signal.signal(number, self._on_signal)
        return self

    def wait(self) -> None:
        """Wait until User Mode Linux ends, a timeout expires, or this process receives a second
        signal.
        """
        started_s = time.monotonic()
        while not self._has_ended():
            elapsed_s = time.monotonic() - started_s
            if elapsed_s > BOOT_TIMEOUT_S and not self._up.is_set():
                self.problem = f"the kernel was not up after {BOOT_TIMEOUT_S:g} s"
                return
            if elapsed_s > self._timeout_s:
                self.problem = f"the command inside did not end within {self._timeout_s:g} s"
                return
            if len(self.signals) > 1:
                return
            time.sleep(POLL_S)

    def _has_ended(self) -> bool:
        """Return whether User Mode Linux has ended. Its process id stays reserved."""
        try:
            options = os.WEXITED | os.WNOHANG | os.WNOWAIT
            return os.waitid(os.P_PID, self._popen.pid, options) is not None
        except ChildProcessError:
            return True

    def __exit__(self, *_: object) -> None:
        self._end()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # what signal itself returned
        for copy in self._copies:
            copy.join()
        for end in (self._stdout[0], self._stderr[0], self._signals[1]):
            os.close(end)
        self.log = self._log_path.read_text(errors="replace")

    def _end(self) -> None:
        """Kill User Mode Linux and its helper processes, and reap the kernel's process."""
        if self._popen.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._popen.pid, signal.SIGKILL)
        self._popen.wait()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.signals.append(number)
        for word, signal_number in SIGNALS.items():
            if signal_number == number:
                os.write(self._signals[1], word)


def _unexpected_end(log: str) -> str:
    """Return that the kernel has ended, and the reason for its panic if it has logged one."""
    panics = [line for line in log.splitlines() if "Kernel panic" in line]
    return ": ".join(["the kernel ended unexpectedly", *panics[:1]])


def _death_wrapper() -> list[str]:
    """Return a command prefix that makes User Mode Linux and its helper processes die with this
    process.

    The helpers would otherwise outlive the kernel. In a separate process namespace, all of them die
    with the first process. The list is empty if the required programs or privileges are missing.
    The helpers then end only with an orderly shutdown.
    """
    if shutil.which("setpriv") is None or shutil.which("unshare") is None:
        return []
    namespace = ["unshare", "--pid", "--fork", "--kill-child=KILL"]
    if os.geteuid() != 0:
        namespace += ["--user", "--map-current-user"]
    if subprocess.run([*namespace, "true"], capture_output=True, check=False).returncode != 0:
        return []
    # The first process of the namespace is a shell, since SIGABRT does not end a first process:
    # after a panic, the kernel would send it to itself forever.
    return ["setpriv", "--pdeathsig", "KILL", "--", *namespace, "--", *FIRST_PROCESS]


def _copy(source: int, sink: BinaryIO, up: threading.Event | None) -> None:
    """Copy a console's output to a stream until the console closes. The initial `UP` marker is
    removed.
    """
    head = b""
    while chunk := os.read(source, 65536):
        if up is not None and not up.is_set():
            head += chunk
            if not head.startswith(UP):
                continue
            up.set()
            chunk = head.removeprefix(UP)
        sink.write(chunk)
        sink.flush()
