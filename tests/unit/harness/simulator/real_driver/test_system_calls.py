"""The functions that a real driver calls instead of libc's, called through their C addresses."""

import ctypes
import errno
import os
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from windtunnel.driver.channel.socket_address import SocketAddress, write_name
from windtunnel.driver.media import link
from windtunnel.harness.simulator.real_driver import simulated_machine, system_calls
from windtunnel.harness.simulator.real_driver.simulated_machine import SimulatedMachine
from windtunnel.harness.simulator.real_driver.system_calls import HARNESS
from windtunnel.harness.simulator.world.virtual_time import EPOCH_NS

REPOSITORY = Path(__file__).parents[5]
OWN, PEER = "10.0.0.1", "10.0.0.2"
NOW_NS, STEP_NS = 12_000_000_345, -9_000_000_000
NAME = (
    struct.pack("<H", socket.AF_INET) + struct.pack(">H", 4000) + socket.inet_aton(OWN) + bytes(8)
)


class World:
    """A machine with two hosts, and the functions that its drivers call."""

    def __init__(self):
        self.current = np.zeros(1, dtype=np.int64)
        self.machine = SimulatedMachine(
            np.array([NOW_NS]), np.array([0, STEP_NS]), self.current, (OWN, PEER), (1, 2)
        )
        self.links = [link.make_links(3, 1 << 12) for _ in range(2)]
        for index, links in enumerate(self.links):
            self.machine.sockets.set_links(index, links)
        self.call = system_calls.make_functions()

    def bound(self):
        descriptor = self.call["socket"](socket.AF_INET, socket.SOCK_DGRAM, 0)
        assert self.call["bind"](descriptor, NAME, len(NAME)) == 0
        return descriptor

    def deliver(self, data):
        name = np.zeros(28, dtype=np.uint8)
        length = write_name(name, SocketAddress(PEER, 77))
        raw = np.frombuffer(data, np.uint8)
        assert link.deliver(self.links[0], 0, name, length, raw, 0, len(data)) == len(data)


@pytest.fixture
def world():
    made = World()
    simulated_machine.calls.append(made.machine)
    yield made
    simulated_machine.calls.remove(made.machine)


class Messages:
    """An array of `struct mmsghdr`, each with one buffer."""

    def __init__(self, *rooms):
        self.buffers = [ctypes.create_string_buffer(room) for room in rooms]
        self.names = [ctypes.create_string_buffer(16) for _ in rooms]
        self.vectors = [
            ctypes.create_string_buffer(struct.pack("<QQ", ctypes.addressof(each), room), 16)
            for each, room in zip(self.buffers, rooms, strict=True)
        ]
        headers = [
            struct.pack(
                "<QI4xQQQQi4xI4x",
                *(ctypes.addressof(name), 16),
                *(ctypes.addressof(v), 1),
                *(0, 99),
                0,
                0,
            )
            for name, v in zip(self.names, self.vectors, strict=True)
        ]
        self.memory = ctypes.create_string_buffer(b"".join(headers))

    def field(self, index, kind, at):
        return struct.unpack_from(kind, self.memory, 64 * index + at)[0]


@pytest.mark.parametrize(
    ("which", "base_ns"), [(0, EPOCH_NS), (1, 0), (4, 0), (5, EPOCH_NS), (6, 0)]
)
@pytest.mark.parametrize("host", [0, 1])
def test_clocks_read_virtual_time(world, which, base_ns, host):
    world.current[0] = host
    base_ns += STEP_NS if base_ns and host else 0
    found = ctypes.create_string_buffer(16)
    assert world.call["clock_gettime"](which, found) == 0
    seconds, rest = struct.unpack("<qq", found)
    assert seconds * 10**9 + rest == NOW_NS + base_ns
    assert 0 <= rest < 10**9


def test_random_numbers_depend_on_the_seed_and_host_alone(world):
    draw = world.call["aeron_randomised_int32"]
    first = [draw() for _ in range(8)]
    world.current[0] = 1
    second = [draw() for _ in range(8)]
    other = World()
    simulated_machine.calls.append(other.machine)
    try:
        assert [draw() for _ in range(8)] == first
    finally:
        simulated_machine.calls.remove(other.machine)
    assert first != second
    assert min(first + second) < 0 < max(first + second)


def test_receives_datagrams_with_source_length_and_truncation(world):
    descriptor = world.bound()
    messages = Messages(64, 3, 64)
    receive = world.call["recvmmsg"]
    assert receive(descriptor, messages.memory, 3, 0, None) == -1
    assert ctypes.get_errno() == errno.EAGAIN
    world.deliver(b"first")
    world.deliver(b"second")
    assert receive(descriptor, messages.memory, 3, 0, None) == 2
    assert messages.buffers[0].raw[:5] == b"first"
    assert messages.buffers[1].raw == b"sec"
    assert [messages.field(index, "<I", 56) for index in (0, 1)] == [5, 3]
    assert [messages.field(index, "<i", 48) for index in (0, 1)] == [0, socket.MSG_TRUNC]
    assert messages.field(0, "<Q", 40) == 0
    assert messages.names[0].raw[2:8] == struct.pack(">H", 77) + socket.inet_aton(PEER)


def test_gathers_what_is_sent(world):
    descriptor = world.bound()
    messages = Messages(4, 2)
    messages.buffers[0].raw, messages.buffers[1].raw = b"head", b"ab"
    both = ctypes.create_string_buffer(messages.vectors[0].raw + messages.vectors[1].raw, 32)
    struct.pack_into("<QQ", messages.memory, 16, ctypes.addressof(both), 2)
    messages.names[0].raw = NAME
    assert world.call["sendmsg"](descriptor, messages.memory, 0) == 6
    assert world.machine.sockets.buffer[:6].tobytes() == b"headab"
    name, sent = np.zeros(28, dtype=np.uint8), np.zeros(64, dtype=np.uint8)
    length, name_length = link.take(world.links[0], 0, name, sent, 0, sent.size)
    assert sent[:length].tobytes() == b"headab"
    assert name[:name_length].tobytes()[:8] == NAME[:8]


def test_closes_a_simulated_socket_and_a_file(world):
    descriptor = world.bound()
    assert world.call["close"](descriptor) == 0
    assert not world.machine.sockets.has(descriptor)
    read, write = os.pipe()
    os.close(write)
    assert world.call["close"](read) == 0
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(read)


def test_polls_the_sockets_that_were_added(world):
    descriptor = world.bound()
    poll = world.call["epoll_create1"](0)
    event = struct.pack("<IQ", 1, 0xABCD)
    found = ctypes.create_string_buffer(12)
    assert world.call["epoll_ctl"](poll, 1, descriptor, event) == 0
    assert world.call["epoll_wait"](poll, found, 1, 0) == 0
    world.deliver(b"x")
    assert world.call["epoll_wait"](poll, found, 1, 0) == 1
    assert found.raw == event
    assert world.call["epoll_ctl"](poll, 2, descriptor, None) == 0
    assert world.call["epoll_wait"](poll, found, 1, 0) == 0


def test_names_the_local_address_and_options(world):
    descriptor = world.bound()
    name, length = ctypes.create_string_buffer(16), ctypes.c_uint32(16)
    assert world.call["getsockname"](descriptor, name, ctypes.byref(length)) == 0
    assert (name.raw[:8], length.value) == (NAME[:8], 16)
    size, value = struct.pack("<i", 65_536), ctypes.c_int32()
    option = (descriptor, socket.SOL_SOCKET, socket.SO_RCVBUF)
    assert world.call["setsockopt"](*option, size, 4) == 0
    assert world.call["getsockopt"](*option, ctypes.byref(value), ctypes.byref(length)) == 0
    assert (value.value, length.value) == (65_536, 4)


def test_resolves_numeric_names_only(world):
    found = ctypes.c_void_p()
    assert world.call["getaddrinfo"](b"no.such.host", None, None, ctypes.byref(found)) == -2
    assert found.value is None
    assert world.call["getaddrinfo"](b"10.0.0.9", None, None, ctypes.byref(found)) == 0
    libc = ctypes.CDLL(None)
    address = ctypes.c_uint64.from_address(found.value + 24).value
    assert ctypes.string_at(address + 4, 4) == socket.inet_aton("10.0.0.9")
    libc.freeaddrinfo(found)


@pytest.mark.parametrize(("host", "address"), [(0, OWN), (1, PEER)])
def test_lists_loopback_and_the_hosts_interface(world, host, address):
    world.current[0] = host
    get, free = system_calls.make_interface_functions()
    at = ctypes.c_uint64()
    assert get(ctypes.byref(at)) == 0
    found, following = [], at.value
    while following:
        following, name, flags, local, _ = struct.unpack("<QQQQQ", ctypes.string_at(following, 40))
        host_address = socket.inet_ntoa(ctypes.string_at(local + 4, 4))
        found.append((ctypes.string_at(name).decode(), host_address, bool(flags & 8)))
    assert found == [("lo", "127.0.0.1", True), ("eth0", address, False)]
    index = world.call["if_nametoindex"]
    assert [index(name) for name in (b"lo", b"eth0", b"none")] == [1, 2, 0]
    free(at.value)


CHILD = """
import numpy as np
from windtunnel.harness.simulator.real_driver import simulated_machine, system_calls
simulated_machine.CALLS_MAX = 1000
now, zero = np.full(1, 5), np.zeros(1, dtype=np.int64)
machine = simulated_machine.SimulatedMachine(now, zero, zero, ("10.0.0.1",), (1,))
simulated_machine.calls.append(machine)
call = system_calls.make_functions()
"""


def child(program):
    """Run a program that calls system calls in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", CHILD + program],
        cwd=REPOSITORY,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_a_driver_that_waits_for_the_clock_is_aborted():
    done = child("while True: call['usleep'](1)")
    assert done.returncode == -signal.SIGABRT
    assert "virtual time to move within 1000 system calls, but it stays at 5 ns" in done.stdout


def test_a_driver_is_not_aborted_while_virtual_time_moves():
    done = child("for _ in range(3000): now[0] += 1; call['usleep'](1)\nprint('moved')")
    assert (done.returncode, done.stdout) == (0, "moved\n"), done.stderr


def test_an_exception_in_a_system_call_ends_the_process_as_a_harness_fault():
    done = child("call['getsockname'](77, None, None)\nprint('went on')")
    assert done.returncode == HARNESS
    assert "KeyError: 77" in done.stdout
    assert "went on" not in done.stdout
