"""The publications that go out over UDP: made for clients, handed to the sender, ended in good
order.

The sender's record and the conductor's record of a publication are freed only after the sender has
said that it let go.
Source: spec 4.8, 7.3 and 8.2, Aeron 1.53.
"""

from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np

from driver.channel import admission, publication_parameters
from driver.channel.udp_channel import UdpChannel
from driver.cnc import counters
from driver.logbuffer.log_buffer import LogBuffer
from driver.media_driver import flow_control, sender_state, stream_counters
from driver.media_driver import network_publication as sending
from driver.media_driver.agent_proxy import SlotPool, append_slot, fill_record, remove_slot
from driver.media_driver.channel_endpoints import ChannelEndpoint
from driver.media_driver.command_error import CommandError
from driver.media_driver.facilities import Facilities
from driver.media_driver.publication_limit import NETWORK
from driver.media_driver.publication_log import (
    LocalPublication,
    Start,
    State,
    create_log,
    defaults_of,
    delete_log,
    fill_limit,
    start_of,
)
from driver.media_driver.send_channel_endpoints import SendChannelEndpoints
from driver.media_driver.session_ids import SessionIds

RETRANSMIT_WINDOW_MULTIPLE_UNICAST = 16
RETRANSMIT_WINDOW_MULTIPLE_GROUP = 4


@dataclass(eq=False, kw_only=True)
class NetworkPublication(LocalPublication):
    """A local publication that the sender serves."""

    endpoint: ChannelEndpoint
    slot: int
    snd_pos_id: int
    pub_lmt_id: int
    values: np.ndarray
    is_end_of_stream: bool = False

    def join_position(self) -> int:
        """Where a spy starts: never at data that has left already."""
        return int(counters.get(self.values, self.snd_pos_id))


