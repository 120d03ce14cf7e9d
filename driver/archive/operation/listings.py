"""Lists recording descriptors and recorded subscriptions, one batch per duty cycle.

    at most 64 entries are scanned per duty cycle; under back pressure the rest follows later
    fewer sent than requested  ->  RECORDING_UNKNOWN with the id at which the catalog ends

A session has one listing at a time. The archive does not respond to a request for zero recordings
or for a negative number of them. In Aeron, a negative number blocks later listings of the session
forever. Source: archive-protocol 3.4.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence

from windtunnel.driver.archive.control.archive_resources import ArchiveResources
from windtunnel.driver.archive.control.control_session import ControlSession
from windtunnel.driver.archive.control.request_rejected import RequestRejected
from windtunnel.driver.archive.protocol.codes import BooleanType, ErrorCode
from windtunnel.driver.archive.protocol.requests import (
    ListRecordingRequest,
    ListRecordingsForUriRequest,
    ListRecordingsRequest,
    ListRecordingSubscriptionsRequest,
)
from windtunnel.driver.archive.protocol.responses import (
    RecordingDescriptor,
    RecordingSubscriptionDescriptor,
)
from windtunnel.driver.archive.recording.recorded_stream import RecordedStream
from windtunnel.driver.archive.recording.recordings import Recordings
from windtunnel.driver.archive.storage.catalog import Catalog

SCANS_MAX = 64


def require_no_listing(session: ControlSession) -> None:
    """Raise RequestRejected if the session already has a listing in progress."""
    if session.listing is not None:
        raise RequestRejected(
            "this session already has a listing in progress", ErrorCode.ACTIVE_LISTING
        )


class RecordingListing:
    """A listing of the descriptors that match a filter, starting at an id."""

    def __init__(
        self,
        session: ControlSession,
        correlation_id: int,
        catalog: Catalog,
        first_id: int,
        count: int,
        matches: Callable[[RecordingDescriptor], bool],
    ) -> None:
        self._session, self._correlation_id = session, correlation_id
        self._catalog, self._matches = catalog, matches
        self._next_id, self._left = first_id, count
        self.is_done = count <= 0

    def do_work(self) -> int:
        """Send more descriptors to the client. Returns the number of catalog entries scanned."""
        known = self._catalog.recording_ids
        first = bisect_left(known, self._next_id)
        ids = known[first : first + SCANS_MAX]
        for scanned, recording_id in enumerate(ids):
            entry = self._catalog.entry(recording_id)
            if entry is not None and entry.descriptor is not None:
                if self._matches(entry.descriptor):
                    if not self._session.responses.try_descriptor(
                        self._correlation_id, entry.content
                    ):
                        return scanned
                    self._left -= 1
                following = first + scanned + 1
                # After the last entry, this is one more than the id that led to it, as in Aeron.
                self._next_id = known[following] if following < len(known) else self._next_id + 1
            if self._left == 0:
                self.is_done = True
                return scanned + 1
        if first + len(ids) == len(known):
            self._session.responses.recording_unknown(self._correlation_id, self._next_id)
            self.is_done = True
        return len(ids) + 1


class SingleListing:
    """A listing of the descriptor of one recording."""

    def __init__(
        self, session: ControlSession, correlation_id: int, catalog: Catalog, recording_id: int
    ) -> None:
        self._session, self._correlation_id = session, correlation_id
        self._catalog, self._recording_id = catalog, recording_id
        self.is_done = False

    def do_work(self) -> int:
        """Send the descriptor, or an error if the recording is unknown. Returns 1 if the listing is
        complete, or 0 if the descriptor must be sent later.
        """
        entry = None
        if self._catalog.descriptor(self._recording_id) is not None:
            entry = self._catalog.entry(self._recording_id)
        if entry is None:
            self._session.responses.recording_unknown(self._correlation_id, self._recording_id)
            self.is_done = True
        else:
            self.is_done = self._session.responses.try_descriptor(
                self._correlation_id, entry.content
            )
        return int(self.is_done)


class SubscriptionListing:
    """A listing of the subscriptions that are being recorded. It skips those that have been stopped
    since the request.
    """

    def __init__(
        self,
        session: ControlSession,
        request: ListRecordingSubscriptionsRequest,
        streams: Sequence[RecordedStream],
    ) -> None:
        self._session, self._request = session, request
        self._streams = list(streams)
        self._left = request.subscription_count
        self.is_done = False

    def do_work(self) -> int:
        """Send more subscriptions to the client. Returns the amount of work done."""
        sent = 0
        while self._streams and self._left > 0:
            if self._matches(self._streams[0]):
                if not self._session.responses.try_message(self._descriptor(self._streams[0])):
                    return sent
                sent += 1
                self._left -= 1
            self._streams.pop(0)
        if self._left > 0:
            self._session.responses.subscription_unknown(self._request.correlation_id)
        self.is_done = True
        return sent + 1

    def _matches(self, stream: RecordedStream) -> bool:
        request = self._request
        if stream.is_over:
            return False
        if request.apply_stream_id == BooleanType.TRUE and stream.stream_id != request.stream_id:
            return False
        return stream.subscription is not None and request.channel in stream.subscription.channel

    def _descriptor(self, stream: RecordedStream) -> RecordingSubscriptionDescriptor:
        assert stream.subscription is not None
        return RecordingSubscriptionDescriptor(
            control_session_id=self._session.session_id,
            correlation_id=self._request.correlation_id,
            subscription_id=stream.subscription_id, stream_id=stream.stream_id,
            stripped_channel=stream.subscription.channel,
        )  # fmt: skip


class Listings:
    """Starts the listings that clients request."""

    def __init__(self, resources: ArchiveResources, recordings: Recordings) -> None:
        self._catalog, self._recordings = resources.catalog, recordings

    def recordings(self, session: ControlSession, request: ListRecordingsRequest) -> None:
        """List all recordings, starting at an id."""
        self._list(session, request, lambda descriptor: True)

    def recordings_for_uri(
        self, session: ControlSession, request: ListRecordingsForUriRequest
    ) -> None:
        """List recordings with a given stream id whose original channel contains a given string."""
        self._list(
            session, request,
            lambda each: each.stream_id == request.stream_id
            and request.channel in each.original_channel,
        )  # fmt: skip

    def _list(
        self,
        session: ControlSession,
        request: ListRecordingsRequest | ListRecordingsForUriRequest,
        matches: Callable[[RecordingDescriptor], bool],
    ) -> None:
        require_no_listing(session)
        listing = RecordingListing(
            session, request.correlation_id, self._catalog, request.from_recording_id,
            request.record_count, matches,
        )  # fmt: skip
        session.listing = None if listing.is_done else listing

    def recording(self, session: ControlSession, request: ListRecordingRequest) -> None:
        """List one recording. The request for an unknown recording ends at once, so
        the client's next request may be a listing.
        """
        require_no_listing(session)
        if self._catalog.descriptor(request.recording_id) is None:
            session.responses.recording_unknown(request.correlation_id, request.recording_id)
            return
        session.listing = SingleListing(
            session, request.correlation_id, self._catalog, request.recording_id
        )

    def subscriptions(
        self, session: ControlSession, request: ListRecordingSubscriptionsRequest
    ) -> None:
        """List the subscriptions that are being recorded, starting at an index."""
        require_no_listing(session)
        streams = list(self._recordings.streams)
        index = request.pseudo_index
        if not 0 <= index < len(streams) or request.subscription_count <= 0:
            session.responses.subscription_unknown(request.correlation_id)
        else:
            session.listing = SubscriptionListing(session, request, streams[index:])
