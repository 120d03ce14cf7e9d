"""One client's conversation with an archive.

    INIT --publication, counter--> CONNECTING --connected--> CONNECTED
                                                               |  every 200 ms the authenticator
        CHALLENGED <--challenge-- . --reject--> REJECTED       |  is asked, or a wrong version is
            `--answer--> AUTHENTICATED <--authenticate---------'  told
                              `--first request--> ACTIVE

Up to ACTIVE the answer to the connect request is repeated, since the client may not have been there
for the first. What a session started outlives it. A client that is given up has its request image
rejected, so that it learns of it. Source: archive-protocol 2.5.
"""

from __future__ import annotations

import struct
from enum import Enum, auto
from typing import TYPE_CHECKING, Protocol

from windtunnel.driver.archive.control.response_sender import ResponseSender
from windtunnel.driver.archive.control.session_answers import SessionAnswers
from windtunnel.driver.archive.observation import archive_counters
from windtunnel.driver.archive.protocol.codes import (
    PROTOCOL_VERSION,
    ControlResponseCode,
    ErrorCode,
)
from windtunnel.driver.archive.protocol.responses import Challenge, Ping
from windtunnel.driver.base.atomics import put_i64
from windtunnel.driver.base.system import NS_PER_MS
from windtunnel.driver.client.counter import Counter
from windtunnel.driver.client.errors import ClientError, RegistrationError
from windtunnel.driver.client.image.image import Image
from windtunnel.driver.client.publication.exclusive_publication import ExclusivePublication
from windtunnel.driver.client.subscription import REASON_LENGTH_MAX
from windtunnel.driver.cnc import counter_label, counters
from windtunnel.driver.command.command_type import ErrorCode as DriverErrorCode

if TYPE_CHECKING:
    from windtunnel.driver.archive.control.control_sessions import SessionContext

RESEND_INTERVAL_NS = 200 * NS_PER_MS
_KEY = struct.Struct("<2q")


class State(Enum):
    """How far the conversation is."""

    INIT = auto()
    CONNECTING = auto()
    CONNECTED = auto()
    CHALLENGED = auto()
    AUTHENTICATED = auto()
    ACTIVE = auto()
    REJECTED = auto()
    DONE = auto()


class Listing(Protocol):
    """Something that is told piece by piece."""

    def do_work(self) -> int:
        """Tell more of it. Returns how much."""

    @property
    def is_done(self) -> bool:
        """Whether all was told."""


