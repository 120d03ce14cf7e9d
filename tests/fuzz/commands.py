"""A storm of mutated commands in the ring of a live driver, with healthy clients beside it.

    commands of all 18 kinds --some bytes mutated-->  ring --> driver --> broadcast --> checked
    invalid records, claims never committed ----------^

Checks: the driver answers only ids that were sent; the error log stays in its file; the healthy
clients' streams stay intact and new ones can be opened; and when the hostile clients have gone,
none of their resources is left.
"""

import random
import re
import struct
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.fuzz import mutation
from tests.fuzz.streams import KINDS, Kind
from tests.fuzz.world import MS, World, resident_kib, world
from windtunnel.driver.base.atomics import put_i32, put_i64
from windtunnel.driver.cnc import broadcast, ring_buffer
from windtunnel.driver.cnc.cnc_file import open_existing
from windtunnel.driver.cnc.error_log import read_errors
from windtunnel.driver.command.client import ClientClose, ClientKeepalive, ClientTimeout
from windtunnel.driver.command.codec import COMMANDS, decode_response
from windtunnel.driver.command.command_type import CommandType
from windtunnel.driver.command.counter import AddCounter, AddStaticCounter, RemoveCounter
from windtunnel.driver.command.destination import (
    AddDestination,
    AddReceiveDestination,
    RemoveDestination,
    RemoveDestinationById,
    RemoveReceiveDestination,
)
from windtunnel.driver.command.driver import TerminateDriver
from windtunnel.driver.command.image import RejectImage
from windtunnel.driver.command.publication import (
    AddExclusivePublication,
    AddPublication,
    GetNextAvailableSessionId,
    RemovePublication,
)
from windtunnel.driver.command.response import ErrorResponse
from windtunnel.driver.command.subscription import AddSubscription, RemoveSubscription

EPOCH = 20_000
HOSTILE_CLIENTS = 12
DEFECT = re.compile(r"[A-Z]\w*(?:Error|Exception|Iteration): ")
"""How the driver answers a command when it met what nobody thought of."""
LIFE = 300
"""Commands that a hostile client lives for."""
GROWTH_KIB_MAX = 24 * 1024
HEALTHY_FROM = 1 << 40
"""Correlation ids of the healthy ones begin here: no spoilt field hits one by chance."""
HEALTHY_KINDS = tuple(kind for kind in KINDS if kind.name in ("unicast", "spied", "ipc", "dynamic"))
OTHERS = [int(code) for code in COMMANDS if code != CommandType.ADD_STATIC_COUNTER]
CHANNELS = [
    "aeron:udp?endpoint=10.0.0.1:{port}|term-length=64k",
    "aeron:udp?endpoint=10.0.0.1:{port}",
    "aeron:udp?endpoint=10.0.0.1:{port}|session-id={small}|term-length=64k",
    "aeron:udp?endpoint=10.0.0.1:{port}|mtu=8k|term-length=128k|linger=0",
    "aeron:udp?endpoint=10.0.0.1:{port}|reliable=false|rejoin=false|tether=false|cc=cubic",
    "aeron:udp?control=10.0.0.1:{port}|control-mode=dynamic|fc=tagged,g:5/2|term-length=64k",
    "aeron:udp?control-mode=manual|term-length=64k",
    "aeron:udp?control=10.0.0.1:{port}|control-mode=manual|term-length=64k",
    "aeron:udp?control=10.0.0.1:{port}|control-mode=response",
    "aeron:udp?control=10.0.0.1:{port}|control-mode=response|response-correlation-id={small}",
    "aeron:udp?endpoint=10.0.0.1:{port}|init-term-id=5|term-id=5|term-offset=64|term-length=64k",
    "aeron:udp?endpoint=10.0.0.1:{port}|tags={small},{small}|term-length=64k",
    "aeron:udp?tags={small}",
    "aeron-spy:aeron:udp?endpoint=10.0.0.1:{port}",
    "aeron:ipc?term-length=64k",
    "aeron:ipc",
    "aeron:ipc?session-id={small}|init-term-id=1|term-id=2|term-offset=0|term-length=64k",
    "aeron:udp?endpoint=10.0.0.1:{port}|channel-rcv-ts-offset=0|gtag={small}|group=true",
    "aeron:udp?endpoint=224.20.30.39:{port}|interface=10.0.0.1",
    "aeron:udp?endpoint=nowhere.invalid:{port}",
    "aeron:udp?endpoint=10.0.0.1:0",
    "aeron:udp?endpoint=[::1]:{port}",
    # Each of these ended the driver once.
    "aeron:ipc?session-id=0x" + 3600 * "f",
    "aeron:udp?endpoint=[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:{port}",
    "aeron:udp?endpoint=[fe80::1%4294967296]:{port}",
    "aeron:udp?endpoint=[::1]:{port}|control=[fe80::1%4294967296]:{port}",
    "aeron-spy:aeron:ipc",
    "aeron:udp?endpoint=10.0.0.1:{port}|nak-delay=100000000s",
]


