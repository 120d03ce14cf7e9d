"""Records the replay of a source recording, as an extension of the destination recording."""

from windtunnel.driver.archive.control import retained_channel
from windtunnel.driver.archive.control.archive_resources import ArchiveResources
from windtunnel.driver.archive.control.control_session import ControlSession
from windtunnel.driver.archive.recording.image_recording import require_stream
from windtunnel.driver.archive.recording.recorded_stream import RecordedStream
from windtunnel.driver.archive.recording.recordings import Recordings
from windtunnel.driver.channel.uri import ChannelUri
from windtunnel.driver.client.image.image import Image
from windtunnel.driver.client.subscription import Subscription


class ReplayRecording:
    """The recording of one replication's replay."""

    def __init__(
        self,
        resources: ArchiveResources,
        recordings: Recordings,
        session: ControlSession,
        replication_id: int,
        recording_id: int,
        stream_id: int,
        channel: ChannelUri,
        *,
        is_live: bool,
    ) -> None:
        """Subscribe to the replay. Raises RequestRejected, StorageError or ClientError."""
        self._recordings, self._recording_id = recordings, recording_id
        require_stream(resources.recording(recording_id), stream_id)
        self.stream = RecordedStream(
            session, replication_id, stream_id, str(channel),
            retained_channel.text(retained_channel.retained(channel)),
            retained_channel.stream_key(stream_id, channel),
            auto_stop=True, extended_id=recording_id,
            # A recorder in another thread may notice the end of the replay before the replication.
            is_end_deferred=not is_live,
            reports_failure=False,
        )  # fmt: skip
        self._image: Image | None = None
        resources.require_space()
        recordings.require_slot()
        recordings.add(self.stream)

    @property
    def is_closed(self) -> bool:
        """Return whether the recording was stopped and has ended."""
        return self.stream.is_closed

    @property
    def has_failed(self) -> bool:
        """Return whether the driver rejected the subscription."""
        return self.stream.failure is not None

    @property
    def is_subscribed(self) -> bool:
        """Return whether the driver has added the subscription. Raises the error with which it
        rejected the subscription.
        """
        if self.stream.failure is not None:
            raise self.stream.failure
        return self.stream.subscription is not None

    @property
    def subscription(self) -> Subscription:
        assert self.stream.subscription is not None
        return self.stream.subscription

    @property
    def image(self) -> Image:
        """The image of the replay, which `find_image` has found."""
        assert self._image is not None
        return self._image

    def find_image(self, session_id: int) -> bool:
        """Find the image of the replay, whose recording has begun. Returns whether it was found."""
        recorded = (each.image for each in self.stream.active)
        matching = (each for each in recorded if each.session_id == session_id)
        # The recording may have ended before the response to the replay request arrived.
        self._image = next(matching, None) or self.subscription.image_by_session_id(session_id)
        return self._image is not None

    @property
    def has_begun(self) -> bool:
        return self.stream.has_begun and not self.stream.beginning

    @property
    def position(self) -> int:
        """The position up to which data was copied."""
        active = self._recordings.active(self._recording_id)
        return self.image.position if active is None else active.position

    def stop(self) -> None:
        """Stop the recording."""
        self._recordings.stop(self.stream)
