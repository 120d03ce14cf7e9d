"""A driver that the test steps, its clients, and two sets of streams of every kind.

checked     no accepted frame of them is forged; every message is checked
attacked    any datagram may be injected into them; they are closed and opened again
"""

import gc
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from tests.fuzz import transport
from tests.unit.driver.media_driver.invoked_driver import HOST, MS
from windtunnel.driver.base import system
from windtunnel.driver.base.clock import ManualClock
from windtunnel.driver.channel.resolver import UnknownHostError
from windtunnel.driver.client import ClientContext
from windtunnel.driver.client.aeron import Aeron
from windtunnel.driver.cnc.counters_reader import CountersReader
from windtunnel.driver.media import link
from windtunnel.driver.media.channel_sockets import LinkSockets
from windtunnel.driver.media.name_resolver import SystemResolver, numeric_address
from windtunnel.driver.media_driver.context import INVOKER, MIB, Context
from windtunnel.driver.media_driver.media_driver import MediaDriver
from windtunnel.harness.fuzz.streams import KINDS, Kind, Stream

MAILBOXES = 96
SESSION_LIMIT = 12
"""Maximum images per stream, so that a flood of sessions does not create a flood of files."""
MODES = {
    "nak_all_gaps": True,
    "gap_fill_datagrams": 4,
    "gap_fill_delay_ns": 20 * MS,
    "retransmit_ranges": True,
    # Less than the time for which `let_time_out` runs.
    "publication_linger_max_ns": 10_000 * MS,
}
"""Settings of the driver with which every stream has Windtunnel's modes of loss recovery."""
GROWING = (1, 2, 3, 4, 5, 12)
"""Types of position counters that never decrease: pub-lmt to sub-pos, pub-pos. Source: Aeron
1.53."""


KEY = struct.Struct("<8xii")
"""Session id and stream id in the key of a stream's counter."""


class NoNetwork(SystemResolver):
    """Resolves addresses and this machine's interfaces only: mutated names must not be looked
    up."""

    def resolve(self, host: str, key: str) -> tuple[str, int]:
        literal = numeric_address(host)
        if literal is None:
            raise UnknownHostError(f"{key}={host}: unknown host")
        return literal