class Hostile:
    """The hostile clients: their ids, their resources, and their next command."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.rng = np.array([seed % 2_147_483_562 + 1, seed * 7 % 2_147_483_398 + 1], np.int64)
        self._content = np.zeros(1 << 17, np.uint8)
        self._clients = [self.random.randrange(1, 1 << 30) for _ in range(HOSTILE_CLIENTS)]
        self.said: set[int] = set()
        """Correlation and client ids that the driver may speak of."""
        self._recent = [1]
        self._next_id = 1

    def command(self) -> tuple[int, np.ndarray]:
        """The type and the bytes of the next command."""
        choose = self.random
        if choose.randrange(LIFE) == 0:
            self._clients[choose.randrange(HOSTILE_CLIENTS)] = choose.randrange(1, 1 << 30)
        client_id = choose.choice(self._clients)
        self._next_id += 1
        command = self._whole(choose.choice(list(COMMANDS)), client_id, self._next_id)
        self._recent = [*self._recent[-40:], self._next_id]
        content = command.encode()
        self._content[: len(content)] = np.frombuffer(content, np.uint8)
        type_id = int(command.TYPE_ID)
        if type_id == CommandType.ADD_STATIC_COUNTER:
            # What these make is never taken back, so they are cut at most.
            length = choose.randrange(len(content)) if choose.randrange(2) else len(content)
        else:
            length = int(mutation.spoil_command(self.rng, self._content, len(content), 1 << 16))
        if type_id != CommandType.ADD_STATIC_COUNTER and choose.randrange(30) == 0:
            type_id = choose.choice([*OTHERS, 0x13, 0xF01, 1 << 20, (1 << 31) - 1])
        said = self._content[: max(length, 16)].tobytes()
        self.said.update(struct.unpack_from("<qq", said))
        return type_id, self._content[:length]

    def _whole(self, type_id: int, client_id: int, new: int):
        choose = self.random
        other, stream = choose.choice(self._recent), choose.randrange(1, 5)
        channel = choose.choice(CHANNELS).format(
            port=choose.randrange(40_000, 40_006), small=choose.choice([other, 1, 2, 7])
        )
        makers: dict[int, Callable[[], object]] = {
            CommandType.ADD_PUBLICATION: lambda: AddPublication(client_id, new, stream, channel),
            CommandType.ADD_EXCLUSIVE_PUBLICATION: lambda: AddExclusivePublication(
                client_id, new, stream, channel
            ),
            CommandType.REMOVE_PUBLICATION: lambda: RemovePublication(
                client_id, new, other, bool(new % 2)
            ),
            CommandType.ADD_SUBSCRIPTION: lambda: AddSubscription(client_id, new, stream, channel),
            CommandType.REMOVE_SUBSCRIPTION: lambda: RemoveSubscription(client_id, new, other),
            CommandType.CLIENT_KEEPALIVE: lambda: ClientKeepalive(client_id, new),
            CommandType.CLIENT_CLOSE: lambda: (ClientClose if new % 8 == 0 else ClientKeepalive)(
                client_id, new
            ),
            CommandType.ADD_DESTINATION: lambda: AddDestination(client_id, new, other, channel),
            CommandType.REMOVE_DESTINATION: lambda: RemoveDestination(
                client_id, new, other, channel
            ),
            CommandType.REMOVE_DESTINATION_BY_ID: lambda: RemoveDestinationById(
                client_id, new, other, choose.choice(self._recent)
            ),
            CommandType.ADD_RECEIVE_DESTINATION: lambda: AddReceiveDestination(
                client_id, new, other, channel
            ),
            CommandType.REMOVE_RECEIVE_DESTINATION: lambda: RemoveReceiveDestination(
                client_id, new, other, channel
            ),
            CommandType.ADD_COUNTER: lambda: AddCounter(client_id, new, 1100, b"key", channel),
            CommandType.REMOVE_COUNTER: lambda: RemoveCounter(client_id, new, other),
            # The driver keeps static counters for good: only a few may ever be asked for.
            CommandType.ADD_STATIC_COUNTER: lambda: AddStaticCounter(
                client_id, new, 1 + new % 3, 1101, b"key", "static"
            ),
            CommandType.TERMINATE_DRIVER: lambda: TerminateDriver(client_id, new, b"please"),
            CommandType.REJECT_IMAGE: lambda: RejectImage(client_id, new, other, 0, "no" * stream),
            CommandType.GET_NEXT_AVAILABLE_SESSION_ID: lambda: GetNextAvailableSessionId(
                client_id, new, stream
            ),
        }
        return makers[type_id]()

    def break_ring(self, ring: np.ndarray) -> None:
        """Write a record into the ring that no client library would write."""
        choose = self.random
        length = choose.choice([0, 8, 40, 200])
        at = int(ring_buffer.claim(ring, 4, length))
        if at < 0:
            return
        record = at - ring_buffer.RECORD_HEADER_LENGTH
        what = choose.randrange(7)
        if what == 0:
            # Claimed and never written, as by a client that died: the length stays negative.
            return
        if what == 1:
            # The same, a moment earlier: only the tail has moved.
            put_i32(ring, record + ring_buffer.LENGTH, 0)
            return
        if what == 2:
            ring_buffer.abort(ring, at)
            return
        if what == 3:
            put_i32(ring, record + ring_buffer.TYPE, choose.choice([0, -1, -2, -(1 << 31)]))
            ring_buffer.commit(ring, at)
            return
        lengths = [1, 7, 9, 1 << 20, (1 << 31) - 1, (1 << 31) - 8, -(1 << 31), -1, -7, -(1 << 20)]
        put_i32(ring, record + ring_buffer.LENGTH, choose.choice(lengths))


class Listener:
    """Reads all of the driver's responses, with the client that each is for."""

    def __init__(self, to_clients: np.ndarray, said: set[int]) -> None:
        self._buffer, self._said = to_clients, said
        self._receiver = broadcast.make_receiver(to_clients)
        self._scratch = broadcast.make_scratch(to_clients)
        self.heard = 0

    def listen(self) -> None:
        """Read all responses since the last call; a response without a request is an error."""
        while True:
            type_id, length = broadcast.receive(self._buffer, self._receiver, self._scratch)
            if type_id == broadcast.NO_MESSAGE:
                return
            assert type_id > 0, f"the broadcast answered {type_id}"
            message = decode_response(type_id, self._scratch[:length])
            self.heard += 1
            if isinstance(message, ErrorResponse):
                assert DEFECT.match(message.message) is None, f"a defect of the driver: {message}"
            names = ("offending_command_correlation_id", "correlation_id", "registration_id")
            for name in ("client_id",) if isinstance(message, ClientTimeout) else names:
                value = getattr(message, name, None)
                if value is not None:
                    self._check(value, message)
                    break

    def _check(self, value: int, message: object) -> None:
        # The driver takes ids of its own, for images, from the healthy ones' numbers.
        assert value in self._said or value >= HEALTHY_FROM, f"nobody asked for {message}"


