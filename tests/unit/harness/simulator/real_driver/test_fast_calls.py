"""System calls in machine code: the same results as in Python, which executes the unusual cases."""

import ctypes
import errno
import random
import socket
import struct

import numpy as np
import pytest

from windtunnel.driver.channel.socket_address import SocketAddress, write_name
from windtunnel.driver.kernels import processor
from windtunnel.driver.kernels.jit import JIT_DISABLED
from windtunnel.driver.media import link
from windtunnel.driver.media.link import make_links
from windtunnel.harness.simulator.real_driver import fast_calls, system_calls
from windtunnel.harness.simulator.real_driver.fast_calls_table import (
    CALLS,
    CALLS_MAX,
    FIRST_DESCRIPTOR,
    SOCKETS_MAX,
)
from windtunnel.harness.simulator.real_driver.simulated_machine import SimulatedMachine
from windtunnel.harness.simulator.real_driver.system_calls import FUNCTIONS
from windtunnel.harness.simulator.world.virtual_time import EPOCH_NS

pytestmark = pytest.mark.skipif(
    JIT_DISABLED or not processor.is_native(), reason="only x86-64 has the functions"
)
SLOW_RESULT = 77
STEP_NS = 3_600_000_000_000
steps = np.array([0, STEP_NS])
current = np.zeros(1, dtype=np.int64)
OWN, PEER = "10.0.0.1", "10.0.0.2"
RING_BYTES = 1 << 11
now = np.array([5_000_000_007], dtype=np.int64)


@pytest.fixture
def made(monkeypatch):
    """Return the functions, and a list of the calls of their versions in Python."""
    seen, slow = [], {}
    for name in fast_calls.FUNCTIONS:
        _, result, *arguments = FUNCTIONS[name]

        def record(*values, name=name):
            seen.append((name, values[0]))
            return SLOW_RESULT

        slow[name] = ctypes.CFUNCTYPE(result, *arguments, use_errno=True)(record)
    monkeypatch.setattr(fast_calls, "_code", [])
    before = fast_calls.table.copy()
    functions = fast_calls.make(slow)
    fast_calls.open_world(now, steps, current)
    yield functions, seen
    fast_calls.table[:] = before


def call(functions, name, first, *rest):
    """Call a function with zeros for the arguments that are not given."""
    missing = len(FUNCTIONS[name]) - 3 - len(rest)
    return functions[name](first, *rest, *(0,) * missing)


@pytest.mark.parametrize(("which", "epoch_ns"), [(0, EPOCH_NS), (1, 0), (5, EPOCH_NS), (6, 0)])
@pytest.mark.parametrize("host", [0, 1])
def test_the_clock_is_that_of_the_host(made, which, epoch_ns, host):
    functions, seen = made
    current[0] = host
    epoch_ns += STEP_NS if epoch_ns and host else 0
    time = (ctypes.c_int64 * 2)()
    assert call(functions, "clock_gettime", which, ctypes.addressof(time)) == 0
    current[0] = 0
    assert list(time) == list(divmod(epoch_ns + int(now[0]), 1_000_000_000))
    assert seen == []


@pytest.mark.parametrize("name", [each for each in fast_calls.FUNCTIONS if "clock" not in each])
@pytest.mark.parametrize("index", [-1, 0, SOCKETS_MAX])
def test_sockets_without_a_mailbox_in_the_table_are_handled_in_python(made, name, index):
    functions, seen = made
    message = (ctypes.c_uint8 * 64)()
    descriptor = FIRST_DESCRIPTOR + index
    assert call(functions, name, descriptor, ctypes.addressof(message), 1) == SLOW_RESULT
    assert seen == [(name, descriptor)]


def test_a_socket_beyond_the_table_does_not_change_it(made):
    before = fast_calls.table.copy()
    fast_calls.set_socket(FIRST_DESCRIPTOR + SOCKETS_MAX, (8, 8, 8, 8))
    assert (fast_calls.table == before).all()


def test_python_is_called_when_no_world_runs(made):
    functions, seen = made
    fast_calls.close_world()
    assert call(functions, "clock_gettime", 1) == SLOW_RESULT
    assert seen == [("clock_gettime", 1)]


def test_python_checks_the_time_after_the_maximum_number_of_calls(made):
    functions, seen = made
    time = (ctypes.c_int64 * 2)()
    fast_calls.table[CALLS] = CALLS_MAX - 2
    assert call(functions, "clock_gettime", 1, ctypes.addressof(time)) == 0
    assert call(functions, "clock_gettime", 1, ctypes.addressof(time)) == SLOW_RESULT
    assert seen == [("clock_gettime", 1)]


