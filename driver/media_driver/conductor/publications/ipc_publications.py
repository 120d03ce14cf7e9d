"""IPC publications, which subscribers read through shared memory.

    ACTIVE --last holder removed--> DRAINING --consumed--> LINGER --no holders--> freed
       |  ^                                                  ^
       |  +-- after the cool-down: subscribers linked again  |
       +-- rejected: subscribers unlinked                    +-- revoked

If a subscriber rejects the stream, all subscribers are unlinked. They are linked again when the
cool-down has ended. Source: spec 3.12, 4.6 and 4.8, Aeron 1.53 (the C driver where the two differ).
"""

from windtunnel.driver.cnc import counters
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.command.response import PublicationError
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.agent.agent_proxy import SlotPool
from windtunnel.driver.media_driver.conductor.driver_resources import DriverResources
from windtunnel.driver.media_driver.conductor.images.subscriptions import (
    IPC_CHANNEL,
    Subscription,
    SubscriptionLinks,
)
from windtunnel.driver.media_driver.conductor.images.untethered import UntetheredReaders
from windtunnel.driver.media_driver.conductor.publications import publication_errors
from windtunnel.driver.media_driver.conductor.publications.ipc_publication import (
    IpcPublication,
    create_ipc_publication,
)
from windtunnel.driver.media_driver.conductor.publications.publication_log import (
    State,
    deactivate_limit,
)
from windtunnel.driver.media_driver.conductor.publications.publication_request import (
    PublicationRequest,
)
from windtunnel.driver.media_driver.conductor.publications.retired_logs import (
    delete_log,
    retire_log,
)
from windtunnel.driver.media_driver.conductor.publications.session_ids import SessionIds
from windtunnel.driver.media_driver.conductor.unblocking import check_publisher, unblock_log

NULL_VALUE = -1


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
        in_stream = self._of_stream(request.stream_id)
        shared = request.find_shared(in_stream)
        if shared is not None:
            request.parameters.refuse_conflict(shared.parameters, shared.session_id)
            shared.holders.add(request.registration_id)
            return shared
        session_id = self._session_ids.choose(request, in_stream)
        publication = create_ipc_publication(
            self._resources, self._limit_slots, request, session_id
        )
        self.publications.append(publication)
        return publication

    def _of_stream(self, stream_id: int) -> list[IpcPublication]:
        alive = (State.ACTIVE, State.DRAINING)
        return [
            item
            for item in self.publications
            if item.stream_id == stream_id and item.state in alive
        ]

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
        deactivate_limit(self._resources, publication.limit_slot)
        if not publication.is_revoked:
            publication.state = State.DRAINING

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
        deactivate_limit(self._resources, publication.limit_slot)

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
