"""Telling everybody who listens of recordings: begun, how far, ended.

An event that nobody takes is dropped after some attempts, progress after one: it comes again. Aeron
ends a recording whose progress cannot be told because the events' stream has come to its end; ours
goes on, since what is recorded is worth more than who knows of it. Source: archive-protocol 5.9.
"""

from windtunnel.driver.archive.protocol.codec import encode
from windtunnel.driver.archive.protocol.layout import Message
from windtunnel.driver.archive.protocol.responses import (
    RecordingDescriptor,
    RecordingProgress,
    RecordingStarted,
    RecordingStopped,
)
from windtunnel.driver.client.publication.exclusive_publication import ExclusivePublication

ATTEMPTS = 3


class RecordingEvents:
    """Tells of one recording, in the recorder's thread."""

    def __init__(
        self, publication: ExclusivePublication, recording: RecordingDescriptor, join_position: int
    ) -> None:
        """`join_position` is where this image of it begins."""
        self._publication, self._recording = publication, recording
        self._join_position = self._told_position = join_position

    def started(self) -> None:
        found = self._recording
        self._tell(
            RecordingStarted(
                recording_id=found.recording_id, start_position=self._join_position,
                session_id=found.session_id, stream_id=found.stream_id,
                channel=found.original_channel, source_identity=found.source_identity,
            ), ATTEMPTS,
        )  # fmt: skip

    def progressed(self, position: int) -> None:
        if position == self._told_position:
            return
        told = self._tell(
            RecordingProgress(
                recording_id=self._recording.recording_id, start_position=self._join_position,
                position=position,
            ), 1,
        )  # fmt: skip
        if told:
            self._told_position = position

    def stopped(self, position: int) -> None:
        self._tell(
            RecordingStopped(
                recording_id=self._recording.recording_id, start_position=self._join_position,
                stop_position=position,
            ), ATTEMPTS,
        )  # fmt: skip

    def _tell(self, message: Message, attempts: int) -> bool:
        content = encode(message)
        return any(self._publication.offer(content) > 0 for _ in range(attempts))
