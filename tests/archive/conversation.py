"""A control session without a client. Sends requests, and keeps all received messages in order.

talk = Conversation(archive)
request = talk.send(StartRecordingRequest, stream_id=1001, ...)
talk.answer(request)               the first response to it
talk.heard(request)                all messages so far with its correlation id
talk.nothing_came_of(request)      no response, though a later request was answered
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
class Heard:
    """A received message, and its length in bytes."""

    message: Message
    length: int


class Conversation:
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
        self.connecting = self.aeron.next_correlation_id()
        self.offer(
            AuthConnectRequest(
                correlation_id=self.connecting, response_stream_id=20, version=version,
                response_channel=self.subscription.try_resolve_channel_endpoint_port(),
                encoded_credentials=credentials, client_info="name=conversation",
            )
        )  # fmt: skip
        if is_opened:
            self.answer(self.connecting)

    def _on_message(self, payload, header):
        message = codec.decode(payload)
        self.all.append(Heard(message, len(payload)))
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
        return [heard.message for heard in self.poll() if isinstance(heard.message, kind)]

    def heard(self, correlation_id, kind=Message):
        """Return all messages received so far with a correlation id."""
        return [
            message
            for message in self.messages(kind)
            if getattr(message, "correlation_id", None) == correlation_id
        ]

    def answer(self, correlation_id, number=0):
        """Return the first response to a request, or a later response if `number` is more
        than 0.
        """
        return until(
            lambda: dict(enumerate(self.heard(correlation_id))).get(number),
            f"answer {number} to {correlation_id}",
        )

    def ask(self, kind, **fields):
        """Send a request and wait for its first response."""
        return self.answer(self.send(kind, **fields))

    def ok(self, kind, **fields):
        """Send a request that must succeed. Returns the relevant id of its response."""
        answer = self.ask(kind, **fields)
        assert answer.code == ControlResponseCode.OK, answer
        return answer.relevant_id

    def refused(self, kind, **fields):
        """Send a request that must be rejected. Returns the error code."""
        answer = self.ask(kind, **fields)
        assert answer.code == ControlResponseCode.ERROR, answer
        return ErrorCode(answer.relevant_id)

    def signal(self, signal, correlation_id):
        """Wait for a signal caused by a request."""

        def found():
            for each in self.heard(correlation_id, RecordingSignalEvent):
                if each.signal == RecordingSignal(signal):
                    return each
            return None

        return until(found, f"{signal.name} of {correlation_id}")

    def nothing_came_of(self, *correlation_ids):
        """Return whether requests were ignored, given that a later request received a response."""
        self.ok(ArchiveIdRequest)
        return not any(self.heard(each) for each in correlation_ids)

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


def shape(messages):
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
