"""Generates the input of hostile clients: mutated commands, and invalid ring buffer records.

commands of all 18 types --some bytes mutated-->  the driver's command ring buffer
invalid records, claims that are never committed --^
"""

import random
import struct
from collections.abc import Callable

import numpy as np

from windtunnel.driver.base.atomics import put_i32
from windtunnel.driver.cnc import ring_buffer
from windtunnel.driver.command.client import ClientClose, ClientKeepalive
from windtunnel.driver.command.codec import COMMANDS, Command
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
from windtunnel.driver.command.subscription import AddSubscription, RemoveSubscription
from windtunnel.harness.fuzz import mutation

HOSTILE_CLIENTS = 12
LIFE = 300
"""Average number of commands after which a hostile client is replaced by another one."""
REGULAR_IDS_FROM = 0x2E5B_17A6 << 32
"""First correlation id of the regular clients. All bytes of its upper half differ from 0, and at
least three of them from each value that a mutation writes. So a command, which has at most three
mutations, cannot contain it.
"""
OTHERS = [int(code) for code in COMMANDS if code != CommandType.ADD_STATIC_COUNTER]
CHANNELS = [
    "aeron:udp?endpoint={host}:{port}|term-length=64k",
    "aeron:udp?endpoint={host}:{port}",
    "aeron:udp?endpoint={host}:{port}|session-id={small}|term-length=64k",
    "aeron:udp?endpoint={host}:{port}|mtu=8k|term-length=128k|linger=0",
    "aeron:udp?endpoint={host}:{port}|reliable=false|rejoin=false|tether=false|cc=cubic",
    "aeron:udp?control={host}:{port}|control-mode=dynamic|fc=tagged,g:5/2|term-length=64k",
    "aeron:udp?control-mode=manual|term-length=64k",
    "aeron:udp?control={host}:{port}|control-mode=manual|term-length=64k",
    "aeron:udp?control={host}:{port}|control-mode=response",
    "aeron:udp?control={host}:{port}|control-mode=response|response-correlation-id={small}",
    "aeron:udp?endpoint={host}:{port}|init-term-id=5|term-id=5|term-offset=64|term-length=64k",
    "aeron:udp?endpoint={host}:{port}|tags={small},{small}|term-length=64k",
    "aeron:udp?tags={small}",
    "aeron-spy:aeron:udp?endpoint={host}:{port}",
    "aeron:ipc?term-length=64k",
    "aeron:ipc",
    "aeron:ipc?session-id={small}|init-term-id=1|term-id=2|term-offset=0|term-length=64k",
    "aeron:udp?endpoint={host}:{port}|channel-rcv-ts-offset=0|gtag={small}|group=true",
    "aeron:udp?endpoint=224.20.30.39:{port}|interface={host}",
    "aeron:udp?endpoint=nowhere.invalid:{port}",
    "aeron:udp?endpoint={host}:0",
    "aeron:udp?endpoint=[::1]:{port}",
    # Each of these once crashed the driver.
    "aeron:ipc?session-id=0x" + 3600 * "f",
    "aeron:udp?endpoint=[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:{port}",
    "aeron:udp?endpoint=[fe80::1%4294967296]:{port}",
    "aeron:udp?endpoint=[::1]:{port}|control=[fe80::1%4294967296]:{port}",
    "aeron-spy:aeron:ipc",
    "aeron:udp?endpoint={host}:{port}|nak-delay=100000000s",
]


class Hostile:
    """Generates the commands of several hostile clients."""

    def __init__(self, seed: int, host: str) -> None:
        self.random, self._host = random.Random(seed), host
        self.rng = np.array([seed % 2_147_483_562 + 1, seed * 7 % 2_147_483_398 + 1], np.int64)
        self._content = np.zeros(1 << 17, np.uint8)
        self._clients = [self.random.randrange(1, 1 << 30) for _ in range(HOSTILE_CLIENTS)]
        self.said: set[int] = set()
        """Correlation and client ids in the generated commands. The driver may send responses and
        events with these ids.
        """
        self._recent = [1]
        self._next_id = 1

    def command(self) -> tuple[int, np.ndarray]:
        """Generate the next command. Returns its type and its bytes."""
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
            # The driver never removes a static counter, so these commands are only truncated.
            length = choose.randrange(len(content)) if choose.randrange(2) else len(content)
        else:
            length = int(mutation.spoil_command(self.rng, self._content, len(content), 1 << 16))
        if type_id != CommandType.ADD_STATIC_COUNTER and choose.randrange(30) == 0:
            type_id = choose.choice([*OTHERS, 0x13, 0xF01, 1 << 20, (1 << 31) - 1])
        said = self._content[: max(length, 16)].tobytes()
        self.said.update(struct.unpack_from("<qq", said))
        return type_id, self._content[:length]

    def _whole(self, type_id: int, client_id: int, new: int) -> Command:
        choose = self.random
        other, stream = choose.choice(self._recent), choose.randrange(1, 5)
        channel = choose.choice(CHANNELS).format(
            host=self._host,
            port=choose.randrange(40_000, 40_006),
            small=choose.choice([other, 1, 2, 7]),
        )
        makers: dict[int, Callable[[], Command]] = {
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
            # The driver never removes a static counter, so only a few different ones are requested.
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
        """Write an invalid record to the command ring buffer, such as one with a wrong length or
        one that is never completed.
        """
        choose = self.random
        length = choose.choice([0, 8, 40, 200])
        at = int(ring_buffer.claim(ring, 4, length))
        if at < 0:
            return
        record = at - ring_buffer.RECORD_HEADER_LENGTH
        what = choose.randrange(7)
        if what == 0:
            # A claim that is never written, as if the client had died. Its length stays negative.
            return
        if what == 1:
            # A client that died one step earlier: the tail has moved, but the length is still 0.
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
