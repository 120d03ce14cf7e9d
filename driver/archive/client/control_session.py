"""An open control session: requests go out, and each answer finds its request.

    ask ----> request publication ----> archive
                                           |
    answers by correlation id <--+         |
    recording signals  <---------+-- response subscription
    errors of nobody   <---------+

Several requests may be under way at once. An error that answers none of them, a replay that broke
off for example, belongs to nobody's call: it goes to the error handler, or waits to be polled.
Knows nothing of what the requests mean. Source: archive-protocol 2.8.
"""

from collections import deque
from collections.abc import Mapping

from windtunnel.driver.archive.client.context import ArchiveContext
from windtunnel.driver.archive.client.errors import (
    ArchiveClosedError,
    ArchiveError,
    ArchiveTimeoutError,
    refusal,
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
"""Errors of nobody that are kept; a program that never asks for them must not pay for it."""


class ControlSession:
    """One session with one archive; used by one thread at a time."""

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
        """-1 where the archive is too old to have one."""
        self.is_closed = False
        self.last_correlation_id = NULL_VALUE
        """Of the newest request; its signals carry it."""
        self._answers: dict[int, deque[Response]] = {}
        self._unclaimed: deque[ArchiveError] = deque(maxlen=UNCLAIMED_MAX)

    @property
    def subscription(self) -> Subscription:
        """Where the archive answers."""
        return self._reader.subscription

    @property
    def is_connected(self) -> bool:
        """Whether the archive still holds its end."""
        return not self.is_closed and self.subscription.is_connected

    def ask(self, kind: type[Request], **fields: object) -> Turns[ControlResponse]:
        """Send a request and wait for its one answer, which is OK.

        Raises ArchiveError with the archive's code, ArchiveTimeoutError, ArchiveClosedError
        """
        correlation_id = yield from self.begin(kind, fields)
        try:
            answer = yield from self.next_answer(correlation_id, kind.__name__)
        finally:
            self.end(correlation_id)
        return require_ok(answer, kind.__name__)

    def begin(
        self,
        kind: type[Request],
        fields: Mapping[str, object],
        publication: ExclusivePublication | None = None,
    ) -> Turns[int]:
        """Send a request and collect what answers it until `end`. Returns its correlation id."""
        self.require_open()
        correlation_id = self.aeron.next_correlation_id()
        request = kind(
            control_session_id=self.control_session_id, correlation_id=correlation_id, **fields
        )
        self._answers[correlation_id] = deque()
        try:
            yield from self.send(request, publication)
        except BaseException:
            self.end(correlation_id)
            raise
        self.last_correlation_id = correlation_id
        return correlation_id

    def end(self, correlation_id: int) -> None:
        """No more is expected; what still comes is nobody's."""
        self._answers.pop(correlation_id, None)

    def send(
        self, message: Message, publication: ExclusivePublication | None = None
    ) -> Turns[None]:
        """Offer a message as often as the settings say; on our publication if none is given."""
        publication = publication or self.publication
        content = codec.encode(message)
        for attempt in range(self.context.message_retry_attempts):
            if attempt:
                yield
            answer = publication.offer(content)
            if answer > 0:
                return
            if answer in (result.CLOSED, result.NOT_CONNECTED, result.MAX_POSITION_EXCEEDED):
                raise ArchiveClosedError(
                    f"{type(message).__name__} was not sent, the request channel is "
                    f"{'closed' if answer == result.CLOSED else 'not connected'}: "
                    f"{publication.channel}"
                )
            if answer == result.ERROR:
                raise ArchiveError(
                    f"{type(message).__name__} has {len(content)} bytes, "
                    f"but may have at most {publication.max_message_length}"
                )
        raise ArchiveTimeoutError(
            f"{type(message).__name__} was not sent within "
            f"{self.context.message_retry_attempts} attempts, the archive does not read"
        )

    def next_answer(self, correlation_id: int, what: str) -> Turns[Response]:
        """Wait for the next message that carries a request's correlation id."""
        answers = self._answers[correlation_id]
        deadline_ns = self.clock.now_ns() + self.context.message_timeout_ns
        while not answers:
            if self.poll():
                continue
            self.require_open()
            if not self.is_connected:
                raise ArchiveClosedError(f"{what}: the archive has closed its end of the session")
            if self.clock.now_ns() > deadline_ns:
                timeout_ms = self.context.message_timeout_ns // 1_000_000
                raise ArchiveTimeoutError(
                    f"{what}: no answer within {timeout_ms} ms", correlation_id=correlation_id
                )
            yield
        return answers.popleft()

    def poll(self) -> int:
        """Sort what the archive said. Returns the messages read."""
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
            answers = self._answers.get(message.correlation_id)
            if answers is not None:
                answers.append(message)
            elif isinstance(message, ControlResponse) and message.code == ControlResponseCode.ERROR:
                self._unclaimed.append(refusal("the archive", message))

    def take_unclaimed(self) -> ArchiveError | None:
        """The oldest error that belongs to no call, once."""
        return self._unclaimed.popleft() if self._unclaimed else None

    def report_unclaimed(self) -> None:
        """Give what belongs to no call to the error handler, if there is one."""
        if self.context.error_handler is not None:
            while (error := self.take_unclaimed()) is not None:
                self.context.error_handler(error)

    def keep_alive(self) -> Turns[None]:
        """Make the session active; there is no answer."""
        self.require_open()
        yield from self.send(
            KeepAliveRequest(control_session_id=self.control_session_id, correlation_id=NULL_VALUE)
        )

    def require_open(self) -> None:
        """Raise where the session was closed, by us or with its client."""
        if self.is_closed or self.subscription.is_closed or self.publication.is_closed:
            raise ArchiveClosedError("the session with the archive is closed", ErrorCode.GENERIC)

    def close(self) -> None:
        """Tell the archive and let go of both channels. May be called again."""
        if self.is_closed:
            return
        self.is_closed = True
        request = CloseSessionRequest(control_session_id=self.control_session_id)
        # Once is enough: without it the archive sees that the response channel is gone.
        self.publication.offer(codec.encode(request))
        self.publication.close()
        self.subscription.close()


def require_ok(answer: Response, what: str) -> ControlResponse:
    """The answer, where it says that all went well. Raises ArchiveError."""
    if not isinstance(answer, ControlResponse):
        raise ArchiveError(
            f"{what}: expected an answer, found a {type(answer).__name__}",
            correlation_id=answer.correlation_id,
        )
    if answer.code != ControlResponseCode.OK:
        raise refusal(what, answer)
    return answer
