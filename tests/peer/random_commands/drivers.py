"""A driver in a network namespace of its own, and clients that send commands to it.

The clients have no library: commands and responses are those of the CnC file. What the driver
responds is kept as tuples with names in place of numbers, so that it can be compared.
"""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from tests.peer.random_commands.names import ID_MIN, Names
from tests.peer.raw_client import RawClient
from windtunnel.driver.base.atomics import put_i64
from windtunnel.driver.base.clock import SystemClock
from windtunnel.driver.cnc import cnc_file, counters, ring_buffer
from windtunnel.driver.command.client import ClientKeepalive
from windtunnel.driver.command.codec import Response
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.command.counter import CounterReady, StaticCounter, UnavailableCounter
from windtunnel.driver.command.image import AvailableImage, UnavailableImage
from windtunnel.driver.command.publication import ExclusivePublicationReady, PublicationReady
from windtunnel.driver.command.response import ErrorResponse, PublicationError
from windtunnel.driver.command.subscription import SubscriptionReady
from windtunnel.driver.logbuffer.log_buffer import LogBuffer

ROOT = Path(__file__).resolve().parents[3]
START_TIMEOUT_S = 300
"""With an empty kernel cache, our driver compiles its kernels first."""
COMMANDS = {
    "real": ("windtunnel.harness.bench.c_driver",),
    "ours": ("windtunnel.driver",),
}
SETTINGS = {
    "AERON_THREADING_MODE": "SHARED", "AERON_SHARED_IDLE_STRATEGY": "sleep-ns",
    "AERON_TERM_BUFFER_LENGTH": "64k", "AERON_IPC_TERM_BUFFER_LENGTH": "64k",
    "AERON_TIMER_INTERVAL": "100ms", "AERON_CLIENT_LIVENESS_TIMEOUT": "120s",
    "AERON_PUBLICATION_UNBLOCK_TIMEOUT": "240s",
    "AERON_PUBLICATION_CONNECTION_TIMEOUT": "1s", "AERON_PUBLICATION_LINGER_TIMEOUT": "200ms",
    "AERON_COUNTERS_FREE_TO_REUSE_TIMEOUT": "100ms", "AERON_RCV_STATUS_MESSAGE_TIMEOUT": "100ms",
}  # fmt: skip
REFUSALS = {ErrorCode.GENERIC_ERROR, ErrorCode.INVALID_CHANNEL}
"""The drivers use them differently on purpose: see docs/behaviour.md."""


