"""Network publications, which the sender transmits until they are drained and removed.

    ACTIVE --last holder removed--> DRAINING --sent, consumed by spies--> LINGER --timeout--> DONE
       +-- revoked ------------------------------------------------------>+

The records of a publication are freed only after the sender has acknowledged its removal. Source:
spec 4.8, 4.11, 7.3 and 8.2, Aeron 1.53.
"""

from contextlib import ExitStack
from dataclasses import dataclass

from windtunnel.driver.channel.publication_parameters import RESPONSE_PROTOTYPE, TERM_LENGTH_MIN
from windtunnel.driver.channel.udp_channel import UdpChannel
from windtunnel.driver.channel.uri import InvalidChannelError
from windtunnel.driver.cnc import counters
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.agent.agent_proxy import SlotPool, append_slot, remove_slot
from windtunnel.driver.media_driver.conductor.driver_resources import DriverResources
from windtunnel.driver.media_driver.conductor.endpoints.channel_endpoints import ChannelEndpoint
from windtunnel.driver.media_driver.conductor.endpoints.send_channel_endpoints import (
    SendChannelEndpoints,
)
from windtunnel.driver.media_driver.conductor.images.subscriptions import (
    Subscription,
    SubscriptionLinks,
)
from windtunnel.driver.media_driver.conductor.images.untethered import UntetheredReaders
from windtunnel.driver.media_driver.conductor.publications.publication_limit import NETWORK
from windtunnel.driver.media_driver.conductor.publications.publication_log import (
    LocalPublication,
    State,
    create_log,
    delete_log,
    fill_limit,
    retire_log,
    retry_deletions,
    stream_start,
)
from windtunnel.driver.media_driver.conductor.publications.publication_request import (
    PublicationRequest,
)
from windtunnel.driver.media_driver.conductor.publications.sender_record import fill_sender_record
from windtunnel.driver.media_driver.conductor.publications.session_ids import SessionIds
from windtunnel.driver.media_driver.conductor.stream_counters import (
    NETWORK_COUNTERS,
    RETRANSMIT_COUNTERS,
)
from windtunnel.driver.media_driver.conductor.unblocking import (
    StallDetector,
    check_publisher,
    unblock_log,
)
from windtunnel.driver.media_driver.sender import network_publication as sending
from windtunnel.driver.media_driver.sender import sender_state


@dataclass(eq=False, kw_only=True)
class NetworkPublication(LocalPublication):
    """A publication that the sender transmits over UDP."""

    endpoint: ChannelEndpoint
    slot: int
    stall_detector: StallDetector
    is_end_of_stream: bool = False

    def sender_position(self) -> int:
        """Return the position up to which the sender has sent the stream."""
        return int(counters.get_acquire(self.values, self.counter_ids[2]))

    def join_position(self) -> int:
        """Return the start position of a spy: the sender position."""
        return self.sender_position()


