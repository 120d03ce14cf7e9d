"""All recordings of an archive, from the request to record a stream until the recording has ended.

    request --> RecordedStream (subscription) --image--> entry, counter, session --> Recorder
                     ^                                                                |
                     `-- stop ------- ended: stop position, STOP, counter freed <-----'

The archive never waits for the driver, which may be looking up a name for as long as ten seconds.
It responds to a request when the subscription exists and before it records an image, and sends
signals later. If an image does not continue the recording that it should extend, the archive sends
an error as the second response to the same request.
Source: archive-protocol 3.1 to 3.3.
"""

from collections import deque
from collections.abc import Iterator

from windtunnel.driver.archive.control.archive_resources import ArchiveResources
from windtunnel.driver.archive.control.request_rejected import RequestRejected, code_of
from windtunnel.driver.archive.protocol.codes import ErrorCode
from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.archive.recording.image_recording import ImageRecording
from windtunnel.driver.archive.recording.recorded_stream import (
    ActiveRecording,
    BeginningRecording,
    RecordedStream,
)
from windtunnel.driver.archive.recording.recorder import Recorder
from windtunnel.driver.archive.recording.segment_deletions import Deletions
from windtunnel.driver.archive.recording.subscription_requests import SubscriptionRequests
from windtunnel.driver.base.arith import I64_MAX
from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.channel import uri
from windtunnel.driver.client.errors import ClientTerminatedError
from windtunnel.driver.client.image.image import Image


