"""Start, extend and stop recordings.

    request --> RecordingOrder (subscription) --image--> entry, counter, session --> Recorder
                     ^                                                                |
                     `-- stop ------- ended: stop position, STOP, counter freed <-----'

The answer to a request is said before any image can be recorded; signals follow. An image that does
not continue the recording that it was meant for is a second answer to the same request.
Source: archive-protocol 3.1 to 3.3.
"""

from collections import deque
from collections.abc import Iterator

from windtunnel.driver.archive.control import retained_channel
from windtunnel.driver.archive.control.archive_resources import ArchiveResources
from windtunnel.driver.archive.control.control_session import ControlSession
from windtunnel.driver.archive.control.request_rejected import RequestRejected, code_of
from windtunnel.driver.archive.protocol.codes import BooleanType, ErrorCode, SourceLocation
from windtunnel.driver.archive.protocol.requests import (
    ExtendRecordingRequest,
    ExtendRecordingRequest2,
    StartRecordingRequest,
    StartRecordingRequest2,
    StopRecordingByIdentityRequest,
    StopRecordingRequest,
    StopRecordingSubscriptionRequest,
)
from windtunnel.driver.archive.recording.image_recording import ImageRecording
from windtunnel.driver.archive.recording.recorder import Recorder
from windtunnel.driver.archive.recording.recording_request import ActiveRecording, RecordingOrder
from windtunnel.driver.archive.recording.segment_deletions import Deletions
from windtunnel.driver.base.arith import I64_MAX
from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.channel import uri
from windtunnel.driver.client.image.image import Image


