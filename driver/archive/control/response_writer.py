"""The messages that an archive sends to one client: responses, descriptors and signals.

Nothing is sent before the response publication exists, and no response or signal after the session
has ended. Source: archive-protocol 1.5, 1.7, 3.16.
"""

import struct
from collections.abc import Callable

from windtunnel.driver.archive.control.response_sender import ResponseSender
from windtunnel.driver.archive.protocol.codec import HEADER
from windtunnel.driver.archive.protocol.codes import (
    NULL_VALUE,
    PROTOCOL_VERSION,
    SCHEMA_ID,
    SCHEMA_VERSION,
    ControlResponseCode,
    ErrorCode,
    RecordingSignal,
)
from windtunnel.driver.archive.protocol.layout import Message
from windtunnel.driver.archive.protocol.responses import (
    ControlResponse,
    RecordingDescriptor,
    RecordingSignalEvent,
)

ERROR_TEXT_LENGTH_MAX = 2_048
"""Our choice: a text may quote a request, and must fit a message of the response stream."""
_IDS = struct.Struct("<2q")


class ResponseWriter:
    """Writes the messages of one control session."""

    def __init__(self, session_id: int, on_attempt: Callable[[bool], object]) -> None:
        """`on_attempt` is called after each attempt to send, with whether it succeeded."""
        self._session_id, self._on_attempt = session_id, on_attempt
        self.sender: ResponseSender | None = None
        """Set once the response publication exists."""
        self._is_closed = False

    def close(self) -> None:
        """Discard responses and signals from now on."""
        self._is_closed = True

    def ok(self, correlation_id: int, relevant_id: int = 0) -> None:
        """Respond that a request has succeeded."""
        self._respond(correlation_id, relevant_id, ControlResponseCode.OK)

    def error(self, correlation_id: int, text: str, code: ErrorCode = ErrorCode.GENERIC) -> None:
        """Respond that a request was rejected, or that what it started has failed."""
        self._respond(correlation_id, code, ControlResponseCode.ERROR, text)

    def recording_unknown(self, correlation_id: int, recording_id: int) -> None:
        self._respond(correlation_id, recording_id, ControlResponseCode.RECORDING_UNKNOWN)

    def subscription_unknown(self, correlation_id: int) -> None:
        self._respond(correlation_id, 0, ControlResponseCode.SUBSCRIPTION_UNKNOWN)

    def signal(
        self,
        correlation_id: int,
        signal: RecordingSignal,
        recording_id: int,
        subscription_id: int = NULL_VALUE,
        position: int = NULL_VALUE,
    ) -> None:
        """Send a recording signal."""
        self._send(
            RecordingSignalEvent(
                control_session_id=self._session_id, correlation_id=correlation_id,
                recording_id=recording_id, subscription_id=subscription_id, position=position,
                signal=signal,
            )
        )  # fmt: skip

    def try_response(
        self, correlation_id: int, relevant_id: int, code: ControlResponseCode, text: str = ""
    ) -> bool:
        """Send a response now or not at all. Returns whether it was sent."""
        message = self._response(correlation_id, relevant_id, code, text)
        return self.sender is not None and self.sender.try_send(message)

    def try_descriptor(self, correlation_id: int, content: bytes) -> bool:
        """Send a descriptor as it is in the catalog, with its padding, now or not at all.

        Returns whether it was sent.
        """
        kind = RecordingDescriptor
        header = HEADER.pack(kind.LAYOUT.block_length, kind.TEMPLATE_ID, SCHEMA_ID, SCHEMA_VERSION)
        ids = _IDS.pack(self._session_id, correlation_id)
        sender = self.sender
        is_sent = (
            sender is not None
            and not sender.has_waiting
            and sender.try_bytes(header + ids + content[_IDS.size :])
        )
        self._on_attempt(is_sent)
        return is_sent

    def try_message(self, message: Message) -> bool:
        """Send a message now or not at all. Returns whether it was sent."""
        sender = self.sender
        is_sent = sender is not None and not sender.has_waiting and sender.try_send(message)
        self._on_attempt(is_sent)
        return is_sent

    def _respond(
        self, correlation_id: int, relevant_id: int, code: ControlResponseCode, text: str = ""
    ) -> None:
        self._send(self._response(correlation_id, relevant_id, code, text))

    def _response(
        self, correlation_id: int, relevant_id: int, code: ControlResponseCode, text: str
    ) -> ControlResponse:
        return ControlResponse(
            control_session_id=self._session_id, correlation_id=correlation_id,
            relevant_id=int(relevant_id), code=code, version=PROTOCOL_VERSION,
            error_message=text[:ERROR_TEXT_LENGTH_MAX],
        )  # fmt: skip

    def _send(self, message: Message) -> None:
        if self.sender is not None and not self._is_closed:
            self._on_attempt(self.sender.send(message))
