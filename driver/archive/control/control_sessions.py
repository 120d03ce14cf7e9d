"""All control sessions: whose message is this, and may it be obeyed?

    request subscriptions --fragments--> message --decode--> which session --authorised?--> handler

What is no message of the protocol, names no session, or came by another publication than the
session's own is passed over without an answer, as Aeron does; what a client did wrong is noted in
the error log. A request for a token or a new channel makes a session active like any other; Aeron
serves it and goes on repeating itself. Source: archive-protocol 1.1, 2.4, 2.5.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from windtunnel.driver.archive.control import retained_channel
from windtunnel.driver.archive.control.authentication import (
    PROTOCOL_ID,
    Authenticator,
    AuthorisationService,
)
from windtunnel.driver.archive.control.control_session import ControlSession, State
from windtunnel.driver.archive.control.replay_tokens import ReplayTokens
from windtunnel.driver.archive.observation import unforeseen
from windtunnel.driver.archive.observation.archive_errors import ArchiveErrors
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
from windtunnel.driver.archive.settings.archive_settings import ArchiveSettings
from windtunnel.driver.base import system
from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.base.system import NS_PER_MS
from windtunnel.driver.channel import uri, uri_param
from windtunnel.driver.client.aeron import Aeron
from windtunnel.driver.client.counter import Counter
from windtunnel.driver.client.errors import ClientTerminatedError, RegistrationError
from windtunnel.driver.client.image.assembler import FragmentAssembler
from windtunnel.driver.client.image.header import Header
from windtunnel.driver.client.image.image import Image
from windtunnel.driver.client.subscription import Subscription
from windtunnel.driver.command.command_type import ErrorCode as DriverErrorCode

FRAGMENT_LIMIT = 10
"""Of one subscription in one turn."""
RETRY_INTERVAL_NS = NS_PER_MS
"""How long a start waits before it asks for a channel again."""
RequestHandler = Callable[[ControlSession, Request, Image], object]


class SessionIds(Protocol):
    """Where ids of sessions and replications come from."""

    def next_id(self) -> int:
        """One that none had before."""


@dataclass(frozen=True)
class SessionContext:
    """What sessions need of the archive."""

    settings: ArchiveSettings
    client: Aeron
    archive_id: int
    errors: ArchiveErrors
    authenticator: Authenticator
    authorisation: AuthorisationService


class ControlSessions:
    """The sessions of one archive, in its conductor's thread."""

    def __init__(
        self,
        surroundings: SessionContext,
        channels: Sequence[tuple[str, int]],
        ids: SessionIds,
        tokens: ReplayTokens,
        count: Counter,
    ) -> None:
        """Channels and streams of requests, polled in their order. Raises RegistrationError."""
        self._around = surroundings
        self._ids, self._tokens, self._count = ids, tokens, count
        self._sessions: dict[int, ControlSession] = {}
        self._requests = [self._subscribed(*each) for each in channels]
        self._handler: RequestHandler = lambda *_: None
        self._now_ns = self._now_ms = 0

    def _subscribed(self, channel: str, stream_id: int) -> tuple[Subscription, FragmentAssembler]:
        """What a client that is gone had begun to say is forgotten."""
        assembler = FragmentAssembler(self._on_message)
        while True:
            try:
                subscription = self._around.client.add_subscription(
                    channel, stream_id,
                    on_unavailable_image=lambda image: assembler.forget(image.session_id),
                )  # fmt: skip
            except RegistrationError as error:
                # The endpoint of the archive before us may be closing just now.
                if error.code != DriverErrorCode.RESOURCE_TEMPORARILY_UNAVAILABLE:
                    raise
                system.sleep_ns(RETRY_INTERVAL_NS)
            else:
                return subscription, assembler

    def do_work(self, now_ns: int, now_ms: int, handler: RequestHandler) -> int:
        """Hear the clients and go on with every session; requests that pass go to `handler`."""
        self._now_ns, self._now_ms, self._handler = now_ns, now_ms, handler
        work_count = 0
        for subscription, assembler in self._requests:
            work_count += subscription.poll(assembler, FRAGMENT_LIMIT)
        for session in tuple(self._sessions.values()):
            work_count += self._turn(session)
            if session.is_done:
                self._remove(session)
                work_count += 1
        self._tokens.on_time(now_ns)
        return work_count

    def _turn(self, session: ControlSession) -> int:
        """Go on with one; what goes wrong ends it alone, for others have sessions too."""
        try:
            return session.do_work(self._now_ns, self._now_ms)
        except DriverError as error:
            session.end(str(error))
        except Exception as error:
            self._around.errors.record(f"control session: {unforeseen.told(error)}")
            session.end("the archive has met an error")
        return 1

    def _remove(self, session: ControlSession) -> None:
        del self._sessions[session.session_id]
        self._count.set(len(self._sessions))
        try:
            session.close()
        except ClientTerminatedError:
            raise
        except Exception as error:
            self._around.errors.record(f"control session: {unforeseen.told(error)}")

    def close(self) -> None:
        """End every session in good order."""
        for session in tuple(self._sessions.values()):
            session.end("the archive is closed", is_orderly=True)
            self._remove(session)

    def _on_message(self, payload: memoryview, header: Header) -> None:
        try:
            message = decode(payload)
        except UnknownTemplate:
            # A newer client may say what we do not know; it hears no answer either way.
            return
        except MalformedMessage as error:
            self._around.errors.warn(f"request from {header.image.source_identity}: {error}")
            return
        try:
            self._on_known(message, header)
        except Exception as error:
            # A defect of ours that one client has found may not end the others' archive either.
            self._around.errors.record(f"{type(message).__name__}: {unforeseen.told(error)}")

    def _on_known(self, message: Message, header: Header) -> None:
        if isinstance(message, AuthConnectRequest):
            self._on_connect(message, header.image)
        elif isinstance(message, ChallengeResponse):
            challenged = self._sessions.get(message.control_session_id)
            if challenged is not None:
                challenged.on_challenge_response(
                    message.correlation_id, message.encoded_credentials, self._now_ms
                )
        elif isinstance(message, CloseSessionRequest):
            # One that has ended with its response channel is no news to anybody.
            session = self._sessions.get(message.control_session_id)
            if session is not None and session.image is header.image:
                session.end("the client closed it", is_orderly=True)
        elif isinstance(message, Request):
            self._on_request(message, header.image)

    def _on_connect(self, request: AuthConnectRequest, image: Image) -> None:
        settings = self._around.settings
        try:
            parsed = uri.parse(request.response_channel)
            is_response = parsed.get(uri_param.CONTROL_MODE) == "response"
            sparse = parsed.boolean(uri_param.SPARSE)
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
                _version_fault(request.version), self._around, self._now_ns,
            )  # fmt: skip
        except DriverError as error:
            self._around.errors.warn(f"connect request from {image.source_identity}: {error}")
            return
        self._sessions[session.session_id] = session
        self._count.set(len(self._sessions))
        self._around.authenticator.on_connect_request(
            session.session_id, request.encoded_credentials, self._now_ms
        )

    def _session_of(self, request: Request, image: Image) -> ControlSession | None:
        """The session that a request names, if it came by its publication."""
        session_id, name = request.control_session_id, type(request).__name__
        session = self._sessions.get(session_id)
        if session is None:
            self._around.errors.warn(f"{name}: there is no control session {session_id}")
        elif session.image is not image:
            self._around.errors.warn(
                f"{name}: control session {session_id} is not that of this publication"
            )
        else:
            return session
        return None

    def _on_request(self, request: Request, image: Image) -> None:
        if isinstance(request, ReplayRequest | BoundedReplayRequest) and _has_token(request):
            session = self._tokens.session_of(
                request.replay_token, request.recording_id, self._now_ns
            )
            if session is None:
                self._around.errors.warn(f"replay of {request.recording_id}: no such token")
            else:
                self._handler(session, request, image)
            return
        session = self._session_of(request, image)
        if session is None or session.state not in (State.AUTHENTICATED, State.ACTIVE):
            return
        allowed = self._around.authorisation.is_authorised(
            PROTOCOL_ID, request.TEMPLATE_ID, None, session.principal
        )
        if not allowed:
            session.error(
                request.correlation_id,
                f"{type(request).__name__} is not allowed", ErrorCode.UNAUTHORISED_ACTION,
            )  # fmt: skip
            return
        session.activate()
        if not isinstance(request, KeepAliveRequest):
            self._handler(session, request, image)


def _has_token(request: ReplayRequest | BoundedReplayRequest) -> bool:
    """Whether it goes by a token: only what is answered through a response channel does."""
    if request.replay_token == NULL_VALUE:
        return False
    try:
        return uri.parse(request.replay_channel).get(uri_param.CONTROL_MODE) == "response"
    except DriverError:
        return False


def _version_fault(version: int) -> str:
    """What is said to a client whose protocol is another, or nothing."""
    if major_of(version) == major_of(PROTOCOL_VERSION):
        return ""
    return (
        f"the client's protocol version is {version_text(version)}, "
        f"but this archive speaks {version_text(PROTOCOL_VERSION)}"
    )
