"""Publishes the events of recordings: started, progress, stopped.

An event that is not accepted is dropped after some attempts. A progress event is dropped after one
attempt, because progress is sent again later. If the event publication has reached its maximum
position, Aeron ends the recording. Here the recording continues. Source: archive-protocol 5.9.
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
    """Publishes the events of one recording. Only the recorder's thread uses it."""

    def __init__(
        self, publication: ExclusivePublication, recording: RecordingDescriptor, join_position: int
    ) -> None:
        """Create a publisher for the events of a recording. `join_position` is where the recording
        of the image begins.
        """
        self._publication, self._recording = publication, recording
        self._join_position = self._sent_position = join_position

    def started(self) -> None:
        recording = self._recording
        self._send(
            RecordingStarted(
                recording_id=recording.recording_id, start_position=self._join_position,
                session_id=recording.session_id, stream_id=recording.stream_id,
                channel=recording.original_channel, source_identity=recording.source_identity,
            ), ATTEMPTS,
        )  # fmt: skip

    def progressed(self, position: int) -> None:
        if position == self._sent_position:
            return
        is_sent = self._send(
            RecordingProgress(
                recording_id=self._recording.recording_id, start_position=self._join_position,
                position=position,
            ), 1,
        )  # fmt: skip
        if is_sent:
            self._sent_position = position

    def stopped(self, position: int) -> None:
        self._send(
            RecordingStopped(
                recording_id=self._recording.recording_id, start_position=self._join_position,
                stop_position=position,
            ), ATTEMPTS,
        )  # fmt: skip

    def _send(self, message: Message, attempts: int) -> bool:
        content = encode(message)
        return any(self._publication.offer(content) > 0 for _ in range(attempts))
