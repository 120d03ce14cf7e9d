"""Opens a control session with an archive step by step, without blocking.

    AWAIT_SUBSCRIPTION -> ADD_PUBLICATION -> AWAIT_PUBLICATION_CONNECTED -> SEND_CONNECT_REQUEST
      -> AWAIT_SUBSCRIPTION_CONNECTED -> AWAIT_CONNECT_RESPONSE
      -> [SEND_CHALLENGE_RESPONSE -> AWAIT_CHALLENGE_RESPONSE]
      -> [SEND_ARCHIVE_ID_REQUEST -> AWAIT_ARCHIVE_ID_RESPONSE] -> DONE

An archive repeats its OK response until the first request arrives, so responses to earlier requests
are ignored. After an error, everything that was opened is closed.
Source: archive-protocol 2.2, 2.3.
"""

from collections.abc import Callable
from enum import IntEnum

from windtunnel.driver.archive.client import control_channels
from windtunnel.driver.archive.client.context import ArchiveContext
from windtunnel.driver.archive.client.control_session import ControlSession
from windtunnel.driver.archive.client.errors import (
    ArchiveError,
    ArchiveTimeoutError,
    error_from_response,
)
from windtunnel.driver.archive.client.response_reader import ResponseReader
from windtunnel.driver.archive.protocol import codec
from windtunnel.driver.archive.protocol.codes import (
    NULL_VALUE,
    PROTOCOL_VERSION,
    PROTOCOL_VERSION_WITH_ARCHIVE_ID,
    ControlResponseCode,
)
from windtunnel.driver.archive.protocol.layout import Message
from windtunnel.driver.archive.protocol.requests import (
    ArchiveIdRequest,
    AuthConnectRequest,
    ChallengeResponse,
    CloseSessionRequest,
    KeepAliveRequest,
)
from windtunnel.driver.archive.protocol.responses import Challenge, ControlResponse, Response
from windtunnel.driver.base.clock import Clock, SystemClock
from windtunnel.driver.client import Aeron, ExclusivePublication, RegistrationError
from windtunnel.driver.command.command_type import ErrorCode as DriverErrorCode

CLIENT_VERSION = "1.53.0"
CLIENT_COMMIT = "windtunnel"


class ConnectState(IntEnum):
    """The steps of an attempt to connect to an archive."""

    AWAIT_SUBSCRIPTION = 0
    ADD_PUBLICATION = 1
    AWAIT_PUBLICATION_CONNECTED = 2
    SEND_CONNECT_REQUEST = 3
    AWAIT_SUBSCRIPTION_CONNECTED = 4
    AWAIT_CONNECT_RESPONSE = 5
    SEND_ARCHIVE_ID_REQUEST = 6
    AWAIT_ARCHIVE_ID_RESPONSE = 7
    SEND_CHALLENGE_RESPONSE = 8
    AWAIT_CHALLENGE_RESPONSE = 9
    DONE = 10


