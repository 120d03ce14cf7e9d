"""Begins and finishes the recording of one image.

    image   --> catalog entry, new or extended --> segment file --> counter requested
    counter --> START or EXTEND signal, session
    end     --> stop position --> error, if any --> STOP signal --> counter freed

The archive does not wait for the driver to add the counter, because it may be looking up a name.
A recording whose segment file cannot be created has a catalog entry nevertheless. It starts, fails,
and stops at its start position. Source: archive-protocol 3.1, 3.3, 5.1.
"""

from collections.abc import Mapping
from dataclasses import replace

from windtunnel.driver.archive.control.archive_resources import ArchiveResources
from windtunnel.driver.archive.control.request_rejected import RequestRejected, code_of
from windtunnel.driver.archive.protocol.codes import NULL_VALUE, ErrorCode, RecordingSignal
from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.archive.recording import recording_position
from windtunnel.driver.archive.recording.recorded_stream import (
    ActiveRecording,
    BeginningRecording,
    RecordedStream,
)
from windtunnel.driver.archive.recording.recording_events import RecordingEvents
from windtunnel.driver.archive.recording.recording_session import RecordingSession
from windtunnel.driver.archive.recording.segment_deletions import Deletions
from windtunnel.driver.archive.recording.segment_writer import SegmentWriter, WriteOptions
from windtunnel.driver.archive.storage.frame_walk import SegmentReader
from windtunnel.driver.archive.storage.segment_file import SegmentFile, base_of, files_of
from windtunnel.driver.base.errors import DriverError, StorageError
from windtunnel.driver.client.image.image import Image
from windtunnel.driver.client.publication.exclusive_publication import ExclusivePublication


def require_stream(recording: RecordingDescriptor, stream_id: int) -> None:
    """Raise RequestRejected if a recording cannot be extended by a stream with this id."""
    if recording.stream_id != stream_id:
        raise RequestRejected(
            f"cannot extend recording {recording.recording_id}: expected stream "
            f"{recording.stream_id}, found stream {stream_id}", ErrorCode.UNKNOWN_RECORDING,
        )  # fmt: skip


