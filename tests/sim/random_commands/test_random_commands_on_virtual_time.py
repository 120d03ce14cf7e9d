"""The same random commands to three hosts with the C driver and with ours have the same effects.

As in tests/peer/random_commands, but on virtual time and between hosts: time passes, clients fall
silent, claims are abandoned, and drivers pause for longer than timeouts.
"""

import subprocess
import sys

import pytest

from tests.sim.simulated import REPOSITORY

pytest.importorskip("pyaeron", reason="the real Aeron (pyaeron) is not installed")
# A machine's first run compiles every kernel of the simulator.
pytestmark = [pytest.mark.peer, pytest.mark.timeout(600)]


@pytest.mark.full(keep=3)
@pytest.mark.parametrize("seed", range(1, 101))
def test_random_commands_on_virtual_time(tmp_path, seed):
    done = subprocess.run(
        [sys.executable, "-m", "tests.sim.random_commands.sequence", str(seed), str(tmp_path)],
        cwd=REPOSITORY, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
