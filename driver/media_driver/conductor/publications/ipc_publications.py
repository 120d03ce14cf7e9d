"""IPC publications, which subscribers read through shared memory.

    ACTIVE --last holder removed--> DRAINING --consumed--> LINGER --no holders--> freed
       |  ^                                                  ^
       |  +-- after the cool-down: subscribers linked again  |
       +-- rejected: subscribers unlinked                    +-- revoked

If a subscriber rejects the stream, all subscribers are unlinked. They are linked again when the
cool-down has ended. Source: spec 3.12, 4.6 and 4.8, Aeron 1.53 (the C driver where the two differ).
"""

from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np

from windtunnel.driver.channel.uri import InvalidChannelError
from windtunnel.driver.cnc import counters
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.command.response import PublicationError
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.agent.agent_proxy import SlotPool, append_slot, remove_slot
from windtunnel.driver.media_driver.conductor.driver_resources import DriverResources
from windtunnel.driver.media_driver.conductor.images import subscriber_positions
from windtunnel.driver.media_driver.conductor.images.subscriptions import (
    IPC_CHANNEL,
    Subscription,
    SubscriptionLinks,
)
from windtunnel.driver.media_driver.conductor.images.untethered import UntetheredReaders
from windtunnel.driver.media_driver.conductor.publications import publication_errors
from windtunnel.driver.media_driver.conductor.publications.publication_limit import IPC
from windtunnel.driver.media_driver.conductor.publications.publication_log import (
    LocalPublication,
    State,
    create_log,
    delete_log,
    fill_limit,
    retire_log,
    stream_start,
)
from windtunnel.driver.media_driver.conductor.publications.publication_request import (
    PublicationRequest,
)
from windtunnel.driver.media_driver.conductor.publications.session_ids import SessionIds
from windtunnel.driver.media_driver.conductor.stream_counters import IPC_COUNTERS
from windtunnel.driver.media_driver.conductor.unblocking import (
    StallDetector,
    check_publisher,
    unblock_log,
)

NULL_VALUE = -1


@dataclass(eq=False, kw_only=True)
class IpcPublication(LocalPublication):
    """A publication that subscribers read through shared memory."""

    stall_detector: StallDetector
    positions: np.ndarray
    cool_down_until_ns: int | None = None
    """End of the cool-down after a subscriber rejected the publication, or None."""

    @property
    def consumer_position(self) -> int:
        """The position of the publication's fastest subscriber."""
        return int(self.record["consumer_position"])

    def join_position(self) -> int:
        """Return a new subscriber's start position: the position of the slowest subscriber."""
        lowest, _, _ = subscriber_positions.bounds(
            self.positions, int(self.record["first_subscriber"]), self.values
        )
        return min(self.consumer_position, int(lowest))


