"""The turn in which a simulator ended, as read from its file, and invalid files."""

import os

import numpy as np
import pytest

from tests.unit.harness.artifact.run.simulator_state import content
from windtunnel.harness.artifact.run.simulator_turn import (
    CELLS,
    CLIENT,
    HOST,
    NO_PART,
    NOW,
    PART,
    PARTS,
    START_NS,
    SimulatorTurn,
    read_turn,
)
from windtunnel.harness.simulator.world import virtual_time, world_state

HOSTS = ("a", "b")
RECEIVER = 3


@pytest.fixture
def read(tmp_path):
    """Return a function that reads a file with this content."""

    def written(state: bytes, hosts=HOSTS):
        path = tmp_path / "state"
        path.write_bytes(state)
        return read_turn(path, hosts)

    return written


def test_the_cells_are_those_of_the_simulator():
    state = world_state.make_state(1, 2, 3, 4)
    assert state.dtype == np.int64
    assert state.size == CELLS
    found = world_state.NOW, world_state.CURRENT_HOST, world_state.CURRENT_AGENT
    assert found == (NOW, HOST, PART)
    assert virtual_time.START_NS == START_NS
    names = {
        world_state.NO_AGENT: "",
        world_state.CONDUCTOR: "conductor",
        world_state.SENDER: "sender",
        world_state.RECEIVER: "receiver",
        world_state.ALL_AGENTS: "duty cycle",
        CLIENT: "client",
    }
    assert names == dict(enumerate(PARTS))


@pytest.mark.parametrize("host", range(2))
@pytest.mark.parametrize("part", range(len(PARTS)))
def test_each_turn_of_each_host_is_read(read, host, part):
    found = read(content(host, part, 5_000))
    name = HOSTS[host] if part != NO_PART else ""
    assert found == SimulatorTurn(name, PARTS[part], 5_000)
    assert found.is_drivers == (part not in (NO_PART, CLIENT))


@pytest.mark.parametrize(
    "state",
    [
        b"",
        content(1, RECEIVER)[:-1],
        content(1, RECEIVER) + b"\0",
        bytes(8 * CELLS),
        b"\xff" * 8 * CELLS,
        content(2, RECEIVER),
        content(-1, RECEIVER),
        content(1, len(PARTS)),
        content(1, -1),
        content(1, RECEIVER, -1),
    ],
)
def test_other_content_is_not_a_turn(read, state):
    assert read(state) is None


def test_a_host_must_be_one_of_the_run(read):
    assert read(content(2, RECEIVER), ("a", "b", "c")) == SimulatorTurn("c", "receiver", 0)


def test_only_a_regular_file_is_read(tmp_path):
    assert read_turn(tmp_path / "missing", HOSTS) is None
    assert read_turn(tmp_path, HOSTS) is None
    (tmp_path / "real").write_bytes(content(1, RECEIVER))
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert read_turn(tmp_path / "link", HOSTS) is None
    os.mkfifo(tmp_path / "fifo")
    assert read_turn(tmp_path / "fifo", HOSTS) is None
