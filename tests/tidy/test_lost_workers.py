"""Workers of pytest-xdist: a lost one fails the run, and one that waits for a test is not late."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 60

LOST = {
    "test_a.py": """
import os, time

def test_first(): pass

def test_lost():
    time.sleep(1)  # Until all tests are sent, and the other worker is told to end.
    os._exit(3)
""",
    "test_b.py": "def test_other(): pass\ndef test_next(): pass\n",
    "test_c.py": "def test_third(): pass\ndef test_last(): pass\n",
}
THREE_TESTS = """
import pytest, tests.conftest
tests.conftest.LATE_S, tests.conftest.SLACK_S = 0.5, 0

@pytest.mark.parametrize("number", range(3))
def test_it(number): pass
"""
WAITING = {
    "conftest.py": """
import os, time
reports = []

def pytest_runtest_logreport(report):
    if "PYTEST_XDIST_WORKER" not in os.environ and not reports:
        # As if its output was not read. Workers wait for a test to follow their second one.
        reports.append(report)
        time.sleep(3)
""",
    **{f"test_{each}.py": THREE_TESTS for each in "abc"},
}


def run(folder, files, *options):
    for name, text in files.items():
        (folder / name).write_text(text)
    command = [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), *options]
    command += [f"--rootdir={folder}", "-p", "tests.conftest", "-p", "no:cacheprovider"]
    command += ["-p", "no:randomly", "-n", "2", "--dist", "loadfile", "--no-loadscope-reorder"]
    return subprocess.run(
        [*command, str(folder)], cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S
    )


def test_a_lost_worker_fails_the_run(tmp_path):
    found = run(tmp_path, LOST)
    assert found.returncode == 1, found.stdout + found.stderr
    assert "crashed while running 'test_a.py::test_lost'" in found.stdout
    assert "crashed and worker restarting disabled" in found.stdout


def test_a_worker_that_waits_for_a_test_is_not_late(tmp_path):
    found = run(tmp_path, WAITING, "-o", "timeout=0.5")
    assert found.returncode == 0, found.stdout + found.stderr
    assert "9 passed" in found.stdout
