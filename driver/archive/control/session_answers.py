"""What an archive says to one client: answers, descriptors, signals.

Before there is a response publication, and after the end, nothing is said. Source: archive-protocol
1.5, 1.7, 3.16.
"""

import struct

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
"""Ours: a text may quote what a client sent, and must fit a message of its response stream."""
_IDS = struct.Struct("<2q")


class SessionAnswers:
    """The speaking part of a control session."""

    def __init__(self, session_id: int) -> None:
        self.session_id = session_id
        self._sender: ResponseSender | None = None
        self._is_silent = False

    def _noted(self, is_sent: bool) -> bool:
        """Hear whether the client takes what is sent."""
        raise NotImplementedError

    def ok(self, correlation_id: int, relevant_id: int = 0) -> None:
        """The request is granted."""
        self._respond(correlation_id, relevant_id, ControlResponseCode.OK)

    def error(self, correlation_id: int, text: str, code: ErrorCode = ErrorCode.GENERIC) -> None:
        """The request is refused, or what it began has failed."""
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
        """Something happened to a recording."""
        self._send(
            RecordingSignalEvent(
                control_session_id=self.session_id, correlation_id=correlation_id,
                recording_id=recording_id, subscription_id=subscription_id, position=position,
                signal=signal,
            )
        )  # fmt: skip

    def try_descriptor(self, correlation_id: int, content: bytes) -> bool:
        """Tell of a recording as the catalog has it, padding included. Returns whether it went."""
        kind = RecordingDescriptor
        header = HEADER.pack(kind.LAYOUT.block_length, kind.TEMPLATE_ID, SCHEMA_ID, SCHEMA_VERSION)
        ids = _IDS.pack(self.session_id, correlation_id)
        return self._is_taken(header + ids + content[_IDS.size :])

    def try_message(self, message: Message) -> bool:
        """Say something now or not at all. Returns whether it went."""
        sender = self._sender
        return self._noted(
            sender is not None and not sender.has_waiting and sender.try_send(message)
        )

    def _is_taken(self, content: bytes) -> bool:
        sender = self._sender
        return self._noted(
            sender is not None and not sender.has_waiting and sender.try_bytes(content)
        )

    def _respond(
        self, correlation_id: int, relevant_id: int, code: ControlResponseCode, text: str = ""
    ) -> None:
        self._send(self._response_of(correlation_id, relevant_id, code, text))

    def _response_of(
        self, correlation_id: int, relevant_id: int, code: ControlResponseCode, text: str = ""
    ) -> ControlResponse:
        return ControlResponse(
            control_session_id=self.session_id, correlation_id=correlation_id,
            relevant_id=int(relevant_id), code=code, version=PROTOCOL_VERSION,
            error_message=text[:ERROR_TEXT_LENGTH_MAX],
        )  # fmt: skip

    def _send(self, message: Message) -> None:
        if self._sender is not None and not self._is_silent:
            self._noted(self._sender.send(message))
