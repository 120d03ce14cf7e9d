"""A control session at the archive that a recording is copied from, as its client.

    SUBSCRIBE --> PUBLISH --> CONNECT --> ANSWER --> OPEN      every step waits without blocking

Each turn drives it on; once it is open, `ask` sends a request and `poll` returns what came. What
came for other sessions of the same stream is passed over. Source: archive-protocol 2.2, 2.3, 7.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, TypeVar

from windtunnel.driver.archive.protocol.codec import MalformedMessage, decode, encode
from windtunnel.driver.archive.protocol.codes import (
    NULL_VALUE,
    PROTOCOL_VERSION,
    ControlResponseCode,
)
from windtunnel.driver.archive.protocol.layout import Message
from windtunnel.driver.archive.protocol.requests import AuthConnectRequest, CloseSessionRequest
from windtunnel.driver.archive.protocol.responses import Challenge, ControlResponse, Ping
from windtunnel.driver.archive.replication.replication_channels import control_channel, is_response
from windtunnel.driver.archive.settings.archive_settings import ArchiveSettings
from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.channel import uri_param
from windtunnel.driver.client.aeron import Aeron
from windtunnel.driver.client.errors import RegistrationError
from windtunnel.driver.client.image.assembler import FragmentAssembler
from windtunnel.driver.client.image.header import Header
from windtunnel.driver.client.publication.exclusive_publication import ExclusivePublication
from windtunnel.driver.client.subscription import Subscription
from windtunnel.driver.command.command_type import ErrorCode as DriverErrorCode

_RESOURCE = TypeVar("_RESOURCE")
FRAGMENT_LIMIT = 10
NOT_CONNECTED = "the source archive is not connected"
"""What is said once nobody is there any more."""


class SourceArchiveError(DriverError):
    """The other archive cannot be talked to, or has said no."""

    def __init__(self, text: str, relevant_id: int = 0) -> None:
        super().__init__(text)
        self.relevant_id = relevant_id


def found_or_asked_again(
    look: Callable[[int], _RESOURCE | None], registration_id: int, ask: Callable[[], int]
) -> tuple[_RESOURCE | None, int]:
    """What the driver was asked for, None while it is not there; and the id it is asked for by.

    A driver whose endpoint is just closing refuses for the moment: it is asked once more.
    """
    try:
        return look(registration_id), registration_id
    except RegistrationError as error:
        if error.code != DriverErrorCode.RESOURCE_TEMPORARILY_UNAVAILABLE:
            raise
    return None, ask()


class _Step(Enum):
    SUBSCRIBE = auto()
    PUBLISH = auto()
    CONNECT = auto()
    ANSWER = auto()
    OPEN = auto()


@dataclass(frozen=True)
class SourceAddress:
    """Where the other archive is, and where it answers."""

    request_channel: str
    request_stream_id: int
    response_channel: str
    response_stream_id: int
    credentials: bytes
    client_info: str


class SourceArchive:
    """One control session, in the conductor's thread."""

    def __init__(self, client: Aeron, address: SourceAddress, settings: ArchiveSettings) -> None:
        """Raises ConfigurationError, ClientError."""
        self._client, self._address = client, address
        self.session_id = NULL_VALUE
        self.request_channel = control_channel(address.request_channel, settings)
        self._response = control_channel(address.response_channel, settings)
        self._is_response = is_response(self._response)
        if not self._is_response:
            # One session at both ends: others may answer to the same endpoint and stream.
            number = client.next_session_id(address.request_stream_id)
            self._response = self._response.with_param(uri_param.SESSION_ID, number)
            self.request_channel = self.request_channel.with_param(uri_param.SESSION_ID, number)
        self._subscription: Subscription | None = None
        self._publication: ExclusivePublication | None = None
        self._publication_id = NULL_VALUE
        self._correlation_id = NULL_VALUE
        self._step = _Step.SUBSCRIBE
        self._came: list[Message] = []
        self._assembler = FragmentAssembler(self._on_message)
        self._subscription_id = self._ask_subscription()

    @property
    def request_stream_id(self) -> int:
        return self._address.request_stream_id

    @property
    def is_open(self) -> bool:
        return self._step == _Step.OPEN

    @property
    def waits_for(self) -> str:
        """The step that it is at, for people."""
        return self._step.name

    # --- connect -------------------------------------------------------------------------------

    def connect(self) -> int:
        """Go on connecting. Returns an amount of work. Raises SourceArchiveError, ClientError."""
        before = self._step
        if self._step == _Step.SUBSCRIBE:
            self._subscription, self._subscription_id = found_or_asked_again(
                self._client.get_subscription, self._subscription_id, self._ask_subscription
            )
            if self._subscription is not None:
                self._publication_id = self._ask_publication()
                self._step = _Step.PUBLISH
        elif self._step == _Step.PUBLISH:
            self._publication, self._publication_id = found_or_asked_again(
                self._client.get_exclusive_publication, self._publication_id, self._ask_publication
            )
            if self._publication is not None:
                self._step = _Step.CONNECT
        elif self._step == _Step.CONNECT:
            self._send_connect()
        elif self._step == _Step.ANSWER:
            for message in self.poll():
                self._on_answer(message)
        return int(self._step != before)

    def _ask_subscription(self) -> int:
        return self._client.async_add_subscription(
            str(self._response), self._address.response_stream_id
        )

    def _ask_publication(self) -> int:
        return self._client.async_add_exclusive_publication(
            self._channel_to_ask(), self._address.request_stream_id
        )

    def _channel_to_ask(self) -> str:
        if not self._is_response:
            return str(self.request_channel)
        key = uri_param.RESPONSE_CORRELATION_ID
        return str(self.request_channel.with_param(key, self._subscription_id))

    def _send_connect(self) -> None:
        assert self._subscription is not None
        assert self._publication is not None
        channel = self._subscription.try_resolve_channel_endpoint_port()
        if channel is None or not self._publication.is_connected:
            return
        self._correlation_id = self._client.next_correlation_id()
        request = AuthConnectRequest(
            correlation_id=self._correlation_id,
            response_stream_id=self._address.response_stream_id, version=PROTOCOL_VERSION,
            response_channel=channel, encoded_credentials=self._address.credentials,
            client_info=self._address.client_info,
        )  # fmt: skip
        if self._publication.offer(encode(request)) > 0:
            self._step = _Step.ANSWER

    def _on_answer(self, message: Message) -> None:
        if isinstance(message, Challenge):
            raise SourceArchiveError(
                "Replication does not support challenge/response authentication"
            )
        if isinstance(message, ControlResponse):
            if message.code != ControlResponseCode.OK:
                raise SourceArchiveError(f"the source archive: {message.error_message}")
            self.session_id = message.control_session_id
            self._step = _Step.OPEN

    # --- talk ----------------------------------------------------------------------------------

    def ask(
        self, kind: type[Message], via: ExclusivePublication | None = None, **values: Any
    ) -> int | None:
        """Send a request. Returns its correlation id, or None where it has to be tried again."""
        publication = via or self._publication
        assert publication is not None
        correlation_id = self._client.next_correlation_id()
        values = {"control_session_id": self.session_id, "correlation_id": correlation_id} | values
        return correlation_id if publication.offer(encode(kind(**values))) > 0 else None

    def poll(self) -> list[Message]:
        """What was said since the last time. Raises SourceArchiveError where nobody is there."""
        if self._subscription is not None:
            self._subscription.poll(self._assembler, FRAGMENT_LIMIT)
        came, self._came = self._came, []
        if not came and self.is_open and self._publication is not None:
            is_there = self._subscription is not None and self._subscription.is_connected
            if not is_there or not self._publication.is_connected:
                raise SourceArchiveError(NOT_CONNECTED)
        return came

    def _on_message(self, payload: memoryview, header: Header) -> None:
        try:
            message = decode(payload)
        except MalformedMessage:
            # An archive that is newer than ours may say more than we know.
            return
        if isinstance(message, Ping):
            return
        if self.is_open:
            is_ours = getattr(message, "control_session_id", NULL_VALUE) == self.session_id
        else:
            is_ours = getattr(message, "correlation_id", NULL_VALUE) == self._correlation_id
        if is_ours:
            self._came.append(message)

    def close(self) -> None:
        """End the session and let go of everything."""
        if self.is_open and self._publication is not None:
            self._publication.offer(encode(CloseSessionRequest(control_session_id=self.session_id)))
        if self._publication is not None:
            self._publication.close()
        elif self._publication_id != NULL_VALUE:
            self._client.abandon(self._publication_id)
        if self._subscription is not None:
            self._subscription.close()
        else:
            self._client.abandon(self._subscription_id)
