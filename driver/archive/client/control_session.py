"""An open control session with an archive. It sends requests and matches responses to them.

    request -------> request publication ----> archive
                                           |
    responses by correlation id <--+       |
    recording signals  <-----------+-- response subscription
    unclaimed errors   <-----------+

Several requests may be pending at the same time. An error that belongs to no pending request, such
as the error of an aborted replay, is unclaimed: it is passed to the error handler, or kept until
the application polls for it. This module does not interpret requests. Source: archive-protocol 2.8.
"""

from collections import deque
from collections.abc import Mapping

from windtunnel.driver.archive.client.context import ArchiveContext
from windtunnel.driver.archive.client.errors import (
    ArchiveClosedError,
    ArchiveError,
    ArchiveTimeoutError,
    error_from_response,
)
from windtunnel.driver.archive.client.response_reader import ResponseReader
from windtunnel.driver.archive.client.turns import Turns
from windtunnel.driver.archive.protocol import codec
from windtunnel.driver.archive.protocol.codes import NULL_VALUE, ControlResponseCode, ErrorCode
from windtunnel.driver.archive.protocol.layout import Message
from windtunnel.driver.archive.protocol.requests import (
    CloseSessionRequest,
    KeepAliveRequest,
    Request,
)
from windtunnel.driver.archive.protocol.responses import (
    ControlResponse,
    RecordingSignalEvent,
    Response,
)
from windtunnel.driver.base.clock import Clock
from windtunnel.driver.client import Aeron, ExclusivePublication, Subscription
from windtunnel.driver.logbuffer import publication_result as result

UNCLAIMED_MAX = 64
"""The maximum number of unclaimed errors that are kept. An unclaimed error belongs to no pending
request.
"""