class Machine:
    """A simulated machine with two sockets, of which the second is connected."""

    def __init__(self):
        cell = np.zeros(1, dtype=np.int64)
        self.calls = SimulatedMachine(now, steps, cell, (OWN, PEER), (1, 2))
        self.links = make_links(3, RING_BYTES)
        self.calls.sockets.set_links(0, self.links)
        self.descriptors = []
        for port in (4000, 4001):
            self.descriptors.append(self.calls.open(socket.AF_INET))
            assert self.calls.sockets.bind(self.descriptors[-1], SocketAddress(OWN, port)) == 0
        assert self.calls.sockets.connect(self.descriptors[1], SocketAddress(PEER, 77)) == 0

    def deliver(self, mailbox, data):
        name = np.zeros(28, dtype=np.uint8)
        length = write_name(name, SocketAddress(PEER, 77))
        buf = np.frombuffer(data, np.uint8)
        link.deliver(self.links, mailbox, name, length, buf, 0, len(data))

    def take(self, mailbox):
        name, buf = np.zeros(28, dtype=np.uint8), np.zeros(RING_BYTES, dtype=np.uint8)
        link.take(self.links, mailbox, name, buf, 0, buf.size)

    @property
    def state(self):
        """Return all bytes that the functions may change: of the rings, and of their datagrams."""
        return self.links.rings.tobytes(), self.links.memory.tobytes()


class Messages:
    """An array of `struct mmsghdr`, each with a name and two buffers, in its own memory."""

    def __init__(self, count, room, rng=None, name=b""):
        self._names, self._buffers, self._vectors = [], [], []
        self.headers = (ctypes.c_uint8 * (64 * count))()
        for index in range(count):
            shown = ctypes.create_string_buffer(name, 28)
            content = rng.randbytes(room) if rng else bytes(room)
            buffer = ctypes.create_string_buffer(content, room + 1)
            half = room // 2 if rng else room
            base = ctypes.addressof(buffer)
            packed = struct.pack("<QQQQ", base, half, base + half, room - half)
            vectors = ctypes.create_string_buffer(packed, 32)
            length = len(name) if rng else 28
            header = struct.pack(
                "<QIIQQQQIII", ctypes.addressof(shown) if length else 0, length, 0,
                ctypes.addressof(vectors), 2 if rng else 1, 0, 9, 9, 9, 9,
            )  # fmt: skip
            self.headers[64 * index : 64 * index + 60] = header
            self._names.append(shown)
            self._buffers.append(buffer)
            self._vectors.append(vectors)

    @property
    def address(self):
        return ctypes.addressof(self.headers)

    @property
    def first_buffer(self):
        return ctypes.addressof(self._buffers[0])

    @property
    def state(self):
        """Return the headers without their pointers, the names and the buffers."""
        headers = bytes(self.headers)
        kept = [headers[at + 8 : at + 16] + headers[at + 24 : at + 32] + headers[at + 40 : at + 60]
                for at in range(0, len(headers), 64)]  # fmt: skip
        return kept, [each.raw for each in self._names], [each.raw for each in self._buffers]


NAMES = [b"", SocketAddress(PEER, 99).encode()[:16], SocketAddress(PEER, 9).encode() + bytes(12)]


def exchange(functions, machine, seed):
    """Perform random calls. Returns all visible results of each."""
    rng, seen = random.Random(seed), []
    for _ in range(60):
        at = rng.randrange(2)
        descriptor, length = machine.descriptors[at], rng.choice((0, 1, 8, 100, 700))
        kind = rng.choice(("deliver", "take", "recvmmsg", "recvmsg", "sendmmsg", "sendmsg", "send"))
        if kind == "deliver":
            machine.deliver(at, rng.randbytes(length))
            continue
        if kind == "take":
            machine.take(at)
            continue
        count = rng.randrange(1, 4)
        is_sent = kind.startswith("send")
        messages = Messages(count, length, rng if is_sent else None, rng.choice(NAMES))
        values = {
            "send": (messages.first_buffer, length, 0),
            "sendmmsg": (messages.address, count, 0),
            "recvmmsg": (messages.address, count, 0, None),
        }.get(kind, (messages.address, 0))
        ctypes.set_errno(0)
        result = functions[kind](descriptor, *values)
        error = ctypes.get_errno() if result < 0 else 0
        seen.append((kind, result, error, messages.state, machine.state))
    return seen


@pytest.mark.parametrize("seed", range(40))
def test_machine_code_and_python_do_the_same(monkeypatch, seed):
    monkeypatch.setattr(fast_calls, "_code", [])
    monkeypatch.setattr(system_calls, "_slow", [])
    before = fast_calls.table.copy()
    functions, found = system_calls.make_functions(), []
    try:
        for is_fast in (True, False):
            fast_calls.close_world()
            fast_calls.open_world(now, steps, current)
            machine = Machine()
            if not is_fast:
                fast_calls.close_world()
            monkeypatch.setattr(system_calls, "calls", [machine.calls])
            found.append(exchange(functions, machine, seed))
    finally:
        fast_calls.table[:] = before
    assert found[0] == found[1]
    assert {each[1] for each in found[0]} > {-1}
    assert {each[2] for each in found[0]} == {0, errno.EAGAIN}
