"""Starts an application with few rights, keeps its log, and ends everything that it has started.

    harness --signal--> launcher --signal--> process 1 --signal--> application
                           ^                 of a process namespace      |
                          log <------------------ pipe ------------------+

    python -I -S launcher.py LOG LOG_BYTES_MAX FOLDER COMMAND...

The application has no capabilities and cannot gain any. It sees only the processes that it has
started, which all end with it, also those in other process groups. Its output is appended to a log
of limited length. The launcher ends like the application: with its exit code, or by its signal. If
the launcher itself has to end the application, or cannot start it, it prints a line
`<problem>: <text>`. It ends an application whose log becomes too long or cannot be written.

This program uses only the standard library, because it starts as quickly as that.
"""

import contextlib
import ctypes
import errno
import os
import resource
import select
import shutil
import signal
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from io import FileIO
from typing import NoReturn

CANNOT_START = "cannot-start"
LOG_TOO_LONG, LOG_LOST = "log-too-long", "log-lost"
FAILED_EXIT_CODE = 125
PAUSE, RESUME = signal.SIGRTMIN + 1, signal.SIGRTMIN + 2
"""Signals to the launcher that stop and continue all processes of the application."""

WITHOUT_RIGHTS = (
    *("setpriv", "--no-new-privs", "--inh-caps=-all", "--ambient-caps=-all"),
    *("--bounding-set=-all", "--"),
)
FORWARDED = (
    *(signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1),
    *(signal.SIGUSR2, PAUSE, RESUME),
)
_AWAITED = (*FORWARDED, signal.SIGCHLD)
_CHUNK_BYTES = 1 << 16
_CLONE_NEWNS, _CLONE_NEWPID = 0x00020000, 0x20000000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REC, _MS_PRIVATE = 2, 4, 8, 16384, 1 << 18
_PR_SET_PDEATHSIG = 1
_FALLOC_FL_KEEP_SIZE = 1
_PROBLEM_BYTES = 1024


def main(argv: list[str]) -> NoReturn:
    """Run the command of argv until it ends, and end like it."""
    log, limit, folder, *command = argv
    libc = ctypes.CDLL(None, use_errno=True)
    _reserve_block(libc)
    os.makedirs(folder, exist_ok=True)
    os.chdir(folder)
    _require_program(command[0])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if libc.unshare(_CLONE_NEWPID) != 0:
        _fail(CANNOT_START, f"no process namespace: {os.strerror(ctypes.get_errno())}")
    output, output_end = os.pipe()
    status, status_end = os.pipe()
    signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)
    first = os.fork()
    if first == 0:
        os.close(output)
        os.close(status)
        _run_first_process(libc, command, output_end, status_end)
    os.close(output_end)
    os.close(status_end)
    problem, text = _copy(_read_and_forward(output, first), log, int(limit))
    if problem:
        _send(first, signal.SIGKILL)
    os.waitpid(first, 0)
    if problem:
        _fail(problem, text)
    _end_like(os.read(status, 16))


def _reserve_block(libc: ctypes.CDLL) -> None:
    """Reserve a block of the file system for stdout, so that a problem can also be reported after
    the disk is full. A file system that cannot reserve any gets an empty line.
    """
    if not stat.S_ISREG(os.fstat(1).st_mode):
        return
    end, length = (ctypes.c_int64(each) for each in (os.fstat(1).st_size, _PROBLEM_BYTES))
    if libc.fallocate(1, _FALLOC_FL_KEEP_SIZE, end, length) != 0:
        with contextlib.suppress(OSError):
            os.write(1, b"\n")


def _require_program(name: str) -> None:
    if shutil.which(name) is None:
        where = "in its working folder" if os.sep in name else "on the PATH"
        where = "" if os.path.isabs(name) else f" {where}"
        _fail(CANNOT_START, f"there is no program {name!r}{where}")


def _fail(problem: str, text: str) -> NoReturn:
    with contextlib.suppress(OSError):
        os.write(1, f"{problem}: {text}\n".encode())
    os._exit(FAILED_EXIT_CODE)


