"""A receiver with one endpoint. The test acts as sender, network and conductor."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.naive import wire
from tests.sim.stream_pair import HWM, MS, RCV_POS, SESSION_ID, STREAM_ID, SUB_POS, StreamPair, fill
from windtunnel.driver.base import handoff
from windtunnel.driver.cnc import counters
from windtunnel.driver.media import link
from windtunnel.driver.media_driver.image import image_connections
from windtunnel.driver.media_driver.receiver import receiver_state

TERM = 65_536
INITIAL = 7


def data(
    position: int,
    *payload_lengths: int,
    initial_term_id: int = INITIAL,
    session_id: int = SESSION_ID,
    stream_id: int = STREAM_ID,
    flags: int = 0xC0,
) -> bytes:
    """Return a datagram of whole frames that starts at a position."""
    term_id = (initial_term_id + position // TERM + 2**31) % 2**32 - 2**31
    frames, offset = [], position % TERM
    for length in payload_lengths:
        head = wire.pack(
            "data", 32 + length, 0, flags, wire.DATA, offset, session_id, stream_id, term_id, 0
        )
        frame = head + bytes((offset // 32 + i) & 0xFF for i in range(length))
        frames.append(frame.ljust(wire.aligned(len(frame)), b"\0"))
        offset += len(frames[-1])
    return b"".join(frames)


def pad(position: int, length: int, **fields: int) -> bytes:
    """A padding frame over `length` bytes."""
    frame = bytearray(data(position, 0, **fields))
    frame[0:4] = length.to_bytes(4, "little")
    frame[6] = wire.PAD
    return bytes(frame)


def heartbeat(position: int, flags: int = 0xC0, **fields: int) -> bytes:
    """A heartbeat at a position."""
    frame = bytearray(data(position, 0, flags=flags, **fields))
    frame[0:4] = bytes(4)
    return bytes(frame)


def setup(
    position: int = 0,
    *,
    session_id: int = SESSION_ID,
    stream_id: int = STREAM_ID,
    term_length: int = TERM,
    mtu: int = 1408,
    flags: int = 0,
) -> bytes:
    """A SETUP frame."""
    return wire.pack(
        "setup",
        40,
        0,
        flags,
        wire.SETUP,
        position % TERM,
        session_id,
        stream_id,
        INITIAL,
        INITIAL + position // TERM,
        term_length,
        mtu,
        0,
    )


class ReceivingRig:
    """Runs one duty cycle at a time: `deliver` adds datagrams, `turn` returns those sent."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.pair = StreamPair(folder, **settings)
        self.state = self.pair.receiver
        self.now_ns = 1_000 * MS
        self.destinations: list[bytes] = []
        """The destination address of each datagram sent."""
        self.sent: list[tuple[int, bytes]] = []
        """The datagrams sent in the last duty cycle: (mailbox of the sending socket, bytes)."""
        self.turn()
        self.turn()

    def deliver(self, *datagrams: bytes, at: int = 1) -> None:
        """Deliver datagrams of the sender to one of the receiver's mailboxes."""
        for datagram in datagrams:
            buf = np.frombuffer(datagram, np.uint8).copy()
            accepted = link.deliver(self.pair.links, at, self.pair.names[0], 16, buf, 0, buf.size)
            assert accepted == buf.size

    def turn(self, after_ns: int = 0) -> list[bytes]:
        """Run a duty cycle of conductor and receiver. Returns the datagrams sent."""
        self.turn_work(after_ns)
        found = []
        self.sent = []
        for mailbox in range(1, self.pair.links.mailboxes.size):
            for name, datagram in self._taken(mailbox):
                self.destinations.append(name)
                self.sent.append((mailbox, datagram))
                found.append(datagram)
        return found

    def turn_work(self, after_ns: int = 0) -> tuple[int, int]:
        """Run a duty cycle without taking datagrams. Returns the work counts of both agents."""
        self.now_ns += after_ns
        conducted = self.pair.track(self.pair.conductor, self.now_ns, self.now_ns // MS)
        return int(conducted), int(self.pair.receive(self.state, self.now_ns))

    def _taken(self, mailbox: int) -> Iterator[tuple[bytes, bytes]]:
        name, buf = np.zeros(28, np.uint8), np.zeros(65_536, np.uint8)
        while True:
            length, name_length = link.take(self.pair.links, mailbox, name, buf, 0, buf.size)
            if length == link.NOTHING:
                return
            yield bytes(name[:name_length]), buf[:length].tobytes()

    def add_transport(self, mailbox: int, *, connection: int = 0, serves: int = 0, **fields: int):
        """Add a socket, in the slot of its mailbox's number. Returns the datagrams sent at once."""
        endpoint = self.state.endpoints[mailbox]
        fill(endpoint, fd=link.FIRST_FD - mailbox, serves=serves, connection=connection, **fields)
        return self.command(receiver_state.ADD_ENDPOINT, mailbox)

    def start(self) -> list[bytes]:
        """Deliver a SETUP and create the image. Returns its first status message."""
        self.deliver(setup())
        self.turn()
        self.pair._on_events()
        image = self.state.images[0]
        fill(image, connection_count=1)
        fill(
            self.state.connections[0],
            is_known=1,
            control=self.pair.names[0],
            control_length=16,
            last_activity_ns=self.now_ns,
            last_frame_ns=self.now_ns,
            unspent_bytes=image_connections.UNSPENT_BYTES_FIRST,
        )
        return self.turn()

    def command(self, *words: int) -> list[bytes]:
        """Execute a command of the conductor in a duty cycle. Returns the datagrams sent."""
        record = handoff.make_record()
        record[: len(words)] = words
        assert handoff.put(self.state.commands, record)
        return self.turn()

    def events(self) -> list[list[int]]:
        """Return the receiver's events, without processing them."""
        record, found = handoff.make_record(), []
        while handoff.take(self.state.events, record):
            found.append([int(word) for word in record])
        return found

    def value(self, counter_id: int) -> int:
        return self.pair.value(counter_id)

    def consume(self, position: int) -> None:
        """Advance the subscriber's position."""
        counters.set_release(self.pair.values, SUB_POS, position)

    @property
    def positions(self) -> tuple[int, int]:
        """(rcv-pos, rcv-hwm)."""
        return self.value(RCV_POS), self.value(HWM)

    def log(self) -> np.ndarray:
        """Return a copy of the image's log without its metadata."""
        return self.pair.image_log.log[: 3 * TERM].copy()

    def interest(
        self, stream_id: int, session_id: int | None = None, *, gone: bool = False
    ) -> None:
        """Add or remove the interest of a subscription."""
        operation = receiver_state.REMOVE_INTEREST if gone else receiver_state.ADD_INTEREST
        self.command(operation, 0, stream_id, int(session_id is not None), session_id or 0)


def status_of(datagram: bytes) -> dict[str, int]:
    """Return the fields of a status message that tests compare."""
    fields = np.frombuffer(datagram[8:28], "<i4")
    names = ("session_id", "stream_id", "term_id", "offset", "window")
    return dict(zip(names, (int(field) for field in fields), strict=True)) | {
        "flags": datagram[5],
        "kind": datagram[6],
        "length": len(datagram),
    }
