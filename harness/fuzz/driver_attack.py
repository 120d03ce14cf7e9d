"""Attacks a running media driver with datagrams, commands and writes to shared memory.

    epoch: open attacked streams --> send inputs, check --> close them --> checked streams deliver

Datagrams come from several addresses. Some are sent in a single segmentation offload (GSO) call.
Commands go into the driver's ring buffer. Writes go to the log buffers of attacked streams, one of
which is truncated at the end of an epoch. Equal seeds generate equal inputs.
"""

import contextlib
import os
import random
import re
import socket
import struct
import time
from dataclasses import dataclass

import numpy as np

from windtunnel.driver.base.atomics import put_i64
from windtunnel.driver.base.errors import StorageError
from windtunnel.driver.cnc import ring_buffer
from windtunnel.driver.cnc.cnc_file import open_existing
from windtunnel.driver.cnc.error_log import read_errors
from windtunnel.driver.logbuffer.log_buffer import LogBuffer
from windtunnel.harness.bench.host import DriverHost
from windtunnel.harness.fuzz import mutation
from windtunnel.harness.fuzz.checked_streams import LOOPBACK, CheckedStreams
from windtunnel.harness.fuzz.commands import REGULAR_IDS_FROM, Hostile
from windtunnel.harness.fuzz.finding import Input, Violation
from windtunnel.harness.fuzz.frames import Forger, Target, frames_of

EPOCH_DATAGRAMS = 100_000
BURST = 64
BURSTS_PER_TURN = 6
COMMANDS_PER_TURN = 12
CHECK_INTERVAL_S = 0.25
STALL_S_MAX = 5.0
"""Age of the conductor's heartbeat above which the conductor counts as stalled. The heartbeat is
updated every 100 ms.
"""
GROWTH_BYTES_MAX = 64 << 20
UDP_SEGMENT = 103
SETTINGS = {
    "AERON_TERM_BUFFER_SPARSE_FILE": "true",
    "AERON_TERM_BUFFER_LENGTH": "65536",
    "AERON_IPC_TERM_BUFFER_LENGTH": "65536",
    "AERON_TIMER_INTERVAL": "100ms",
    "AERON_PUBLICATION_LINGER_TIMEOUT": "200ms",
    "AERON_CLIENT_LIVENESS_TIMEOUT": "30s",
    "AERON_PUBLICATION_UNBLOCK_TIMEOUT": "40s",
    "AERON_COUNTERS_BUFFER_LENGTH": str(8 << 20),
    "AERON_CONDUCTOR_IDLE_STRATEGY": "sleep-ns",
    "AERON_SENDER_IDLE_STRATEGY": "sleep-ns",
    "AERON_RECEIVER_IDLE_STRATEGY": "sleep-ns",
    "AERON_SHARED_IDLE_STRATEGY": "sleep-ns",
}
"""Environment variables for the attacked driver, ours or Aeron's."""
OURS_ALONE = {"WINDTUNNEL_UDP_OFFLOAD": "true"}
DEFECT = re.compile(r"Traceback|AssertionError|IndexError|KeyError|TypeError|ZeroDivisionError")


@dataclass
class Counts:
    """Counts of the datagrams, bytes, commands and memory writes of an attack so far."""

    datagrams: int = 0
    bytes_out: int = 0
    bytes_back: int = 0
    commands: int = 0
    writes: int = 0
    epochs: int = 0