def storm(
    folder: Path,
    count: int,
    seed: int,
    tell: Callable[[str], object] = print,
    kinds: tuple[Kind, ...] = HEALTHY_KINDS,
) -> int:
    """Send `count` mutated commands. Returns how many; raises AssertionError."""
    tell(f"commands: count={count} seed={seed}")
    with world(folder, seed) as made:
        cnc = open_existing(made.folder, writable=True)
        ring = cnc.to_driver
        put_i64(ring, ring.size - ring_buffer.TRAILER_LENGTH + ring_buffer.CORRELATION_ID,
                HEALTHY_FROM)  # fmt: skip
        hostile = Hostile(seed)
        # Static counters stay by contract, so they are there from the beginning.
        aeron = made.connect()
        for registration_id in (1, 2, 3):
            aeron.add_static_counter(1101, registration_id, b"key", "static")
        made.open_calm(aeron, kinds)
        made.quieten(5_000 * MS)
        before, memory, said, began = made.held(), 0, 0, time.monotonic()
        listener = Listener(cnc.to_clients, hostile.said)
        listener.listen()
        epoch = 0
        while said < count:
            said += _epoch(made, hostile, listener, ring, min(EPOCH, count - said))
            _check_nothing_is_left(made, before)
            listener.listen()
            hostile.said.clear()
            epoch += 1
            memory = resident_kib() if epoch == 2 else memory
            tell(
                f"said={said} heard={listener.heard} errors={len(read_errors(cnc.error_log))} "
                f"seconds={time.monotonic() - began:.0f} memory_kib={resident_kib()}"
            )
        if epoch > 2:
            grown = resident_kib() - memory
            assert grown <= GROWTH_KIB_MAX, f"memory grew by {grown} KiB"
        assert not made.driver.wait(0), "a client without the right ended the driver"
        fresh = made.connect()
        assert fresh.add_publication("aeron:udp?endpoint=10.0.0.1:39000", 1).session_id
        assert not made.errors, made.errors[:3]
        defects = [item.text for item in read_errors(cnc.error_log) if "Traceback" in item.text]
        assert not defects, defects[:3]
        cnc.close()
    return said


