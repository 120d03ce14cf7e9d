"""A test that Python cannot interrupt at its time limit ends the run with a traceback."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import conftest

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 60

LATE_AT_THE_END = """
import threading, pytest, tests.conftest
tests.conftest.LATE_S, tests.conftest.SLACK_S = 0.5, 0

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
tests.conftest.LATE_S, tests.conftest.SLACK_S = 0.5, 0

def wait_for_nobody():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    threading.Event().wait()

def test_it():
    wait_for_nobody()
"""


def run(folder, text, *options):
    (folder / "test_late.py").write_text(text)
    plugins = ["-p", "tests.conftest", "-p", "no:cacheprovider", "-p", "no:randomly"]
    command = [sys.executable, "-m", "pytest", f"--rootdir={folder}", *plugins, *options]
    command += ["-o", "timeout=0.5", str(folder)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S)


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("text", [LATE_AT_THE_END, IN_MACHINE_CODE], ids=["teardown", "call"])
def test_the_run_ends_with_a_traceback(tmp_path, text):
    found = run(tmp_path, text)
    assert found.returncode == 1
    assert "Timeout (0:00:01)!" in found.stderr
    assert "in wait_for_nobody" in found.stderr
    assert "1 failed" not in found.stdout


@pytest.mark.parametrize(
    "limits_s", [(1.0,), (5.0, 0.0, 300.0, 5.0, 0.0), (2.0, 1.0, 2.0, 30.0, 0.0)]
)
def test_each_phase_has_its_own_limit(monkeypatch, limits_s):
    now_s, ends_at_s = 100.0, 0.0

    def end_later(after_s, **_):
        nonlocal ends_at_s
        ends_at_s = now_s + after_s

    monkeypatch.setattr(conftest.time, "monotonic", lambda: now_s)
    monkeypatch.setattr(conftest.faulthandler, "dump_traceback_later", end_later)
    monkeypatch.setattr(conftest.faulthandler, "cancel_dump_traceback_later", lambda: end_later(0))
    config = SimpleNamespace(stash=pytest.Stash())
    config.stash[conftest._STDERR] = 2
    for at, limit_s in enumerate(1000 * limits_s):
        conftest._end_after(limit_s, config)
        if limit_s:
            assert limit_s <= ends_at_s - now_s <= limit_s + conftest.SLACK_S
        else:
            assert ends_at_s <= now_s
        now_s += min(limit_s, (0.0, 0.25, 0.125, 20.0)[at % 4])
