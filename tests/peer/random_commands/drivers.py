"""Clients that send commands to a driver, and what it responds.

The clients have no library: commands and responses are those of the CnC file. What the driver
responds is kept as tuples with names in place of numbers, so that it can be compared.
"""

from collections import Counter
from pathlib import Path

import numpy as np

from tests.peer.random_commands.names import Names
from tests.peer.raw_client import RawClient
from windtunnel.driver.base.atomics import put_i64
from windtunnel.driver.cnc import counters, ring_buffer
from windtunnel.driver.cnc.cnc_file import CncFile
from windtunnel.driver.command.client import ClientKeepalive, ClientTimeout
from windtunnel.driver.command.codec import Response
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.command.counter import CounterReady, StaticCounter, UnavailableCounter
from windtunnel.driver.command.image import AvailableImage, UnavailableImage
from windtunnel.driver.command.publication import ExclusivePublicationReady, PublicationReady
from windtunnel.driver.command.response import ErrorResponse, PublicationError
from windtunnel.driver.command.subscription import SubscriptionReady
from windtunnel.driver.logbuffer import appender
from windtunnel.driver.logbuffer.log_buffer import LogBuffer

REFUSALS = {ErrorCode.GENERIC_ERROR, ErrorCode.INVALID_CHANNEL}
"""The drivers use them differently on purpose: see docs/behaviour.md."""


class DriverUnderTest:
    """A driver, its clients, and all that it has responded."""

    unlike_metadata: tuple[int, ...] = ()
    """Offsets of int32 in log metadata for which the drivers have different settings."""
    uncounted: tuple[str, ...] = ()
    """Kinds of responses that are not kept."""

    def __init__(self, kind: str, directory: Path, names: Names, id_min: int) -> None:
        """`names` may be shared with drivers on other hosts. `id_min` is the first id."""
        self.kind, self.directory, self.names = kind, directory, names
        self._id_min = id_min
        self._received: list[Response] = []
        self.responses = Counter[tuple[object, ...]]()
        self.publications: dict[str, PublicationReady | ExclusivePublicationReady] = {}
        self.images: dict[tuple[int, int], AvailableImage] = {}
        self.logs: dict[int, LogBuffer] = {}
        self.answered: set[str] = set()
        """The commands to which the driver has responded."""

    def attach(self, cnc: CncFile) -> None:
        """Use a CnC file for all clients."""
        ring = cnc.to_driver
        next_id = ring.size - ring_buffer.TRAILER_LENGTH + ring_buffer.CORRELATION_ID
        put_i64(ring, next_id, self._id_min)
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

    def log_of(self, publication: str) -> tuple[np.ndarray, np.ndarray]:
        """The log of a publication, and its appender."""
        log = self.logs[self.publications[publication].registration_id]
        return log.log, appender.attach(log.log, log.meta_at)

    def owner_of_destinations(self, name: str) -> int:
        """The id with which commands for destinations name a publication or subscription.

        A shared publication has that of the first command. Ours also knows the others.
        """
        shared = self.publications.get(name)
        return self.names.number(name) if shared is None else shared.registration_id

    def set_position(self, image: AvailableImage, position: int) -> None:
        counter_id = image.subscriber_position_id
        counters.set_release(self._client.cnc.counters_values, counter_id, position)

    def receive(self) -> None:
        """Receive all responses since the last call, and name the sessions of publications."""
        while (response := self._client.receive()) is not None:
            self._received.append(response)
            if isinstance(response, PublicationReady | ExclusivePublicationReady):
                name = self.names.of(response.correlation_id)
                self.names.add_session(response.session_id, name)

    def listen(self) -> None:
        """Receive all responses, and keep them with names."""
        self.receive()
        for response in self._received:
            named = self._named(response)
            self.responses[named] += named[0] not in self.uncounted
        self._received.clear()

    def unmap(self) -> None:
        """Unmap the logs."""
        for log in self.logs.values():
            log.close()

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
            case ClientTimeout():
                return kind, names.of(response.client_id)
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
        self.publications[name] = ready
        if ready.registration_id not in self.logs:
            self.logs[ready.registration_id] = LogBuffer.map(Path(ready.log_file_name))

    def _add_image(self, image: AvailableImage) -> None:
        of = self.names.of_session(image.session_id)
        subscription = self.names.of(image.subscription_registration_id)
        self.names.add(image.correlation_id, f"image of {of} for {subscription}")
        self.images[image.correlation_id, image.subscription_registration_id] = image
        path = Path(image.log_file_name)
        if image.correlation_id not in self.logs and path.exists():  # It may have ended already.
            self.logs[image.correlation_id] = LogBuffer.map(path)

    def _label(self, counter_id: int) -> str:
        counter = self.counters.read(counter_id) if counter_id >= 0 else None
        return "none" if counter is None else self.names.in_text(counter.label)
