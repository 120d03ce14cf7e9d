"""The publications that go out over UDP: made for clients, handed to the sender, ended in good
order.

    ACTIVE --last holder gone--> DRAINING --sent, and read by spies--> LINGER --time--> DONE
       +-- revoked: at once ------------------------------------------>+

The sender's record and the conductor's record of a publication are freed only after the sender has
said that it let go. Source: spec 4.8, 4.11, 7.3 and 8.2, Aeron 1.53.
"""

from contextlib import ExitStack
from dataclasses import dataclass, replace

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
    retry_deletions,
    start_of,
)
from windtunnel.driver.media_driver.conductor.publications.publication_request import (
    PublicationRequest,
)
from windtunnel.driver.media_driver.conductor.publications.sender_record import fill_sender_record
from windtunnel.driver.media_driver.conductor.publications.session_ids import SessionIds
from windtunnel.driver.media_driver.conductor.stream_counters import NETWORK_COUNTERS
from windtunnel.driver.media_driver.conductor.unblocking import (
    StallDetector,
    check_publisher,
    unblock_log,
)
from windtunnel.driver.media_driver.sender import network_publication as sending
from windtunnel.driver.media_driver.sender import sender_state


@dataclass(eq=False, kw_only=True)
class NetworkPublication(LocalPublication):
    """A local publication that the sender serves."""

    endpoint: ChannelEndpoint
    slot: int
    watch: StallDetector
    is_end_of_stream: bool = False

    def sender_position(self) -> int:
        """How far the sender has sent."""
        return int(counters.get_acquire(self.values, self.counter_ids[2]))

    def join_position(self) -> int:
        """Where a spy starts: never at data that has left already."""
        return self.sender_position()


