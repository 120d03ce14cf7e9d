"""Starting the kernel with one command in it, and seeing to it that it ends.

Output comes as it is made. What the kernel itself says goes to a log, shown only when something
went wrong. Ctrl-C and SIGTERM are passed to the command inside, which tidies up and ends; a second
one, or a limit, ends the kernel. When this process is killed the kernel dies with it.
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
from types import FrameType, TracebackType
from typing import BinaryIO

from windtunnel.harness.installation import ROOT
from windtunnel.harness.uml.boot_request import BootRequest, Exit
from windtunnel.harness.uml.inside import SIGNALS, UP
from windtunnel.harness.uml.kernel import Kernel

MODULES = ("veth", "bridge", "sch_netem")
INSIDE_VARIABLE = "WINDTUNNEL_KERNEL"
"""Set for the command inside, so that it knows how to be repeated."""
MEMORY = "2G"
BOOT_TIMEOUT_S = 180.0
POLL_S = 0.1
LOG_LINES = 20
FOLDER_PREFIX = "windtunnel-uml-"
CLAIM_FILE = "claim"
DISK_FILE = "disk"
SIGNALLED = 128


class BootError(Exception):
    """The kernel did not do as ordered; the text has its last words."""


@dataclass(frozen=True)
class Command:
    """What to run inside, and for how long at most."""

    argv: Sequence[str]
    timeout_s: float
    disk_bytes: int = 0
    """Size of an empty disk at /dev/ubda that is gone at the end; 0 for none."""
    modules: Sequence[str] = ()
    """Kernel modules that it needs beyond those of a lab."""


def run(kernel: Kernel, command: Command) -> int:
    """Run a command inside a kernel of its own and return its exit code; raises BootError."""
    with own_folder() as folder:
        _prepare(folder, kernel, command)
        with _Machine(folder, kernel, command) as machine:
            machine.wait()
        ended = Exit.read(folder)
        if ended is not None and ended.code is not None:
            return ended.code
        if machine.signals:
            return SIGNALLED + machine.signals[0]
        problem = machine.problem or (ended.problem if ended else "the kernel ended by itself")
        raise BootError(f"{problem}\n{machine.last_words()}".rstrip())


@contextlib.contextmanager
def own_folder() -> Iterator[Path]:
    """A temporary folder, which `windtunnel clean` removes if we were killed."""
    with tempfile.TemporaryDirectory(prefix=FOLDER_PREFIX) as name, _claim(Path(name)):
        yield Path(name)


def finish(commands: Sequence[Sequence[str]]) -> None:
    """Run commands side by side on this machine and wait for all; what they print goes nowhere."""
    running = [
        subprocess.Popen(each, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for each in commands
    ]
    for each in running:
        each.wait()


def remove_left_overs() -> list[str]:
    """Remove the folders of kernels whose starter was killed; return a line for each.

    Other users can create files with such names: only directories of this user are touched. Raises
    BootError, after all others were removed, if one cannot be.
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
    """Lock a file of the folder for as long as it is open, so at most as long as this process."""
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
    # The kernel starts its first process with next to no environment.
    path = os.environ.get("PATH", os.defpath)
    init.write_text(
        f"#!/bin/sh\nexport PATH='{path}:/usr/sbin:/sbin' HOME='{Path.home()}'\n"
        f"cd '{ROOT}'\nexec '{sys.executable}' -m windtunnel.harness.uml.inside '{folder}'\n"
    )
    init.chmod(0o755)
    if command.disk_bytes:
        with (folder / DISK_FILE).open("wb") as disk:
            # Takes room only where it is written.
            disk.truncate(command.disk_bytes)


class _Machine:
    """A kernel that runs; leaving the context ends it and everything in it."""

    def __init__(self, folder: Path, kernel: Kernel, command: Command) -> None:
        self.signals: list[int] = []
        self.problem = ""
        self._log = folder / "console.log"
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
            *_die_with_us(),
            *(str(kernel.program), "rootfstype=hostfs", "rootflags=/", "rw", f"mem={MEMORY}"),
            *(f"init={folder / 'init'}", f"uml_dir={folder}", "quiet"),
            *("con=null", "con0=null,fd:1", *consoles),
            *([f"ubd0={folder / DISK_FILE}"] if command.disk_bytes else []),
        ]

    def __enter__(self) -> "_Machine":
        theirs = (self._stdout[1], self._stderr[1], self._signals[0])
        with self._log.open("wb") as log:
            self._popen = subprocess.Popen(
                self._argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=theirs,
                start_new_session=True,
            )
        for end in theirs:
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
        """Wait for the kernel's end, or for a limit, which ends it."""
        started_s = time.monotonic()
        while not self._has_ended():
            past_s = time.monotonic() - started_s
            if past_s > BOOT_TIMEOUT_S and not self._up.is_set():
                self.problem = f"the kernel was not up after {BOOT_TIMEOUT_S:g} s"
                return
            if past_s > self._timeout_s:
                self.problem = f"the command inside did not end within {self._timeout_s:g} s"
                return
            if len(self.signals) > 1:
                return
            time.sleep(POLL_S)

    def _has_ended(self) -> bool:
        """Whether the kernel has; not reaped yet, its number and its group's are its own."""
        try:
            options = os.WEXITED | os.WNOHANG | os.WNOWAIT
            return os.waitid(os.P_PID, self._popen.pid, options) is not None
        except ChildProcessError:
            return True

    def last_words(self) -> str:
        """The end of what the kernel said, read while the folder is there."""
        return self._words

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # what signal itself returned
        for copy in self._copies:
            copy.join()
        for end in (self._stdout[0], self._stderr[0], self._signals[1]):
            os.close(end)
        text = self._log.read_text(errors="replace")
        self._words = "\n".join(text.splitlines()[-LOG_LINES:])

    def _end(self) -> None:
        """Kill what is left: the kernel, and the processes in which it runs its programs."""
        if self._popen.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._popen.pid, signal.SIGKILL)
        self._popen.wait()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.signals.append(number)
        for word, meant in SIGNALS.items():
            if meant == number:
                os.write(self._signals[1], word)


def _die_with_us() -> list[str]:
    """What makes the kernel and all its helpers die when this process is killed.

    The helpers would outlive the kernel that they belong to; in a process namespace of its own the
    death of the first of them is the death of all. Without the programs, or the right to make one,
    the kernel is started as it is, and only an ordinary end takes everything along.
    """
    if shutil.which("setpriv") is None or shutil.which("unshare") is None:
        return []
    alone = ["unshare", "--pid", "--fork", "--kill-child=KILL"]
    if os.geteuid() != 0:
        alone += ["--user", "--map-current-user"]
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode != 0:
        return []
    return ["setpriv", "--pdeathsig", "KILL", "--", *alone, "--"]


def _copy(source: int, sink: BinaryIO, up: threading.Event | None) -> None:
    """Pass on what comes until the other end is closed; the first words are for us alone."""
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
