"""A real kernel in a process: what crosses into it and out again, and a whole run inside."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.uml import kernel

REPOSITORY = Path(__file__).resolve().parents[2]
try:
    FOUND = kernel.find()
    MISSING = ""
except kernel.NoKernel as error:
    FOUND, MISSING = None, str(error)

pytestmark = [pytest.mark.uml, pytest.mark.skipif(bool(MISSING), reason=MISSING or "it is there")]

INSIDE = """
import sys
from harness.uml import boot, kernel
code = boot.run(kernel.find(), boot.Command(sys.argv[1:], 100.0))
print("code", code)
"""


def start(*argv):
    return subprocess.Popen(
        [sys.executable, "-c", INSIDE, *argv],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def kernels(of):
    """The processes of a starter's kernel that are not mere entries in the table."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            command = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if b"linux.uml" in command and str(of).encode() in command:
            found.append(int(entry.name))
    return found


def test_another_kernel_with_netem_runs_the_command():
    script = (
        "uname -r; ip link add va type veth peer name vb; ip link set va up; "
        "tc qdisc add dev va root netem loss random 2% limit 77; tc -j qdisc show dev va; exit 5"
    )
    out, err = start("sh", "-c", script).communicate(timeout=110)
    assert FOUND is not None
    assert out.splitlines()[0] == FOUND.release
    assert '"loss-random":{"loss":0.02' in out
    assert out.splitlines()[-1] == "code 5"
    assert err == ""


def test_files_are_shared_and_their_bytes_arrive(tmp_path):
    target = tmp_path / "bytes"
    script = f"head -c 300000 /dev/zero > {target}; cat {target} | wc -c"
    out, _ = start("sh", "-c", script).communicate(timeout=110)
    assert out.split() == ["300000", "code", "0"]
    assert target.read_bytes() == bytes(300_000)


def test_an_interrupt_reaches_the_command():
    script = "trap 'echo heard; exit 9' INT; echo waiting; sleep 60 & wait"
    running = start("sh", "-c", script)
    assert running.stdout is not None
    assert running.stdout.readline() == "waiting\n"
    running.send_signal(signal.SIGINT)
    out, _ = running.communicate(timeout=60)
    assert out.split() == ["heard", "code", "9"]


def test_the_kernel_dies_with_its_starter(monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    running = start("sh", "-c", "echo waiting; sleep 60")
    assert running.stdout is not None
    assert running.stdout.readline() == "waiting\n"
    assert kernels(tmp_path)
    os.kill(running.pid, signal.SIGKILL)
    running.communicate(timeout=20)
    deadline_s = time.monotonic() + 20
    while kernels(tmp_path):
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
