"""The messages that an archive sends to one client: responses, descriptors and signals.

No message is sent before the response publication exists, and no response or signal is sent after
the session has ended. Source: archive-protocol 1.5, 1.7, 3.16.
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
"""The maximum length of an error message. It may quote a request, but must fit into one response
message.
"""
_IDS = struct.Struct("<2q")


class ResponseWriter:
    """Creates and sends the messages of one control session."""

    def __init__(self, session_id: int, on_attempt: Callable[[bool], object]) -> None:
        """Create a writer. `on_attempt` is called after each attempt to send a message, with True
        if the message was sent, or else False.
        """
        self._session_id, self._on_attempt = session_id, on_attempt
        self.sender: ResponseSender | None = None
        """The sender, which is set once the response publication exists."""
        self._is_closed = False

    def close(self) -> None:
        """Close the writer. From now on, the writer discards all responses and signals instead of
        sending them.
        """
        self._is_closed = True

    def ok(self, correlation_id: int, relevant_id: int = 0) -> None:
        """Send a response to a successful request."""
        self._respond(correlation_id, relevant_id, ControlResponseCode.OK)

    def error(self, correlation_id: int, text: str, code: ErrorCode = ErrorCode.GENERIC) -> None:
        """Send an error response, for a rejected request or for the later failure of an
        operation.
        """
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
        """Send a recording signal to the client."""
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
        """Send a response, or discard it if that fails. Returns whether the response was sent."""
        message = self._response(correlation_id, relevant_id, code, text)
        return self.sender is not None and self.sender.try_send(message)

    def try_descriptor(self, correlation_id: int, content: bytes) -> bool:
        """Send a descriptor exactly as it is stored in the catalog, including its padding.

        Returns whether it was sent. It is not queued.
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
        """Send a message unless other messages are queued. Returns whether the message was sent."""
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
