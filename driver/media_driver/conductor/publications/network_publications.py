"""Network publications, which the sender transmits until they are drained and removed.

    ACTIVE --last holder removed--> DRAINING --sent, consumed by spies--> LINGER --timeout--> DONE
       +-- revoked ------------------------------------------------------>+

The records of a publication are freed only after the sender has acknowledged its removal. Source:
spec 4.8, 4.11, 7.3 and 8.2, Aeron 1.53.
"""

from windtunnel.driver.channel.udp_channel import UdpChannel
from windtunnel.driver.cnc import counters
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.agent.agent_proxy import SlotPool
from windtunnel.driver.media_driver.conductor.driver_resources import DriverResources
from windtunnel.driver.media_driver.conductor.endpoints.channel_endpoints import ChannelEndpoint
from windtunnel.driver.media_driver.conductor.endpoints.send_channel_endpoints import (
    SendChannelEndpoints,
)
from windtunnel.driver.media_driver.conductor.images.subscriptions import SubscriptionLinks
from windtunnel.driver.media_driver.conductor.images.untethered import UntetheredReaders
from windtunnel.driver.media_driver.conductor.publications.network_publication import (
    NetworkPublication,
    create_network_publication,
)
from windtunnel.driver.media_driver.conductor.publications.publication_log import (
    State,
    deactivate_limit,
)
from windtunnel.driver.media_driver.conductor.publications.publication_request import (
    PublicationRequest,
)
from windtunnel.driver.media_driver.conductor.publications.publication_spies import PublicationSpies
from windtunnel.driver.media_driver.conductor.publications.retired_logs import (
    delete_log,
    retire_log,
    retry_deletions,
)
from windtunnel.driver.media_driver.conductor.publications.session_ids import SessionIds
from windtunnel.driver.media_driver.conductor.unblocking import check_publisher, unblock_log
from windtunnel.driver.media_driver.sender import network_publication as sending
from windtunnel.driver.media_driver.sender import sender_state


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
        self.spies = PublicationSpies(resources, links, self.publications)

    def add(self, request: PublicationRequest, channel: UdpChannel) -> NetworkPublication:
        """Create a network publication, or return the stream's existing concurrent publication to
        share it.
        """
        existing = self._endpoints.find(channel)
        in_stream = self._of_stream(request.stream_id, existing)
        shared = request.find_shared(in_stream)
        if shared is not None:
            request.parameters.refuse_conflict(shared.parameters, shared.session_id)
            request.parameters.refuse_spies_conflict(shared.parameters)
            shared.holders.add(request.registration_id)
            return shared
        endpoint = self._endpoints.get_or_open(channel, request.registration_id)
        try:
            session_id = self._session_ids.choose(request, in_stream)
            publication = create_network_publication(
                self._resources, self._slots, self._limit_slots, request, session_id, endpoint
            )
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

    def release(self, publication: NetworkPublication, now_ns: int) -> None:
        """End a network publication that no client holds anymore. Its remaining data is still sent,
        unless it was revoked.
        """
        produced = publication.publish_position()
        counters.set_release(self._resources.values, publication.pub_lmt_id, produced)
        publication.set_end_of_stream(produced)
        publication.state_since_ns = now_ns
        deactivate_limit(self._resources, publication.limit_slot)
        if not publication.is_revoked:
            if publication.sender_position() >= produced:
                self._end(publication)
            publication.state = State.DRAINING

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
            self.spies.refresh(publication)
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
            self.spies.refresh(publication)
            publication.state, publication.state_since_ns = State.LINGER, now_ns

    def _end_revoked(self, publication: NetworkPublication) -> None:
        produced = publication.publish_position()
        counters.set_release(self._resources.values, publication.pub_lmt_id, produced)
        publication.set_end_of_stream(produced)
        self._end(publication)
        # Increment the counter before the clients are notified.
        counters.increment(self._resources.values, system_counters.PUBLICATIONS_REVOKED)
        self._links.unlink_stream(publication)
        self.spies.refresh(publication)
        # Do this after `refresh`, which may set the status. The sender does the same once it
        # is informed.
        publication.set_connected(False)
        deactivate_limit(self._resources, publication.limit_slot)
        publication.state = State.LINGER

    def _finish_when_quiet(self, publication: NetworkPublication, now_ns: int) -> None:
        quiet_ns = now_ns - publication.state_since_ns
        words = self._resources.sender.words
        is_unicast_over = sending.has_unicast_eos_acquire(words, publication.slot)
        parameters = publication.parameters
        linger_ns = parameters.linger_ns
        # Without an end-of-stream signal, a receiver never reports the last positions.
        if parameters.signal_eos and sending.is_behind_acquire(words, publication.slot):
            linger_ns = max(linger_ns, parameters.linger_max_ns)
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
