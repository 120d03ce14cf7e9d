"""A control session without a client. Sends requests, and keeps all received messages in order.

session = ControlSession(archive)
request = session.send(StartRecordingRequest, stream_id=1001, ...)
session.response(request)          the first response to it
session.received(request)          all messages so far with its correlation id
session.were_ignored(request)      no response, although a later request received one
"""

from dataclasses import dataclass

from tests.archive.archives import until
from windtunnel.driver.archive.protocol import codec
from windtunnel.driver.archive.protocol.codes import (
    PROTOCOL_VERSION,
    ControlResponseCode,
    ErrorCode,
    RecordingSignal,
)
from windtunnel.driver.archive.protocol.layout import Message
from windtunnel.driver.archive.protocol.requests import (
    ArchiveIdRequest,
    AuthConnectRequest,
    CloseSessionRequest,
)
from windtunnel.driver.archive.protocol.responses import (
    Challenge,
    ControlResponse,
    RecordingSignalEvent,
)
from windtunnel.driver.client import FragmentAssembler

LOCAL = "aeron:ipc?term-length=64k"
ANY_PORT = "aeron:udp?endpoint=127.0.0.1:0|term-length=64k"


@dataclass(frozen=True)
class Received:
    """A received message, and its length in bytes."""

    message: Message
    length: int


class ControlSession:
    """A control session with an archive, over its local channel by default."""

    def __init__(
        self, archive, *, request_channel=LOCAL, response_channel=LOCAL, version=PROTOCOL_VERSION,
        credentials=b"", is_opened=True,
    ):  # fmt: skip
        self.aeron = archive.aeron
        session_id = self.aeron.next_session_id(10)
        self.subscription = self.aeron.add_subscription(
            f"{response_channel}|session-id={session_id}", 20
        )
        self.publication = self.aeron.add_exclusive_publication(
            f"{request_channel}|session-id={session_id}", 10
        )
        self.all = []
        self._assembler = FragmentAssembler(self._on_message)
        until(lambda: self.publication.is_connected, "the request channel")
        until(self.subscription.try_resolve_channel_endpoint_port, "the response port")
        self.control_session_id = -1
        self.connect_request = self.aeron.next_correlation_id()
        self.offer(
            AuthConnectRequest(
                correlation_id=self.connect_request, response_stream_id=20, version=version,
                response_channel=self.subscription.try_resolve_channel_endpoint_port(),
                encoded_credentials=credentials, client_info="name=conversation",
            )
        )  # fmt: skip
        if is_opened:
            self.response(self.connect_request)

    def _on_message(self, payload, header):
        message = codec.decode(payload)
        self.all.append(Received(message, len(payload)))
        if isinstance(message, ControlResponse | Challenge):
            self.control_session_id = message.control_session_id

    def poll(self):
        """Receive messages."""
        while self.subscription.poll(self._assembler, 10):
            pass
        return self.all

    def offer(self, message):
        """Send a message, or arbitrary bytes."""
        content = message if isinstance(message, bytes) else codec.encode(message)
        until(lambda: self.publication.offer(content) > 0, f"sending {message}")

    def send(self, kind, **fields):
        """Send a request of this session. Returns its correlation id."""
        fields = {
            "control_session_id": self.control_session_id,
            "correlation_id": self.aeron.next_correlation_id(),
        } | fields
        self.offer(kind(**fields))
        return fields["correlation_id"]

    def messages(self, kind=Message):
        """Return all messages of a kind received so far."""
        return [received.message for received in self.poll() if isinstance(received.message, kind)]

    def received(self, correlation_id, kind=Message):
        """Return all messages received so far with a correlation id."""
        return [
            message
            for message in self.messages(kind)
            if getattr(message, "correlation_id", None) == correlation_id
        ]

    def response(self, correlation_id, number=0):
        """Return the first response to a request, or a later response if `number` is more
        than 0.
        """
        return until(
            lambda: dict(enumerate(self.received(correlation_id))).get(number),
            f"response {number} to {correlation_id}",
        )

    def request(self, kind, **fields):
        """Send a request and wait for its first response."""
        return self.response(self.send(kind, **fields))

    def ok(self, kind, **fields):
        """Send a request that must succeed. Returns the relevant id of its response."""
        response = self.request(kind, **fields)
        assert response.code == ControlResponseCode.OK, response
        return response.relevant_id

    def refused(self, kind, **fields):
        """Send a request that must be rejected. Returns the error code."""
        response = self.request(kind, **fields)
        assert response.code == ControlResponseCode.ERROR, response
        return ErrorCode(response.relevant_id)

    def signal(self, signal, correlation_id):
        """Wait for a signal caused by a request."""

        def found():
            for each in self.received(correlation_id, RecordingSignalEvent):
                if each.signal == RecordingSignal(signal):
                    return each
            return None

        return until(found, f"{signal.name} of {correlation_id}")

    def were_ignored(self, *correlation_ids):
        """Return whether requests were ignored although a later request received a response."""
        self.ok(ArchiveIdRequest)
        return not any(self.received(each) for each in correlation_ids)

    def until_end(self):
        """Receive messages until the archive has closed its response channel."""

        def is_over():
            self.poll()
            return not self.subscription.images

        until(is_over, "the end of the response channel")
        return self.messages()

    def close(self):
        """Close the session in the same way as a client."""
        if not self.publication.is_closed:
            self.publication.offer(
                codec.encode(CloseSessionRequest(control_session_id=self.control_session_id))
            )
        self.publication.close()
        self.subscription.close()


def summary(messages):
    """Summarize responses and signals: OK, an error's name, a signal's name."""
    short = []
    for each in messages:
        if isinstance(each, RecordingSignalEvent):
            short.append(each.signal.name)
        elif isinstance(each, ControlResponse) and each.code == ControlResponseCode.ERROR:
            short.append(ErrorCode(each.relevant_id).name)
        elif isinstance(each, ControlResponse):
            short.append(each.code.name)
        else:
            short.append(type(each).__name__)
    return short