class Recordings:
    """All recordings of one archive. Only the conductor's thread uses them."""

    def __init__(
        self,
        resources: ArchiveResources,
        recorder: Recorder,
        deletions: Deletions,
        images: ImageRecording,
    ) -> None:
        self._resources, self._recorder = resources, recorder
        self._deletions, self._images = deletions, images
        self._requests = SubscriptionRequests(resources.client)
        self._by_key: dict[str, RecordedStream] = {}
        self._open: list[RecordedStream] = []
        self._active: dict[int, ActiveRecording] = {}
        self._arrived: deque[tuple[RecordedStream, Image]] = deque()
        self._ended: list[ActiveRecording] = []

    # --- for other operations ------------------------------------------------------------------

    def active(self, recording_id: int) -> ActiveRecording | BeginningRecording | None:
        """Return the recording with this id if it is active or about to begin, else None."""
        found = self._active.get(recording_id)
        if found is not None:
            return found
        beginning = (each for stream in self._open for each in stream.beginning)
        return next((each for each in beginning if each.recording_id == recording_id), None)

    def by_key(self, key: str) -> RecordedStream | None:
        """Return the recorded stream with this key that has not been stopped, or None."""
        return self._by_key.get(key)

    @property
    def streams(self) -> Iterator[RecordedStream]:
        """The recorded streams that have a subscription and have not been stopped."""
        found = (each for each in self._by_key.values() if each.subscription is not None)
        return iter(tuple(found))

    # --- streams -------------------------------------------------------------------------------

    def require_slot(self) -> None:
        """Raise RequestRejected if the maximum number of concurrent recordings is reached."""
        limit = self._resources.settings.max_concurrent_recordings
        if sum(stream.counts_as_concurrent for stream in self._open) >= limit:
            raise RequestRejected(
                f"the limit of {limit} concurrent recordings has been reached",
                ErrorCode.MAX_RECORDINGS,
            )

    def require_extendable(self, recording: RecordingDescriptor) -> None:
        """Raise RequestRejected if a recording cannot be extended now."""
        self._images.require_stopped(self._active, recording)
        self._images.require_undeleted(self._deletions, recording)

    def add(self, stream: RecordedStream, *, is_spy: bool = False) -> None:
        """Record a stream, after `require_slot`. The client receives a response when the
        subscription exists.

        If the subscription cannot be added, `stream.failure` is set. Raises RequestRejected and
        ClientError.
        """
        if stream.key in self._by_key:
            raise RequestRejected(
                f"stream {stream.stream_id} on {stream.original_channel} is already being recorded",
                ErrorCode.ACTIVE_SUBSCRIPTION,
            )
        is_udp = stream.stripped_channel.startswith("aeron:udp")
        prefix = uri.SPY_PREFIX if is_spy and is_udp else ""
        self._requests.add(
            stream, prefix + stream.stripped_channel,
            lambda image: self._arrived.append((stream, image)),
        )  # fmt: skip
        self._by_key[stream.key] = stream
        self._open.append(stream)

    def respond(self) -> int:
        """Send a response for each recording request whose subscription the driver has added or
        rejected since the last call.

        Returns the amount of work done.
        """
        done = self._requests.collect()
        for stream in done:
            if stream.failure is None:
                stream.session.responses.ok(stream.correlation_id, stream.subscription_id)
            else:
                self._end(stream)
                self._report_failure(stream, stream.failure)
        return len(done)

    def _report_failure(self, stream: RecordedStream, error: DriverError) -> None:
        self._resources.errors.warn(f"recording of {stream.original_channel}: {error}")
        if stream.reports_failure:
            stream.session.responses.error(stream.correlation_id, str(error), code_of(error))

    def stop(self, stream: RecordedStream) -> None:
        """Stop a stream and all its recordings."""
        if self._requests.remove(stream):
            stream.failure = RequestRejected(
                f"the recording of stream {stream.stream_id} on {stream.original_channel} was "
                "stopped before the media driver had added its subscription"
            )
            self._report_failure(stream, stream.failure)
        for each in tuple(stream.active):
            self._recorder.stop(each.session)
        self._end(stream)

    def stop_recording(self, active: ActiveRecording) -> None:
        """Stop one recording. Also stops recording new images of its subscription."""
        self._end(active.stream)
        self._recorder.stop(active.session)

    def _end(self, stream: RecordedStream) -> None:
        """Stop recording new images of a stream. The subscription is closed once the stream's last
        recording session has ended.
        """
        stream.is_over = True
        if self._by_key.get(stream.key) is stream:
            del self._by_key[stream.key]
        self._close_if_done(stream)

    def _close_if_done(self, stream: RecordedStream) -> None:
        if stream.is_closed and stream in self._open:
            self._open.remove(stream)
            if stream.subscription is not None:
                stream.subscription.close()

    # --- duty cycle ----------------------------------------------------------------------------

    @property
    def arrived_count(self) -> int:
        """The number of new images whose recording has not begun."""
        return len(self._arrived)

    def begin(self, count: int) -> int:
        """Begin to record `count` new images, oldest first. Returns the amount of work done.

        Images that cannot be recorded yet stay for a later call.
        """
        work_count = self._complete()
        for _ in range(count):
            stream, image = self._arrived.popleft()
            is_announced = stream.subscription is not None
            if not is_announced or self._is_about_to_end(stream.extended_id):
                self._arrived.append((stream, image))
            else:
                self._on_image(stream, image)
                work_count += 1
        return work_count

    def _is_about_to_end(self, recording_id: int | None) -> bool:
        """Return whether a recording's stream has ended while its recording session is still
        active.
        """
        active = None if recording_id is None else self._active.get(recording_id)
        return active is not None and (
            active.image.is_closed or active.image.end_of_stream_position != I64_MAX
        )

    def finish(self) -> int:
        """Finish all recordings that have ended. Returns the amount of work done."""
        work_count = 0
        while (session := self._recorder.take_ended()) is not None:
            self._ended.append(
                next(each for each in self._active.values() if each.session is session)
            )
        for active in tuple(self._ended):
            is_end_deferred = active.stream.is_end_deferred and not active.stream.is_over
            if not is_end_deferred or active.session.failure is not None:
                self._ended.remove(active)
                self._on_ended(active)
                work_count += 1
        return work_count

    def _on_image(self, stream: RecordedStream, image: Image) -> None:
        if stream.is_over:
            return
        try:
            if stream.extended_id is not None:
                recording = self._resources.recording(stream.extended_id)
                self.require_extendable(recording)
            beginning = self._images.begin(stream, image)
        except DriverError as error:
            stream.session.responses.error(stream.correlation_id, str(error), code_of(error))
            if isinstance(error, RequestRejected):
                self._resources.errors.warn(str(error))
            else:
                self._resources.errors.record(str(error))
            if stream.auto_stop:
                self._end(stream)
            return
        stream.has_begun = True
        if beginning is not None:
            stream.beginning.append(beginning)
        elif stream.auto_stop:
            self._end(stream)

    def _complete(self) -> int:
        """Start the recordings whose counters the driver has added, and abort the recordings whose
        counters it has rejected.
        """
        work_count = 0
        for stream in tuple(self._open):
            for beginning in tuple(stream.beginning):
                work_count += self._complete_one(stream, beginning)
        return work_count

    def _complete_one(self, stream: RecordedStream, beginning: BeginningRecording) -> int:
        try:
            active = self._images.try_complete(beginning)
        except ClientTerminatedError:
            raise
        except DriverError as error:
            stream.beginning.remove(beginning)
            self._images.abort(beginning, error)
            if stream.auto_stop:
                self._end(stream)
            self._close_if_done(stream)
            return 1
        if active is None:
            return 0
        stream.beginning.remove(beginning)
        beginning.active = active
        stream.active.append(active)
        self._active[active.recording_id] = active
        self._update_counter()
        self._recorder.add(active.session)
        if stream.is_over:
            self._recorder.stop(active.session)
        return 1

    def _on_ended(self, active: ActiveRecording) -> None:
        stream = active.stream
        self._images.finish(active)
        del self._active[active.recording_id]
        stream.active.remove(active)
        self._update_counter()
        if stream.auto_stop and not stream.is_over:
            self.stop(stream)
        self._close_if_done(stream)

    def _update_counter(self) -> None:
        self._resources.counters.recording_sessions.set(len(self._active))

    def close(self) -> None:
        """Write the stop positions. Call this when the recorder has ended every session."""
        self._arrived.clear()
        self.finish()
        for stream in tuple(self._open):
            self._requests.remove(stream)
            for beginning in stream.beginning:
                self._images.abort(beginning)
            stream.beginning.clear()
            self._end(stream)