class Connecting:
    """An attempt to open a control session. Call `poll` until it returns the session."""

    def __init__(self, aeron: Aeron, context: ArchiveContext, clock: Clock | None = None) -> None:
        self.context = context.conclude()
        self.state = ConnectState.AWAIT_SUBSCRIPTION
        self._aeron, self._clock = aeron, clock or SystemClock()
        self._deadline_ns = self._clock.now_ns() + context.message_timeout_ns
        self._request = control_channels.with_defaults(context.control_request_channel, context)
        response = control_channels.with_defaults(context.control_response_channel, context)
        self._is_response_channel = control_channels.is_response_channel(str(response))
        if not self._is_response_channel:
            session_id = aeron.next_session_id(context.control_request_stream_id)
            response = control_channels.with_session(response, session_id)
            self._request = control_channels.with_session(self._request, session_id)
        self._response_channel = str(response)
        self._registration_id: int | None = None
        self._reader: ResponseReader | None = None
        self._publication: ExclusivePublication | None = None
        self._correlation_id = self._control_session_id = NULL_VALUE
        self._challenge = b""
        self._session: ControlSession | None = None
        self._steps: dict[ConnectState, Callable[[], object]] = {
            ConnectState.AWAIT_SUBSCRIPTION: self._await_subscription,
            ConnectState.ADD_PUBLICATION: self._add_publication,
            ConnectState.AWAIT_PUBLICATION_CONNECTED: self._await_publication_connected,
            ConnectState.SEND_CONNECT_REQUEST: self._send_connect_request,
            ConnectState.AWAIT_SUBSCRIPTION_CONNECTED: self._await_subscription_connected,
            ConnectState.AWAIT_CONNECT_RESPONSE: self._await_response,
            ConnectState.SEND_ARCHIVE_ID_REQUEST: self._send_archive_id_request,
            ConnectState.AWAIT_ARCHIVE_ID_RESPONSE: self._await_archive_id,
            ConnectState.SEND_CHALLENGE_RESPONSE: self._send_challenge_response,
            ConnectState.AWAIT_CHALLENGE_RESPONSE: self._await_response,
        }

    def poll(self) -> ControlSession | None:
        """Take one step of the attempt. Returns the control session, or None until it is open.

        Raises ArchiveTimeoutError with the current state, ArchiveError with the archive's error,
        and RegistrationError with the driver's error. Everything is closed before one of them is
        raised.
        """
        if self.state == ConnectState.DONE:
            return self._session
        try:
            before = self.state
            self._steps[self.state]()
            # Time out only if there was no progress: the first step can take seconds to compile.
            if self.state == before and self._clock.now_ns() > self._deadline_ns:
                timeout_ms = self.context.message_timeout_ns // 1_000_000
                raise ArchiveTimeoutError(
                    f"cannot connect to the archive within {timeout_ms} ms, state "
                    f"{self.state.name}: request channel {self._request}, "
                    f"response channel {self._response_channel}"
                )
        except BaseException:
            self.close()
            raise
        return self._session

    def close(self) -> None:
        """Abandon the attempt and close the resources that it opened. Does nothing if `poll` has
        returned the session.
        """
        if self._session is not None:
            return
        if self._registration_id is not None:
            self._aeron.abandon(self._registration_id)
            self._registration_id = None
        if self._publication is not None:
            if self._control_session_id != NULL_VALUE:
                self._offer(CloseSessionRequest(control_session_id=self._control_session_id))
            self._publication.close()
        if self._reader is not None:
            self._reader.subscription.close()

    def _await_subscription(self) -> None:
        stream_id = self.context.control_response_stream_id
        if self._registration_id is None:
            self._registration_id = self._aeron.async_add_subscription(
                self._response_channel, stream_id
            )
        subscription = self._poll_resource(self._aeron.get_subscription)
        if subscription is not None:
            self._reader = ResponseReader(subscription)
            self._registration_id, self.state = None, ConnectState.ADD_PUBLICATION

    def _add_publication(self) -> None:
        assert self._reader is not None
        if self._registration_id is None:
            channel = str(self._request)
            if self._is_response_channel:
                own_id = self._reader.subscription.registration_id
                channel = control_channels.with_correlation(self._request, own_id)
            stream_id = self.context.control_request_stream_id
            self._registration_id = self._aeron.async_add_exclusive_publication(channel, stream_id)
        self._publication = self._poll_resource(self._aeron.get_exclusive_publication)
        if self._publication is not None:
            self._registration_id, self.state = None, ConnectState.AWAIT_PUBLICATION_CONNECTED

    def _poll_resource(self, poll):
        """Return the publication or subscription that is being added, or None if it is not ready.
        After a temporary rejection by the driver, the next step sends the command again.
        """
        try:
            return poll(self._registration_id)
        except RegistrationError as error:
            self._registration_id = None
            if error.code != DriverErrorCode.RESOURCE_TEMPORARILY_UNAVAILABLE:
                raise
            return None

    def _await_publication_connected(self) -> None:
        assert self._publication is not None
        if self._publication.is_connected:
            self._correlation_id = self._aeron.next_correlation_id()
            self.state = ConnectState.SEND_CONNECT_REQUEST

    def _send_connect_request(self) -> None:
        assert self._reader is not None
        channel = self._reader.subscription.try_resolve_channel_endpoint_port()
        if channel is None:
            return
        name = self.context.client_name
        request = AuthConnectRequest(
            correlation_id=self._correlation_id,
            response_stream_id=self.context.control_response_stream_id,
            version=PROTOCOL_VERSION,
            response_channel=channel,
            encoded_credentials=self.context.credentials,
            client_info=f"name={name} version={CLIENT_VERSION} commit={CLIENT_COMMIT}",
        )
        if self._offer(request):
            self.state = ConnectState.AWAIT_SUBSCRIPTION_CONNECTED

    def _await_subscription_connected(self) -> None:
        assert self._reader is not None
        if self._reader.subscription.is_connected:
            self.state = ConnectState.AWAIT_CONNECT_RESPONSE

    def _await_response(self) -> None:
        response = self._next_response()
        if isinstance(response, Challenge):
            self._control_session_id = response.control_session_id
            self._challenge = response.encoded_challenge
            self._correlation_id = self._aeron.next_correlation_id()
            self.state = ConnectState.SEND_CHALLENGE_RESPONSE
        elif isinstance(response, ControlResponse):
            self._control_session_id = response.control_session_id
            if response.code != ControlResponseCode.OK:
                raise error_from_response("connecting", response)
            if response.version >= PROTOCOL_VERSION_WITH_ARCHIVE_ID:
                self._correlation_id = self._aeron.next_correlation_id()
                self.state = ConnectState.SEND_ARCHIVE_ID_REQUEST
            else:
                self._open(NULL_VALUE)

    def _send_archive_id_request(self) -> None:
        request = ArchiveIdRequest(
            control_session_id=self._control_session_id, correlation_id=self._correlation_id
        )
        if self._offer(request):
            self.state = ConnectState.AWAIT_ARCHIVE_ID_RESPONSE

    def _await_archive_id(self) -> None:
        response = self._next_response()
        if isinstance(response, ControlResponse):
            if response.code != ControlResponseCode.OK:
                raise error_from_response("requesting the archive id", response)
            self._open(response.relevant_id)

    def _send_challenge_response(self) -> None:
        response = ChallengeResponse(
            control_session_id=self._control_session_id,
            correlation_id=self._correlation_id,
            encoded_credentials=self.context.on_challenge(self._challenge),
        )
        if self._offer(response):
            self.state = ConnectState.AWAIT_CHALLENGE_RESPONSE

    def _next_response(self) -> Response | None:
        """Return the response to the last request, or None if it has not arrived yet."""
        assert self._reader is not None
        while (message := self._reader.next()) is not None:
            if isinstance(message, Response) and message.correlation_id == self._correlation_id:
                return message
        return None

    def _offer(self, message: Message) -> bool:
        assert self._publication is not None
        return self._publication.offer(codec.encode(message)) > 0

    def _open(self, archive_id: int) -> None:
        assert self._publication is not None
        assert self._reader is not None
        request = KeepAliveRequest(
            control_session_id=self._control_session_id, correlation_id=NULL_VALUE
        )
        if not self._offer(request):
            raise ArchiveError("cannot send the first request of the session")
        session = ControlSession(
            self._aeron, self.context, self._clock, self._publication, self._reader,
            self._control_session_id,
        )  # fmt: skip
        session.archive_id = archive_id
        self._session, self.state = session, ConnectState.DONE
