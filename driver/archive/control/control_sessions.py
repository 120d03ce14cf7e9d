"""All control sessions of an archive. Assigns each message to its session and authorises the
requests.

    request subscriptions --fragments--> message --decode--> which session --authorised?--> handler

The archive ignores a message, without a response, if it is malformed, if its session does not
exist, or if it did not come from the session's publication. Aeron does the same. Client errors are
logged as warnings. Any request activates a session. In Aeron, requests for a token or a channel
update do not activate it, and the connect response is still repeated. Source: archive-protocol 1.1,
2.4, 2.5.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from windtunnel.driver.archive.control import connection_limits, retained_channel
from windtunnel.driver.archive.control.authentication import PROTOCOL_ID
from windtunnel.driver.archive.control.control_session import ControlSession, State
from windtunnel.driver.archive.control.replay_tokens import ReplayTokens
from windtunnel.driver.archive.control.session_context import SessionContext
from windtunnel.driver.archive.observation import error_text
from windtunnel.driver.archive.protocol.codec import MalformedMessage, UnknownTemplate, decode
from windtunnel.driver.archive.protocol.codes import (
    NULL_VALUE,
    PROTOCOL_VERSION,
    ErrorCode,
    major_of,
    version_text,
)
from windtunnel.driver.archive.protocol.layout import Message
from windtunnel.driver.archive.protocol.requests import (
    AuthConnectRequest,
    BoundedReplayRequest,
    ChallengeResponse,
    CloseSessionRequest,
    KeepAliveRequest,
    ReplayRequest,
    Request,
)
from windtunnel.driver.base import system
from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.base.system import NS_PER_MS
from windtunnel.driver.channel import uri, uri_param
from windtunnel.driver.client.counter import Counter
from windtunnel.driver.client.errors import ClientTerminatedError, RegistrationError
from windtunnel.driver.client.image.assembler import FragmentAssembler
from windtunnel.driver.client.image.header import Header, SourceImage
from windtunnel.driver.client.subscription import Subscription
from windtunnel.driver.command.command_type import ErrorCode as DriverErrorCode

FRAGMENT_LIMIT = 10
"""The maximum number of fragments per subscription and duty cycle."""
REQUEST_LENGTH_MAX = 1 << 18
"""The maximum length of a fragmented request in bytes, four times that of the longest credentials,
Kerberos tickets. It limits the memory for requests whose last fragments never arrive, which may be
those of hundreds of forged sessions."""
RETRY_INTERVAL_NS = NS_PER_MS
"""The pause before a starting archive retries to add a subscription."""
RequestHandler = Callable[[ControlSession, Request, SourceImage], object]


class SessionIds(Protocol):
    """Generates unique ids for sessions and replications."""

    def next_id(self) -> int:
        """Return an id that has not been returned before."""


class ControlSessions:
    """All control sessions of one archive. Only the conductor's thread uses them."""

    def __init__(
        self,
        context: SessionContext,
        channels: Sequence[tuple[str, int]],
        ids: SessionIds,
        tokens: ReplayTokens,
        count: Counter,
    ) -> None:
        """Subscribe to the request channels and streams, which are polled in the given order.

        Raises RegistrationError.
        """
        self._context = context
        self._ids, self._tokens, self._count = ids, tokens, count
        self._sessions: dict[int, ControlSession] = {}
        self._subscriptions = [self._subscribe(*each) for each in channels]
        self._handler: RequestHandler = lambda *_: None
        self._now_ns = self._now_ms = 0

    def _subscribe(self, channel: str, stream_id: int) -> tuple[Subscription, FragmentAssembler]:
        """Add a request subscription. If an image becomes unavailable, its partial messages are
        discarded.
        """
        client = self._context.client
        assembler = FragmentAssembler(self._on_message, REQUEST_LENGTH_MAX)
        while True:
            try:
                subscription = client.add_subscription(
                    channel, stream_id,
                    on_unavailable_image=(
                        lambda image: assembler.free_session_buffer(image.session_id)
                    ),
                )  # fmt: skip
            except RegistrationError as error:
                # The driver may still be closing the endpoint of the previous archive. In the
                # same thread it cannot go on while this one waits.
                is_temporary = error.code == DriverErrorCode.RESOURCE_TEMPORARILY_UNAVAILABLE
                if client.context.driver_agent_invoker is not None or not is_temporary:
                    raise
                system.sleep_ns(RETRY_INTERVAL_NS)
            else:
                return subscription, assembler

    def do_work(self, now_ns: int, now_ms: int, handler: RequestHandler) -> int:
        """Receive messages and run every session. Passes authorised requests to `handler`."""
        self._now_ns, self._now_ms, self._handler = now_ns, now_ms, handler
        work_count = 0
        for subscription, assembler in self._subscriptions:
            work_count += subscription.poll(assembler, FRAGMENT_LIMIT)
        for session in connection_limits.next_sessions(self._sessions.values()):
            self._begin(session)
        for session in tuple(self._sessions.values()):
            work_count += self._run(session)
            if session.is_done:
                self._remove(session)
                work_count += 1
        self._tokens.expire(now_ns)
        return work_count

    def _begin(self, session: ControlSession) -> None:
        try:
            session.begin()
        except DriverError as error:
            session.end(str(error))

    def _run(self, session: ControlSession) -> int:
        """Run one duty cycle of a session. An error ends only this session."""
        try:
            return session.do_work(self._now_ns, self._now_ms)
        except DriverError as error:
            session.end(str(error))
        except Exception as error:
            self._context.errors.record(f"control session: {error_text.describe_error(error)}")
            session.end("internal error of the archive")
        return 1

    def _remove(self, session: ControlSession) -> None:
        del self._sessions[session.session_id]
        self._count.set(len(self._sessions))
        try:
            session.close()
        except ClientTerminatedError:
            raise
        except Exception as error:
            self._context.errors.record(f"control session: {error_text.describe_error(error)}")

    def close(self) -> None:
        """End every session in an orderly way."""
        for session in tuple(self._sessions.values()):
            session.end("the archive is closed", is_orderly=True)
            self._remove(session)

    def _on_message(self, payload: memoryview, header: Header) -> None:
        try:
            message = decode(payload)
        except UnknownTemplate:
            # A newer client may send messages that are unknown here. Aeron ignores them, too.
            return
        except MalformedMessage as error:
            self._context.errors.warn(f"request from {header.image.source_identity}: {error}")
            return
        try:
            self._dispatch(message, header)
        except Exception as error:
            # A defect that one client triggers must not stop the archive for all clients.
            self._context.errors.record(
                f"{type(message).__name__}: {error_text.describe_error(error)}"
            )

    def _dispatch(self, message: Message, header: Header) -> None:
        if isinstance(message, AuthConnectRequest):
            self._on_connect(message, header.image)
        elif isinstance(message, ChallengeResponse):
            challenged = self._sessions.get(message.control_session_id)
            if challenged is not None and challenged.image is header.image:
                challenged.on_challenge_response(
                    message.correlation_id, message.encoded_credentials, self._now_ms
                )
        elif isinstance(message, CloseSessionRequest):
            # The session may have ended already, with its response channel.
            session = self._sessions.get(message.control_session_id)
            if session is not None and session.image is header.image:
                session.end("the client closed it", is_orderly=True)
        elif isinstance(message, Request):
            self._on_request(message, header.image)

    def _on_connect(self, request: AuthConnectRequest, image: SourceImage) -> None:
        settings = self._context.settings
        try:
            connection_limits.require_room(self._sessions.values(), image)
            parsed = uri.parse(request.response_channel)
            is_response = parsed.get(uri_param.CONTROL_MODE) == "response"
            sparse = retained_channel.boolean(parsed, uri_param.SPARSE)
            channel = retained_channel.retained(
                parsed,
                term_length=parsed.size(uri_param.TERM_LENGTH)
                or settings.control_term_buffer_length,
                sparse=settings.control_term_buffer_sparse if sparse is None else sparse,
                mtu=parsed.size(uri_param.MTU_LENGTH) or settings.control_mtu_length,
                response_correlation_id=image.correlation_id if is_response else None,
            )
            session = ControlSession(
                self._ids.next_id(), request.correlation_id, image,
                (str(channel), request.response_stream_id), request.client_info,
                _version_fault(request.version), self._context, self._now_ns,
            )  # fmt: skip
        except DriverError as error:
            self._context.errors.warn(f"connect request from {image.source_identity}: {error}")
            return
        self._sessions[session.session_id] = session
        self._count.set(len(self._sessions))
        self._context.authenticator.on_connect_request(
            session.session_id, request.encoded_credentials, self._now_ms
        )

    def _session_of(self, request: Request, image: SourceImage) -> ControlSession | None:
        """Return the session of a request, or None if the request did not come from the session's
        publication.
        """
        session_id, name = request.control_session_id, type(request).__name__
        session = self._sessions.get(session_id)
        if session is None:
            self._context.errors.warn(f"{name}: unknown control session {session_id}")
        elif session.image is not image:
            self._context.errors.warn(
                f"{name}: control session {session_id} belongs to another publication"
            )
        else:
            return session
        return None

    def _on_request(self, request: Request, image: SourceImage) -> None:
        if isinstance(request, ReplayRequest | BoundedReplayRequest) and _has_token(request):
            session = self._tokens.session_of(
                request.replay_token, request.recording_id, self._now_ns
            )
            if session is None:
                self._context.errors.warn(
                    f"replay of recording {request.recording_id}: unknown or expired token"
                )
            else:
                self._handler(session, request, image)
            return
        session = self._session_of(request, image)
        if session is None or session.state not in (State.AUTHENTICATED, State.ACTIVE):
            return
        allowed = self._context.authorisation.is_authorised(
            PROTOCOL_ID, request.TEMPLATE_ID, None, session.principal
        )
        if not allowed:
            session.responses.error(
                request.correlation_id,
                f"{type(request).__name__} is not allowed", ErrorCode.UNAUTHORISED_ACTION,
            )  # fmt: skip
            return
        session.activate()
        if not isinstance(request, KeepAliveRequest):
            self._handler(session, request, image)


def _has_token(request: ReplayRequest | BoundedReplayRequest) -> bool:
    """Return whether a replay request has both a response channel and a token."""
    if request.replay_token == NULL_VALUE:
        return False
    try:
        return uri.parse(request.replay_channel).get(uri_param.CONTROL_MODE) == "response"
    except DriverError:
        return False


def _version_fault(version: int) -> str:
    """Return an error message if the client's protocol version is incompatible, or else an empty
    string.
    """
    if major_of(version) == major_of(PROTOCOL_VERSION):
        return ""
    return (
        f"the client's protocol version is {version_text(version)}, "
        f"but this archive uses {version_text(PROTOCOL_VERSION)}"
    )
