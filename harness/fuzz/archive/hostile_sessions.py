"""Hostile clients of an archive: each has a request publication and, mostly, a control session.

0, 1    sessions over IPC and over UDP
2       a publication without a session: its requests must be ignored
3       a publication that names the session of the checked client: they must be ignored, too
"""

import struct
import time
from typing import Any

from windtunnel.driver.archive.protocol import codec
from windtunnel.driver.archive.protocol.codes import PROTOCOL_VERSION
from windtunnel.driver.archive.protocol.requests import AuthConnectRequest
from windtunnel.driver.archive.protocol.responses import ControlResponse
from windtunnel.driver.client import Aeron, FragmentAssembler
from windtunnel.harness.fuzz.archive.messages import SESSION_BYTES, names_recording

IPC_CHANNEL = "aeron:ipc?term-length=64k"
REQUEST_STREAM, FIRST_RESPONSE_STREAM = 10, 5_000
NO_SESSION = -1
PATIENCE_S = 10.0
SESSIONS = 4
STRANGER, IMPOSTOR = 2, 3


class HostileSession:
    """One hostile client. It connects again after the archive has disconnected it."""

    def __init__(self, aeron: Aeron, number: int, udp_channel: str) -> None:
        self._aeron, self._number = aeron, number
        self._channel = f"{udp_channel}|term-length=64k" if number == 1 else IPC_CHANNEL
        self._stream = FIRST_RESPONSE_STREAM + number
        self._assembler = FragmentAssembler(self._on_message)
        self.session_id = NO_SESSION
        self._publication: Any = None
        self._subscription: Any = None

    def _on_message(self, payload: memoryview, header: Any) -> None:
        message = codec.decode(payload)
        if isinstance(message, ControlResponse) and self.session_id == NO_SESSION:
            self.session_id = message.control_session_id

    def connect(self) -> None:
        """Add the publication, and open a session if this client has one. Gives up on timeout: an
        archive may refuse a hostile client.
        """
        self.close()
        self._stream += SESSIONS
        self._publication = self._aeron.add_exclusive_publication(self._channel, REQUEST_STREAM)
        self._subscription = self._aeron.add_subscription(IPC_CHANNEL, self._stream)
        deadline_s = time.monotonic() + PATIENCE_S
        while not self._publication.is_connected and time.monotonic() < deadline_s:
            time.sleep(0.001)
        if self._number in (STRANGER, IMPOSTOR):
            return
        request = AuthConnectRequest(
            correlation_id=self._aeron.next_correlation_id(), response_stream_id=self._stream,
            version=PROTOCOL_VERSION, response_channel=IPC_CHANNEL, encoded_credentials=b"",
            client_info=f"name=hostile-{self._number}",
        )  # fmt: skip
        while self._publication.offer(codec.encode(request)) <= 0:
            if time.monotonic() > deadline_s:
                return
            time.sleep(0.001)
        while self.session_id == NO_SESSION and time.monotonic() < deadline_s:
            self.drain()
            time.sleep(0.001)

    def send(self, content: bytes, impersonated: int, guarded: set[int]) -> bool:
        """Offer a message once, with the current session's id. Returns whether it is done with: it
        was sent, or must not or cannot be sent.
        """
        if self._publication is None or not self._publication.is_connected:
            self.connect()
        session_id = impersonated if self._number == IMPOSTOR else self.session_id
        content = content.replace(SESSION_BYTES, struct.pack("<q", session_id))
        content = content[: self._publication.max_message_length]
        is_ignored = self._number in (STRANGER, IMPOSTOR)
        if not is_ignored and names_recording(content, guarded):
            return True
        return not content or self._publication.offer(content) > 0

    def drain(self) -> None:
        """Read and ignore the responses."""
        while self._subscription is not None and self._subscription.poll(self._assembler, 64):
            pass

    def close(self) -> None:
        """Close the publication and the subscription."""
        for item in (self._publication, self._subscription):
            if item is not None:
                item.close()
        self._publication = self._subscription = None
        self.session_id = NO_SESSION
