"""Telling descriptors and subscriptions, a batch in each turn.

    64 entries are looked at in a turn; what the stream does not take comes in the next
    told fewer than asked for  ->  RECORDING_UNKNOWN with the id at which the catalog ends

A session tells one listing at a time. One of no recordings is not answered, nor is one of a
negative count, which in Aeron blocks the session's later listings for ever. Source:
archive-protocol 3.4.
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
from windtunnel.driver.archive.recording.recording_request import RecordingOrder
from windtunnel.driver.archive.recording.recordings import Recordings
from windtunnel.driver.archive.storage.catalog import Catalog

SCANS_MAX = 64


def require_no_listing(session: ControlSession) -> None:
    """Raise Refusal while the session tells something else."""
    if session.listing is not None:
        raise RequestRejected("active listing already in progress", ErrorCode.ACTIVE_LISTING)


class RecordingListing:
    """Descriptors from an id on that match."""

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
        """Tell more. Returns how many entries were looked at."""
        known = self._catalog.recording_ids
        first = bisect_left(known, self._next_id)
        ids = known[first : first + SCANS_MAX]
        for scanned, recording_id in enumerate(ids):
            entry = self._catalog.entry(recording_id)
            if entry is not None and entry.descriptor is not None:
                if self._matches(entry.descriptor):
                    if not self._session.try_descriptor(self._correlation_id, entry.content):
                        return scanned
                    self._left -= 1
                self._next_id = recording_id + 1
            if self._left == 0:
                self.is_done = True
                return scanned + 1
        if first + len(ids) == len(known):
            self._session.recording_unknown(self._correlation_id, self._next_id)
            self.is_done = True
        return len(ids) + 1


class SingleListing:
    """One descriptor."""

    def __init__(
        self, session: ControlSession, correlation_id: int, catalog: Catalog, recording_id: int
    ) -> None:
        self._session, self._correlation_id = session, correlation_id
        self._catalog, self._recording_id = catalog, recording_id
        self.is_done = False

    def do_work(self) -> int:
        """Tell it. Returns 1 when it was told."""
        entry = None
        if self._catalog.descriptor(self._recording_id) is not None:
            entry = self._catalog.entry(self._recording_id)
        if entry is None:
            self._session.recording_unknown(self._correlation_id, self._recording_id)
            self.is_done = True
        else:
            self.is_done = self._session.try_descriptor(self._correlation_id, entry.content)
        return int(self.is_done)


class SubscriptionListing:
    """Subscriptions that are recorded."""

    def __init__(
        self,
        session: ControlSession,
        request: ListRecordingSubscriptionsRequest,
        orders: Sequence[RecordingOrder],
    ) -> None:
        self._session, self._request = session, request
        self._orders = list(orders)
        self._left = request.subscription_count
        self.is_done = False

    def do_work(self) -> int:
        """Tell more. Returns how many were told."""
        told = 0
        while self._orders and self._left > 0:
            if self._is_meant(self._orders[0]):
                if not self._session.try_message(self._told(self._orders[0])):
                    return told
                told += 1
                self._left -= 1
            self._orders.pop(0)
        if self._left > 0:
            self._session.subscription_unknown(self._request.correlation_id)
        self.is_done = True
        return told + 1

    def _is_meant(self, order: RecordingOrder) -> bool:
        request = self._request
        if request.apply_stream_id == BooleanType.TRUE and order.stream_id != request.stream_id:
            return False
        return order.subscription is not None and request.channel in order.subscription.channel

    def _told(self, order: RecordingOrder) -> RecordingSubscriptionDescriptor:
        assert order.subscription is not None
        return RecordingSubscriptionDescriptor(
            control_session_id=self._session.session_id,
            correlation_id=self._request.correlation_id,
            subscription_id=order.subscription_id, stream_id=order.stream_id,
            stripped_channel=order.subscription.channel,
        )  # fmt: skip


class Listings:
    """The requests for them."""

    def __init__(self, facilities: ArchiveResources, recordings: Recordings) -> None:
        self._catalog, self._recordings = facilities.catalog, recordings

    def recordings(self, session: ControlSession, request: ListRecordingsRequest) -> None:
        """All from an id on."""
        self._list(session, request, lambda descriptor: True)

    def recordings_for_uri(
        self, session: ControlSession, request: ListRecordingsForUriRequest
    ) -> None:
        """Those of a stream whose original channel contains a text."""
        self._list(
            session, request,
            lambda found: found.stream_id == request.stream_id
            and request.channel in found.original_channel,
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
        """One."""
        require_no_listing(session)
        session.listing = SingleListing(
            session, request.correlation_id, self._catalog, request.recording_id
        )

    def subscriptions(
        self, session: ControlSession, request: ListRecordingSubscriptionsRequest
    ) -> None:
        """What is recorded now, from an index on."""
        require_no_listing(session)
        orders = list(self._recordings.orders)
        index = request.pseudo_index
        if not 0 <= index < len(orders) or request.subscription_count <= 0:
            session.subscription_unknown(request.correlation_id)
        else:
            session.listing = SubscriptionListing(session, request, orders[index:])
