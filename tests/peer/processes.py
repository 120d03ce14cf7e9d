"""Processes that a test kills: a real driver, and a client of this project."""

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def process(*arguments, **environment):
    """Run `python -m arguments...`, and kill it at the end if it still runs."""
    child = subprocess.Popen(
        [sys.executable, "-m", *map(str, arguments)],
        cwd=ROOT, env=os.environ | environment, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield child
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


@contextmanager
def real_driver_process(directory, **environment):
    """Run the real C driver in its own process, ready for clients."""
    arguments = ("tests.stand_ins.real_aeron", "driver", "--dir", directory)
    with process(*arguments, **environment) as child:
        # Its files are no sign: those of a driver that was killed before still exist.
        assert child.stdout.readline() == "ready\n"
        yield child
