"""A test that nothing in Python can interrupt ends the run, which tells where it stood."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 60

LATE_AT_THE_END = """
import threading, pytest, tests.conftest
tests.conftest.LATE_S = 0.5

@pytest.fixture
def one():
    yield
    wait_for_nobody()

def wait_for_nobody():
    threading.Event().wait()

def test_it(one):
    threading.Event().wait()
"""
IN_MACHINE_CODE = """
import signal, threading, tests.conftest
tests.conftest.LATE_S = 0.5

def wait_for_nobody():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    threading.Event().wait()

def test_it():
    wait_for_nobody()
"""


@pytest.mark.parametrize("text", [LATE_AT_THE_END, IN_MACHINE_CODE], ids=["teardown", "call"])
def test_the_run_ends_and_tells_where_it_stood(tmp_path, text):
    (tmp_path / "test_late.py").write_text(text)
    plugins = ["-p", "tests.conftest", "-p", "no:cacheprovider", "-p", "no:randomly"]
    command = [sys.executable, "-m", "pytest", f"--rootdir={tmp_path}", *plugins]
    command += ["-o", "timeout=0.5", str(tmp_path)]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S)
    assert found.returncode == 1
    assert "Timeout (0:00:01)!" in found.stderr
    assert "in wait_for_nobody" in found.stderr
    assert "1 failed" not in found.stdout
