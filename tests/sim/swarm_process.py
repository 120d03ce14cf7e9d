"""Runs the swarm in a separate process."""

import json
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


def swarm(memory, *arguments):
    """Return the exit code of a swarm, the lines that it printed, and its errors."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "windtunnel.harness.simulator", "swarm", "--json"),
            *("--memory", str(memory)),
            *arguments,
        ],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr
