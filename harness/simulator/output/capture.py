"""Converts recorded datagrams to capture files, one per host, as tcpdump would write them.

    | packet header 16 | Ethernet 14 | IPv4 20 | UDP 8 | datagram |

Addresses, ports and IPv4 identifications are the true ones; the rest of the headers is synthesized:
MAC addresses derive from the IPv4 addresses, for groups as RFC 1112 specifies. The UDP checksum is
absent, except for a datagram whose seal does not match, which gets an incorrect one. IPv4 only.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, BinaryIO

import numpy as np

from windtunnel.driver.base.atomics import copy, get_i64, put_i32
from windtunnel.driver.channel.socket_address import PORT, V4_ADDRESS
from windtunnel.driver.kernels.jit import kernel
from windtunnel.harness.artifact.host.host_facts import CaptureFacts
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.simulator.network.datagram_delivery import is_whole
from windtunnel.harness.simulator.network.in_flight import DESTINATION, IDENTIFICATION
from windtunnel.harness.simulator.network.routes import is_group
from windtunnel.harness.simulator.world.event_log import (
    TAPE_BYTES,
    TAPE_ENVELOPE,
    TAPE_HOST,
    TAPE_TIME,
    USED,
    EventLog,
    tape_length,
)
from windtunnel.harness.simulator.world.virtual_time import EPOCH_NS

_MAGIC_NS, _ETHERNET = 0xA1B23C4D, 1
_FILE_HEADER = struct.pack("<IHHiIII", _MAGIC_NS, 2, 4, 0, 0, 1 << 18, _ETHERNET)
_PACKET_HEADER, _MACS, _IP, _UDP = 16, 12, 20, 8
_PROTOCOL = 17
_NS_PER_SECOND = 1_000_000_000
_EPOCH = EPOCH_NS


@kernel
def write_packets(tape: Any, used: int, host: int, out: Any, counts: Any) -> int:
    """Convert a host's recorded datagrams to packets of a capture file."""
    at, end = 0, 0
    while at < used:
        length = tape_length(tape, at)
        if tape[at + TAPE_HOST] == host:
            end = _write_packet(tape, at, length, out, end)
            counts[host] += 1
        at = (at + TAPE_BYTES + length + 7) & -8
    return end


@kernel
def _write_packet(tape: Any, at: int, length: int, out: Any, start: int) -> int:
    time_ns = get_i64(tape, at + TAPE_TIME) + _EPOCH
    captured = _MACS + 2 + _IP + _UDP + length
    put_i32(out, start, time_ns // _NS_PER_SECOND)
    put_i32(out, start + 4, time_ns % _NS_PER_SECOND)
    put_i32(out, start + 8, captured)
    put_i32(out, start + 12, captured)
    source = at + TAPE_ENVELOPE
    destination = source + DESTINATION
    mac = start + _PACKET_HEADER
    for which, name in ((0, destination), (6, source)):
        out[mac + which] = 2
        out[mac + which + 1] = 0
        for index in range(4):
            out[mac + which + 2 + index] = tape[name + V4_ADDRESS + index]
    if is_group(tape, destination):
        out[mac] = 1
        out[mac + 2] = 0x5E
        out[mac + 3] &= 0x7F
    _put_u16(out, mac + _MACS, 0x0800)
    ip = mac + _MACS + 2
    for index in range(_IP):
        out[ip + index] = 0
    out[ip] = 0x45
    _put_u16(out, ip + 2, _IP + _UDP + length)
    _put_u16(out, ip + 4, get_i64(tape, source + IDENTIFICATION))
    out[ip + 8] = 64
    out[ip + 9] = _PROTOCOL
    for index in range(4):
        out[ip + 12 + index] = tape[source + V4_ADDRESS + index]
        out[ip + 16 + index] = tape[destination + V4_ADDRESS + index]
    _put_u16(out, ip + 10, 0xFFFF ^ _fold(_sum(out, ip, _IP)))
    udp = ip + _IP
    for index in range(2):
        out[udp + index] = tape[source + PORT + index]
        out[udp + 2 + index] = tape[destination + PORT + index]
    _put_u16(out, udp + 4, _UDP + length)
    _put_u16(out, udp + 6, 0)
    copy(out, udp + _UDP, tape, at + TAPE_BYTES, length)
    if not is_whole(tape, source, length):
        _put_u16(out, udp + 6, _broken_sum(out, ip, udp, _UDP + length))
    return udp + _UDP + length


@kernel
def _broken_sum(out: Any, ip: int, udp: int, length: int) -> int:
    """Return a wrong UDP checksum that is neither zero nor the checksum of the pseudo-header
    alone.
    """
    pseudo = _sum(out, ip + 12, 8) + _PROTOCOL + length
    right = 0xFFFF ^ _fold(pseudo + _sum(out, udp, length))
    wrong = right
    while wrong in (0, right, _fold(pseudo)):
        wrong += 1
    return wrong


@kernel
def _sum(buf: Any, at: int, length: int) -> int:
    """Return the sum of big-endian 16-bit words. If the length is odd, the last byte is the high
    half of a word.
    """
    total = 0
    for index in range(length):
        total += int(np.int64(buf[at + index])) << (8 if index % 2 == 0 else 0)
    return total


@kernel
def _fold(total: int) -> int:
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


@kernel
def _put_u16(buf: Any, at: int, value: int) -> None:
    buf[at] = value >> 8 & 0xFF
    buf[at + 1] = value & 0xFF


class Captures:
    """The capture files of a run's hosts, written from the recorded datagrams."""

    def __init__(self, folder: RunDir, hosts: Sequence[str], events: EventLog) -> None:
        self._folder = folder
        self._hosts = tuple(hosts)
        self._events = events
        self._out = np.empty(2 * events.tape.size, dtype=np.uint8)
        self._counts = np.zeros(len(self._hosts), dtype=np.int64)
        self._closing = ExitStack()
        self._files: list[BinaryIO] = []
        for host in self._hosts:
            self._files.append(self._closing.enter_context(folder.capture(host).open("wb")))
            self._files[-1].write(_FILE_HEADER)

    def drain(self) -> None:
        """Write the recorded datagrams to the capture files, and empty the record."""
        tape, used = self._events.tape, int(self._events.state[USED])
        for host, file in enumerate(self._files):
            end = write_packets(tape, used, host, self._out, self._counts)
            file.write(self._out[:end])
        self._events.state[USED] = 0

    def close(self) -> None:
        """Write the remaining datagrams and the statistics that a capture tool prints at exit."""
        self.drain()
        self._closing.close()
        for host, name in enumerate(self._hosts):
            facts = CaptureFacts(received=int(self._counts[host]), dropped_by_kernel=0)
            facts.write(self._folder.capture_statistics(name))
