"""The archive's side of one client's control session.

    WAITING --begin--> INIT --publication, counter--> CONNECTING --connected--> CONNECTED
                                                               |  every 200 ms: ask the
        CHALLENGED <--challenge-- . --reject--> REJECTED       |  authenticator, or report
            `--response--> AUTHENTICATED <--authenticate-------'  a wrong version
                              `--first request--> ACTIVE

The response to the connect request is repeated until the session is ACTIVE, because the client may
not have been connected when the response was first sent. Recordings and replays continue after the
session that started them has ended. When the archive ends the session of an unresponsive client, it
rejects the client's request image, which notifies the client.
Source: archive-protocol 2.5.
"""

from enum import Enum, auto
from typing import Protocol

from windtunnel.driver.archive.control.response_sender import ResponseSender
from windtunnel.driver.archive.control.response_writer import ResponseWriter
from windtunnel.driver.archive.control.session_context import SessionContext
from windtunnel.driver.archive.control.session_counter import SessionCounter
from windtunnel.driver.archive.protocol.codes import (
    NULL_VALUE,
    PROTOCOL_VERSION,
    ControlResponseCode,
    ErrorCode,
)
from windtunnel.driver.archive.protocol.responses import Challenge, Ping
from windtunnel.driver.base.system import NS_PER_MS
from windtunnel.driver.client.errors import ClientError, RegistrationError
from windtunnel.driver.client.image.header import SourceImage
from windtunnel.driver.client.subscription import REASON_LENGTH_MAX
from windtunnel.driver.command.command_type import ErrorCode as DriverErrorCode

RESEND_INTERVAL_NS = 200 * NS_PER_MS
NOT_CONNECTED = "the response channel is not connected"


class State(Enum):
    """The states of a control session."""

    WAITING = auto()
    INIT = auto()
    CONNECTING = auto()
    CONNECTED = auto()
    CHALLENGED = auto()
    AUTHENTICATED = auto()
    ACTIVE = auto()
    REJECTED = auto()
    DONE = auto()


class Listing(Protocol):
    """The interface of a list of recordings or subscriptions that is sent to a client in several
    parts.
    """

    def do_work(self) -> int:
        """Send the next part of the listing. Returns the amount of work done."""

    @property
    def is_done(self) -> bool:
        """Return whether all parts of the listing have been sent."""