class World:
    """Driver, clients and streams; `turn` steps all of them once."""

    def __init__(self, folder: Path, seed: int, settings: Mapping[str, Any]) -> None:
        self.folder, self.seed = folder / "aeron", seed
        self.clock = ManualClock()
        self.links = link.make_links(MAILBOXES, 1 << 18)
        self.driver = MediaDriver(
            Context(
                dir=self.folder,
                threading_mode=INVOKER,
                perform_storage_checks=False,
                counters_buffer_length=4 * MIB,
                stream_session_limit=SESSION_LIMIT,
                **settings,
            ),
            clock=self.clock,
            sockets=LinkSockets(self.links, HOST),
            resolver=NoNetwork(),
            links=self.links,
            seed=seed,
        )
        self.transport = transport.make_transport(MAILBOXES, seed, np.zeros((0, 2), np.int64))
        self.is_quiet, self.errors, self.clients = True, [], []
        self.checked: list[Stream] = []
        self.attacked: list[Stream] = []
        self._next_stream = 1000
        self._seen: dict[tuple[int, int], int] = {}

    def connect(self) -> Aeron:
        """Create one more client."""
        context = ClientContext(dir=self.folder, error_handler=self.errors.append)
        self.clients.append(Aeron(context=context, clock=self.clock, invoked=True))
        return self.clients[-1]

    def driver_turn(self, step_ns: int) -> None:
        """Step the driver and the transport; then advance the clock."""
        self.driver.invoke()
        transport.carry(self.links, self.transport)
        self.clock.advance(step_ns)

    def turn(self, step_ns: int = MS) -> None:
        """Step everything, publishers and subscribers included."""
        self.driver_turn(step_ns)
        for client in self.clients:
            client.invoke()
        for stream in self.checked:
            stream.offer(2)
            stream.poll()
        for stream in self.attacked:
            stream.offer(2)
            stream.pass_over()

    def open(self, aeron: Aeron, kinds: tuple[Kind, ...], first_port: int) -> list[Stream]:
        """Open streams of all these kinds and wait until they are connected."""
        opened = []
        for number, kind in enumerate(kinds):
            port = first_port + 4 * number
            ports = {"a": port, "b": port + 1, "c": port + 2, "here": HOST.host}
            self._next_stream += 2
            stream = Stream(aeron, kind, ports, self._next_stream)
            self._until(lambda stream=stream: stream.is_open, f"{kind.name} to connect")
            if kind.is_answered:
                stream.answer(aeron, ports)
            opened.append(stream)
        return opened

    def _until(self, condition, what: str, turns: int = 4_000) -> None:
        for _ in range(turns):
            if condition():
                return
            self.turn(5 * MS)
        raise AssertionError(f"expected {what}, timed out; errors: {self.errors[-3:]}")

    def open_checked(self, aeron: Aeron, kinds: tuple[Kind, ...] = KINDS) -> None:
        """Open the streams that must stay intact, and guard them."""
        self.checked = self.open(aeron, kinds, 20_000)
        keys = [(item.session_id, item.stream_id) for item in self.checked]
        answers = [item.answering for item in self.checked if item.answering is not None]
        keys += [(item.session_id, item.stream_id) for item in answers]
        self.transport = self.transport._replace(guarded=np.array(keys, np.int64))

    def check_streams(self) -> None:
        """Check that no checked subscriber found an error and no position decreased."""
        faults = [fault for stream in self.checked for fault in stream.faults]
        assert not faults, faults[:3]
        checked = {(stream.session_id, stream.stream_id) for stream in self.checked}
        reader: CountersReader = self.clients[0].counters
        for item in reader:
            if item.type_id not in GROWING:
                continue
            if KEY.unpack_from(item.key) in checked:
                value = reader.value(item.counter_id)
                mark = (item.counter_id, item.registration_id)
                assert value >= self._seen.get(mark, value), f"{item.label} went back to {value}"
                self._seen[mark] = value

    def settle(self) -> None:
        """Bring every checked stream to its end, without faults."""
        for stream in self.checked:
            stream.offer(1)
        ends = [stream.next_number for stream in self.checked]

        def is_done() -> bool:
            return all(
                stream.expected >= end for stream, end in zip(self.checked, ends, strict=True)
            )

        names = [stream.kind.name for stream in self.checked]
        try:
            self._until(is_done, "the checked streams to deliver")
        except AssertionError as error:
            behind = [
                (name, stream.expected, end)
                for name, stream, end in zip(names, self.checked, ends, strict=True)
                if stream.expected < end
            ]
            raise AssertionError(f"{error}; behind: {behind}") from None
        self.check_streams()

    def held(self) -> dict[str, int]:
        """The amount of each resource that can leak."""
        # Objects of earlier tests that await the garbage collector are not counted.
        gc.collect()
        components, resources = self.driver.conductor.components, self.driver._resources
        reader: CountersReader = self.clients[0].counters
        agent = resources.receiver.agent[0]
        return {
            "images": len(components.images.images),
            "network publications": len(components.network.publications),
            "ipc publications": len(components.ipc.publications),
            "counters": sum(1 for _ in reader),
            "log files": len(list(self.folder.rglob("*.logbuffer"))),
            "files open": files_open(self.folder),
            "logs mapped": Path("/proc/self/maps").read_text().count(f"{self.folder}/"),
            "images of the receiver": int(agent.image_count),
            "sockets of the receiver": int(agent.endpoint_count),
            "sets-up pending": int(agent.pending_count),
            "images tracked": int(resources.conductor.agent[0].image_count),
            "publications of the sender": int(resources.sender.agent[0].publication_count),
            "sockets of the sender": int(resources.sender.agent[0].endpoint_count),
            "mailboxes": int(self.links.mailboxes.is_open.sum()),
        }

    def let_time_out(self, duration_ns: int = 45_000 * MS) -> None:
        """Let all resources time out that no client keeps alive.

        An agent reads one command per turn, so there are several turns between two readings of the
        clock.
        """
        for _ in range(duration_ns // (100 * MS)):
            self.turn(100 * MS)
            for _ in range(5):
                self.driver_turn(0)

    def close(self) -> None:
        """Close the clients, then the driver."""
        for client in self.clients:
            client.close()
        self.driver.close()


def files_open(folder: Path) -> int:
    """Return how many of the folder's files this process has open.

    Other files do not count: an earlier test may have left a thread that still uses sockets.
    """
    count = 0
    for entry in Path("/proc/self/fd").iterdir():
        # The listing's own descriptor is closed already.
        with suppress(FileNotFoundError):
            count += entry.readlink().is_relative_to(folder)
    return count


def resident_kib() -> int:
    """Return the resident anonymous memory of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1])
    raise AssertionError("expected a line RssAnon in /proc/self/status, found none")


@contextmanager
def world(folder: Path, seed: int, **settings: Any) -> Iterator[World]:
    """A world in which a blocking client steps the driver, which has these settings."""
    made = World(folder, seed, settings)
    with patch.object(system, "sleep_ns", lambda ns: made.driver_turn(MS)):
        made.driver_turn(MS)
        try:
            yield made
        finally:
            made.close()


assert all(one.name != other.name for one, other in pairwise(KINDS))
