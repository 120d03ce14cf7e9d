"""Streams that are open during an attack. Half of them are attacked, and the other half are
checked.

    checked     every message is checked; the attack sends no frame that such a stream would accept
    attacked    any frame is sent to these streams, and their files are overwritten; new each epoch

Session ids depend only on the epoch, and initial term ids are fixed, so recorded frames still match
the streams when an attack is replayed.
"""

import contextlib
import re
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.client import Aeron, ClientContext
from windtunnel.driver.client.errors import ClientError
from windtunnel.harness.bench.ports import free_ports
from windtunnel.harness.fuzz.finding import Violation
from windtunnel.harness.fuzz.frames import Target
from windtunnel.harness.fuzz.streams import KINDS, SMALL, Kind, Stream

LOOPBACK = "127.0.0.1"
GROUP = "224.20.30.39"
PORTS_PER_STREAM = 4
PORT_BLOCKS = 3
"""Number of port blocks that successive epochs use in turn, because the driver closes the sockets
of closed streams with a delay.
"""
FIRST_TERM_ID = 100
PATIENCE_S = 30.0
"""Maximum time for a stream to connect or to deliver its last messages. It is far longer than any
Aeron timeout.
"""
NETWORK_KINDS = (
    *(kind for kind in KINDS if kind.name not in ("spied", "answered")),
    Kind(
        "multicast",
        f"aeron:udp?endpoint={GROUP}:{{a}}|interface={{here}}|fc=max{SMALL}",
        f"aeron:udp?endpoint={GROUP}:{{a}}|interface={{here}}",
    ),
    Kind("ipv6", f"aeron:udp?endpoint=[::1]:{{a}}{SMALL}", "aeron:udp?endpoint=[::1]:{a}"),
)
_ADDRESS = re.compile(r"(?:endpoint|control)=\[?([0-9a-f.:]+?)\]?:(\d+)")


class CheckedStreams:
    """Two clients of an attacked driver: one has the checked streams, one the attacked ones."""

    def __init__(self, directory: Path) -> None:
        self.errors: list[Exception] = []
        self.clients = [self._connect(directory) for _ in range(2)]
        self.first_port = free_ports((1 + PORT_BLOCKS) * PORTS_PER_STREAM * len(NETWORK_KINDS))[0]
        self._first_attacked = len(NETWORK_KINDS)
        self.checked: list[Stream] = []
        self.attacked: list[Stream] = []

    def _connect(self, directory: Path) -> Aeron:
        context = ClientContext(
            dir=directory, driver_timeout_ms=int(PATIENCE_S * 1_000),
            error_handler=self.errors.append, use_conductor_agent_invoker=True,
        )  # fmt: skip
        return Aeron(context=context)

    def ports(self, number: int) -> dict[str, int | str]:
        """Return the values for the placeholders in a stream's channels: its ports and its
        address.
        """
        first = self.first_port + PORTS_PER_STREAM * number
        return {"a": first, "b": first + 1, "c": first + 2, "here": LOOPBACK}

    def open_checked(self) -> None:
        """Open the checked streams, which are not attacked and must stay intact."""
        self.checked = [
            self._open(self.clients[0], kind, number, 1_000 + number)
            for number, kind in enumerate(NETWORK_KINDS)
        ]

    def open_attacked(self, epoch: int) -> None:
        """Open the streams that are attacked in this epoch."""
        first = 1_000_000 + 1_000 * (epoch % 1_000)
        self._first_attacked = len(NETWORK_KINDS) * (1 + epoch % PORT_BLOCKS)
        self.attacked = [
            self._open(self.clients[1], kind, self._first_attacked + number, first + number)
            for number, kind in enumerate(NETWORK_KINDS)
        ]

    def _open(self, aeron: Aeron, kind: Kind, number: int, session_id: int) -> Stream:
        parameters = (
            f"|session-id={session_id}|init-term-id={FIRST_TERM_ID}|term-id={FIRST_TERM_ID}"
            "|term-offset=0"
        )
        stream = Stream(aeron, kind, self.ports(number), 2_000 + number, parameters)
        self.until(lambda: stream.is_open, f"stream {kind.name} to connect")
        return stream

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Run clients and streams until a condition holds. Raises Violation if this takes longer
        than PATIENCE_S.
        """
        deadline_s = time.monotonic() + PATIENCE_S
        while not condition():
            self.work()
            if time.monotonic() > deadline_s:
                raise Violation(
                    f"timed out after {PATIENCE_S:g} s waiting for {what}: {self.errors[-3:]}"
                )
            time.sleep(0.0002)

    def guarded(self) -> np.ndarray:
        """Return the session and stream ids of the streams that are not attacked. An attack must
        not send frames that these streams would accept.
        """
        return np.array([(item.session_id, item.stream_id) for item in self.checked], np.int64)

    def targets(self) -> list[tuple[Target, Stream]]:
        """Return every address at which a stream receives frames, together with its stream."""
        found: list[tuple[Target, Stream]] = []
        for first, streams in ((0, self.checked), (self._first_attacked, self.attacked)):
            for number, stream in enumerate(streams, first):
                kind = stream.kind
                text = " ".join(
                    (kind.publication, kind.subscription, *kind.destinations, *kind.sources)
                ).format(**self.ports(number))
                for address, port in dict.fromkeys(_ADDRESS.findall(text)):
                    target = Target(
                        address, int(port), stream.session_id, stream.stream_id, FIRST_TERM_ID
                    )
                    found.append((target, stream))
        return found

    def work(self) -> None:
        """Run one duty cycle of each client, then publish and read on all streams."""
        for client in self.clients:
            if client.is_closed:
                raise Violation(
                    f"a client that called its conductor regularly was closed: {client.failure}"
                )
            client.invoke()
        for stream in self.checked:
            stream.offer(2)
            stream.poll()
        for stream in self.attacked:
            # An attacked stream may fail in any way, as long as the client reports an error.
            with contextlib.suppress(DriverError, ClientError):
                stream.offer(2)
                stream.pass_over()

    def check(self) -> None:
        """Raise Violation if a stream that is not attacked has delivered a wrong message."""
        faults = [fault for stream in self.checked for fault in stream.faults]
        if faults:
            raise Violation(faults[0])

    def close_attacked(self) -> None:
        """Close the attacked streams, and ignore their errors."""
        attacked, self.attacked = self.attacked, []
        for stream in attacked:
            for item in stream.resources():
                with contextlib.suppress(DriverError, ClientError):
                    item.close()

    def settle(self) -> None:
        """Wait until every stream that is not attacked has delivered all offered messages. Raises
        Violation on timeout or for a wrong message.
        """
        ends = [stream.next_number for stream in self.checked]
        for stream, end in zip(self.checked, ends, strict=True):
            self.until(
                lambda stream=stream, end=end: stream.expected >= end,  # type: ignore[misc]
                f"stream {stream.kind.name} to deliver message {end}",
            )
        self.check()

    def close(self) -> None:
        """Close both clients, and with them all streams."""
        for client in self.clients:
            client.close()