def forward_signals(child: int, numbers: Iterable[int], send: Callable[[int], None]) -> int:
    """Call `send` with the number of each signal that arrives, until the child has ended. Returns
    the child's wait status. The signals and SIGCHLD must be blocked.

    A handler would not do: if a signal arrives just before `waitpid` blocks, its handler is called
    only when the next signal arrives.
    """
    awaited = {*numbers, signal.SIGCHLD}
    while True:
        number = signal.sigwaitinfo(awaited).si_signo
        if number != signal.SIGCHLD:
            send(number)
            continue
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == child:
                    return ended[1]


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _read_and_forward(output: int, first: int) -> Iterator[bytes]:
    """Return what is written to a pipe until it is closed. Forwards signals to `first` meanwhile.

    The number of each signal comes from a second pipe, for the reason that `forward_signals` gives.
    """
    numbers, numbers_end = os.pipe()
    os.set_blocking(numbers_end, False)
    signal.set_wakeup_fd(numbers_end)
    for number in FORWARDED:
        signal.signal(number, lambda number, frame: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _AWAITED)
    while True:
        readable, _, _ = select.select([output, numbers], [], [])
        if numbers in readable:
            # Of two signals that wait together, the handler of the second one runs first.
            for number in sorted(os.read(numbers, _CHUNK_BYTES)):
                _send(first, number)
        if output in readable:
            if not (data := os.read(output, _CHUNK_BYTES)):
                return
            yield data


def _copy(chunks: Iterator[bytes], log: str, limit: int) -> tuple[str, str]:
    """Append the application's output to its log.

    Returns a problem and a text if the log would become longer than `limit`, or cannot be written.
    Both are empty otherwise.
    """
    try:
        with open(log, "ab", buffering=0) as file:
            room = limit - file.tell()
            for data in chunks:
                write_whole(file, data[: max(0, room)])
                room -= len(data)
                if room < 0:
                    return LOG_TOO_LONG, f"the log exceeds {limit} bytes"
    except OSError as error:
        return LOG_LOST, lost_text(error)
    return "", ""


def write_whole(file: FileIO, data: bytes) -> None:
    """Write all bytes to an unbuffered file. Raises OSError if that is not possible.

    A single `write` may write only a part, for example if the disk becomes full.
    """
    rest = memoryview(data)
    while len(rest):
        count = file.write(rest)
        if not count:
            raise OSError(errno.EIO, "no byte was written")
        rest = rest[count:]


def lost_text(error: OSError) -> str:
    """Return why a log is incomplete."""
    return f"the log cannot be written: {error.strerror or error}"


def _end_like(status: bytes) -> NoReturn:
    """End as the application has ended, given the status that process 1 has reported."""
    code = os.waitstatus_to_exitcode(int(status)) if status else -signal.SIGKILL
    if code < 0:
        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _run_first_process(libc: ctypes.CDLL, command: list[str], output: int, status: int) -> NoReturn:
    """Start the application from process 1 of the namespace, and wait until it ends. All other
    processes of the namespace end with this one.
    """
    try:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        _hide_other_processes(libc)
        application = os.fork()
        if application == 0:
            _execute(command, output)
        os.close(output)
        ended = forward_signals(application, FORWARDED, partial(_deliver, application))
        os.write(status, str(ended).encode())
    finally:
        os._exit(0)


def _deliver(application: int, number: int) -> None:
    """Send a signal to the application, or stop or continue all processes but this one."""
    meaning = {PAUSE: signal.SIGSTOP, RESUME: signal.SIGCONT}.get(number)
    if meaning is None:
        _send(application, number)
    else:
        _send(-1, meaning)


def _hide_other_processes(libc: ctypes.CDLL) -> None:
    """Show only the processes of the namespace in /proc.

    Where the kernel does not allow that, for example in a container, /proc shows all processes.
    They cannot receive a signal from here.
    """
    if libc.unshare(_CLONE_NEWNS) != 0:
        return
    if libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None) == 0:
        libc.mount(b"proc", b"/proc", b"proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, None)


def _execute(command: list[str], output: int) -> NoReturn:
    try:
        os.setsid()
        os.dup2(output, 1)
        os.dup2(output, 2)
        for number in FORWARDED:
            signal.signal(number, signal.SIG_DFL)
        # Python ignores these two, and an ignored signal stays ignored in a new program.
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _AWAITED)
        os.execvp(WITHOUT_RIGHTS[0], [*WITHOUT_RIGHTS, *command])
    except OSError as error:
        os.write(2, f"{command[0]} cannot be started: {error}\n".encode())
    os._exit(127)


if __name__ == "__main__":
    main(sys.argv[1:])
