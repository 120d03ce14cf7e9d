"""The running part: recorded by contexts, and stored in a file that outlives the process."""

import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from windtunnel.harness.artifact.run.simulator_turn import SimulatorTurn, read_turn
from windtunnel.harness.simulator.world.running_part import HostParts, shared
from windtunnel.harness.simulator.world.virtual_time import START_NS
from windtunnel.harness.simulator.world.world import SimulatedWorld
from windtunnel.harness.simulator.world.world_state import (
    CURRENT_AGENT,
    NOW,
    SENDER,
    make_state,
)

HOSTS = ("a", "b")


@pytest.fixture
def kept(tmp_path):
    """Return a state that is stored in a file, and a function that reads its turn."""
    path = tmp_path / "new" / "state"
    state = shared(make_state(1, 2, 3, 4), path)
    return state, lambda: read_turn(path, HOSTS)


@pytest.mark.parametrize(("is_real", "name"), [(False, "conductor"), (True, "duty cycle")])
def test_a_context_records_its_part_until_it_ends(kept, is_real, name):
    state, read = kept
    parts = HostParts(state, 1, is_real=is_real)
    state[NOW] = START_NS + 7
    assert read() == SimulatorTurn("", "", 7)
    with parts.driver:
        assert read() == SimulatorTurn("b", name, 7)
    assert read() == SimulatorTurn("", "", 7)
    with parts.client:
        assert read() == SimulatorTurn("b", "client", 7)
    assert read() == SimulatorTurn("", "", 7)


def test_an_exception_ends_a_context(kept):
    state, read = kept
    with pytest.raises(ValueError, match="wrong"), HostParts(state, 0).driver:
        raise ValueError("wrong")
    assert read() == SimulatorTurn("", "", 0)


def test_an_exception_ends_the_turns_of_a_kernel(kept):
    state, read = kept

    class Turns:
        def run(self, until_ns):
            state[CURRENT_AGENT] = SENDER
            assert read() == SimulatorTurn("a", "sender", 0)
            raise ValueError("wrong")

    world = SimulatedWorld.__new__(SimulatedWorld)
    world.hosts, world.between = (SimpleNamespace(next_ns=1),), SimpleNamespace(state=state)
    world._turns = Turns()
    with pytest.raises(ValueError, match="wrong"):
        world.advance(1)
    assert read() == SimulatorTurn("", "", 0)


def test_a_shared_state_has_the_values_and_replaces_a_file(tmp_path):
    for seed in (1, 2):
        original = np.random.default_rng(seed).integers(1 << 40, size=20)
        state = shared(original, tmp_path / "state")
        assert np.array_equal(state, original)
        assert (tmp_path / "state").read_bytes() == original.tobytes()
        state[3] = seed
        assert np.fromfile(tmp_path / "state", dtype=np.int64)[3] == seed


CRASHING = """
import ctypes, os, sys
from pathlib import Path
from windtunnel.harness.simulator.world.running_part import HostParts, shared
from windtunnel.harness.simulator.world.world_state import NOW, make_state

state = shared(make_state(1, 2, 3, 4), Path(sys.argv[1]))
state[NOW] += 42
with HostParts(state, 1).driver:
    ctypes.string_at(8)
"""


def test_the_file_outlives_a_process_that_crashes(tmp_path):
    path = tmp_path / "state"
    ended = subprocess.run(
        [sys.executable, "-c", CRASHING, str(path)], check=False, env=os.environ, timeout=60
    )
    assert ended.returncode == -signal.SIGSEGV
    assert read_turn(path, HOSTS) == SimulatorTurn("b", "conductor", 42)
