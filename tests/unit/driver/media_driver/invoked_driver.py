"""A media driver whose duty cycles the test runs, with a manual clock and in-memory links.

client(...) --command--> ring -> MediaDriver(INVOKER) -> broadcast --> lab.take()
                                    |        ^
                                    mailboxes: outside ends are peers, inside ends find each other
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from windtunnel.driver.base.clock import ManualClock
from windtunnel.driver.channel.resolver import Resolver
from windtunnel.driver.channel.socket_address import SocketAddress, read_name, write_name
from windtunnel.driver.cnc import broadcast, counters, ring_buffer
from windtunnel.driver.cnc.cnc_file import CncFile, open_existing
from windtunnel.driver.cnc.counters_reader import Counter, CountersReader
from windtunnel.driver.command.codec import decode_response
from windtunnel.driver.command.counter import CounterReady
from windtunnel.driver.logbuffer import appender
from windtunnel.driver.logbuffer.log_buffer import LogBuffer
from windtunnel.driver.media import link
from windtunnel.driver.media.channel_sockets import LinkSockets
from windtunnel.driver.media_driver.context import INVOKER, MIB, Context
from windtunnel.driver.media_driver.media_driver import MediaDriver

MS = 1_000_000
SECOND = 1_000 * MS
HOST = SocketAddress("10.0.0.1", 0)
PEER = SocketAddress("10.0.0.2", 40_456)
CHANNEL = "aeron:udp?endpoint=10.0.0.1:20121|term-length=64k"
TO_PEER = "aeron:udp?endpoint=10.0.0.2:40456|term-length=64k"
STREAM = 1001


class Lab:
    """A driver, and a client that sends it commands."""

    def __init__(
        self,
        directory: Path,
        clock: ManualClock,
        resolver: Resolver | None = None,
        **settings: Any,
    ) -> None:
        self.clock = clock
        self.links = link.make_links(64, 1 << 18)
        self._is_open = self.links.mailboxes.is_open
        outbound = self.links.rings[1::2]
        self._taken, self._sent = outbound.head, outbound.tail
        self._name, self._datagram = np.zeros(28, np.uint8), np.zeros(65_536, np.uint8)
        self._logs: list[LogBuffer] = []
        defaults = {
            "dir": directory,
            "threading_mode": INVOKER,
            "perform_storage_checks": False,
            "counters_buffer_length": MIB,
        }
        self.driver = MediaDriver(
            Context(**(defaults | settings)),
            clock=clock,
            sockets=LinkSockets(self.links, HOST),
            resolver=resolver,
            links=self.links,
            seed=7,
        )
        self.cnc: CncFile = open_existing(directory, writable=True)
        self.receiver = broadcast.make_receiver(self.cnc.to_clients)
        self.counters = CountersReader(self.cnc.counters_metadata, self.cnc.counters_values)
        self.client = 0
        """The client id of commands."""
        self.keeps_alive = False
        """Whether the client's heartbeat is written while time passes."""
        self.outside: list[tuple[SocketAddress, bytes]] = []
        """Datagrams sent to other hosts: (source, bytes)."""

    def next_id(self) -> int:
        """Return a new correlation id, as a client takes it from the ring buffer."""
        return int(ring_buffer.next_correlation_id(self.cnc.to_driver))

    def post(self, type_id: int, content: bytes) -> None:
        """Write a message of raw bytes to the command ring buffer."""
        source = np.frombuffer(content or b"\0", np.uint8).copy()
        status = ring_buffer.write(self.cnc.to_driver, int(type_id), source, 0, len(content))
        assert status == ring_buffer.OK

    def request(self, command: Any) -> list[Any]:
        """Send a command, run duty cycles, and return the driver's responses."""
        self.post(command.TYPE_ID, command.encode())
        self.turn(3)
        return self.take()

    def take(self) -> list[Any]:
        """Return the driver's responses since the previous call."""
        scratch, response = broadcast.make_scratch(self.cnc.to_clients), []
        while True:
            type_id, length = broadcast.receive(self.cnc.to_clients, self.receiver, scratch)
            if type_id == broadcast.NO_MESSAGE:
                return response
            assert type_id > 0, f"broadcast answered {type_id}"
            response.append(decode_response(type_id, scratch[:length]))

    def turn(self, count: int = 1, step_ns: int = 0) -> None:
        """Run duty cycles of every agent, and deliver datagrams in between."""
        for _ in range(count):
            if self.keeps_alive and self.counters.find(11, self.client) is not None:
                self.keep_alive(self.client)
            self.driver.invoke()
            self._carry()
            self.clock.advance(step_ns)

    def run_for(self, duration_ns: int, step_ns: int = 50 * MS) -> None:
        """Run duty cycles for a duration of the manual clock."""
        self.turn(max(1, duration_ns // step_ns), step_ns)

    def _carry(self) -> None:
        """Take the datagrams that the sockets have sent, and deliver those for the driver itself.

        numpy finds them: reading the records of 64 sockets one by one takes longer than all else.
        """
        name, buf = self._name, self._datagram
        has_sent = (self._is_open != 0) & (self._taken != self._sent)
        for index in np.flatnonzero(has_sent).tolist():
            box = self.links.mailboxes[index]
            while True:
                length, name_length = link.take(self.links, index, name, buf, 0, buf.size)
                if length == link.NOTHING:
                    break
                target = link.find(self.links, name, name_length)
                if target == link.NOTHING:
                    self.outside.append((self._local(index), buf[:length].tobytes()))
                else:
                    link.deliver(self.links, target, box.local, box.local_length, buf, 0, length)

    def _local(self, index: int) -> SocketAddress:
        box = self.links.mailboxes[index]
        address = read_name(box.local, int(box.local_length))
        assert address is not None
        return address

    def send(self, to: SocketAddress, datagram: bytes, source: SocketAddress = PEER) -> int:
        """Deliver a datagram of another host to a socket. Returns the link's result."""
        name, to_name = np.zeros(28, np.uint8), np.zeros(28, np.uint8)
        length, to_length = write_name(name, source), write_name(to_name, to)
        target = link.find(self.links, to_name, to_length)
        assert target != link.NOTHING, f"no socket is bound to {to}"
        buf = np.frombuffer(datagram, np.uint8).copy()
        return int(link.deliver(self.links, target, name, length, buf, 0, buf.size))

    def value(self, counter_id: int) -> int:
        """A counter's value."""
        return int(counters.get(self.cnc.counters_values, counter_id))

    def set_value(self, counter_id: int, value: int) -> None:
        """Set a counter, as a client does with its own."""
        counters.set_release(self.cnc.counters_values, counter_id, value)

    def active_counters(self, first: int = 46) -> list[Counter]:
        """Return the counters that are in use, except for the driver's system counters."""
        return [item for item in self.counters if item.counter_id >= first]

    def stream_counters(self) -> list[Counter]:
        """The counters of streams and channels: no system counters and no heartbeats."""
        return [item for item in self.active_counters() if item.type_id != 11]

    def named(self, name: str) -> Counter:
        """Return the only counter whose label starts with `name`."""
        (found,) = [item for item in self.active_counters() if item.label.startswith(name + ": ")]
        return found

    def keep_alive(self, client_id: int) -> None:
        """Write a client's heartbeat."""
        found = self.counters.find(11, client_id)
        assert found is not None
        self.set_value(found, self.clock.now_ms())

    def add(self, kind: Any, channel: str, stream: int = STREAM) -> tuple[int, list[Any]]:
        """Send an Add command. Returns its correlation id and its responses."""
        correlation_id = self.next_id()
        responses = self.request(kind(self.client, correlation_id, stream, channel))
        return correlation_id, [item for item in responses if not isinstance(item, CounterReady)]

    def claim_command(self, length: int) -> None:
        """Claim space for a command that is never committed."""
        assert ring_buffer.claim(self.cnc.to_driver, 4, length) > 0

    def open_log(self, path: str) -> LogBuffer:
        """Map a log as its publisher does. It is closed with the lab."""
        self._logs.append(LogBuffer.map(Path(path)))
        return self._logs[-1]

    def claim(self, log: LogBuffer, length: int) -> int:
        """Claim a frame of `length` bytes without committing it. Returns its offset."""
        state = appender.attach(log.log, log.meta_at)
        end = int(appender.claim(state, log.log, 1 << 40, length - 32))
        assert end > 0
        return int(state[0]["claim_at"])

    def publish(self, log: LogBuffer, length: int) -> int:
        """Write frames of at most 1 KiB, `length` bytes in all. Returns the position after them."""
        for written in range(0, length, 1024):
            at = self.claim(log, min(1024, length - written))
            assert appender.commit(log.log, at)
        return log.producer_position()

    def logs(self) -> list[str]:
        """Return the names of the log files that exist."""
        directory = self.driver.context.dir
        return sorted(str(path.relative_to(directory)) for path in directory.rglob("*.logbuffer"))

    def close(self) -> None:
        """Release the client's mapping and close the driver."""
        for log in self._logs:
            log.close()
        self.cnc.close()
        self.driver.close()


@contextmanager
def lab(directory: Path, **settings: Any) -> Iterator[Lab]:
    """Yield a driver, and close it at the end."""
    opened = Lab(directory, ManualClock(), **settings)
    try:
        yield opened
    finally:
        opened.close()


@contextmanager
def lab_with_long_timeouts(directory: Path, **settings: Any) -> Iterator[Lab]:
    """Yield a driver with very long timeouts for its client and for unblocking publications."""
    with lab(
        directory,
        client_liveness_timeout_ns=3_600 * SECOND,
        publication_unblock_timeout_ns=7_200 * SECOND,
        **settings,
    ) as opened:
        opened.client = opened.next_id()
        yield opened
