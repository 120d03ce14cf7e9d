"""A program whose folder is a disk of its own, as small as ordered: it can be filled in earnest.

    unshare --mount -- python -m windtunnel.harness.orchestrate.labs.small_disk
        --folder DIR --size BYTES -- PROGRAM...

    DIR  <--covered-- tmpfs of BYTES       as PROGRAM sees it
    DIR  <---copy---- what is in it        when PROGRAM has ended

The disk lies in memory and in a mount namespace that nobody else is in, so it goes with its last
process, however that ends: nothing is left on the machine, and nothing in DIR if that was SIGKILL.
Exits as PROGRAM did; 125 if there can be no such disk, or what is on it cannot be kept.
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

from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.processes import process

NO_DISK = 125
PASSED_ON = (signal.SIGTERM, signal.SIGINT)


def command(python: str, folder: str, size_bytes: int, program: Sequence[str]) -> list[str]:
    """The words that start a program so."""
    return [
        *("unshare", "--mount", "--propagation", "private", "--"),
        *(python, "-m", __name__),
        *("--folder", folder, "--size", str(size_bytes), "--", *program),
    ]


def main(argv: Sequence[str]) -> int:
    """Mount, run, copy. Returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m windtunnel.harness.orchestrate.labs.small_disk"
    )
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--size", type=int, required=True)
    parser.add_argument("program", nargs="+")
    asked = parser.parse_args(argv)
    asked.folder.mkdir(parents=True, exist_ok=True)
    # The folder itself stays within reach by this, below what is about to cover it.
    below = os.open(asked.folder, os.O_RDONLY | os.O_DIRECTORY)
    # A tmpfs is open to everybody unless told otherwise, and the copy takes its mode over.
    options = f"size={asked.size},mode={stat.S_IMODE(os.fstat(below).st_mode):o}"
    mount = ["mount", "-t", "tmpfs", "-o", options, "windtunnel", str(asked.folder)]
    try:
        process.run(mount)
    except LabError as error:
        print(f"no disk of {asked.size} bytes: {error}", file=sys.stderr)
        return NO_DISK
    code = _run(asked.program)
    try:
        shutil.copytree(asked.folder, f"/proc/self/fd/{below}", dirs_exist_ok=True)
    except OSError as error:
        print(f"the files of {asked.folder} cannot be kept: {error}", file=sys.stderr)
        return NO_DISK
    return code


def _run(program: Sequence[str]) -> int:
    """Run it to its end, and let it hear of SIGTERM and SIGINT; 128 and more for a signal."""
    words = ["setpriv", "--pdeathsig", "KILL", "--", *program]
    # One that comes before there is a program waits for it.
    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)
    pid = os.posix_spawnp(words[0], words, os.environ, setsigmask=())

    def pass_on(number: int, _: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)

    for number in PASSED_ON:
        signal.signal(number, pass_on)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