class ControlSession:
    """The control session of one client. Only the conductor's thread uses it."""

    def __init__(
        self,
        session_id: int,
        correlation_id: int,
        image: SourceImage,
        response: tuple[str, int],
        client_info: str,
        version_fault: str,
        context: SessionContext,
        now_ns: int,
    ) -> None:
        """Create a session, without starting it. `response` is the response channel and stream
        id.
        """
        self.session_id = session_id
        self.responses = ResponseWriter(session_id, self._update_deadline)
        self._correlation_id = correlation_id
        self.image = image
        """The image of the client's request publication."""
        self.state = State.WAITING
        self.principal = b""
        self.listing: Listing | None = None
        """The listing in progress, or None. A session has at most one listing."""
        self.end_reason = ""
        self._is_orderly = False
        self._response, self._version_fault = response, version_fault
        self._context, self._now_ns = context, now_ns
        self._deadline_ns: int | None = now_ns + context.settings.connect_timeout_ns
        self._resend_ns = now_ns
        self._ping_ns = now_ns + context.settings.session_liveness_check_interval_ns
        self._counter: SessionCounter | None = None
        self._client_info = client_info
        self._publication_id = NULL_VALUE

    def begin(self) -> None:
        """Start establishing the session. Raises ClientError if the client cannot send a
        command.
        """
        self.state = State.INIT
        self._publication_id = self._add_publication()
        self._counter = SessionCounter(
            self._context, self.session_id, self.image, self._client_info
        )

    def _add_publication(self) -> int:
        return self._context.client.async_add_exclusive_publication(*self._response)

    @property
    def is_done(self) -> bool:
        return self.state == State.DONE

    # --- for an authenticator ------------------------------------------------------------------

    def authenticate(self, principal: bytes) -> bool:
        """Accept the client. Returns whether the response was sent."""
        self.principal = principal
        if self._try_respond(ControlResponseCode.OK, self.session_id):
            self._deadline_ns = None
            self.state = State.AUTHENTICATED
            return True
        return False

    def challenge(self, encoded_challenge: bytes) -> bool:
        """Send a challenge to the client. Returns whether the challenge was sent."""
        challenge = Challenge(
            control_session_id=self.session_id, correlation_id=self._correlation_id,
            version=PROTOCOL_VERSION, encoded_challenge=encoded_challenge,
        )  # fmt: skip
        sender = self.responses.sender
        if sender is not None and sender.try_send(challenge):
            self.state = State.CHALLENGED
            return True
        return False

    def reject(self) -> None:
        """Reject the client. The error response is sent repeatedly by `do_work`."""
        self.state = State.REJECTED

    def _update_deadline(self, is_sent: bool) -> None:
        """Start the session's timeout if a message could not be sent, or stop the timeout if it was
        sent.
        """
        if is_sent:
            self._deadline_ns = None
        elif self._deadline_ns is None:
            self._deadline_ns = self._now_ns + self._context.settings.connect_timeout_ns

    def _try_respond(self, code: ControlResponseCode, relevant_id: int, text: str = "") -> bool:
        return self.responses.try_response(self._correlation_id, relevant_id, code, text)

    # --- from the client -----------------------------------------------------------------------

    def on_challenge_response(self, correlation_id: int, credentials: bytes, now_ms: int) -> None:
        """Handle a challenge response. The archive's next responses use the correlation id of the
        challenge response.
        """
        if self.state == State.CHALLENGED:
            self._correlation_id = correlation_id
            self._context.authenticator.on_challenge_response(self.session_id, credentials, now_ms)

    def activate(self) -> None:
        """Activate the session when its first request arrives. The request shows that the client
        has received the connect response.
        """
        if self.state == State.AUTHENTICATED:
            self.state = State.ACTIVE

    def end(self, reason: str = "", *, is_orderly: bool = False) -> None:
        """End the session. If the end is not orderly, `close` rejects the client's request image
        with the reason.
        """
        if not self.is_done:
            self.state, self.end_reason, self._is_orderly = State.DONE, reason, is_orderly
            self.listing = None
            self.responses.close()

    # --- duty cycle ----------------------------------------------------------------------------

    def do_work(self, now_ns: int, now_ms: int) -> int:
        """Run one duty cycle of the session. Returns the amount of work done."""
        self._now_ns = now_ns
        if self.image.is_closed:
            self.end("the client's request publication is closed", is_orderly=True)
        elif self._deadline_ns is not None and now_ns > self._deadline_ns:
            self.end(
                "timeout sending a response" if self.state == State.ACTIVE
                else f"timeout establishing the session in state {self.state.name}"
            )  # fmt: skip
        if self.state == State.INIT:
            return self._await_resources()
        if self.state == State.CONNECTING:
            return self._await_connection()
        if self.state in (State.CONNECTED, State.AUTHENTICATED, State.REJECTED):
            return self._repeat(now_ms)
        if self.state == State.CHALLENGED:
            self._context.authenticator.on_challenged_session(self, now_ms)
            return 1
        return self._serve() if self.state == State.ACTIVE else 0

    def _await_resources(self) -> int:
        client = self._context.client
        if self.responses.sender is None:
            try:
                publication = client.get_exclusive_publication(self._publication_id)
            except RegistrationError as error:
                if error.code != DriverErrorCode.RESOURCE_TEMPORARILY_UNAVAILABLE:
                    self.end(f"cannot add response publication {self._response[0]}: {error}")
                    return 1
                self._publication_id = self._add_publication()
                return 0
            if publication is not None:
                self.responses.sender = ResponseSender(publication, self._context.errors.record)
        assert self._counter is not None
        is_counter_added, sender = self._counter.is_added(), self.responses.sender
        if sender is None or not is_counter_added:
            return 0
        self._counter.publish(sender.publication.registration_id)
        self.state = State.CONNECTING
        self._deadline_ns = self._now_ns + self._context.settings.connect_timeout_ns
        return 1

    def _await_connection(self) -> int:
        sender = self.responses.sender
        if sender is None or not sender.publication.is_connected:
            return 0
        self.state = State.CONNECTED
        return 1

    def _repeat(self, now_ms: int) -> int:
        """Send the response to the connect request again, or ask the authenticator for its
        decision.
        """
        if self._now_ns < self._resend_ns:
            return 0
        self._resend_ns = self._now_ns + RESEND_INTERVAL_NS
        if self.state == State.AUTHENTICATED:
            self._try_respond(ControlResponseCode.OK, self.session_id)
            sender = self.responses.sender
            if sender is not None and sender.is_gone:
                self.end(NOT_CONNECTED, is_orderly=True)
        elif self.state == State.REJECTED:
            rejected = ErrorCode.AUTHENTICATION_REJECTED
            self._try_respond(ControlResponseCode.ERROR, rejected, "authentication rejected")
        elif self._version_fault:
            self._try_respond(ControlResponseCode.ERROR, self.session_id, self._version_fault)
        else:
            self._context.authenticator.on_connected_session(self, now_ms)
        return 1

    def _serve(self) -> int:
        sender = self.responses.sender
        assert sender is not None
        if not sender.publication.is_connected or sender.is_gone:
            self.end(NOT_CONNECTED, is_orderly=True)
            return 1
        work_count = 0
        if self._now_ns > self._ping_ns:
            interval_ns = self._context.settings.session_liveness_check_interval_ns
            self._ping_ns = self._now_ns + interval_ns
            self._update_deadline(sender.try_send(Ping(control_session_id=self.session_id)))
            work_count += 1
        if sender.has_waiting:
            is_sent = sender.send_waiting()
            self._update_deadline(is_sent)
            work_count += is_sent
        if self.listing is not None:
            work_count += self.listing.do_work()
            if self.listing is not None and self.listing.is_done:
                self.listing = None
        return work_count

    def close(self) -> None:
        """Revoke the response publication and close the session's counter. After a failure, also
        reject the client's request image.
        """
        client = self._context.client
        if self.responses.sender is not None:
            self.responses.sender.publication.revoke()
        elif self._publication_id != NULL_VALUE:
            client.abandon(self._publication_id)
        if self._counter is not None:
            self._counter.close()
        if not self._is_orderly and self.end_reason:
            self._context.errors.warn(f"control session {self.session_id}: {self.end_reason}")
            try:
                self.image.async_reject(_truncate(self.end_reason))
            except (ClientError, ValueError) as error:
                self._context.errors.warn(f"control session {self.session_id}: {error}")


def _truncate(reason: str) -> str:
    """Truncate a reason to the maximum length that the driver accepts. A reason can contain a long
    channel.
    """
    return reason.encode("utf-8", "replace")[:REASON_LENGTH_MAX].decode("utf-8", "ignore")
