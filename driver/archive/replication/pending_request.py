"""Asking another archive one thing after the other, without waiting.

    ask --> answer, or none yet; with the next step the question is another

Whatever error the other archive tells of, asked for or not, ends it. Source: archive-protocol 7.
"""

from typing import Any

from windtunnel.driver.archive.protocol.codes import ControlResponseCode
from windtunnel.driver.archive.protocol.layout import Message
from windtunnel.driver.archive.protocol.responses import ControlResponse, RecordingDescriptor
from windtunnel.driver.archive.replication.source_archive import SourceArchive, SourceArchiveError
from windtunnel.driver.client.publication.exclusive_publication import ExclusivePublication


class PendingRequest:
    """The asking part of a replication."""

    def __init__(self, archive: SourceArchive, timeout_ns: int, now_ns: int) -> None:
        self._archive, self._timeout_ns = archive, timeout_ns
        self._now_ns = now_ns
        self._begin()

    def _begin(self) -> None:
        """Ask something else from now on."""
        self._asked: int | None = None
        self._answer: Message | None = None
        self._deadline_ns = self._now_ns + self._timeout_ns

    @property
    def _is_late(self) -> bool:
        """Whether the answer should be there by now."""
        is_open = self._asked is not None and self._answer is None
        return is_open and self._now_ns > self._deadline_ns

    def _require_time(self, what: str) -> int:
        """Raise SourceArchiveError where it has waited for too long."""
        if self._now_ns > self._deadline_ns:
            raise SourceArchiveError(f"{what} in time")
        return 0

    def _hear(self) -> None:
        """Take what the other archive said. Raises SourceArchiveError where that is an error."""
        for message in self._archive.poll():
            if isinstance(message, ControlResponse):
                if message.code == ControlResponseCode.ERROR:
                    raise SourceArchiveError(
                        f"the source archive: {message.error_message}", message.relevant_id
                    )
                if message.correlation_id == self._asked:
                    self._answer = message
            elif isinstance(message, RecordingDescriptor) and (
                message.correlation_id == self._asked
            ):
                self._answer = message

    def _ask(
        self, kind: type[Message], via: ExclusivePublication | None = None, **values: Any
    ) -> Message | None:
        """The answer to a question, asked once; None while there is none."""
        if self._asked is None:
            self._asked = self._archive.ask(kind, via, **values)
        if self._answer is None:
            self._require_time(f"no answer to {kind.__name__}")
        return self._answer