class NetworkPublications:
    """All of them, by registration id."""

    def __init__(
        self,
        parts: Facilities,
        endpoints: SendChannelEndpoints,
        session_ids: SessionIds,
        limit_slots: SlotPool,
    ) -> None:
        self._parts = parts
        self._endpoints = endpoints
        self._session_ids = session_ids
        self._limit_slots = limit_slots
        self._slots = SlotPool(parts.sender.publications.size, "network publications")
        self._defaults = defaults_of(parts.context, parts.system_buffers)
        self.publications: list[NetworkPublication] = []
        self.holders: dict[int, int] = {}
        """Registration id that a publication is held by, to the client that holds it."""

    def add(
        self,
        registration_id: int,
        client_id: int,
        stream_id: int,
        channel: UdpChannel,
        channel_text: str,
        *,
        is_exclusive: bool,
    ) -> NetworkPublication:
        """A new publication, or the concurrent one that the channel and stream have already."""
        admission.check_publication(channel)
        parameters = publication_parameters.parse(channel.uri, self._defaults)
        shared = None if is_exclusive else self._find_shared(channel, stream_id)
        if shared is not None:
            parameters.refuse_conflict(shared.parameters, shared.session_id)
            shared.holders.add(registration_id)
            self.holders[registration_id] = client_id
            return shared
        self._refuse_session_clash(channel, stream_id, parameters.session_id)
        endpoint = self._endpoints.get_or_open(channel, registration_id)
        try:
            publication = self._create(
                registration_id,
                client_id,
                stream_id,
                endpoint,
                channel_text,
                parameters,
                is_exclusive=is_exclusive,
            )
        except BaseException:
            self._endpoints.release(endpoint)
            raise
        self.publications.append(publication)
        self.holders[registration_id] = client_id
        return publication

    def _find_shared(self, channel: UdpChannel, stream_id: int) -> NetworkPublication | None:
        for item in self.publications:
            same = item.endpoint.channel.canonical_form == channel.canonical_form
            same = same or channel.matches_tag(item.endpoint.channel)
            same = same and item.stream_id == stream_id and not item.is_exclusive
            if same and item.state is State.ACTIVE:
                return item
        return None

    def _refuse_session_clash(
        self, channel: UdpChannel, stream_id: int, session_id: int | None
    ) -> None:
        for item in self.publications:
            same = item.endpoint.channel.canonical_form == channel.canonical_form
            if same and item.stream_id == stream_id and item.session_id == session_id:
                raise CommandError(
                    f"session-id={session_id}: a publication of stream {stream_id} on "
                    f"{channel.canonical_form} has it already"
                )

    def _create(
        self,
        registration_id: int,
        client_id: int,
        stream_id: int,
        endpoint: ChannelEndpoint,
        channel_text: str,
        parameters: publication_parameters.PublicationParameters,
        *,
        is_exclusive: bool,
    ) -> NetworkPublication:
        parts = self._parts
        start = start_of(parts, parameters)
        parameters = replace(parameters, initial_position=start.as_initial_position())
        session_id = parameters.session_id
        if session_id is None:
            in_use = {item.session_id for item in self.publications if item.stream_id == stream_id}
            session_id = self._session_ids.next(in_use)
        is_group = endpoint.channel.has_group_semantics
        # Whatever runs out half-way, what was taken until then is given back.
        with ExitStack() as undo:
            log = create_log(
                parts,
                registration_id,
                session_id,
                stream_id,
                parameters,
                start,
                is_exclusive=is_exclusive,
                is_group=is_group,
            )
            undo.callback(delete_log, parts, log)
            slot = self._slots.take()
            undo.callback(self._slots.give_back, slot)
            limit_slot = self._limit_slots.take()
            undo.callback(self._limit_slots.give_back, limit_slot)
            identity = (registration_id, client_id, session_id, stream_id, channel_text)
            ids = self._make_counters(undo, identity, start.position, is_exclusive=is_exclusive)
            undo.pop_all()
        record = parts.conductor.limits[limit_slot]
        fill_limit(record, log, parameters, start, NETWORK)
        record["slot"] = slot
        record["pub_pos_id"], record["pub_lmt_id"], record["snd_pos_id"] = ids[:3]
        self._fill_sender_record(slot, registration_id, endpoint, log, parameters, start, ids)
        sender_record = parts.sender.publications[slot]
        sender_record["session_id"], sender_record["stream_id"] = session_id, stream_id
        parts.sender_proxy.ask(sender_state.ADD_PUBLICATION, slot)
        agent = parts.conductor.agent[0]
        append_slot(parts.conductor.active_limits, agent, "limit_count", limit_slot)
        return NetworkPublication(
            registration_id=registration_id,
            client_id=client_id,
            session_id=session_id,
            stream_id=stream_id,
            channel_text=channel_text,
            parameters=parameters,
            is_exclusive=is_exclusive,
            log=log,
            limit_slot=limit_slot,
            record=record,
            holders={registration_id},
            counter_ids=ids,
            endpoint=endpoint,
            slot=slot,
            snd_pos_id=ids[2],
            pub_lmt_id=ids[1],
            values=parts.values,
        )

    def _make_counters(
        self,
        undo: ExitStack,
        identity: tuple[int, int, int, int, str],
        at: int,
        *,
        is_exclusive: bool,
    ) -> list[int]:
        kind = "exclusive" if is_exclusive else "concurrent"
        ids = []
        for type_id, name, value in (
            (stream_counters.PUBLISHER_POSITION, f"pub-pos ({kind})", at),
            (stream_counters.PUBLISHER_LIMIT, None, at),
            (stream_counters.SENDER_POSITION, None, at),
            (stream_counters.SENDER_LIMIT, None, at),
            (stream_counters.SENDER_BACK_PRESSURE, None, 0),
            (stream_counters.SENDER_NAKS_RECEIVED, None, 0),
        ):
            ids.append(self._parts.counters.stream(type_id, *identity, name=name, value=value))
            undo.callback(self._parts.counters.free, ids[-1])
        return ids

    def _fill_sender_record(
        self,
        slot: int,
        registration_id: int,
        endpoint: ChannelEndpoint,
        log: LogBuffer,
        parameters: publication_parameters.PublicationParameters,
        start: Start,
        ids: list[int],
    ) -> None:
        context, is_group = self._parts.context, endpoint.channel.has_group_semantics
        multiples = (RETRANSMIT_WINDOW_MULTIPLE_UNICAST, RETRANSMIT_WINDOW_MULTIPLE_GROUP)
        values = {
            "registration_id": registration_id,
            "endpoint": endpoint.slot,
            "log_address": log.address,
            "log_length": log.length,
            "meta_at": log.meta_at,
            "initial_term_id": start.initial_term_id,
            "term_length": log.term_length,
            "bits": log.bits,
            "mtu": parameters.mtu_length,
            "ttl": endpoint.channel.ttl or 0,
            "is_group": int(is_group),
            "signal_eos": int(parameters.signal_eos),
            "spies_simulate_connection": int(parameters.spies_simulate_connection),
            "setup_flags": sending.SETUP_GROUP if is_group else 0,
            "max_messages_per_send": context.messages_per_send_max,
            "max_resend": parameters.max_resend if is_group else 1,
            "connection_timeout_ns": context.publication_connection_timeout_ns,
            "flow_control": flow_control.MAX,
            "retransmit_delay_ns": context.retransmit_unicast_delay_ns,
            "retransmit_linger_ns": context.retransmit_unicast_linger_ns,
            "retransmit_window_multiple": multiples[int(is_group)],
            "snd_pos_id": ids[2],
            "snd_lmt_id": ids[3],
            "snd_bpe_id": ids[4],
            "naks_received_id": ids[5],
        }
        fill_record(self._parts.sender.publications[slot], **values)

    def release(self, holder: int, now_ns: int) -> None:
        """One holder less; the last one lets the stream drain."""
        publication = next(item for item in self.publications if holder in item.holders)
        publication.holders.discard(holder)
        del self.holders[holder]
        if publication.holders:
            return
        produced = publication.producer_position()
        values = self._parts.values
        counters.set_release(values, publication.pub_lmt_id, produced)
        publication.set_end_of_stream(produced)
        agent = self._parts.conductor.agent[0]
        remove_slot(
            self._parts.conductor.active_limits, agent, "limit_count", publication.limit_slot
        )
        counters.set_release(values, publication.counter_ids[0], produced)
        publication.state, publication.state_since_ns = State.DRAINING, now_ns
        self._end_when_sent(publication, produced)

    def _end_when_sent(self, publication: NetworkPublication, produced: int) -> bool:
        snd_pos = int(counters.get_acquire(self._parts.values, publication.snd_pos_id))
        if snd_pos < produced:
            return False
        self._end(publication)
        return True

    def on_timer(self, now_ns: int) -> None:
        """Move every ending publication on."""
        words = self._parts.sender.words
        for publication in list(self.publications):
            if publication.state is State.DRAINING:
                produced = publication.producer_position()
                has_receivers = sending.has_receivers_acquire(words, publication.slot)
                if self._end_when_sent(publication, produced) or not has_receivers:
                    self._end(publication)
                    publication.state, publication.state_since_ns = State.LINGER, now_ns
            elif publication.state is State.LINGER:
                quiet_ns = now_ns - publication.state_since_ns
                is_unicast_over = sending.has_unicast_eos_acquire(words, publication.slot)
                if is_unicast_over or quiet_ns >= publication.parameters.linger_ns:
                    publication.state, publication.state_since_ns = State.DONE, now_ns
                    self._parts.sender_proxy.ask(sender_state.REMOVE_PUBLICATION, publication.slot)

    def _end(self, publication: NetworkPublication) -> None:
        """Let the sender's heartbeats say that the stream is over; once is enough."""
        if not publication.is_end_of_stream:
            publication.is_end_of_stream = True
            self._parts.sender_proxy.ask(sender_state.END_PUBLICATION, publication.slot, 0)

    def close(self) -> None:
        """Remove the logs of all; only after the sender has stopped."""
        for publication in self.publications:
            delete_log(self._parts, publication.log)
        self.publications.clear()

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