class NetworkPublications:
    """All network publications in this driver."""

    def __init__(
        self,
        resources: DriverResources,
        endpoints: SendChannelEndpoints,
        links: SubscriptionLinks,
        session_ids: SessionIds,
        limit_slots: SlotPool,
    ) -> None:
        self._resources = resources
        self._endpoints = endpoints
        self._links = links
        self._session_ids = session_ids
        self._limit_slots = limit_slots
        self._untethered = UntetheredReaders(resources, links)
        self._slots = SlotPool(resources.sender.publications.size, "network publications")
        self.publications: list[NetworkPublication] = []

    def add(self, request: PublicationRequest, channel: UdpChannel) -> NetworkPublication:
        """Create a network publication, or return the stream's existing concurrent publication to
        share it.
        """
        existing = self._endpoints.find(channel)
        shared = None if request.is_exclusive else self._find_shared(request, existing)
        if shared is not None:
            request.parameters.refuse_conflict(shared.parameters, shared.session_id)
            request.parameters.refuse_spies_conflict(shared.parameters)
            shared.holders.add(request.registration_id)
            return shared
        endpoint = self._endpoints.get_or_open(channel, request.registration_id)
        try:
            session_id = self._choose_session_id(request, existing)
            publication = self._create(request, session_id, endpoint)
        except BaseException:
            self._endpoints.release(endpoint)
            raise
        self.publications.append(publication)
        return publication

    def _of_stream(
        self, stream_id: int, endpoint: ChannelEndpoint | None
    ) -> list[NetworkPublication]:
        return [
            item
            for item in self.publications
            if endpoint is not None and item.endpoint is endpoint
            if item.stream_id == stream_id and item.state is not State.DONE
        ]

    def _find_shared(
        self, request: PublicationRequest, endpoint: ChannelEndpoint | None
    ) -> NetworkPublication | None:
        correlation_id = request.parameters.response_correlation_id
        for item in self._of_stream(request.stream_id, endpoint):
            is_same = item.parameters.response_correlation_id == correlation_id
            if is_same and item.state is State.ACTIVE and not item.is_exclusive:
                return item
        return None

    def _choose_session_id(
        self, request: PublicationRequest, endpoint: ChannelEndpoint | None
    ) -> int:
        in_use = {item.session_id for item in self._of_stream(request.stream_id, endpoint)}
        requested = request.parameters.session_id
        if requested is None:
            return self._session_ids.next(in_use)
        if requested in in_use:
            raise InvalidChannelError(
                f"session-id={requested}: a publication of stream {request.stream_id} on "
                f"'{request.channel_text}' already has this session id"
            )
        return requested

    def _create(
        self, request: PublicationRequest, session_id: int, endpoint: ChannelEndpoint
    ) -> NetworkPublication:
        resources, parameters = self._resources, request.parameters
        if parameters.is_response and parameters.response_correlation_id == RESPONSE_PROTOTYPE:
            # A prototype keeps the channel open. No data is published on it.
            parameters = parameters._replace(term_length=TERM_LENGTH_MIN)
        start = stream_start(resources, parameters)
        parameters = parameters._replace(
            initial_position=start.configured_initial_position(parameters)
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
                endpoint.channel,
                is_exclusive=request.is_exclusive,
            )
            undo.callback(delete_log, resources, log)
            slot = self._slots.acquire()
            undo.callback(self._slots.release, slot)
            limit_slot = self._limit_slots.acquire()
            undo.callback(self._limit_slots.release, limit_slot)
            further = RETRANSMIT_COUNTERS if parameters.has_retransmit_ranges else ()
            ids = resources.counters.publication(
                undo,
                NETWORK_COUNTERS + further,
                request.identity(session_id),
                start.position,
                is_exclusive=request.is_exclusive,
            )
            identity = (request.registration_id, session_id, request.stream_id)
            fill_sender_record(resources, slot, identity, endpoint, log, parameters, start, ids)
            undo.pop_all()
        record = resources.conductor.limits[limit_slot]
        fill_limit(record, log, parameters, start, NETWORK)
        record["slot"] = slot
        record["pub_pos_id"], record["pub_lmt_id"], record["snd_pos_id"] = ids[:3]
        resources.sender_proxy.offer(sender_state.ADD_PUBLICATION, slot)
        append_slot(
            resources.conductor.active_limits,
            resources.conductor.agent[0],
            "limit_count",
            limit_slot,
        )
        return NetworkPublication(
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
            endpoint=endpoint,
            slot=slot,
            stall_detector=StallDetector(resources.clock.now_ns()),
        )

    def join(self, spy: Subscription) -> None:
        """Link a new spy to the existing network publications that match it."""
        for publication in self.publications:
            if self._accepts_spies(publication):
                self._link(spy, publication)

    def announce(self, publication: NetworkPublication) -> None:
        """Link a network publication to the existing spies that match it."""
        for subscription in list(self._links.all()):
            self._link(subscription, publication)

    def _link(self, spy: Subscription, publication: NetworkPublication) -> None:
        is_new = _is_spied_by(publication, spy) and not spy.is_linked(publication)
        if is_new and self._links.try_link(spy, publication):
            self.refresh_spies(publication)

    def _accepts_spies(self, publication: NetworkPublication) -> bool:
        if publication.state is State.DRAINING:
            _, _, count = self._resources.positions.bounds(
                publication.record, self._resources.values
            )
            return count > 0 and publication.producer_position() > publication.sender_position()
        return publication.state is State.ACTIVE

    def refresh_spies(self, publication: NetworkPublication) -> None:
        """Inform the sender whether a publication has spies, and update its connection status."""
        _, highest, count = self._resources.positions.bounds(
            publication.record, self._resources.values
        )
        words = self._resources.sender.words
        sending.set_spies_release(words, publication.slot, int(count > 0), highest)
        if publication.parameters.spies_simulate_connection:
            publication.set_connected(self._has_subscribers(publication, count))

    def _has_subscribers(self, publication: NetworkPublication, spies: int) -> bool:
        words = self._resources.sender.words
        is_simulated = publication.parameters.spies_simulate_connection and spies > 0
        return is_simulated or bool(sending.has_required_receivers_acquire(words, publication.slot))

    def release(self, publication: NetworkPublication, now_ns: int) -> None:
        """End a network publication that no client holds anymore. Its remaining data is still sent,
        unless it was revoked.
        """
        produced = publication.publish_position()
        counters.set_release(self._resources.values, publication.pub_lmt_id, produced)
        publication.set_end_of_stream(produced)
        publication.state_since_ns = now_ns
        self._remove_limit(publication)
        if not publication.is_revoked:
            if publication.sender_position() >= produced:
                self._end(publication)
            publication.state = State.DRAINING

    def _remove_limit(self, publication: NetworkPublication) -> None:
        agent = self._resources.conductor.agent[0]
        slots = self._resources.conductor.active_limits
        remove_slot(slots, agent, "limit_count", publication.limit_slot)

    def on_timer(self, now_ns: int) -> None:
        """Update the state of every network publication, and retry failed log deletions."""
        retry_deletions(self._resources)
        for publication in list(self.publications):
            if publication.state is State.ACTIVE and publication.is_revoked:
                self._end_revoked(publication)
            elif publication.state is State.ACTIVE:
                self._check_active(publication, now_ns)
            elif publication.state is State.DRAINING:
                self._drain(publication, now_ns)
            elif publication.state is State.LINGER and not publication.holders:
                self._finish_when_quiet(publication, now_ns)

    def _check_active(self, publication: NetworkPublication, now_ns: int) -> None:
        sent = publication.sender_position()
        window = publication.parameters.window_length
        readers = self._links.readers_of(publication)
        limit = sent - window + window // 4
        self._untethered.check(readers, limit, publication.untethered_timeouts, now_ns)
        if readers:
            self.refresh_spies(publication)
        if not publication.is_exclusive:
            check_publisher(
                self._resources,
                publication.log,
                publication.stall_detector,
                sent,
                publication.producer_position(),
                now_ns,
            )

    def _drain(self, publication: NetworkPublication, now_ns: int) -> None:
        produced, sent = publication.publish_position(), publication.sender_position()
        if produced > sent:
            words = self._resources.sender.words
            if unblock_log(self._resources, publication.log, sent):
                return
            if sending.has_receivers_acquire(words, publication.slot):
                return
        else:
            self._end(publication)
        lowest, _, count = self._resources.positions.bounds(
            publication.record, self._resources.values
        )
        if count == 0 or lowest >= produced:
            self._links.unlink_stream(publication)
            self.refresh_spies(publication)
            publication.state, publication.state_since_ns = State.LINGER, now_ns

    def _end_revoked(self, publication: NetworkPublication) -> None:
        produced = publication.publish_position()
        counters.set_release(self._resources.values, publication.pub_lmt_id, produced)
        publication.set_end_of_stream(produced)
        self._end(publication)
        # Increment the counter before the clients are notified.
        counters.increment(self._resources.values, system_counters.PUBLICATIONS_REVOKED)
        self._links.unlink_stream(publication)
        self.refresh_spies(publication)
        # Do this after `refresh_spies`, which may set the status. The sender does the same once it
        # is informed.
        publication.set_connected(False)
        self._remove_limit(publication)
        publication.state = State.LINGER

    def _finish_when_quiet(self, publication: NetworkPublication, now_ns: int) -> None:
        quiet_ns = now_ns - publication.state_since_ns
        words = self._resources.sender.words
        is_unicast_over = sending.has_unicast_eos_acquire(words, publication.slot)
        linger_ns = publication.parameters.linger_ns
        if sending.is_behind_acquire(words, publication.slot):
            linger_ns = max(linger_ns, publication.parameters.linger_max_ns)
        if is_unicast_over or quiet_ns > linger_ns:
            publication.state, publication.state_since_ns = State.DONE, now_ns
            self._resources.sender_proxy.offer(sender_state.REMOVE_PUBLICATION, publication.slot)

    def _end(self, publication: NetworkPublication) -> None:
        """Command the sender to set the EOS flag in a publication's heartbeats. Repeated calls have
        no effect.
        """
        if not publication.is_end_of_stream:
            publication.is_end_of_stream = True
            self._resources.sender_proxy.offer(
                sender_state.END_PUBLICATION, publication.slot, int(publication.is_revoked)
            )

    def registration_id_of(self, slot: int) -> int | None:
        """Return the registration id of the publication in a sender slot, or None if the slot is
        free.
        """
        return next((item.registration_id for item in self.publications if item.slot == slot), None)

    def on_released(self, slot: int) -> None:
        """Free a publication that the sender has released."""
        publication = next(item for item in self.publications if item.slot == slot)
        self.publications.remove(publication)
        for counter_id in publication.counter_ids:
            self._resources.counters.free(counter_id)
        retire_log(self._resources, publication.log)
        self._slots.release(slot)
        self._limit_slots.release(publication.limit_slot)
        self._endpoints.release(publication.endpoint)

    def close(self) -> None:
        """Delete the logs of all publications. Call this only after the sender has stopped."""
        for publication in self.publications:
            delete_log(self._resources, publication.log)
        self.publications.clear()


def _is_spied_by(publication: NetworkPublication, spy: Subscription) -> bool:
    """Return whether a spy subscription matches a publication by tag, or by canonical form and
    session.
    """
    spied = spy.spied_channel
    if spied is None or spy.stream_id != publication.stream_id:
        return False
    channel = publication.endpoint.channel
    if spied.channel_tag is not None and spied.channel_tag == channel.channel_tag:
        return True
    is_same = spied.canonical_form == channel.canonical_form
    return is_same and spy.accepts_session(publication.session_id)