class IpcPublications:
    """All IPC publications in this driver."""

    def __init__(
        self,
        resources: DriverResources,
        links: SubscriptionLinks,
        session_ids: SessionIds,
        limit_slots: SlotPool,
    ) -> None:
        self._resources = resources
        self._links = links
        self._session_ids = session_ids
        self._limit_slots = limit_slots
        self._untethered = UntetheredReaders(resources, links)
        self.publications: list[IpcPublication] = []

    def add(self, request: PublicationRequest) -> IpcPublication:
        """Create an IPC publication, or return the stream's existing concurrent publication to
        share it.
        """
        parameters = request.parameters
        shared = None if request.is_exclusive else self._find_shared(request)
        if shared is not None:
            parameters.refuse_conflict(shared.parameters, shared.session_id)
            shared.holders.add(request.registration_id)
            return shared
        in_use = {item.session_id for item in self._of_stream(request.stream_id)}
        if parameters.session_id in in_use:
            raise InvalidChannelError(
                f"session-id={parameters.session_id}: a publication of stream "
                f"{request.stream_id} already has this session id"
            )
        session_id = parameters.session_id
        if session_id is None:
            session_id = self._session_ids.next(in_use)
        publication = self._create(request, session_id)
        self.publications.append(publication)
        return publication

    def _of_stream(self, stream_id: int) -> list[IpcPublication]:
        alive = (State.ACTIVE, State.DRAINING)
        return [
            item
            for item in self.publications
            if item.stream_id == stream_id and item.state in alive
        ]

    def _find_shared(self, request: PublicationRequest) -> IpcPublication | None:
        correlation_id = request.parameters.response_correlation_id
        for item in self._of_stream(request.stream_id):
            is_same = item.parameters.response_correlation_id == correlation_id
            if is_same and item.state is State.ACTIVE and not item.is_exclusive:
                return item
        return None

    def _create(self, request: PublicationRequest, session_id: int) -> IpcPublication:
        resources = self._resources
        start = stream_start(resources, request.parameters)
        parameters = request.parameters._replace(
            initial_position=start.configured_initial_position(request.parameters)
        )
        # On a failure, release the previous allocations.
        with ExitStack() as undo:
            log = create_log(
                resources,
                request.registration_id,
                session_id,
                request.stream_id,
                parameters,
                start,
                None,
                is_exclusive=request.is_exclusive,
            )
            undo.callback(delete_log, resources, log)
            limit_slot = self._limit_slots.acquire()
            undo.callback(self._limit_slots.release, limit_slot)
            ids = resources.counters.publication(
                undo,
                IPC_COUNTERS,
                request.identity(session_id),
                start.position,
                is_exclusive=request.is_exclusive,
            )
            undo.pop_all()
        record = resources.conductor.limits[limit_slot]
        fill_limit(record, log, parameters, start, IPC)
        record["pub_pos_id"], record["pub_lmt_id"] = ids
        append_slot(
            resources.conductor.active_limits,
            resources.conductor.agent[0],
            "limit_count",
            limit_slot,
        )
        return IpcPublication(
            registration_id=request.registration_id,
            client_id=request.client_id,
            session_id=session_id,
            stream_id=request.stream_id,
            channel_text=request.channel_text,
            parameters=parameters,
            is_exclusive=request.is_exclusive,
            log=log,
            limit_slot=limit_slot,
            record=record,
            holders={request.registration_id},
            counter_ids=ids,
            values=resources.values,
            positions=resources.conductor.subscribers,
            stall_detector=StallDetector(resources.clock.now_ns()),
        )

    def join(self, subscription: Subscription) -> None:
        """Link a new subscription to the existing IPC publications of its stream."""
        for publication in self.publications:
            self._link(subscription, publication)

    def announce(self, publication: IpcPublication) -> None:
        """Link an IPC publication to the existing subscriptions of its stream."""
        for subscription in list(self._links.all()):
            self._link(subscription, publication)

    def _link(self, subscription: Subscription, publication: IpcPublication) -> None:
        is_match = (
            subscription.uri.is_ipc
            and subscription.stream_id == publication.stream_id
            and subscription.accepts_session(publication.session_id)
            and not subscription.is_linked(publication)
        )
        if (
            is_match
            and self._accepts_readers(publication)
            and self._links.try_link(subscription, publication)
        ):
            publication.set_connected(True)

    def _accepts_readers(self, publication: IpcPublication) -> bool:
        if publication.cool_down_until_ns is not None:
            return False
        if publication.state is State.DRAINING:
            return not self._is_drained(publication)
        return publication.state is State.ACTIVE

    def _is_drained(self, publication: IpcPublication) -> bool:
        lowest, _, count = self._resources.positions.bounds(
            publication.record, self._resources.values
        )
        return count == 0 or lowest >= publication.producer_position()

    def on_reader_gone(self, publication: IpcPublication) -> None:
        """Update a publication's connection status after a subscription is unlinked."""
        _, _, count = self._resources.positions.bounds(publication.record, self._resources.values)
        if count == 0:
            publication.set_connected(False)

    def release(self, publication: IpcPublication) -> None:
        """End an IPC publication that no client holds anymore. Subscribers can still read its
        remaining data, unless it was revoked.
        """
        produced = publication.producer_position()
        limit = int(counters.get(self._resources.values, publication.pub_lmt_id))
        counters.set_release(self._resources.values, publication.pub_lmt_id, min(limit, produced))
        publication.set_end_of_stream(produced)
        self._remove_limit(publication)
        if not publication.is_revoked:
            publication.state = State.DRAINING

    def _remove_limit(self, publication: IpcPublication) -> None:
        agent = self._resources.conductor.agent[0]
        slots = self._resources.conductor.active_limits
        remove_slot(slots, agent, "limit_count", publication.limit_slot)

    def reject(self, registration_id: int, reason: str) -> bool:
        """Reject a publication by notifying its publishers and unlinking all subscribers.

        No subscriber is linked again before the cool-down has ended. Returns False if there is no
        publication with this id.
        """
        for publication in self.publications:
            if publication.registration_id == registration_id:
                break
        else:
            return False
        response = PublicationError(
            registration_id=registration_id,
            destination_registration_id=NULL_VALUE,
            session_id=publication.session_id,
            stream_id=publication.stream_id,
            receiver_id=NULL_VALUE,
            group_tag=NULL_VALUE,
            source_address="127.0.0.1",
            source_port=0,
            error_code=ErrorCode.IMAGE_REJECTED,
            message=reason,
        )
        publication_errors.report_error(self._resources, response)
        if publication.cool_down_until_ns is None:
            publication.set_connected(False)
            self._links.unlink_stream(publication)
        timeout_ns = self._resources.context.image_liveness_timeout_ns
        publication.cool_down_until_ns = self._resources.clock.now_ns() + timeout_ns
        return True

    def on_timer(self, now_ns: int) -> None:
        """Update the state of every IPC publication."""
        for publication in list(self.publications):
            if publication.state is State.LINGER and not publication.holders:
                self._free(publication)
            elif publication.state is State.ACTIVE and publication.is_revoked:
                self._end_revoked(publication)
            elif publication.state is State.ACTIVE:
                self._check_active(publication, now_ns)
            elif publication.state is State.DRAINING:
                self._drain(publication)

    def _check_active(self, publication: IpcPublication, now_ns: int) -> None:
        window = publication.parameters.window_length
        limit = publication.consumer_position - window + window // 4
        readers = self._links.readers_of(publication)
        self._untethered.check(readers, limit, publication.untethered_timeouts, now_ns)
        _, _, count = self._resources.positions.bounds(publication.record, self._resources.values)
        publication.set_connected(count > 0)
        if not publication.is_exclusive:
            check_publisher(
                self._resources,
                publication.log,
                publication.stall_detector,
                publication.consumer_position,
                publication.producer_position(),
                now_ns,
            )
        until_ns = publication.cool_down_until_ns
        if until_ns is not None and until_ns < now_ns:
            publication.cool_down_until_ns = None
            self.announce(publication)

    def _drain(self, publication: IpcPublication) -> None:
        publication.publish_position()
        if self._is_drained(publication):
            publication.state = State.LINGER
            self._links.unlink_stream(publication, IPC_CHANNEL)
        else:
            unblock_log(self._resources, publication.log, publication.consumer_position)

    def _end_revoked(self, publication: IpcPublication) -> None:
        produced = publication.producer_position()
        counters.set_release(self._resources.values, publication.pub_lmt_id, produced)
        publication.set_end_of_stream(produced)
        publication.set_connected(False)
        # Increment the counter before the clients are notified.
        counters.increment(self._resources.values, system_counters.PUBLICATIONS_REVOKED)
        self._links.unlink_stream(publication, IPC_CHANNEL)
        publication.state = State.LINGER
        self._remove_limit(publication)

    def _free(self, publication: IpcPublication) -> None:
        self.publications.remove(publication)
        for counter_id in publication.counter_ids:
            self._resources.counters.free(counter_id)
        retire_log(self._resources, publication.log)
        self._limit_slots.release(publication.limit_slot)

    def close(self) -> None:
        """Delete the logs of all IPC publications."""
        for publication in self.publications:
            delete_log(self._resources, publication.log)
        self.publications.clear()