class Recordings:
    """What one archive records, in its conductor's thread."""

    def __init__(
        self,
        facilities: ArchiveResources,
        recorder: Recorder,
        deletions: Deletions,
        images: ImageRecording,
    ) -> None:
        self._facilities, self._recorder = facilities, recorder
        self._deletions, self._images = deletions, images
        self._by_key: dict[str, RecordingOrder] = {}
        self._open: list[RecordingOrder] = []
        self._active: dict[int, ActiveRecording] = {}
        self._arrived: deque[tuple[RecordingOrder, Image]] = deque()
        self._ended: list[ActiveRecording] = []

    # --- asked by others -----------------------------------------------------------------------

    def active(self, recording_id: int) -> ActiveRecording | None:
        """The recording that is going on, if it is."""
        return self._active.get(recording_id)

    @property
    def orders(self) -> Iterator[RecordingOrder]:
        """What is ordered and not stopped."""
        return iter(tuple(self._by_key.values()))

    # --- requests ------------------------------------------------------------------------------

    def start(
        self, session: ControlSession, request: StartRecordingRequest | StartRecordingRequest2
    ) -> None:
        """Record what a subscription receives."""
        self._require_slot()
        self._facilities.require_space()
        order = self._order(session, request)
        self._subscribe(order, is_spy=request.source_location == SourceLocation.LOCAL)
        session.ok(request.correlation_id, order.subscription_id)

    def extend(
        self, session: ControlSession, request: ExtendRecordingRequest | ExtendRecordingRequest2
    ) -> None:
        """Let a recording go on."""
        self._require_slot()
        recording = self._facilities.recording(request.recording_id)
        if recording.stream_id != request.stream_id:
            raise RequestRejected(
                f"cannot extend recording {request.recording_id} of stream "
                f"{recording.stream_id} with stream {request.stream_id}",
                ErrorCode.UNKNOWN_RECORDING,
            )
        self._images.require_stopped(self._active, recording)
        self._images.require_undeleted(self._deletions, recording)
        self._facilities.require_space()
        order = self._order(session, request)
        order.extended_id = request.recording_id
        self._subscribe(order, is_spy=request.source_location == SourceLocation.LOCAL)
        session.ok(request.correlation_id, order.subscription_id)

    def stop_by_channel(self, session: ControlSession, request: StopRecordingRequest) -> None:
        """Stop what was ordered for a channel and stream."""
        key = retained_channel.stream_key(request.stream_id, uri.parse(request.channel))
        order = self._by_key.get(key)
        if order is None:
            raise RequestRejected(
                f"no recording of stream {request.stream_id} of {request.channel}",
                ErrorCode.UNKNOWN_SUBSCRIPTION,
            )
        session.ok(request.correlation_id)
        self.stop(order)

    def stop_by_subscription(
        self, session: ControlSession, request: StopRecordingSubscriptionRequest
    ) -> None:
        """Stop what has a subscription of that id."""
        wanted = request.subscription_id
        order = next((each for each in self.orders if each.subscription_id == wanted), None)
        if order is None:
            raise RequestRejected(
                f"no recording has subscription {wanted}", ErrorCode.UNKNOWN_SUBSCRIPTION
            )
        session.ok(request.correlation_id)
        self.stop(order)

    def stop_by_identity(
        self, session: ControlSession, request: StopRecordingByIdentityRequest
    ) -> None:
        """Stop one recording, and order no more of its subscription."""
        self._facilities.recording(request.recording_id)
        found = self._active.get(request.recording_id)
        session.ok(request.correlation_id, 0 if found is None else 1)
        if found is not None:
            self._end(found.order)
            self._recorder.stop(found.session)

    # --- orders --------------------------------------------------------------------------------

    def _require_slot(self) -> None:
        limit = self._facilities.settings.max_concurrent_recordings
        if sum(order.counts for order in self._open) >= limit:
            raise RequestRejected(
                f"max concurrent recordings reached {limit}", ErrorCode.MAX_RECORDINGS
            )

    def _order(
        self,
        session: ControlSession,
        request: StartRecordingRequest
        | StartRecordingRequest2
        | ExtendRecordingRequest
        | ExtendRecordingRequest2,
    ) -> RecordingOrder:
        """What is ordered, not yet subscribed to. Raises Refusal, ConfigurationError."""
        parsed = uri.parse(request.channel)
        key = retained_channel.stream_key(request.stream_id, parsed)
        if key in self._by_key:
            raise RequestRejected(
                f"recording exists for stream {request.stream_id} of {request.channel}",
                ErrorCode.ACTIVE_SUBSCRIPTION,
            )
        stripped = retained_channel.text(retained_channel.retained(parsed))
        return RecordingOrder(
            session, request.correlation_id, request.stream_id, request.channel, stripped, key,
            getattr(request, "auto_stop", BooleanType.FALSE) == BooleanType.TRUE,
        )  # fmt: skip

    def add(self, order: RecordingOrder) -> None:
        """Record on behalf of this archive itself. Raises Refusal, ClientError."""
        self._require_slot()
        if order.key in self._by_key:
            raise RequestRejected(
                f"recording exists for {order.key}", ErrorCode.ACTIVE_SUBSCRIPTION
            )
        self._subscribe(order, is_spy=False)

    def _subscribe(self, order: RecordingOrder, *, is_spy: bool) -> None:
        is_udp = order.stripped_channel.startswith("aeron:udp")
        prefix = uri.SPY_PREFIX if is_spy and is_udp else ""
        order.subscription = self._facilities.client.add_subscription(
            prefix + order.stripped_channel, order.stream_id,
            on_available_image=lambda image: self._arrived.append((order, image)),
        )  # fmt: skip
        self._by_key[order.key] = order
        self._open.append(order)

    def stop(self, order: RecordingOrder) -> None:
        """End an order and all that is recorded for it."""
        for each in tuple(order.active):
            self._recorder.stop(each.session)
        self._end(order)

    def _end(self, order: RecordingOrder) -> None:
        """Order no more; the subscription goes with the last of its sessions."""
        order.is_over = True
        if self._by_key.get(order.key) is order:
            del self._by_key[order.key]
        self._close_if_done(order)

    def _close_if_done(self, order: RecordingOrder) -> None:
        if order.is_over and not order.active and order in self._open:
            self._open.remove(order)
            if order.subscription is not None:
                order.subscription.close()

    # --- its duty cycle ------------------------------------------------------------------------

    @property
    def arrived_count(self) -> int:
        """How many images wait for `begin`."""
        return len(self._arrived)

    def begin(self, count: int) -> int:
        """Begin with that many new images, the oldest first. Returns an amount of work."""
        work_count = 0
        for _ in range(count):
            order, image = self._arrived.popleft()
            if self._is_about_to_end(order.extended_id):
                self._arrived.append((order, image))
            else:
                self._on_image(order, image)
                work_count += 1
        return work_count

    def _is_about_to_end(self, recording_id: int | None) -> bool:
        """Whether all that is missing is that the recorder sees the end of its stream."""
        active = None if recording_id is None else self._active.get(recording_id)
        return active is not None and (
            active.image.is_closed or active.image.end_of_stream_position != I64_MAX
        )

    def finish(self) -> int:
        """Finish what has ended. Returns an amount of work."""
        work_count = 0
        while (session := self._recorder.take_ended()) is not None:
            self._ended.append(
                next(each for each in self._active.values() if each.session is session)
            )
        for active in tuple(self._ended):
            is_held = active.order.is_held and not active.order.is_over
            if not is_held or active.session.failure is not None:
                self._ended.remove(active)
                self._on_ended(active)
                work_count += 1
        return work_count

    def _on_image(self, order: RecordingOrder, image: Image) -> None:
        if order.is_over:
            return
        try:
            if order.extended_id is not None:
                recording = self._facilities.recording(order.extended_id)
                self._images.require_stopped(self._active, recording)
                self._images.require_undeleted(self._deletions, recording)
            active = self._images.begin(order, image)
        except DriverError as error:
            order.session.error(order.correlation_id, str(error), code_of(error))
            if not isinstance(error, RequestRejected):
                self._facilities.errors.record(str(error))
            if order.auto_stop:
                self._end(order)
            return
        order.has_begun = True
        if active is None:
            if order.auto_stop:
                self._end(order)
            return
        order.active.append(active)
        self._active[active.recording_id] = active
        self._count()
        self._recorder.add(active.session)

    def _on_ended(self, active: ActiveRecording) -> None:
        order = active.order
        self._images.finish(active)
        del self._active[active.recording_id]
        order.active.remove(active)
        self._count()
        if order.auto_stop and not order.is_over:
            self.stop(order)
        self._close_if_done(order)

    def _count(self) -> None:
        self._facilities.counters.recording_sessions.set(len(self._active))

    def close(self) -> None:
        """The recorder has ended every session: write down where each stopped."""
        self._arrived.clear()
        self.finish()
        for order in tuple(self._open):
            self._end(order)
