"""Opening a control session, one step a turn, never waiting.

    AWAIT_SUBSCRIPTION -> ADD_PUBLICATION -> AWAIT_PUBLICATION_CONNECTED -> SEND_CONNECT_REQUEST
      -> AWAIT_SUBSCRIPTION_CONNECTED -> AWAIT_CONNECT_RESPONSE
      -> [SEND_CHALLENGE_RESPONSE -> AWAIT_CHALLENGE_RESPONSE]
      -> [SEND_ARCHIVE_ID_REQUEST -> AWAIT_ARCHIVE_ID_RESPONSE] -> DONE

An archive repeats its OK until the first request comes, so answers to older requests are passed
over. What fails closes everything that was opened.
Source: archive-protocol 2.2, 2.3.
"""

from collections.abc import Callable
from enum import IntEnum

from windtunnel.driver.archive.client import control_channels
from windtunnel.driver.archive.client.context import ArchiveContext
from windtunnel.driver.archive.client.control_session import ControlSession
from windtunnel.driver.archive.client.errors import ArchiveError, ArchiveTimeoutError, refusal
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
    """Where a connection that is being made stands."""

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
    """One attempt to open a session; `poll` until it returns one."""

    def __init__(self, aeron: Aeron, context: ArchiveContext, clock: Clock | None = None) -> None:
        self.context = context.conclude()
        self.state = ConnectState.AWAIT_SUBSCRIPTION
        self._aeron, self._clock = aeron, clock or SystemClock()
        self._deadline_ns = self._clock.now_ns() + context.message_timeout_ns
        self._request = control_channels.with_defaults(context.control_request_channel, context)
        response = control_channels.with_defaults(context.control_response_channel, context)
        self._is_answered_by_subscription = control_channels.is_response_channel(str(response))
        if not self._is_answered_by_subscription:
            session_id = aeron.next_session_id(context.control_request_stream_id)
            response = control_channels.with_session(response, session_id)
            self._request = control_channels.with_session(self._request, session_id)
        self._response_channel = str(response)
        self._asked: int | None = None
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
        """Take one step. Returns the session once it is open.

        Raises ArchiveTimeoutError naming the state, ArchiveError with the archive's refusal,
        RegistrationError with the driver's; everything is closed then
        """
        if self.state == ConnectState.DONE:
            return self._session
        try:
            before = self.state
            self._steps[self.state]()
            # Only who got nowhere is late: a first turn may have compiled for seconds.
            if self.state == before and self._clock.now_ns() > self._deadline_ns:
                timeout_ms = self.context.message_timeout_ns // 1_000_000
                raise ArchiveTimeoutError(
                    f"no session with the archive within {timeout_ms} ms, in state "
                    f"{self.state.name}: request channel {self._request}, "
                    f"response channel {self._response_channel}"
                )
        except BaseException:
            self.close()
            raise
        return self._session

    def close(self) -> None:
        """Give up: close what was opened. A session that was returned is not touched."""
        if self._session is not None:
            return
        if self._asked is not None:
            self._aeron.abandon(self._asked)
            self._asked = None
        if self._publication is not None:
            if self._control_session_id != NULL_VALUE:
                self._offer(CloseSessionRequest(control_session_id=self._control_session_id))
            self._publication.close()
        if self._reader is not None:
            self._reader.subscription.close()

    def _await_subscription(self) -> None:
        stream_id = self.context.control_response_stream_id
        if self._asked is None:
            self._asked = self._aeron.async_add_subscription(self._response_channel, stream_id)
        found = self._if_there(self._aeron.get_subscription)
        if found is not None:
            self._reader = ResponseReader(found)
            self._asked, self.state = None, ConnectState.ADD_PUBLICATION

    def _add_publication(self) -> None:
        assert self._reader is not None
        if self._asked is None:
            channel = str(self._request)
            if self._is_answered_by_subscription:
                own_id = self._reader.subscription.registration_id
                channel = control_channels.with_correlation(self._request, own_id)
            stream_id = self.context.control_request_stream_id
            self._asked = self._aeron.async_add_exclusive_publication(channel, stream_id)
        self._publication = self._if_there(self._aeron.get_exclusive_publication)
        if self._publication is not None:
            self._asked, self.state = None, ConnectState.AWAIT_PUBLICATION_CONNECTED

    def _if_there(self, look):
        """What was asked for; None while it is not there, or where it is to be asked for again."""
        try:
            return look(self._asked)
        except RegistrationError as error:
            self._asked = None
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
        answer = self._answer()
        if isinstance(answer, Challenge):
            self._control_session_id = answer.control_session_id
            self._challenge = answer.encoded_challenge
            self._correlation_id = self._aeron.next_correlation_id()
            self.state = ConnectState.SEND_CHALLENGE_RESPONSE
        elif isinstance(answer, ControlResponse):
            self._control_session_id = answer.control_session_id
            if answer.code != ControlResponseCode.OK:
                raise refusal("connecting", answer)
            if answer.version >= PROTOCOL_VERSION_WITH_ARCHIVE_ID:
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
        answer = self._answer()
        if isinstance(answer, ControlResponse):
            if answer.code != ControlResponseCode.OK:
                raise refusal("asking for the archive's id", answer)
            self._open(answer.relevant_id)

    def _send_challenge_response(self) -> None:
        response = ChallengeResponse(
            control_session_id=self._control_session_id,
            correlation_id=self._correlation_id,
            encoded_credentials=self.context.on_challenge(self._challenge),
        )
        if self._offer(response):
            self.state = ConnectState.AWAIT_CHALLENGE_RESPONSE

    def _answer(self) -> Response | None:
        """The answer to our last request, if it is there."""
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
            raise ArchiveError("the first request of the session was not sent")
        session = ControlSession(
            self._aeron, self.context, self._clock, self._publication, self._reader,
            self._control_session_id,
        )  # fmt: skip
        session.archive_id = archive_id
        self._session, self.state = session, ConnectState.DONE