class DriverUnderTest:
    """A running driver, its clients, and all that it has responded."""

    def __init__(self, kind: str, folder: Path, settings: dict[str, str]) -> None:
        self.kind, self.directory = kind, folder / kind
        self.names, self.responses = Names(), Counter[tuple[object, ...]]()
        self.publications: dict[str, PublicationReady | ExclusivePublicationReady] = {}
        self.images: dict[tuple[int, int], AvailableImage] = {}
        self.logs: dict[int, LogBuffer] = {}
        self.answered: set[str] = set()
        """The commands to which the driver has responded."""
        network = (sys.executable, "-m", "tests.peer.random_commands.own_network")
        self.process = subprocess.Popen(
            [*network, sys.executable, "-m", *COMMANDS[kind]], cwd=ROOT, stdout=subprocess.DEVNULL,
            env=os.environ | SETTINGS | settings | {"AERON_DIR": str(self.directory)},
        )  # fmt: skip

    def connect(self) -> None:
        """Wait until the driver is ready, and map its CnC file."""
        end_s = time.monotonic() + START_TIMEOUT_S
        while True:
            assert self.process.poll() is None, f"{self.kind}: the driver ended at once"
            try:
                cnc = cnc_file.attach(self.directory, SystemClock().now_ms(), 10_000)
                break
            except (cnc_file.DriverNotReadyError, cnc_file.DriverTimeoutError):
                assert time.monotonic() < end_s, f"{self.kind}: the driver did not start"
                time.sleep(0.01)
        ring = cnc.to_driver
        next_id = ring.size - ring_buffer.TRAILER_LENGTH + ring_buffer.CORRELATION_ID
        put_i64(ring, next_id, ID_MIN)
        self._client = RawClient(cnc)
        self.counters, self.send = self._client.reader, self._client.send

    def new_id(self, name: str) -> int:
        number = self._client.next_id()
        self.names.add(number, name)
        return number

    def keep_alive(self, clients: list[str]) -> None:
        for client in clients:
            self.send(ClientKeepalive(self.names.number(client)))

    def limit(self, publication: str) -> int:
        """The position limit of a publication."""
        counter_id = self.publications[publication].limit_counter_id
        return int(counters.get_acquire(self._client.cnc.counters_values, counter_id))

    def owner_of_destinations(self, name: str) -> int:
        """The id with which commands for destinations name a publication or subscription.

        A shared publication has that of the first command. Ours also knows the others.
        """
        shared = self.publications.get(name)
        return self.names.number(name) if shared is None else shared.registration_id

    def set_position(self, image: AvailableImage, position: int) -> None:
        counter_id = image.subscriber_position_id
        counters.set_release(self._client.cnc.counters_values, counter_id, position)

    def listen(self) -> None:
        """Read all responses since the last call."""
        while (response := self._client.receive()) is not None:
            self.responses[self._named(response)] += 1

    def close(self) -> int:
        """Stop the driver. Returns its exit code."""
        for log in self.logs.values():
            log.close()
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    def _named(self, response: Response) -> tuple[object, ...]:
        names, kind = self.names, type(response).__name__
        match response:
            case PublicationReady() | ExclusivePublicationReady():
                self._add_publication(response)
                details = (
                    *(names.of(response.registration_id), names.of_session(response.session_id)),
                    self._label(response.limit_counter_id),
                    self._label(response.channel_status_counter_id),
                )
            case AvailableImage():
                self._add_image(response)
                details = names.of_session(response.session_id), response.stream_id
                details += (names.of(response.subscription_registration_id),)
                return kind, *details, names.in_text(response.source_identity)
            case UnavailableImage():
                key = response.correlation_id, response.subscription_registration_id
                self.images.pop(key, None)
                return kind, names.of(key[1]), response.stream_id, response.channel
            case CounterReady() | StaticCounter():
                details = (self._label(response.counter_id),)
            case SubscriptionReady():
                details = (self._label(response.channel_status_counter_id),)
            case UnavailableCounter():
                return kind, names.of(response.registration_id)
            case ErrorResponse():
                code = ErrorCode.of(response.error_code)
                details = ("refused" if code in REFUSALS else code.name,)
            case PublicationError():
                # The C driver's address of an IPC subscriber is wrong: docs/findings.
                address = response.source_address.replace("1.0.0.127", "127.0.0.1")
                details = (names.of_session(response.session_id), address, response.error_code)
                return kind, names.of(response.registration_id), *details, response.message
            case _:
                details = ()
        name = names.of(response.correlation_id)
        self.answered.add(name)
        return kind, name, *details

    def _add_publication(self, ready: PublicationReady | ExclusivePublicationReady) -> None:
        name = self.names.of(ready.correlation_id)
        self.names.add_session(ready.session_id, name)
        self.publications[name] = ready
        if ready.registration_id not in self.logs:
            self.logs[ready.registration_id] = LogBuffer.map(Path(ready.log_file_name))

    def _add_image(self, image: AvailableImage) -> None:
        of = self.names.of_session(image.session_id)
        subscription = self.names.of(image.subscription_registration_id)
        self.names.add(image.correlation_id, f"image of {of} for {subscription}")
        self.images[image.correlation_id, image.subscription_registration_id] = image
        if image.correlation_id not in self.logs:
            self.logs[image.correlation_id] = LogBuffer.map(Path(image.log_file_name))

    def _label(self, counter_id: int) -> str:
        counter = self.counters.read(counter_id) if counter_id >= 0 else None
        return "none" if counter is None else self.names.in_text(counter.label)
