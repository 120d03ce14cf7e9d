"""A small disk really becomes full, its files are kept afterwards, and nothing else is left."""

import os
import signal
import subprocess
import sys
import time

import pytest

from windtunnel.harness.installation import ROOT as REPOSITORY
from windtunnel.harness.orchestrate.labs import privileges, small_disk

pytestmark = pytest.mark.skipif(
    bool(privileges.missing()), reason="no right to mount a small file system: run as root"
)
SIZE = 1 << 20
FILL = """
import errno, os, sys
os.chdir(sys.argv[1])
print(os.statvfs(".").f_blocks * os.statvfs(".").f_frsize, flush=True)
try:
    with open("full", "wb", buffering=0) as file:
        while file.write(bytes(65536)): pass
except OSError as error:
    sys.exit(7 if error.errno == errno.ENOSPC else 1)
"""
WAIT = """
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))
open(sys.argv[1] + "/begun", "w").close()
print("ready", flush=True)
while True: signal.pause()
"""


def words(folder, program):
    argv = [sys.executable, "-c", program, str(folder)]
    return small_disk.command(sys.executable, str(folder), SIZE, argv)


def start(folder, program):
    return subprocess.Popen(
        words(folder, program), cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
    )


def test_a_program_can_fill_it_and_its_files_stay(tmp_path):
    folder = tmp_path / "disk"
    with start(folder, FILL) as running:
        reported, _ = running.communicate(timeout=60)
    assert running.returncode == 7
    assert int(reported) == SIZE
    assert [each.name for each in folder.iterdir()] == ["full"]
    assert 0 < (folder / "full").stat().st_size <= SIZE
    assert not os.path.ismount(folder)


def test_the_folder_has_the_same_mode_on_the_disk_and_afterwards(tmp_path):
    tmp_path.chmod(0o750)
    with start(tmp_path, "import os, sys; print(oct(os.stat(sys.argv[1]).st_mode))") as running:
        reported, _ = running.communicate(timeout=60)
    assert reported.strip() == oct(tmp_path.stat().st_mode) == "0o40750"


def test_a_program_that_is_asked_to_end_ends_and_its_files_stay(tmp_path):
    with start(tmp_path, WAIT) as running:
        assert running.stdout.readline() == "ready\n"
        assert not (tmp_path / "begun").exists()
        running.terminate()
        assert running.wait(60) == 5
    assert (tmp_path / "begun").exists()


def test_nothing_is_left_when_it_is_killed(tmp_path):
    with start(tmp_path, WAIT) as running:
        assert running.stdout.readline() == "ready\n"
        (child,) = _children(running.pid)
        running.send_signal(signal.SIGKILL)
        running.wait(60)
    end_s = time.monotonic() + 60
    while os.path.exists(f"/proc/{child}/fd") and time.monotonic() < end_s:
        time.sleep(0.01)
    assert not os.path.exists(f"/proc/{child}/fd")
    assert not os.path.ismount(tmp_path)
    assert list(tmp_path.iterdir()) == []


def _children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return file.read().split()


def test_a_disk_that_cannot_be_mounted_is_reported(tmp_path):
    argv = small_disk.command(sys.executable, str(tmp_path), -5, ["true"])
    done = subprocess.run(argv, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == small_disk.NO_DISK
    assert "cannot mount a disk of -5 bytes" in done.stderr
