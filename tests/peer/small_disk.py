"""A small file system in memory, which a test can fill."""

import contextlib
import os
import shutil
import subprocess
from contextlib import contextmanager

import pytest


@contextmanager
def small_disk(folder, length):
    """Mount a tmpfs of `length` bytes over a folder. Skips the test without the right to mount."""
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={length}", "windtunnel-test", folder],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if not mounted or mounted.returncode:
        pytest.skip("no right to mount a small file system: run as root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def fill(disk):
    """Fill a file system completely. Returns the file that uses the space."""
    filler = disk / "filler"
    with filler.open("wb") as file, contextlib.suppress(OSError):
        while file.write(bytes(4096)):
            file.flush()
    free = os.statvfs(disk)
    assert free.f_bavail == 0
    return filler
