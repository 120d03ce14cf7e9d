"""Process 1 inside User Mode Linux, started by `python -m windtunnel.harness.uml.inside FOLDER`.

    mount --> modules --> lo up --> the command --> exit.json --> power off
                                      |  stdout --> tty1     signals <-- tty3
                                      |  stderr --> tty2

Process 1 must not exit, so it always ends by powering the virtual machine off. Like any process 1,
it reaps all orphans.
"""

import contextlib
import ctypes
import errno
import os
import signal
import subprocess
import sys
import termios
import threading
import traceback
import tty
from pathlib import Path

from windtunnel.harness.uml.boot_request import BootRequest, Exit
from windtunnel.harness.uml.modules import load

STDOUT_TTY = "/dev/tty1"
STDERR_TTY = "/dev/tty2"
SIGNAL_TTY = "/dev/tty3"
UP = b"up\n"
"""The marker written to the stderr console when the kernel is up, before the command starts."""

SIGNALS = {b"i": signal.SIGINT, b"t": signal.SIGTERM}
_CHUNK = 65536

_MOUNTS = (
    ("devtmpfs", "/dev", ""),
    ("proc", "/proc", ""),
    ("sysfs", "/sys", ""),
    ("tmpfs", "/run", "mode=755"),
    ("tmpfs", "/dev/shm", "mode=1777"),
    ("devpts", "/dev/pts", "mode=620,ptmxmode=666"),
)
_SETTINGS = {
    # The lab's sockets request larger buffers than the kernel's default.
    "/proc/sys/net/core/rmem_max": "16777216",
    "/proc/sys/net/core/wmem_max": "16777216",
}


def main() -> None:
    """Execute the boot request, write its result, and power off the virtual machine."""
    folder = Path(sys.argv[1])
    ended = Exit(None, "the first process ended early")
    try:
        request = BootRequest.read(folder)
        prepare(request)
        ended = Exit(_run(request))
    except BaseException:
        ended = Exit(None, traceback.format_exc())
    finally:
        try:
            ended.write(folder)
            os.sync()
        finally:
            power_off()


def prepare(request: BootRequest) -> None:
    """Set up what a lab needs: mounts, modules, settings and the loopback interface."""
    for kind, place, options in _MOUNTS:
        mount(kind, place, options)
    load(Path(request.modules_folder), request.modules)
    for path, value in _SETTINGS.items():
        Path(path).write_text(value)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def mount(kind: str, place: str, options: str) -> None:
    """Mount a virtual file system. Raises an OSError that names the mount point."""
    Path(place).mkdir(exist_ok=True)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(kind.encode(), place.encode(), kind.encode(), 0, options.encode()) != 0:
        code = ctypes.get_errno()
        # EBUSY means that the kernel has already mounted it.
        if code != errno.EBUSY:
            raise OSError(code, os.strerror(code), place)


def _run(request: BootRequest) -> int:
    consoles = [open_raw(name) for name in (STDOUT_TTY, STDERR_TTY, SIGNAL_TTY)]
    os.write(consoles[1], UP)
    return _command(request, consoles)


def _command(request: BootRequest, consoles: list[int]) -> int:
    running = subprocess.Popen(
        request.argv,
        cwd=request.cwd,
        env=request.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert running.stdout is not None
    assert running.stderr is not None
    copies = [
        threading.Thread(target=_copy, args=pair, daemon=True)
        for pair in ((running.stdout.fileno(), consoles[0]), (running.stderr.fileno(), consoles[1]))
    ]
    threading.Thread(target=_pass_signals, args=(consoles[2], running), daemon=True).start()
    for copy in copies:
        copy.start()
    os.waitid(os.P_PID, running.pid, os.WEXITED | os.WNOWAIT)
    # The command's remaining processes would keep its outputs open. They are killed before the
    # command is reaped, because its process id may be reused afterwards.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(running.pid, signal.SIGKILL)
    code = running.wait()
    for copy in copies:
        copy.join()
    for console in consoles[:2]:
        # Output must not be lost when the machine is powered off.
        termios.tcdrain(console)
    return code if code >= 0 else 128 - code


def open_raw(name: str) -> int:
    """Open a console in raw mode. Returns its file descriptor."""
    console = os.open(name, os.O_RDWR | os.O_NOCTTY)
    tty.setraw(console)
    return console


def _copy(source: int, console: int) -> None:
    while chunk := os.read(source, _CHUNK):
        while chunk:
            chunk = chunk[os.write(console, chunk) :]


def _pass_signals(console: int, running: subprocess.Popen[bytes]) -> None:
    while word := os.read(console, 1):
        # `Popen.send_signal` would reap the process, so its id could be reused.
        if word in SIGNALS and running.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(running.pid, SIGNALS[word])


def power_off() -> None:
    """Power off the virtual machine. This ends every process inside."""
    # LINUX_REBOOT_CMD_POWER_OFF and the two magic numbers of reboot(2).
    ctypes.CDLL(None).syscall(169, 0xFEE1DEAD, 0x28121969, 0x4321FEDC, 0)


if __name__ == "__main__":
    main()
