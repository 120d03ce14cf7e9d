"""The channels that are open: one socket for all streams with the same canonical form, counted by
its users.

An agent polls the socket, so it is closed only after that agent has said that it let go. Status
counters tell clients how their channel is. Source: spec 9.3, 9.4 and 8.3, Aeron 1.53.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

import numpy as np

from driver.channel import uri_param
from driver.channel.socket_address import write_name
from driver.channel.udp_channel import UdpChannel
from driver.cnc import counters
from driver.media.channel_sockets import OpenSocket, PublicationSockets
from driver.media_driver import receiver_state, sender_state, stream_counters
from driver.media_driver.agent_proxy import SlotPool
from driver.media_driver.command_error import NotYetError
from driver.media_driver.facilities import Facilities


@dataclass
class ChannelEndpoint:
    """An open channel and what it holds."""

    slot: int
    channel: UdpChannel
    sockets: PublicationSockets | OpenSocket
    fd: int
    control_fd: int
    is_connected: bool
    status_counter_id: int
    address_counter_id: int
    users: int = 0
    interests: Counter[tuple[int, int | None]] = field(default_factory=Counter)
    """Receive channels: subscriptions for each (stream id, session id or None for all)."""


class ChannelEndpoints:
    """The open channels of one direction, by canonical form."""

    def __init__(self, parts: Facilities, *, sending: bool) -> None:
        self._parts = parts
        self._sending = sending
        self._state = parts.sender if sending else parts.receiver
        self._proxy = parts.sender_proxy if sending else parts.receiver_proxy
        self._slots = SlotPool(self._state.endpoints.size, "channels")
        self._open: dict[str, ChannelEndpoint] = {}
        self._closing: dict[int, ChannelEndpoint] = {}

    def __iter__(self) -> Iterator[ChannelEndpoint]:
        return iter(self._open.values())

    def get_or_open(self, channel: UdpChannel, registration_id: int) -> ChannelEndpoint:
        """The endpoint of a channel, opened if nobody has yet; the caller becomes a user of it."""
        closing = (item.channel.canonical_form for item in self._closing.values())
        if channel.canonical_form in closing:
            raise NotYetError(f"{channel.canonical_form} is still being closed")
        endpoint = self._open.get(channel.canonical_form) or self._find_by_tag(channel)
        if endpoint is None:
            endpoint = self._open_endpoint(channel, registration_id)
            self._open[endpoint.channel.canonical_form] = endpoint
        endpoint.users += 1
        return endpoint

    def _find_by_tag(self, channel: UdpChannel) -> ChannelEndpoint | None:
        matches = (item for item in self._open.values() if channel.matches_tag(item.channel))
        return next(matches, None)

    def _open_endpoint(self, channel: UdpChannel, registration_id: int) -> ChannelEndpoint:
        # Whatever runs out half-way, what was taken until then is given back.
        with ExitStack() as undo:
            endpoint = self._take_endpoint(undo, channel, registration_id)
            undo.pop_all()
        if self._sending:
            self._fill_send_slot(endpoint)
        else:
            self._fill_receive_slot(endpoint)
        status_id = endpoint.status_counter_id
        counters.set_release(self._parts.values, status_id, stream_counters.CHANNEL_ACTIVE)
        self._proxy.ask(sender_state.ADD_ENDPOINT, endpoint.slot)
        return endpoint

    def _take_endpoint(
        self, undo: ExitStack, channel: UdpChannel, registration_id: int
    ) -> ChannelEndpoint:
        slot = self._slots.take()
        undo.callback(self._slots.give_back, slot)
        sockets: PublicationSockets | OpenSocket
        if self._sending:
            sockets = self._parts.sockets.open_publication(channel)
            fd, control_fd = sockets.frames.fd, sockets.control.fd
            local, is_connected = sockets.frames.local.text, sockets.is_connected
        else:
            sockets = self._parts.sockets.open_subscription(channel)
            fd = control_fd = sockets.fd
            local, is_connected = sockets.local.text, False
        undo.callback(sockets.close)
        kinds = (stream_counters.SEND_CHANNEL_STATUS, stream_counters.RECEIVE_CHANNEL_STATUS)
        status_type = kinds[0] if self._sending else kinds[1]
        status_id = self._parts.counters.channel_status(
            status_type, str(channel.uri), registration_id
        )
        undo.callback(self._parts.counters.free, status_id)
        self._parts.counters.append_label(status_id, f" {local}")
        name = "snd" if self._sending else "rcv"
        address_id = self._parts.counters.local_address(name, status_id, local, registration_id)
        undo.callback(self._parts.counters.free, address_id)
        return ChannelEndpoint(
            slot, channel, sockets, fd, control_fd, is_connected, status_id, address_id
        )

    def _fill_send_slot(self, endpoint: ChannelEndpoint) -> None:
        rec = self._state.endpoints[endpoint.slot]
        name = np.zeros(28, dtype=np.uint8)
        length = 0
        if not endpoint.is_connected:
            length = write_name(name, endpoint.channel.remote_data)
        rec["fd"] = endpoint.fd
        rec["control_fd"] = endpoint.control_fd
        rec["is_connected"] = int(endpoint.is_connected)
        rec["name_length"] = length
        rec["name"] = name
        rec["last_status_ns"] = 0

    def _fill_receive_slot(self, endpoint: ChannelEndpoint) -> None:
        channel = endpoint.channel
        rec = self._state.endpoints[endpoint.slot]
        control = channel.remote_control if channel.is_multicast else channel.local_control
        name = np.zeros(28, dtype=np.uint8)
        has_control = channel.is_multicast or channel.has_control
        rec["fd"] = endpoint.fd
        rec["has_control"] = int(has_control)
        rec["control_length"] = write_name(name, control) if has_control else 0
        rec["control"] = name
        tag = channel.uri.int64(uri_param.GROUP_TAG)
        rec["has_group_tag"] = int(tag is not None)
        rec["group_tag"] = tag or 0
        rec["is_multicast"] = int(channel.is_multicast)
        rec["ttl"] = channel.ttl or 0
        rec["receiver_id"] = self._parts.random.getrandbits(63)

    def add_interest(
        self, endpoint: ChannelEndpoint, stream_id: int, session_id: int | None
    ) -> None:
        """A subscription wants a stream of this channel, or one session of it."""
        endpoint.interests[stream_id, session_id] += 1
        if session_id is not None or endpoint.interests[stream_id, session_id] == 1:
            words = (endpoint.slot, stream_id, int(session_id is not None), session_id or 0)
            self._proxy.ask(receiver_state.ADD_INTEREST, *words)

    def remove_interest(
        self, endpoint: ChannelEndpoint, stream_id: int, session_id: int | None
    ) -> None:
        """That subscription is gone."""
        endpoint.interests[stream_id, session_id] -= 1
        if session_id is not None or endpoint.interests[stream_id, session_id] == 0:
            words = (endpoint.slot, stream_id, int(session_id is not None), session_id or 0)
            self._proxy.ask(receiver_state.REMOVE_INTEREST, *words)

    def release(self, endpoint: ChannelEndpoint) -> None:
        """One user less; the last one closes the channel once its agent has let go."""
        endpoint.users -= 1
        if endpoint.users > 0:
            return
        del self._open[endpoint.channel.canonical_form]
        values = self._parts.values
        counters.set_release(values, endpoint.status_counter_id, stream_counters.CHANNEL_CLOSING)
        self._closing[endpoint.slot] = endpoint
        self._proxy.ask(sender_state.REMOVE_ENDPOINT, endpoint.slot)

    def on_released(self, slot: int) -> None:
        """The agent no longer uses the socket."""
        endpoint = self._closing.pop(slot)
        endpoint.sockets.close()
        self._parts.counters.free(endpoint.address_counter_id)
        self._parts.counters.free(endpoint.status_counter_id)
        self._slots.give_back(slot)

    def by_slot(self, slot: int) -> ChannelEndpoint | None:
        """The open endpoint in a slot, or None when it is closing."""
        return next((item for item in self._open.values() if item.slot == slot), None)

    def close(self) -> None:
        """Close every socket; only after the agents have stopped."""
        for endpoint in (*self._open.values(), *self._closing.values()):
            endpoint.sockets.close()


assert sender_state.ADD_ENDPOINT == receiver_state.ADD_ENDPOINT
assert sender_state.REMOVE_ENDPOINT == receiver_state.REMOVE_ENDPOINT