class Sockets:
    """The sockets from which an attack sends, bound to several addresses of the loopback
    interface.
    """

    def __init__(self) -> None:
        self._by_family: dict[int, list[socket.socket]] = {socket.AF_INET: [], socket.AF_INET6: []}
        for number in range(1, 9):
            self._add(socket.AF_INET, f"127.0.0.{number}")
        for _ in range(2):
            with contextlib.suppress(OSError):
                self._add(socket.AF_INET6, "::1")

    def _add(self, family: int, address: str) -> None:
        made = socket.socket(family, socket.SOCK_DGRAM)
        made.setblocking(False)
        made.bind((address, 0))
        if family == socket.AF_INET:
            interface = socket.inet_aton(LOOPBACK)
            made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, interface)
        self._by_family[family].append(made)

    def send(self, number: int, target: Target, datagram: bytes) -> int:
        """Send one datagram. Returns the number of bytes sent, or 0 if the system rejected it."""
        made = self._of(number, target)
        if made is None:
            return 0
        with contextlib.suppress(OSError):
            return made.sendto(datagram, (target.address, target.port))
        return 0

    def send_train(self, number: int, target: Target, datagrams: list[bytes]) -> int:
        """Send datagrams of equal length in one segmentation offload (GSO) call. Returns the number
        of bytes sent.
        """
        made = self._of(number, target)
        if made is None:
            return 0
        control = [(socket.IPPROTO_UDP, UDP_SEGMENT, struct.pack("H", len(datagrams[0])))]
        with contextlib.suppress(OSError):
            where = (target.address, target.port)
            return made.sendmsg([b"".join(datagrams)], control, 0, where)
        return 0

    def _of(self, number: int, target: Target) -> socket.socket | None:
        family = socket.AF_INET6 if ":" in target.address else socket.AF_INET
        made = self._by_family[family]
        return made[number % len(made)] if made else None

    def drain(self) -> int:
        """Discard all received datagrams. Returns the number of bytes that they contained."""
        count = 0
        for made in (*self._by_family[socket.AF_INET], *self._by_family[socket.AF_INET6]):
            with contextlib.suppress(OSError):
                while True:
                    count += len(made.recv(65_536))
        return count

    def close(self) -> None:
        for made in (*self._by_family[socket.AF_INET], *self._by_family[socket.AF_INET6]):
            made.close()


