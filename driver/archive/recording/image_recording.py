"""From an image to a recording of it, and to its end.

    image --> catalog entry, or the old one that goes on --> file, counter --> START or EXTEND
    end   --> stop position --> what went wrong --> STOP --> counter freed

What cannot be begun because of its files has an entry nevertheless: it has started, failed, and
stopped where it started. Source: archive-protocol 3.1, 3.3, 5.1.
"""

from collections.abc import Mapping
from dataclasses import replace

from windtunnel.driver.archive.control.archive_resources import ArchiveResources
from windtunnel.driver.archive.control.request_rejected import RequestRejected, code_of
from windtunnel.driver.archive.protocol.codes import NULL_VALUE, ErrorCode, RecordingSignal
from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.archive.recording import recording_position
from windtunnel.driver.archive.recording.recording_events import RecordingEvents
from windtunnel.driver.archive.recording.recording_request import ActiveRecording, RecordingOrder
from windtunnel.driver.archive.recording.recording_session import RecordingSession
from windtunnel.driver.archive.recording.segment_deletions import Deletions
from windtunnel.driver.archive.recording.segment_writer import SegmentWriter, WriteOptions
from windtunnel.driver.base.errors import DriverError, StorageError
from windtunnel.driver.client.counter import Counter
from windtunnel.driver.client.image.image import Image
from windtunnel.driver.client.publication.exclusive_publication import ExclusivePublication


class ImageRecording:
    """Makes recordings of images, and ends them."""

    def __init__(
        self,
        facilities: ArchiveResources,
        options: WriteOptions,
        events: ExclusivePublication | None,
    ) -> None:
        self._facilities, self._options, self._events = facilities, options, events

    def require_stopped(
        self, active: Mapping[int, ActiveRecording], recording: RecordingDescriptor
    ) -> None:
        """Raise Refusal where it cannot go on because it has not stopped."""
        if recording.recording_id in active or recording.stop_position == NULL_VALUE:
            raise RequestRejected(
                f"cannot extend active recording {recording.recording_id}",
                ErrorCode.ACTIVE_RECORDING,
            )

    def require_undeleted(self, deletions: Deletions, recording: RecordingDescriptor) -> None:
        """Raise Refusal where files are being deleted that it would go on in."""
        highest = deletions.highest_base(recording.recording_id)
        if highest is not None and highest >= recording.stop_position:
            raise RequestRejected(
                f"cannot extend recording {recording.recording_id} due to an outstanding "
                "delete operation"
            )

    def begin(self, order: RecordingOrder, image: Image) -> ActiveRecording | None:
        """Begin to record an image; None where it has ended again, which the client was told.

        Raises Refusal, StorageError where nothing has begun
        """
        if order.extended_id is None:
            recording, signal = self._entered(order, image), RecordingSignal.START
        else:
            recording, signal = self._continued(order, image), RecordingSignal.EXTEND
        try:
            counter, session = self._session(order, recording, image)
        except DriverError as error:
            self._facilities.errors.record(str(error))
            self._tell(order, signal, recording.recording_id, image.join_position)
            self._stopped(order, recording.recording_id, image.join_position, error)
            return None
        self._tell(order, signal, recording.recording_id, image.join_position)
        return ActiveRecording(order, recording, session, counter, image)

    def _entered(self, order: RecordingOrder, image: Image) -> RecordingDescriptor:
        """A new entry in the catalog."""
        facilities = self._facilities
        recording = RecordingDescriptor(
            control_session_id=0, correlation_id=0, recording_id=NULL_VALUE,
            start_timestamp=facilities.clock.now_ms(), stop_timestamp=NULL_VALUE,
            start_position=image.join_position, stop_position=NULL_VALUE,
            initial_term_id=image.initial_term_id,
            segment_file_length=max(facilities.settings.segment_file_length, image.term_length),
            term_buffer_length=image.term_length, mtu_length=image.mtu_length,
            session_id=image.session_id, stream_id=order.stream_id,
            stripped_channel=order.stripped_channel, original_channel=order.original_channel,
            source_identity=image.source_identity,
        )  # fmt: skip
        return replace(recording, recording_id=facilities.catalog.add(recording))

    def _continued(self, order: RecordingOrder, image: Image) -> RecordingDescriptor:
        """The entry of a recording that goes on. Raises Refusal where the image does not fit."""
        assert order.extended_id is not None
        recording = self._facilities.recording(order.extended_id)
        for what, expected, found in (
            ("join position", recording.stop_position, image.join_position),
            ("initial term id", recording.initial_term_id, image.initial_term_id),
            ("term length", recording.term_buffer_length, image.term_length),
            ("MTU", recording.mtu_length, image.mtu_length),
        ):
            if expected != found:
                raise RequestRejected(
                    f"cannot extend recording {recording.recording_id}: the {what} of the image "
                    f"is {found}, expected {expected}", ErrorCode.INVALID_EXTENSION,
                )  # fmt: skip
        ids = (order.session.session_id, order.correlation_id, image.session_id)
        self._facilities.catalog.extended(
            recording.recording_id,
            control_session_id=ids[0], correlation_id=ids[1], session_id=ids[2],
        )  # fmt: skip
        return replace(
            recording,
            control_session_id=ids[0], correlation_id=ids[1], session_id=ids[2],
            stop_position=NULL_VALUE, stop_timestamp=NULL_VALUE,
        )  # fmt: skip

    def _session(
        self, order: RecordingOrder, recording: RecordingDescriptor, image: Image
    ) -> tuple[Counter, RecordingSession]:
        # One that goes on may come from elsewhere now, while its entry tells where it began.
        shown = replace(
            recording, stream_id=order.stream_id, stripped_channel=order.stripped_channel,
            original_channel=order.original_channel, source_identity=image.source_identity,
        )  # fmt: skip
        facilities, archive_id = self._facilities, self._facilities.archive_id
        join_position = image.join_position
        writer = SegmentWriter(
            facilities.directory, recording, join_position, self._options,
            is_new=order.extended_id is None,
        )  # fmt: skip
        try:
            counter = facilities.client.add_counter(
                recording_position.TYPE_ID,
                recording_position.key(shown, archive_id),
                recording_position.label(shown, archive_id),
            )
        except BaseException:
            writer.close()
            raise
        events = (
            None if self._events is None
            else RecordingEvents(self._events, shown, join_position)
        )  # fmt: skip
        io_max_length = facilities.settings.file_io_max_length
        return counter, RecordingSession(image, writer, counter, io_max_length, events)

    def finish(self, active: ActiveRecording) -> None:
        """A session has ended, whatever the reason."""
        order, failure = active.order, active.session.failure
        text = "" if failure is None else str(failure)
        if failure is not None:
            self._facilities.errors.record(text)
        self._stopped(order, active.recording_id, active.position, failure)
        active.counter.close()

    def _stopped(
        self,
        order: RecordingOrder,
        recording_id: int,
        position: int,
        failure: DriverError | None = None,
    ) -> None:
        facilities = self._facilities
        try:
            facilities.catalog.stopped(recording_id, position, facilities.clock.now_ms())
        except StorageError as error:
            # The next start finds the stop position in the files.
            facilities.errors.record(str(error))
            failure = failure or error
        if failure is not None:
            order.session.error(order.correlation_id, str(failure), code_of(failure))
        self._tell(order, RecordingSignal.STOP, recording_id, position)

    def _tell(
        self, order: RecordingOrder, signal: RecordingSignal, recording_id: int, position: int
    ) -> None:
        order.session.signal(
            order.correlation_id, signal, recording_id, order.subscription_id, position
        )