def _epoch(made: World, hostile: Hostile, listener: Listener, ring: np.ndarray, count: int) -> int:
    said, turns, stuck = 0, 0, 0
    while said < count:
        for _ in range(hostile.random.randrange(1, 12)):
            type_id, content = hostile.command()
            source = content if content.size else np.zeros(1, np.uint8)
            status = ring_buffer.write(ring, type_id, source, 0, content.size)
            said += status == ring_buffer.OK
            stuck = stuck + 1 if status == ring_buffer.INSUFFICIENT_CAPACITY else 0
        if hostile.random.randrange(2_000) == 0:
            hostile.break_ring(ring)
        if hostile.random.randrange(500) == 0:
            _starve(made, hostile, ring)
        is_slow = hostile.random.randrange(40) == 0
        for _ in range(1 if is_slow else 6):
            made.turn(100 * MS if is_slow else MS // 4)
        # A record that nobody finishes holds the ring up until the time-out; then it must go on.
        if stuck > 200:
            for _ in range(120):
                made.turn(100 * MS)
        assert stuck < 5_000, "the ring never came free again"
        listener.listen()
        turns += 1
        if turns % 100 == 0:
            made.check_calm()
    _empty(made, ring, listener)
    return said


def _starve(made: World, hostile: Hostile, ring: np.ndarray) -> None:
    """Send commands to a driver that has almost no counters left."""
    manager = made.driver.conductor.components.user_counters._manager
    capacity = manager.capacity
    manager.capacity = manager._high_water_mark + hostile.random.randrange(6)
    for _ in range(20):
        type_id, content = hostile.command()
        source = content if content.size else np.zeros(1, np.uint8)
        ring_buffer.write(ring, type_id, source, 0, content.size)
        made.turn(MS // 4)
    manager.capacity = capacity


def _empty(made: World, ring: np.ndarray, listener: Listener) -> None:
    """Let the driver read everything; an uncommitted claim blocks it for the unblock timeout."""
    for _ in range(200_000):
        if ring_buffer.consumer_position(ring) == ring_buffer.producer_position(ring):
            return
        made.turn(MS if ring_buffer.has_message(ring) else 100 * MS)
        listener.listen()
    raise AssertionError("the ring was never emptied")


def _check_nothing_is_left(made: World, before: dict[str, int]) -> None:
    for _ in range(4):
        made.quieten()
        made.settle()
        after = made.held()
        if after == before:
            return
    raise AssertionError({key: (before[key], after[key]) for key in before
                          if before[key] != after[key]})  # fmt: skip