class ControlSession(SessionAnswers):
    """One client's conversation, in the conductor's thread."""

    def __init__(
        self,
        session_id: int,
        correlation_id: int,
        image: Image,
        response: tuple[str, int],
        client_info: str,
        version_fault: str,
        surroundings: SessionContext,
        now_ns: int,
    ) -> None:
        """`response` is channel and stream of the answers. Raises ClientError."""
        super().__init__(session_id)
        self._correlation_id = correlation_id
        self.image = image
        """By which the client talks."""
        self.state = State.INIT
        self.principal = b""
        self.listing: Listing | None = None
        """What is being told at present; one thing at a time."""
        self.end_reason = ""
        self._is_orderly = False
        self._response, self._version_fault = response, version_fault
        self._around, self._now_ns = surroundings, now_ns
        self._deadline_ns: int | None = now_ns + surroundings.settings.connect_timeout_ns
        self._resend_ns = now_ns
        self._ping_ns = now_ns + surroundings.settings.session_liveness_check_interval_ns
        self._counter: Counter | None = None
        self._publication_id = self._ask_publication()
        self._counter_id = self._ask_counter(client_info)

    def _ask_publication(self) -> int:
        return self._around.client.async_add_exclusive_publication(*self._response)

    def _ask_counter(self, client_info: str) -> int:
        archive_id, image = self._around.archive_id, self.image
        head = f"control-session: {client_info}" if client_info else "control-session:"
        # By its request publication people find the client; our own id is the counter's value.
        tail = f" sourceIdentity={image.source_identity} sessionId={image.session_id}"
        tail += archive_counters.suffix(archive_id)
        label = counter_label.fitting(head, tail)
        return self._around.client.async_add_counter(
            archive_counters.CONTROL_SESSION, _KEY.pack(archive_id, self.session_id), label
        )

    @property
    def is_done(self) -> bool:
        return self.state == State.DONE

    # --- what an authenticator may say ---------------------------------------------------------

    def authenticate(self, principal: bytes) -> bool:
        """Let it in. Returns whether it could be told."""
        self.principal = principal
        if self._is_told(ControlResponseCode.OK, self.session_id):
            self._deadline_ns = None
            self.state = State.AUTHENTICATED
            return True
        return False

    def challenge(self, encoded_challenge: bytes) -> bool:
        """Ask for more. Returns whether it could be told."""
        challenge = Challenge(
            control_session_id=self.session_id, correlation_id=self._correlation_id,
            version=PROTOCOL_VERSION, encoded_challenge=encoded_challenge,
        )  # fmt: skip
        if self._sender is not None and self._sender.try_send(challenge):
            self.state = State.CHALLENGED
            return True
        return False

    def reject(self) -> None:
        """Turn it away."""
        self.state = State.REJECTED

    def _noted(self, is_sent: bool) -> bool:
        """A client that takes nothing for too long is given up."""
        if is_sent:
            self._deadline_ns = None
        elif self._deadline_ns is None:
            self._deadline_ns = self._now_ns + self._around.settings.connect_timeout_ns
        return is_sent

    def _is_told(self, code: ControlResponseCode, relevant_id: int, text: str = "") -> bool:
        message = self._response_of(self._correlation_id, relevant_id, code, text)
        return self._sender is not None and self._sender.try_send(message)

    # --- what the client says ------------------------------------------------------------------

    def on_challenge_response(self, correlation_id: int, credentials: bytes, now_ms: int) -> None:
        """The client answers a challenge; from now on that is its connect request."""
        if self.state == State.CHALLENGED:
            self._correlation_id = correlation_id
            self._around.authenticator.on_challenge_response(self.session_id, credentials, now_ms)

    def activate(self) -> None:
        """The client has heard that it may ask."""
        if self.state == State.AUTHENTICATED:
            self.state = State.ACTIVE

    def end(self, reason: str = "", *, is_orderly: bool = False) -> None:
        """No more is said. Without an orderly reason the client is given up, and told so."""
        if not self.is_done:
            self.state, self.end_reason, self._is_orderly = State.DONE, reason, is_orderly
            self.listing, self._is_silent = None, True

    # --- its duty cycle ------------------------------------------------------------------------

    def do_work(self, now_ns: int, now_ms: int) -> int:
        """Go on with the conversation. Returns an amount of work."""
        self._now_ns = now_ns
        if self.image.is_closed:
            self.end("the client's request publication is gone", is_orderly=True)
        elif self._deadline_ns is not None and now_ns > self._deadline_ns:
            self.end(
                "no response could be sent for too long" if self.state == State.ACTIVE
                else f"the session was not established in time: {self.state.name}"
            )  # fmt: skip
        if self.state == State.INIT:
            return self._await_resources()
        if self.state == State.CONNECTING:
            return self._await_connection()
        if self.state in (State.CONNECTED, State.AUTHENTICATED, State.REJECTED):
            return self._repeat(now_ms)
        if self.state == State.CHALLENGED:
            self._around.authenticator.on_challenged_session(self, now_ms)
            return 1
        return self._serve() if self.state == State.ACTIVE else 0

    def _await_resources(self) -> int:
        client = self._around.client
        if self._sender is None:
            try:
                publication = client.get_exclusive_publication(self._publication_id)
            except RegistrationError as error:
                if error.code != DriverErrorCode.RESOURCE_TEMPORARILY_UNAVAILABLE:
                    self.end(f"its response channel {self._response[0]}: {error}")
                    return 1
                self._publication_id = self._ask_publication()
                return 0
            if publication is not None:
                self._sender = ResponseSender(publication, self._around.errors.record)
        if self._counter is None:
            self._counter = client.get_counter(self._counter_id)
        if self._sender is None or self._counter is None:
            return 0
        self._announce(self._counter, self._sender.publication)
        self.state = State.CONNECTING
        self._deadline_ns = self._now_ns + self._around.settings.connect_timeout_ns
        return 1

    def _announce(self, counter: Counter, publication: ExclusivePublication) -> None:
        values = self._around.client.counters.values
        at = counter.counter_id * counters.COUNTER_LENGTH + counters.REFERENCE_ID
        put_i64(values, at, publication.registration_id)
        counter.set(self.session_id)

    def _await_connection(self) -> int:
        if self._sender is None or not self._sender.publication.is_connected:
            return 0
        self.state = State.CONNECTED
        return 1

    def _repeat(self, now_ms: int) -> int:
        """Say again how the connect request went, or have it decided."""
        if self._now_ns < self._resend_ns:
            return 0
        self._resend_ns = self._now_ns + RESEND_INTERVAL_NS
        if self.state == State.AUTHENTICATED:
            self._is_told(ControlResponseCode.OK, self.session_id)
            if self._sender is not None and self._sender.is_gone:
                self.end("its response channel is not connected", is_orderly=True)
        elif self.state == State.REJECTED:
            rejected = ErrorCode.AUTHENTICATION_REJECTED
            self._is_told(ControlResponseCode.ERROR, rejected, "authentication rejected")
        elif self._version_fault:
            self._is_told(ControlResponseCode.ERROR, self.session_id, self._version_fault)
        else:
            self._around.authenticator.on_connected_session(self, now_ms)
        return 1

    def _serve(self) -> int:
        sender = self._sender
        assert sender is not None
        if not sender.publication.is_connected or sender.is_gone:
            self.end("its response channel is not connected", is_orderly=True)
            return 1
        work_count = 0
        if self._now_ns > self._ping_ns:
            interval_ns = self._around.settings.session_liveness_check_interval_ns
            self._ping_ns = self._now_ns + interval_ns
            self._noted(sender.try_send(Ping(control_session_id=self.session_id)))
            work_count += 1
        if sender.has_waiting:
            work_count += self._noted(sender.send_waiting())
        if self.listing is not None:
            work_count += self.listing.do_work()
            if self.listing is not None and self.listing.is_done:
                self.listing = None
        return work_count

    def close(self) -> None:
        """Let go of everything; a client that was given up is told by its request image."""
        client = self._around.client
        if self._sender is not None:
            self._sender.publication.revoke()
        else:
            client.abandon(self._publication_id)
        if self._counter is not None:
            self._counter.close()
        else:
            client.abandon(self._counter_id)
        if not self._is_orderly and self.end_reason:
            self._around.errors.warn(f"control session {self.session_id}: {self.end_reason}")
            try:
                self.image.reject(_fitting(self.end_reason))
            except (ClientError, ValueError) as error:
                self._around.errors.warn(f"control session {self.session_id}: {error}")


def _fitting(reason: str) -> str:
    """As much of a reason as the driver takes: it may quote a channel of any length."""
    return reason.encode("utf-8", "replace")[:REASON_LENGTH_MAX].decode("utf-8", "ignore")