class NetworkPublications:
    """All of them."""

    def __init__(
        self,
        parts: DriverResources,
        endpoints: SendChannelEndpoints,
        links: SubscriptionLinks,
        session_ids: SessionIds,
        limit_slots: SlotPool,
    ) -> None:
        self._parts = parts
        self._endpoints = endpoints
        self._links = links
        self._session_ids = session_ids
        self._limit_slots = limit_slots
        self._untethered = UntetheredReaders(parts, links)
        self._slots = SlotPool(parts.sender.publications.size, "network publications")
        self.publications: list[NetworkPublication] = []

    def add(self, request: PublicationRequest, channel: UdpChannel) -> NetworkPublication:
        """A new publication, or the concurrent one that the channel and stream have already."""
        existing = self._endpoints.find(channel)
        shared = None if request.is_exclusive else self._find_shared(request, existing)
        if shared is not None:
            request.parameters.refuse_conflict(shared.parameters, shared.session_id)
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
        wanted = request.parameters.session_id
        if wanted is None:
            return self._session_ids.next(in_use)
        if wanted in in_use:
            raise InvalidChannelError(
                f"session-id={wanted}: a publication of stream {request.stream_id} on "
                f"'{request.channel_text}' has it already"
            )
        return wanted

    def _create(
        self, request: PublicationRequest, session_id: int, endpoint: ChannelEndpoint
    ) -> NetworkPublication:
        parts, parameters = self._parts, request.parameters
        if parameters.is_response and parameters.response_correlation_id == RESPONSE_PROTOTYPE:
            # A prototype only holds the channel open: nothing is ever published to it.
            parameters = replace(parameters, term_length=TERM_LENGTH_MIN)
        start = start_of(parts, parameters)
        parameters = replace(
            parameters, initial_position=start.configured_initial_position(parameters)
        )
        # Whatever runs out half-way, what was taken until then is given back.
        with ExitStack() as undo:
            log = create_log(
                parts,
                request.registration_id,
                session_id,
                request.stream_id,
                parameters,
                start,
                endpoint.channel,
                is_exclusive=request.is_exclusive,
            )
            undo.callback(delete_log, parts, log)
            slot = self._slots.take()
            undo.callback(self._slots.give_back, slot)
            limit_slot = self._limit_slots.take()
            undo.callback(self._limit_slots.give_back, limit_slot)
            ids = parts.counters.publication(
                undo,
                NETWORK_COUNTERS,
                request.identity(session_id),
                start.position,
                is_exclusive=request.is_exclusive,
            )
            identity = (request.registration_id, session_id, request.stream_id)
            fill_sender_record(parts, slot, identity, endpoint, log, parameters, start, ids)
            undo.pop_all()
        record = parts.conductor.limits[limit_slot]
        fill_limit(record, log, parameters, start, NETWORK)
        record["slot"] = slot
        record["pub_pos_id"], record["pub_lmt_id"], record["snd_pos_id"] = ids[:3]
        parts.sender_proxy.ask(sender_state.ADD_PUBLICATION, slot)
        append_slot(
            parts.conductor.active_limits, parts.conductor.agent[0], "limit_count", limit_slot
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
            values=parts.values,
            endpoint=endpoint,
            slot=slot,
            watch=StallDetector(parts.clock.now_ns()),
        )

    def join(self, spy: Subscription) -> None:
        """Let a spy read the publications that it looks at."""
        for publication in self.publications:
            if self._accepts_spies(publication):
                self._link(spy, publication)

    def announce(self, publication: NetworkPublication) -> None:
        """Let the spies that wait for it read a publication."""
        for subscription in list(self._links.all()):
            self._link(subscription, publication)

    def _link(self, spy: Subscription, publication: NetworkPublication) -> None:
        is_new = _is_spied_by(publication, spy) and not spy.is_linked(publication)
        if is_new and self._links.try_link(spy, publication):
            self.refresh_spies(publication)

    def _accepts_spies(self, publication: NetworkPublication) -> bool:
        if publication.state is State.DRAINING:
            _, _, count = self._parts.positions.bounds(publication.record, self._parts.values)
            return count > 0 and publication.producer_position() > publication.sender_position()
        return publication.state is State.ACTIVE

    def refresh_spies(self, publication: NetworkPublication) -> None:
        """Tell the sender whether a publication has spies, and clients whether it is connected."""
        _, highest, count = self._parts.positions.bounds(publication.record, self._parts.values)
        words = self._parts.sender.words
        sending.set_spies_release(words, publication.slot, int(count > 0), highest)
        if publication.parameters.spies_simulate_connection:
            publication.set_connected(self._has_subscribers(publication, count))

    def _has_subscribers(self, publication: NetworkPublication, spies: int) -> bool:
        words = self._parts.sender.words
        is_simulated = publication.parameters.spies_simulate_connection and spies > 0
        return is_simulated or bool(sending.has_required_receivers_acquire(words, publication.slot))

    def release(self, publication: NetworkPublication, now_ns: int) -> None:
        """Its last holder is gone: the stream drains, unless it is revoked."""
        produced = publication.publish_position()
        counters.set_release(self._parts.values, publication.pub_lmt_id, produced)
        publication.set_end_of_stream(produced)
        publication.state_since_ns = now_ns
        self._stop_limit(publication)
        if not publication.is_revoked:
            if publication.sender_position() >= produced:
                self._end(publication)
            publication.state = State.DRAINING

    def _stop_limit(self, publication: NetworkPublication) -> None:
        agent = self._parts.conductor.agent[0]
        slots = self._parts.conductor.active_limits
        remove_slot(slots, agent, "limit_count", publication.limit_slot)

    def on_timer(self, now_ns: int) -> None:
        """Move every publication on, and remove the logs that stayed behind, whosesoever."""
        retry_deletions(self._parts)
        for publication in list(self.publications):
            if publication.state is State.ACTIVE and publication.is_revoked:
                self._end_revoked(publication)
            elif publication.state is State.ACTIVE:
                self._tend(publication, now_ns)
            elif publication.state is State.DRAINING:
                self._drain(publication, now_ns)
            elif publication.state is State.LINGER and not publication.holders:
                self._finish_when_quiet(publication, now_ns)

    def _tend(self, publication: NetworkPublication, now_ns: int) -> None:
        sent = publication.sender_position()
        window = publication.parameters.window_length
        readers = self._links.readers_of(publication)
        limit = sent - window + window // 4
        self._untethered.check(readers, limit, publication.untethered_timeouts, now_ns)
        if readers:
            self.refresh_spies(publication)
        if not publication.is_exclusive:
            check_publisher(self._parts, publication.log, publication.watch, sent, now_ns)

    def _drain(self, publication: NetworkPublication, now_ns: int) -> None:
        produced, sent = publication.publish_position(), publication.sender_position()
        if produced > sent:
            words = self._parts.sender.words
            if unblock_log(self._parts, publication.log, sent):
                return
            if sending.has_receivers_acquire(words, publication.slot):
                return
        else:
            self._end(publication)
        lowest, _, count = self._parts.positions.bounds(publication.record, self._parts.values)
        if count == 0 or lowest >= produced:
            self._links.unlink_stream(publication)
            self.refresh_spies(publication)
            publication.state, publication.state_since_ns = State.LINGER, now_ns

    def _end_revoked(self, publication: NetworkPublication) -> None:
        produced = publication.publish_position()
        counters.set_release(self._parts.values, publication.pub_lmt_id, produced)
        publication.set_end_of_stream(produced)
        self._end(publication)
        # Counted first: whoever hears of it will find it counted.
        counters.increment(self._parts.values, system_counters.PUBLICATIONS_REVOKED)
        self._links.unlink_stream(publication)
        self.refresh_spies(publication)
        # After the spies, whose going may say otherwise; the sender says the same once it knows.
        publication.set_connected(False)
        self._stop_limit(publication)
        publication.state = State.LINGER

    def _finish_when_quiet(self, publication: NetworkPublication, now_ns: int) -> None:
        quiet_ns = now_ns - publication.state_since_ns
        words = self._parts.sender.words
        is_unicast_over = sending.has_unicast_eos_acquire(words, publication.slot)
        if is_unicast_over or quiet_ns > publication.parameters.linger_ns:
            publication.state, publication.state_since_ns = State.DONE, now_ns
            self._parts.sender_proxy.ask(sender_state.REMOVE_PUBLICATION, publication.slot)

    def _end(self, publication: NetworkPublication) -> None:
        """Let the sender's heartbeats say that the stream is over; once is enough."""
        if not publication.is_end_of_stream:
            publication.is_end_of_stream = True
            self._parts.sender_proxy.ask(
                sender_state.END_PUBLICATION, publication.slot, int(publication.is_revoked)
            )

    def registration_id_of(self, slot: int) -> int | None:
        """Who is in a slot of the sender."""
        return next((item.registration_id for item in self.publications if item.slot == slot), None)

    def on_released(self, slot: int) -> None:
        """The sender let go: everything of the publication can be freed."""
        publication = next(item for item in self.publications if item.slot == slot)
        self.publications.remove(publication)
        for counter_id in publication.counter_ids:
            self._parts.counters.free(counter_id)
        delete_log(self._parts, publication.log)
        self._slots.give_back(slot)
        self._limit_slots.give_back(publication.limit_slot)
        self._endpoints.release(publication.endpoint)

    def close(self) -> None:
        """Remove the logs of all; only after the sender has stopped."""
        for publication in self.publications:
            delete_log(self._parts, publication.log)
        self.publications.clear()


def _is_spied_by(publication: NetworkPublication, spy: Subscription) -> bool:
    """A spy finds a publication by channel tag, or by canonical form and session."""
    spied = spy.spied_channel
    if spied is None or spy.stream_id != publication.stream_id:
        return False
    channel = publication.endpoint.channel
    if spied.channel_tag is not None and spied.channel_tag == channel.channel_tag:
        return True
    is_same = spied.canonical_form == channel.canonical_form
    return is_same and spy.wants_session(publication.session_id)