class DriverAttack:
    """An attack on a running driver: sends hostile inputs, and checks the driver and the streams
    that are not attacked.
    """

    def __init__(self, host: DriverHost, seed: int) -> None:
        self.host, self.seed, self.counts = host, seed, Counts()
        self._random = random.Random(seed)
        self._cnc = open_existing(host.directory, writable=True)
        ring = self._cnc.to_driver
        at = ring.size - ring_buffer.TRAILER_LENGTH + ring_buffer.CORRELATION_ID
        put_i64(ring, at, REGULAR_IDS_FROM)
        self.streams = CheckedStreams(host.directory)
        self.streams.open_checked()
        self._hostile = Hostile(seed, LOOPBACK)
        self._sockets = Sockets()
        self._forger = Forger(seed, self.streams.guarded(), BURST)
        self._resident = host.memory().anonymous
        self._checked_s = time.monotonic()
        self.inputs: list[Input] = []
        self.targets: list[Target] = []
        self._logs: list[LogBuffer | None] = []

    def epoch(self, number: int, datagrams: int = EPOCH_DATAGRAMS) -> None:
        """Attack the driver with random inputs for one epoch, which is a number of datagrams.
        Raises Violation if the driver or a stream that is not attacked fails a check.
        """
        self._begin(number)
        pairs = self.streams.targets()
        self.targets = [target for target, _ in pairs]
        end = self.counts.datagrams + datagrams
        while self.counts.datagrams < end:
            for _ in range(BURSTS_PER_TURN):
                index = self._random.randrange(len(pairs))
                self._burst(index, pairs[index][1].publication.position)
            for _ in range(COMMANDS_PER_TURN):
                self._command()
            self._scribble()
            self._turn()
        self._truncate()
        self._end()

    def replay(self, number: int, inputs: list[Input]) -> None:
        """Repeat the inputs of a finding. Raises Violation if a check fails again."""
        self._begin(number)
        self.targets = [target for target, _ in self.streams.targets()]
        for count, item in enumerate(inputs):
            self.apply(item)
            if count % (BURST * BURSTS_PER_TURN) == 0:
                self._turn()
        self._end()

    def apply(self, item: Input) -> None:
        """Send or write one input. An input whose target does not exist is ignored."""
        self.inputs.append(item)
        if item.kind == "datagram" and item.target < len(self.targets):
            sent = self._sockets.send(len(self.inputs), self.targets[item.target], item.content)
            self.counts.bytes_out += sent
            self.counts.datagrams += 1
        elif item.kind == "command":
            content = np.frombuffer(item.content or b"\0", np.uint8).copy()
            length = len(item.content)
            status = ring_buffer.write(self._cnc.to_driver, item.target, content, 0, length)
            self.counts.commands += int(status == ring_buffer.OK)
        elif item.kind in ("log", "truncate") and item.target < len(self._logs):
            self._spoil_log(item)

    def _begin(self, number: int) -> None:
        self.inputs.clear()
        self.streams.open_attacked(number)
        self._logs = []
        for stream in self.streams.attacked:
            image = stream.subscription.image_by_session_id(stream.session_id)
            names = [("publications", stream.publication.original_registration_id)]
            names += [("images", image.correlation_id)] if image is not None else []
            for folder, registration_id in names:
                self._logs.append(self._map(folder, registration_id))

    def _map(self, folder: str, registration_id: int) -> LogBuffer | None:
        path = self.host.directory / folder / f"{registration_id}.logbuffer"
        with contextlib.suppress(StorageError):
            return LogBuffer.map(path)
        return None

    def _burst(self, index: int, position: int) -> None:
        target = self.targets[index]
        is_train = self._random.randrange(8) == 0
        length = 8 * self._random.randrange(4, 128) if is_train else 0
        batch = self._forger.batch(frames_of(target, position), length)
        if not is_train:
            for datagram in batch:
                self.apply(Input("datagram", index, datagram))
            return
        self.inputs += [Input("datagram", index, datagram) for datagram in batch]
        self.counts.datagrams += len(batch)
        self.counts.bytes_out += self._sockets.send_train(len(self.inputs), target, batch)

    def _command(self) -> None:
        type_id, content = self._hostile.command()
        self.apply(Input("command", type_id, content.tobytes()))

    def _scribble(self) -> None:
        if self._random.randrange(4) == 0:
            index = self._random.randrange(len(self._logs))
            self.apply(Input("log", index, self._forger.rng.tobytes()))
            mutation.draw(self._forger.rng, 2)

    def _truncate(self) -> None:
        index, length = self._random.randrange(len(self._logs)), self._random.choice((0, 4_096))
        self.apply(Input("truncate", index, struct.pack("<q", length)))
        for _ in range(20):
            self._turn()

    def _spoil_log(self, item: Input) -> None:
        log = self._logs[item.target]
        if log is None:
            return
        self.counts.writes += 1
        if item.kind == "truncate" and len(item.content) == 8:
            (length,) = struct.unpack("<q", item.content)
            with contextlib.suppress(OSError):
                os.truncate(log.path, max(0, min(length, log.length)))
        elif item.kind == "log" and len(item.content) == 16:
            rng = np.frombuffer(item.content, np.int64).copy()
            mutation.scribble(rng, log.log, 0, log.meta_at, 3)
            mutation.scribble(rng, log.log, log.meta_at, log.meta_at + 512, 1)

    def _turn(self) -> None:
        self.counts.bytes_back += self._sockets.drain()
        self.streams.work()
        now_s = time.monotonic()
        if now_s - self._checked_s >= CHECK_INTERVAL_S:
            self.check(now_s - self._checked_s)
            self._checked_s = now_s

    def check(self, since_s: float) -> None:
        """Check the driver and the streams that are not attacked. Raises Violation if one of them
        has failed.
        """
        if not self.host.is_alive:
            raise Violation(f"the driver exited: {self.host.last_words()}")
        self.streams.check()
        age_s = time.time() - ring_buffer.consumer_heartbeat_ms(self._cnc.to_driver) / 1_000
        if age_s > STALL_S_MAX and since_s < 1:
            raise Violation(f"the conductor has not updated its heartbeat for {age_s:.1f} s")
        grown = self.host.memory().anonymous - self._resident
        if grown > GROWTH_BYTES_MAX:
            raise Violation(f"the driver's memory has grown by {grown >> 20} MiB")
        for error in read_errors(self._cnc.error_log):
            if DEFECT.search(error.text):
                raise Violation(f"the error log contains a Python exception: {error.text[:2_000]}")

    def _end(self) -> None:
        for log in self._logs:
            if log is not None:
                log.close()
        self._logs = []
        self.streams.close_attacked()
        self.streams.settle()
        self.check(0)
        self.counts.epochs += 1

    def close(self) -> None:
        """Close the sockets, the clients and the mapped files."""
        self._sockets.close()
        with contextlib.suppress(Exception):
            # Closing fails if the driver has ended or its memory is damaged.
            self.streams.close()
        self._cnc.close()
