"""An attack with mutated commands on a live driver that also has healthy clients.

    commands of all 18 kinds --some bytes mutated-->  ring --> driver --> broadcast --> checked
    invalid records, claims never committed ----------^

Checks: the driver answers only ids that were sent; the error log stays in its file; the healthy
clients' streams stay intact and new ones can be opened; and when the hostile clients have gone,
none of their resources is left.
"""

import re
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.fuzz.world import MS, World, resident_kib, world
from tests.unit.driver.media_driver.invoked_driver import HOST
from windtunnel.driver.base.atomics import put_i64
from windtunnel.driver.cnc import broadcast, ring_buffer, ring_buffer_reader
from windtunnel.driver.cnc.cnc_file import open_existing
from windtunnel.driver.cnc.error_log import read_errors
from windtunnel.driver.command.client import ClientTimeout
from windtunnel.driver.command.codec import decode_response
from windtunnel.driver.command.response import ErrorResponse
from windtunnel.harness.fuzz.commands import REGULAR_IDS_FROM, Hostile
from windtunnel.harness.fuzz.streams import KINDS, Kind

EPOCH = 20_000
DRIVER_TURNS = 5
"""Turns of the driver alone, before a turn of the driver, clients and streams."""
DEFECT = re.compile(r"[A-Z]\w*(?:Error|Exception|Iteration): ")
"""Error message of a driver in which a command has caused an unexpected exception."""
GROWTH_KIB_MAX = 24 * 1024
HEALTHY_KINDS = tuple(kind for kind in KINDS if kind.name in ("unicast", "spied", "ipc", "dynamic"))


class Listener:
    """Reads all of the driver's responses, with the client that each is for."""

    def __init__(self, to_clients: np.ndarray, sent: set[int]) -> None:
        self._buffer, self._sent_ids = to_clients, sent
        self._receiver = broadcast.make_receiver(to_clients)
        self._scratch = broadcast.make_scratch(to_clients)
        self.received = 0

    def listen(self) -> None:
        """Read all responses since the last call; a response without a request is an error."""
        while True:
            type_id, length = broadcast.receive(self._buffer, self._receiver, self._scratch)
            if type_id == broadcast.NO_MESSAGE:
                return
            assert type_id > 0, f"the broadcast returned {type_id}"
            message = decode_response(type_id, self._scratch[:length])
            self.received += 1
            if isinstance(message, ErrorResponse):
                assert DEFECT.match(message.message) is None, f"a defect of the driver: {message}"
            names = ("offending_command_correlation_id", "correlation_id", "registration_id")
            for name in ("client_id",) if isinstance(message, ClientTimeout) else names:
                value = getattr(message, name, None)
                if value is not None:
                    self._check(value, message)
                    break

    def _check(self, value: int, message: object) -> None:
        # The driver's own ids, of images, are in the range of the healthy clients' ids.
        assert value in self._sent_ids or value >= REGULAR_IDS_FROM, (
            f"a response without a request: {message}"
        )


def attack(
    folder: Path,
    count: int,
    seed: int,
    report: Callable[[str], object] = print,
    kinds: tuple[Kind, ...] = HEALTHY_KINDS,
) -> int:
    """Send `count` mutated commands. Returns how many; raises AssertionError."""
    report(f"commands: count={count} seed={seed}")
    with world(folder, seed) as made:
        cnc = open_existing(made.folder, writable=True)
        ring = cnc.to_driver
        next_id = ring.size - ring_buffer.TRAILER_LENGTH + ring_buffer.CORRELATION_ID
        put_i64(ring, next_id, REGULAR_IDS_FROM)
        hostile = Hostile(seed, HOST.host)
        # Static counters are never freed, so they are added before resources are counted.
        aeron = made.connect()
        for registration_id in (1, 2, 3):
            aeron.add_static_counter(1101, registration_id, b"key", "static")
        made.open_checked(aeron, kinds)
        made.let_time_out(5_000 * MS)
        before, memory, sent, began = made.held(), 0, 0, time.monotonic()
        listener = Listener(cnc.to_clients, hostile.said)
        listener.listen()
        epoch = 0
        while sent < count:
            sent += _epoch(made, hostile, listener, ring, min(EPOCH, count - sent))
            _check_nothing_is_left(made, before)
            listener.listen()
            hostile.said.clear()
            epoch += 1
            memory = resident_kib() if epoch == 2 else memory
            report(
                f"sent={sent} received={listener.received} "
                f"errors={len(read_errors(cnc.error_log))} "
                f"seconds={time.monotonic() - began:.0f} memory_kib={resident_kib()}"
            )
        if epoch > 2:
            grown = resident_kib() - memory
            assert grown <= GROWTH_KIB_MAX, f"memory grew by {grown} KiB"
        assert not made.driver.wait(0), "a client without permission terminated the driver"
        fresh = made.connect()
        assert fresh.add_publication("aeron:udp?endpoint=10.0.0.1:39000", 1).session_id
        assert not made.errors, made.errors[:3]
        defects = [item.text for item in read_errors(cnc.error_log) if "Traceback" in item.text]
        assert not defects, defects[:3]
        cnc.close()
    return sent


def _epoch(made: World, hostile: Hostile, listener: Listener, ring: np.ndarray, count: int) -> int:
    sent, turns, stuck = 0, 0, 0
    while sent < count:
        for _ in range(hostile.random.randrange(1, 12)):
            type_id, content = hostile.command()
            source = content if content.size else np.zeros(1, np.uint8)
            status = ring_buffer.write(ring, type_id, source, 0, content.size)
            sent += status == ring_buffer.OK
            stuck = stuck + 1 if status == ring_buffer.INSUFFICIENT_CAPACITY else 0
        if hostile.random.randrange(2_000) == 0:
            hostile.break_ring(ring)
        if hostile.random.randrange(500) == 0:
            _starve(made, hostile, ring)
        is_slow = hostile.random.randrange(40) == 0
        # The driver executes one command per turn. Half of the time is for the healthy clients.
        for _ in range(0 if is_slow else DRIVER_TURNS):
            made.driver_turn(MS // 4)
        made.turn(100 * MS if is_slow else MS // 4)
        # A record that is never committed blocks the ring until the unblock timeout.
        if stuck > 200:
            for _ in range(120):
                made.turn(100 * MS)
        assert stuck < 5_000, "the ring was never unblocked"
        listener.listen()
        turns += 1
        if turns % 100 == 0:
            made.check_streams()
    _empty(made, ring, listener)
    return sent


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
    """Let the driver read all commands; an uncommitted claim blocks it for the unblock timeout."""
    for _ in range(200_000):
        if ring_buffer.consumer_position(ring) == ring_buffer.producer_position(ring):
            return
        made.turn(MS if ring_buffer_reader.has_message(ring) else 100 * MS)
        listener.listen()
    raise AssertionError("the ring was never emptied")


def _check_nothing_is_left(made: World, before: dict[str, int]) -> None:
    for _ in range(4):
        made.let_time_out()
        made.settle()
        after = made.held()
        if after == before:
            return
    raise AssertionError({key: (before[key], after[key]) for key in before
                          if before[key] != after[key]})  # fmt: skip
