"""A control session with the archive from which a recording is copied.

    SUBSCRIBE --> PUBLISH --> CONNECT --> ANSWER --> OPEN      no step blocks

`connect` takes the next step. Once the session is open, `send_request` sends a request and `poll`
returns the messages that were received. Messages for other sessions on the same stream are ignored.
Source: archive-protocol 2.2, 2.3, 7.
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
"""The error that is reported when the source archive has disconnected."""


class SourceArchiveError(DriverError):
    """The source archive cannot be reached, or it has sent an error."""


def poll_or_retry(
    poll: Callable[[int], _RESOURCE | None], registration_id: int, add: Callable[[], int]
) -> tuple[_RESOURCE | None, int]:
    """Poll for a publication or subscription that is being added. Returns the publication or
    subscription (None until it is ready) and the registration id to poll next.

    If the driver rejects the command because an endpoint is still closing, the command is repeated.
    """
    try:
        return poll(registration_id), registration_id
    except RegistrationError as error:
        if error.code != DriverErrorCode.RESOURCE_TEMPORARILY_UNAVAILABLE:
            raise
    return None, add()


class _Step(Enum):
    SESSION_ID = auto()
    SUBSCRIBE = auto()
    PUBLISH = auto()
    CONNECT = auto()
    ANSWER = auto()
    OPEN = auto()


@dataclass(frozen=True)
class SourceAddress:
    """The channels and stream ids of a control session with the source archive, and the client's
    credentials.
    """

    request_channel: str
    request_stream_id: int
    response_channel: str
    response_stream_id: int
    credentials: bytes
    client_info: str


class SourceArchive:
    """A control session with the source archive. Only the conductor's thread uses it."""

    def __init__(self, client: Aeron, address: SourceAddress, settings: ArchiveSettings) -> None:
        """Start connecting to the source archive. Raises ConfigurationError if a channel is
        invalid, or ClientError if the client cannot send a command.
        """
        self._client, self._address = client, address
        self.session_id = NULL_VALUE
        self.request_channel = control_channel(address.request_channel, settings)
        self._response = control_channel(address.response_channel, settings)
        self._is_response = is_response(self._response)
        self._subscription: Subscription | None = None
        self._publication: ExclusivePublication | None = None
        self._publication_id = NULL_VALUE
        self._correlation_id = NULL_VALUE
        self._messages: list[Message] = []
        self._assembler = FragmentAssembler(self._on_message)
        if self._is_response:
            self._step = _Step.SUBSCRIBE
            self._subscription_id = self._add_subscription()
        else:
            self._step = _Step.SESSION_ID
            # The id of the command in progress, until the subscription has been requested.
            self._subscription_id = client.async_next_session_id(address.request_stream_id)

    @property
    def request_stream_id(self) -> int:
        return self._address.request_stream_id

    @property
    def is_open(self) -> bool:
        return self._step == _Step.OPEN

    @property
    def state_name(self) -> str:
        """The name of the current step of connecting."""
        return self._step.name

    # --- connect -------------------------------------------------------------------------------

    def connect(self) -> int:
        """Take the next step of connecting to the source archive. Returns the amount of work done.
        Raises SourceArchiveError if the source archive responds with an error or a challenge, or
        ClientError if the client fails.
        """
        before = self._step
        if self._step == _Step.SESSION_ID:
            self._take_session_id()
        elif self._step == _Step.SUBSCRIBE:
            self._subscription, self._subscription_id = poll_or_retry(
                self._client.get_subscription, self._subscription_id, self._add_subscription
            )
            if self._subscription is not None:
                self._publication_id = self._add_publication()
                self._step = _Step.PUBLISH
        elif self._step == _Step.PUBLISH:
            self._publication, self._publication_id = poll_or_retry(
                self._client.get_exclusive_publication, self._publication_id, self._add_publication
            )
            if self._publication is not None:
                self._step = _Step.CONNECT
        elif self._step == _Step.CONNECT:
            self._send_connect()
        elif self._step == _Step.ANSWER:
            for message in self.poll():
                self._on_response(message)
        return int(self._step != before)

    def _take_session_id(self) -> None:
        shared_id = self._client.get_next_session_id(self._subscription_id)
        if shared_id is not None:
            # Both channels have one session id: the response endpoint and stream may be shared.
            self._response = self._response.with_param(uri_param.SESSION_ID, shared_id)
            self.request_channel = self.request_channel.with_param(uri_param.SESSION_ID, shared_id)
            self._subscription_id = self._add_subscription()
            self._step = _Step.SUBSCRIBE

    def _add_subscription(self) -> int:
        return self._client.async_add_subscription(
            str(self._response), self._address.response_stream_id
        )

    def _add_publication(self) -> int:
        return self._client.async_add_exclusive_publication(
            self._publication_channel(), self._address.request_stream_id
        )

    def _publication_channel(self) -> str:
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

    def _on_response(self, message: Message) -> None:
        if isinstance(message, Challenge):
            raise SourceArchiveError(
                "the source archive sent a challenge, but replication does not support challenges"
            )
        if isinstance(message, ControlResponse):
            if message.code != ControlResponseCode.OK:
                raise SourceArchiveError(f"error from the source archive: {message.error_message}")
            self.session_id = message.control_session_id
            self._step = _Step.OPEN

    # --- requests and messages -----------------------------------------------------------------

    def send_request(
        self, kind: type[Message], via: ExclusivePublication | None = None, **values: Any
    ) -> int | None:
        """Send a request. Returns the request's correlation id, or None if sending must be
        retried.
        """
        publication = via or self._publication
        assert publication is not None
        correlation_id = self._client.next_correlation_id()
        values = {"control_session_id": self.session_id, "correlation_id": correlation_id} | values
        return correlation_id if publication.offer(encode(kind(**values))) > 0 else None

    def poll(self) -> list[Message]:
        """Return the messages received since the last call.

        Raises SourceArchiveError if the source archive has disconnected.
        """
        if self._subscription is not None:
            self._subscription.poll(self._assembler, FRAGMENT_LIMIT)
        messages, self._messages = self._messages, []
        if not messages and self.is_open and self._publication is not None:
            is_subscribed = self._subscription is not None and self._subscription.is_connected
            if not is_subscribed or not self._publication.is_connected:
                raise SourceArchiveError(NOT_CONNECTED)
        return messages

    def _on_message(self, payload: memoryview, header: Header) -> None:
        try:
            message = decode(payload)
        except MalformedMessage:
            # A newer archive may send messages that are unknown here.
            return
        if isinstance(message, Ping):
            return
        if self.is_open:
            is_ours = getattr(message, "control_session_id", NULL_VALUE) == self.session_id
        else:
            is_ours = getattr(message, "correlation_id", NULL_VALUE) == self._correlation_id
        if is_ours:
            self._messages.append(message)

    def close(self) -> None:
        """Close the session and release all resources."""
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
