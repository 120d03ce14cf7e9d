"""Tests the service under loss, as a part of your own tests: `pytest examples/python-echo`."""

import json
import subprocess
import sys
from pathlib import Path

SCENARIO = Path(__file__).with_name("python-echo.yaml")


def test_every_request_is_answered_despite_losses(tmp_path):
    command = [sys.executable, "-m", "windtunnel.harness", "run", str(SCENARIO)]
    command += ["--allow-commands", "--json", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    runs = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, f"{runs}\n{done.stderr}"