class ControlSession:
    """A control session with an archive. Only one thread at a time may use it."""

    def __init__(
        self,
        aeron: Aeron,
        context: ArchiveContext,
        clock: Clock,
        publication: ExclusivePublication,
        reader: ResponseReader,
        control_session_id: int,
    ) -> None:
        self.aeron, self.context, self.clock = aeron, context, clock
        self.publication, self._reader = publication, reader
        self.control_session_id = control_session_id
        self.archive_id = NULL_VALUE
        """The archive id, or -1 if the archive's version has no archive id."""
        self.is_closed = False
        self.last_correlation_id = NULL_VALUE
        """The correlation id of the last request. Signals that the request causes contain it
        too."""
        self._responses: dict[int, deque[Response]] = {}
        self._unclaimed: deque[ArchiveError] = deque(maxlen=UNCLAIMED_MAX)

    @property
    def subscription(self) -> Subscription:
        """The subscription that receives responses."""
        return self._reader.subscription

    @property
    def is_connected(self) -> bool:
        """Return whether the session is open and the archive is connected."""
        return not self.is_closed and self.subscription.is_connected

    def request(self, kind: type[Request], **fields: object) -> Turns[ControlResponse]:
        """Send a request and wait for its response. Raises ArchiveError if the response is not OK.

        ArchiveError contains the archive's error code. Also raises ArchiveTimeoutError and
        ArchiveClosedError.
        """
        correlation_id = yield from self.begin(kind, fields)
        try:
            response = yield from self.next_response(correlation_id, kind.__name__)
        finally:
            self.end(correlation_id)
        return require_ok(response, kind.__name__)

    def begin(
        self,
        kind: type[Request],
        fields: Mapping[str, object],
        publication: ExclusivePublication | None = None,
    ) -> Turns[int]:
        """Send a request and return its correlation id. The responses are collected until `end` is
        called.
        """
        self.require_open()
        correlation_id = self.aeron.next_correlation_id()
        request = kind(
            control_session_id=self.control_session_id, correlation_id=correlation_id, **fields
        )
        self._responses[correlation_id] = deque()
        try:
            yield from self.send(request, publication)
        except BaseException:
            self.end(correlation_id)
            raise
        self.last_correlation_id = correlation_id
        return correlation_id

    def end(self, correlation_id: int) -> None:
        """Stop collecting responses to a request. If an error response to the request arrives
        later, it is kept as an error that belongs to no pending request.
        """
        self._responses.pop(correlation_id, None)

    def send(
        self, message: Message, publication: ExclusivePublication | None = None
    ) -> Turns[None]:
        """Send a message, by default on the request publication. Makes up to the configured number
        of attempts.
        """
        publication = publication or self.publication
        content = codec.encode(message)
        for attempt in range(self.context.message_retry_attempts):
            if attempt:
                yield
            response = publication.offer(content)
            if response > 0:
                return
            if response in (result.CLOSED, result.NOT_CONNECTED, result.MAX_POSITION_EXCEEDED):
                raise ArchiveClosedError(
                    f"cannot send {type(message).__name__}: the request channel is "
                    f"{'closed' if response == result.CLOSED else 'not connected'}: "
                    f"{publication.channel}"
                )
            if response == result.ERROR:
                raise ArchiveError(
                    f"cannot send {type(message).__name__} of {len(content)} bytes: "
                    f"the maximum length is {publication.max_message_length}"
                )
        raise ArchiveTimeoutError(
            f"cannot send {type(message).__name__} within "
            f"{self.context.message_retry_attempts} attempts: back pressure from the archive"
        )

    def next_response(self, correlation_id: int, name: str) -> Turns[Response]:
        """Wait for the next message with the correlation id of a request."""
        responses = self._responses[correlation_id]
        deadline_ns = self.clock.now_ns() + self.context.message_timeout_ns
        while not responses:
            if self.poll():
                continue
            self.require_open()
            if not self.is_connected:
                raise ArchiveClosedError(f"{name}: the archive has closed the session")
            if self.clock.now_ns() > deadline_ns:
                timeout_ms = self.context.message_timeout_ns // 1_000_000
                raise ArchiveTimeoutError(
                    f"{name}: no response within {timeout_ms} ms", correlation_id=correlation_id
                )
            yield
        return responses.popleft()

    def poll(self) -> int:
        """Receive the archive's messages and assign them to requests. Returns the number of
        messages.
        """
        if self.is_closed:
            return 0
        count = 0
        while (message := self._reader.next()) is not None:
            count += 1
            if getattr(message, "control_session_id", None) == self.control_session_id:
                self._on_message(message)
        return count

    def _on_message(self, message: Message) -> None:
        if isinstance(message, RecordingSignalEvent):
            if self.context.on_recording_signal is not None:
                self.context.on_recording_signal(message)
        elif isinstance(message, Response):
            responses = self._responses.get(message.correlation_id)
            if responses is not None:
                responses.append(message)
            elif isinstance(message, ControlResponse) and message.code == ControlResponseCode.ERROR:
                self._unclaimed.append(error_from_response("the archive", message))

    def take_unclaimed(self) -> ArchiveError | None:
        """Remove and return the oldest error that belongs to no pending request, or return None if
        no error is kept.
        """
        return self._unclaimed.popleft() if self._unclaimed else None

    def report_unclaimed(self) -> None:
        """Pass the errors that belong to no pending request to the error handler, if one is set."""
        if self.context.error_handler is not None:
            while (error := self.take_unclaimed()) is not None:
                self.context.error_handler(error)

    def keep_alive(self) -> Turns[None]:
        """Send a keep-alive message. The archive does not respond to it."""
        self.require_open()
        yield from self.send(
            KeepAliveRequest(control_session_id=self.control_session_id, correlation_id=NULL_VALUE)
        )

    def require_open(self) -> None:
        """Raise ArchiveClosedError if the session or the Aeron client is closed."""
        if self.is_closed or self.subscription.is_closed or self.publication.is_closed:
            raise ArchiveClosedError("the session with the archive is closed", ErrorCode.GENERIC)

    def close(self) -> None:
        """End the session in the archive, then close the request publication and the response
        subscription. Repeated calls have no effect.
        """
        if self.is_closed:
            return
        self.is_closed = True
        request = CloseSessionRequest(control_session_id=self.control_session_id)
        # One attempt is enough: the archive also notices that the response channel is disconnected.
        self.publication.offer(codec.encode(request))
        self.publication.close()
        self.subscription.close()


def require_ok(response: Response, name: str) -> ControlResponse:
    """Return the response if its code is OK. Otherwise raise ArchiveError."""
    if not isinstance(response, ControlResponse):
        raise ArchiveError(
            f"{name}: expected a ControlResponse, found {type(response).__name__}",
            correlation_id=response.correlation_id,
        )
    if response.code != ControlResponseCode.OK:
        raise error_from_response(name, response)
    return response
