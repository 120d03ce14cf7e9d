"""Runs a program with a small tmpfs mounted over one of its folders, so that the program can fill
its disk.

    unshare --mount -- python -m windtunnel.harness.orchestrate.labs.small_disk
        --folder DIR --size BYTES -- PROGRAM...

    DIR  <--covered-- tmpfs of BYTES       while PROGRAM runs
    DIR  <---copy---- contents of tmpfs    when PROGRAM has ended

The tmpfs is in a private mount namespace and disappears with its last process. If SIGKILL ends this
module's process, nothing is left on the machine and nothing is copied to DIR. The exit code is that
of PROGRAM, or 125 if the tmpfs cannot be mounted or its contents cannot be copied.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import stat
import sys
from collections.abc import Sequence
from pathlib import Path

from windtunnel.harness.orchestrate.applications import launcher
from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.processes import process

NO_DISK = 125
FORWARDED_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def command(python: str, folder: str, size_bytes: int, program: Sequence[str]) -> list[str]:
    """Return the command line that runs a program with a small tmpfs mounted over a folder."""
    return [
        *("unshare", "--mount", "--propagation", "private", "--"),
        *(python, "-m", __name__),
        *("--folder", folder, "--size", str(size_bytes), "--", *program),
    ]


def main(arguments: Sequence[str]) -> int:
    """Mount the tmpfs over the folder, run the program, then copy the files from the tmpfs to the
    folder. Returns the exit code.
    """
    parser = argparse.ArgumentParser(
        prog="python -m windtunnel.harness.orchestrate.labs.small_disk"
    )
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--size", type=int, required=True)
    parser.add_argument("program", nargs="+")
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    # This keeps the folder accessible after the tmpfs has covered it.
    covered_fd = os.open(options.folder, os.O_RDONLY | os.O_DIRECTORY)
    # By default, a tmpfs is world-writable, and the copy would get its mode.
    mount_options = f"size={options.size},mode={stat.S_IMODE(os.fstat(covered_fd).st_mode):o}"
    mount = ["mount", "-t", "tmpfs", "-o", mount_options, "windtunnel", str(options.folder)]
    try:
        process.run(mount)
    except LabError as error:
        print(f"cannot mount a disk of {options.size} bytes: {error}", file=sys.stderr)
        return NO_DISK
    code = _run(options.program)
    try:
        shutil.copytree(options.folder, f"/proc/self/fd/{covered_fd}", dirs_exist_ok=True)
    except OSError as error:
        print(f"the files of {options.folder} cannot be copied: {error}", file=sys.stderr)
        return NO_DISK
    return code


def _run(program: Sequence[str]) -> int:
    """Run the program, forwarding SIGTERM and SIGINT. Returns its exit code, or 128 + signal."""
    argv = ["setpriv", "--pdeathsig", "KILL", "--", *program]
    # A signal that arrives before the program has started stays pending.
    signal.pthread_sigmask(signal.SIG_BLOCK, (*FORWARDED_SIGNALS, signal.SIGCHLD))
    pid = os.posix_spawnp(argv[0], argv, os.environ, setsigmask=())

    def forward(number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)

    status = launcher.forward_signals(pid, FORWARDED_SIGNALS, forward)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
