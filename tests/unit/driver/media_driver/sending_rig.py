"""A sender with one publication. The test acts as publisher, network and receivers."""

from pathlib import Path

import numpy as np

from tests.naive import wire
from tests.sim.stream_pair import (
    MS,
    PUB_LMT,
    SESSION_ID,
    SLOT,
    SND_LMT,
    SND_POS,
    STREAM_ID,
    StreamPair,
)
from windtunnel.driver.base import handoff
from windtunnel.driver.channel.socket_address import SocketAddress, read_name, write_name
from windtunnel.driver.cnc import counters
from windtunnel.driver.logbuffer import descriptor, publication_result
from windtunnel.driver.media import link
from windtunnel.driver.media_driver.conductor.endpoints.send_channel_endpoints import name_words
from windtunnel.driver.media_driver.sender import network_publication, sender_state

RECEIVER_ID = 99
PEER = SocketAddress("10.0.0.1", 20_002)
SEND_SETUP = 0x80


class SendingRig:
    """Runs one duty cycle at a time, and returns the datagrams sent, oldest first."""

    def __init__(self, folder: Path, **settings: int) -> None:
        self.pair = StreamPair(folder, **settings)
        self.state = self.pair.sender
        self.record = self.state.publications[SLOT]
        self.now_ns = 1_000 * MS

    def turn(self, after_ns: int = 0) -> list[bytes]:
        """Run a duty cycle of the sender after a delay. Returns the datagrams sent."""
        return [datagram for _, datagram in self.turn_addressed(after_ns)]

    def take(self) -> list[bytes]:
        return [datagram for _, datagram in self.take_addressed()]

    def take_addressed(self) -> list[tuple[str, bytes]]:
        """Return the datagrams sent, each with its destination."""
        name, buf, found = np.zeros(28, np.uint8), np.zeros(65_536, np.uint8), []
        while True:
            length, name_length = link.take(self.pair.links, 0, name, buf, 0, buf.size)
            if length == link.NOTHING:
                return found
            found.append((str(read_name(name, name_length)), buf[:length].tobytes()))

    def turn_addressed(self, after_ns: int = 0) -> list[tuple[str, bytes]]:
        """Like `turn`; each datagram has its destination."""
        self.now_ns += after_ns
        self.pair.track(self.pair.conductor, self.now_ns, self.now_ns // MS)
        self.pair.send(self.state, self.now_ns)
        return self.take_addressed()

    def begin(self) -> None:
        """Let the sender add its endpoint and its publication."""
        self.turn()
        self.turn()

    def start(self, window: int = 32_768) -> None:
        """Run the initial exchange, up to the first heartbeat."""
        self.begin()
        self.deliver_status(0, window)
        self.turn()
        self.turn()

    def deliver(self, datagram: bytes, source: SocketAddress = PEER) -> None:
        """Deliver a control frame for the next poll."""
        buf, name = np.frombuffer(datagram, np.uint8).copy(), np.zeros(28, np.uint8)
        length = write_name(name, source)
        accepted = link.deliver(self.pair.links, 0, name, length, buf, 0, buf.size)
        assert accepted == buf.size

    def deliver_status(
        self,
        position: int,
        window: int,
        flags: int = 0,
        receiver_id: int = RECEIVER_ID,
        source: SocketAddress = PEER,
        tag: bytes = b"",
    ) -> None:
        term_id, offset = self.place(position)
        self.deliver(
            wire.pack(
                "status_message",
                36 + len(tag),
                0,
                flags,
                wire.SM,
                SESSION_ID,
                STREAM_ID,
                term_id,
                offset,
                window,
                receiver_id,
            )
            + tag,
            source,
        )

    def deliver_setup_request(
        self, source: SocketAddress = PEER, receiver_id: int = RECEIVER_ID
    ) -> None:
        """Deliver a status message that requests a SETUP."""
        self.deliver(
            wire.pack(
                "status_message",
                36,
                0,
                SEND_SETUP,
                wire.SM,
                SESSION_ID,
                STREAM_ID,
                0,
                0,
                0,
                receiver_id,
            ),
            source,
        )

    def deliver_nak(self, position: int, length: int, stream_id: int = STREAM_ID) -> None:
        term_id, offset = self.place(position)
        self.deliver(
            wire.pack("nak", 28, 0, 0, wire.NAK, SESSION_ID, stream_id, term_id, offset, length)
        )

    def place(self, position: int) -> tuple[int, int]:
        """Return the term id and term offset of a position."""
        log = self.pair.log
        term_id = (log.initial_term_id + position // log.term_length + 2**31) % 2**32 - 2**31
        return term_id, position % log.term_length

    def command(self, *words: int) -> None:
        """Queue a command of the conductor."""
        record = handoff.make_record()
        record[: len(words)] = words
        assert handoff.put(self.state.commands, record)

    def events(self, words: int = 2) -> list[tuple[int, ...]]:
        """Return the first words of each event of the sender."""
        record, found = handoff.make_record(), []
        while handoff.take(self.state.events, record):
            found.append(tuple(int(word) for word in record[:words]))
        return found

    def serve_destinations(self, mode: int, *addresses: SocketAddress) -> None:
        """Give the channel several destinations, with a bound socket that is not connected."""
        self.pair.links.mailboxes[0].peer_length = 0
        self.record.route = network_publication.TO_DESTINATIONS
        self.record.is_group = 1
        self.state.endpoints[0].destinations_mode = mode
        self.begin()
        for number, address in enumerate(addresses):
            self.command_address(sender_state.ADD_DESTINATION, 100 + number, address)
            self.turn()

    def command_address(self, operation: int, registration_id: int, address: SocketAddress) -> None:
        """Queue a command of the conductor that contains an address."""
        length, words = name_words(address)
        self.command(operation, 0, registration_id, length, *words)

    def offer(self, *lengths: int) -> None:
        """Publish messages of these payload lengths regardless of the limit."""
        for length in lengths:
            counters.set(self.pair.values, PUB_LMT, 1 << 60)
            message = bytes([length & 0xFF]) * length
            outcome = self.pair.offer(message)
            if outcome == publication_result.ADMIN_ACTION:
                outcome = self.pair.offer(message)
            assert outcome > 0

    def fill_to(self, position: int) -> None:
        """Publish and send frames of 1024 bytes one by one, up to a position."""
        for at in range(self.pair.log.producer_position(), position, 1024):
            self.offer(1024 - 32)
            self.deliver_status(at, 1024)
            self.turn()
            self.turn()
        self.turn()
        self.turn()
        assert self.value(SND_POS) == position

    def value(self, counter_id: int) -> int:
        return self.pair.value(counter_id)

    @property
    def positions(self) -> tuple[int, int]:
        """(snd-pos, snd-lmt)."""
        return self.value(SND_POS), self.value(SND_LMT)

    def is_connected(self) -> bool:
        return bool(descriptor.is_connected_acquire(self.pair.log.log, self.pair.log.meta_at))

    def plant(self, position: int, length: int) -> None:
        """Write a frame of the stream at the log offset of a position."""
        term_id, offset = self.place(position)
        fields = (length, 0, 0xC0, wire.DATA, offset, SESSION_ID, STREAM_ID, term_id, 0)
        at = self.pair.log.base(position) + offset
        self.pair.log.log[at : at + 32] = np.frombuffer(wire.pack("data", *fields), np.uint8)

    def bytes_of(self, position: int, length: int) -> bytes:
        """Return bytes of the publication's log."""
        at = self.pair.log.base(position) + position % self.pair.log.term_length
        return self.pair.log.log[at : at + length].tobytes()


def kind(datagram: bytes) -> int:
    """The frame's type code."""
    return int.from_bytes(datagram[6:8], "little")


def kinds(datagrams: list[bytes]) -> list[str]:
    """Return the names of the datagrams' frame types."""
    names = {wire.SETUP: "setup", wire.PAD: "pad", wire.RTTM: "rttm"}
    return [
        "heartbeat"
        if kind(item) == wire.DATA and not any(item[:4])
        else names.get(kind(item), "data")
        for item in datagrams
    ]


def retire(rig: SendingRig) -> None:
    """Let the sender remove its publication."""
    rig.command(sender_state.REMOVE_PUBLICATION, SLOT)
    rig.turn()