class ImageRecording:
    """Begins and finishes the recordings of images."""

    def __init__(
        self,
        resources: ArchiveResources,
        options: WriteOptions,
        events: ExclusivePublication | None,
    ) -> None:
        self._resources, self._options, self._events = resources, options, events

    def require_stopped(
        self, active: Mapping[int, ActiveRecording], recording: RecordingDescriptor
    ) -> None:
        """Raise RequestRejected if a recording to be extended has not stopped."""
        if recording.recording_id in active or recording.stop_position == NULL_VALUE:
            raise RequestRejected(
                f"cannot extend recording {recording.recording_id}: it is active",
                ErrorCode.ACTIVE_RECORDING,
            )

    def require_undeleted(self, deletions: Deletions, recording: RecordingDescriptor) -> None:
        """Raise RequestRejected if files after the end of the recording are being deleted, or were
        not deleted.
        """
        highest = deletions.highest_base(recording.recording_id)
        if highest is not None and highest >= recording.stop_position:
            raise RequestRejected(
                f"cannot extend recording {recording.recording_id}: some of its segment files "
                "are being deleted"
            )
        self._require_last_file(recording)

    def _require_last_file(self, recording: RecordingDescriptor) -> None:
        """Raise RequestRejected if the recording has data in segment files after its stop position,
        as after an archive was killed while it truncated it. If this one were killed, too, the
        recording would end in the last of them. A file without data remains if a replication
        moves the start of an empty recording.
        """
        last = base_of(recording, recording.stop_position)
        later = [
            each.path.name
            for each in files_of(self._resources.directory, recording.recording_id)
            if each.base > last and not each.is_deleted and _has_data(each)
        ]
        if later:
            raise RequestRejected(
                f"cannot extend recording {recording.recording_id}: expected no data after its "
                f"stop position {recording.stop_position}, found {len(later)} segment files, such "
                f"as {later[0]}; move them away, or delete all orphans with `windtunnel archive "
                "delete-orphans`"
            )

    def begin(self, stream: RecordedStream, image: Image) -> BeginningRecording | None:
        """Begin to record an image. Returns None after a failure that was already reported to the
        client.

        Raises RequestRejected or StorageError if the recording has not begun.
        """
        if stream.extended_id is None:
            recording, signal = self._add_entry(stream, image), RecordingSignal.START
        else:
            recording, signal = self._extend_entry(stream, image), RecordingSignal.EXTEND
        try:
            writer, counter_id = self._create_writer(stream, recording, image)
        except DriverError as error:
            self._stop_at_start(stream, recording, signal, image, error)
            return None
        return BeginningRecording(stream, recording, signal, image, writer, counter_id)

    def try_complete(self, beginning: BeginningRecording) -> ActiveRecording | None:
        """Start a recording whose position counter was requested. Returns None until the driver
        responds.

        Raises ClientError if the driver refuses the counter; `abort` must then be called.
        """
        counter = self._resources.client.get_counter(beginning.counter_id)
        if counter is None:
            return None
        stream, recording, image = beginning.stream, beginning.descriptor, beginning.image
        events = (
            None if self._events is None
            else RecordingEvents(
                self._events, _current(stream, recording, image), image.join_position
            )
        )  # fmt: skip
        io_max_length = self._resources.settings.file_io_max_length
        session = RecordingSession(image, beginning.writer, counter, io_max_length, events)
        self._signal(stream, beginning.signal, recording.recording_id, image.join_position)
        return ActiveRecording(stream, recording, session, counter, image)

    def abort(self, beginning: BeginningRecording, error: DriverError | None = None) -> None:
        """Abort a recording that has no recording session yet. The recording stops at the image's
        join position.
        """
        if error is None:
            self._resources.client.abandon(beginning.counter_id)
        beginning.is_aborted = True
        beginning.writer.close()
        self._stop_at_start(
            beginning.stream, beginning.descriptor, beginning.signal, beginning.image, error
        )

    def _stop_at_start(
        self,
        stream: RecordedStream,
        recording: RecordingDescriptor,
        signal: RecordingSignal,
        image: Image,
        error: DriverError | None,
    ) -> None:
        if error is not None:
            self._resources.errors.record(str(error))
        self._signal(stream, signal, recording.recording_id, image.join_position)
        self._record_stop(stream, recording.recording_id, image.join_position, error)

    def _add_entry(self, stream: RecordedStream, image: Image) -> RecordingDescriptor:
        """Add a catalog entry for a new recording. Returns the recording's descriptor."""
        resources = self._resources
        recording = RecordingDescriptor(
            control_session_id=0, correlation_id=0, recording_id=NULL_VALUE,
            start_timestamp=resources.clock.now_ms(), stop_timestamp=NULL_VALUE,
            start_position=image.join_position, stop_position=NULL_VALUE,
            initial_term_id=image.initial_term_id,
            segment_file_length=max(resources.settings.segment_file_length, image.term_length),
            term_buffer_length=image.term_length, mtu_length=image.mtu_length,
            session_id=image.session_id, stream_id=stream.stream_id,
            stripped_channel=stream.stripped_channel, original_channel=stream.original_channel,
            source_identity=image.source_identity,
        )  # fmt: skip
        return replace(recording, recording_id=resources.catalog.add(recording))

    def _extend_entry(self, stream: RecordedStream, image: Image) -> RecordingDescriptor:
        """Update the catalog entry of an extended recording. Returns the recording's descriptor.

        Raises RequestRejected if the image does not continue the recording.
        """
        assert stream.extended_id is not None
        recording = self._resources.recording(stream.extended_id)
        for name, expected, found in (
            ("join position", recording.stop_position, image.join_position),
            ("initial term id", recording.initial_term_id, image.initial_term_id),
            ("term length", recording.term_buffer_length, image.term_length),
            ("MTU", recording.mtu_length, image.mtu_length),
        ):
            if expected != found:
                raise RequestRejected(
                    f"cannot extend recording {recording.recording_id}: the image's {name} "
                    f"is {found}, expected {expected}", ErrorCode.INVALID_EXTENSION,
                )  # fmt: skip
        ids = (stream.session.session_id, stream.correlation_id, image.session_id)
        self._resources.catalog.record_extension(
            recording.recording_id,
            control_session_id=ids[0], correlation_id=ids[1], session_id=ids[2],
        )  # fmt: skip
        return replace(
            recording,
            control_session_id=ids[0], correlation_id=ids[1], session_id=ids[2],
            stop_position=NULL_VALUE, stop_timestamp=NULL_VALUE,
        )  # fmt: skip

    def _create_writer(
        self, stream: RecordedStream, recording: RecordingDescriptor, image: Image
    ) -> tuple[SegmentWriter, int]:
        """Open or create the segment file, and request the position counter. Returns the writer and
        the counter's registration id.
        """
        current = _current(stream, recording, image)
        resources, archive_id = self._resources, self._resources.archive_id
        writer = SegmentWriter(
            resources.directory, recording, image.join_position, self._options,
            is_new=stream.extended_id is None,
        )  # fmt: skip
        try:
            counter_id = resources.client.async_add_counter(
                recording_position.TYPE_ID,
                recording_position.key(current, archive_id),
                recording_position.label(current, archive_id),
            )
        except BaseException:
            writer.close()
            raise
        return writer, counter_id

    def finish(self, active: ActiveRecording) -> None:
        """Finish a recording after its session has ended, whatever the reason."""
        stream, failure = active.stream, active.session.failure
        text = "" if failure is None else str(failure)
        if failure is not None:
            self._resources.errors.record(text)
        self._record_stop(stream, active.recording_id, active.position, failure)
        active.counter.close()

    def _record_stop(
        self,
        stream: RecordedStream,
        recording_id: int,
        position: int,
        failure: DriverError | None = None,
    ) -> None:
        resources = self._resources
        try:
            resources.catalog.record_stop(recording_id, position, resources.clock.now_ms())
        except StorageError as error:
            # The next start of an archive recovers the stop position from the files.
            resources.errors.record(str(error))
            failure = failure or error
        if failure is not None:
            stream.session.responses.error(stream.correlation_id, str(failure), code_of(failure))
        self._signal(stream, RecordingSignal.STOP, recording_id, position)

    def _signal(
        self, stream: RecordedStream, signal: RecordingSignal, recording_id: int, position: int
    ) -> None:
        stream.session.responses.signal(
            stream.correlation_id, signal, recording_id, stream.subscription_id, position
        )


def _current(
    stream: RecordedStream, recording: RecordingDescriptor, image: Image
) -> RecordingDescriptor:
    """Return a copy of a recording's descriptor with the stream, channel and source of the image
    being recorded.

    An extension may come from another source than the entry, which keeps the original source.
    """
    return replace(
        recording, stream_id=stream.stream_id, stripped_channel=stream.stripped_channel,
        original_channel=stream.original_channel, source_identity=image.source_identity,
    )  # fmt: skip


def _has_data(segment: SegmentFile) -> bool:
    """Return whether a segment file after the first one of its recording begins with a frame.
    Raises StorageError.
    """
    with SegmentReader(segment.path, segment.base) as reader:
        return bool(reader.read(0, 4).any())
