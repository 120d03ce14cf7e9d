"""The channels that are open: one socket for all streams with the same canonical form, counted by
its users.

An agent polls the socket, so it is closed only after that agent has said that it let go. Status
counters tell clients how their channel is. What a direction needs beyond this is in
`send_channel_endpoints` and `receive_channel_endpoints`. Source: spec 9.3, 9.4 and 8.3, Aeron 1.53.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from driver.channel.udp_channel import UdpChannel
from driver.cnc import counters
from driver.media.channel_sockets import OpenSocket, PublicationSockets
from driver.media_driver import receiver_state, sender_state, stream_counters
from driver.media_driver.agent_proxy import AgentProxy, SlotPool
from driver.media_driver.command_error import NotYetError
from driver.media_driver.facilities import Facilities


@dataclass(eq=False)
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


class ChannelEndpoints(ABC):
    """The open channels of one direction, by canonical form."""

    STATUS_TYPE: int
    NAME: str

    def __init__(self, parts: Facilities, state: Any, proxy: AgentProxy) -> None:
        self._parts = parts
        self._state = state
        self._proxy = proxy
        self._slots = SlotPool(state.endpoints.size, "channels")
        self._open: dict[str, ChannelEndpoint] = {}
        self._closing: dict[int, ChannelEndpoint] = {}

    def __iter__(self) -> Iterator[ChannelEndpoint]:
        return iter(self._open.values())

    @abstractmethod
    def _open_sockets(
        self, channel: UdpChannel
    ) -> tuple[PublicationSockets | OpenSocket, int, int, str, bool]:
        """Sockets, fd of frames, fd of control frames, local address, whether it is connected."""

    @abstractmethod
    def _fill_slot(self, endpoint: ChannelEndpoint) -> None:
        """Write the agent's record of a channel that is about to be handed over."""

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
        self._fill_slot(endpoint)
        status_id = endpoint.status_counter_id
        counters.set_release(self._parts.values, status_id, stream_counters.CHANNEL_ACTIVE)
        self._proxy.ask(sender_state.ADD_ENDPOINT, endpoint.slot)
        return endpoint

    def _take_endpoint(
        self, undo: ExitStack, channel: UdpChannel, registration_id: int
    ) -> ChannelEndpoint:
        slot = self._slots.take()
        undo.callback(self._slots.give_back, slot)
        sockets, fd, control_fd, local, is_connected = self._open_sockets(channel)
        undo.callback(sockets.close)
        status_id = self._parts.counters.channel_status(
            self.STATUS_TYPE, str(channel.uri), registration_id
        )
        undo.callback(self._parts.counters.free, status_id)
        self._parts.counters.append_label(status_id, f" {local}")
        address_id = self._parts.counters.local_address(
            self.NAME, status_id, local, registration_id
        )
        undo.callback(self._parts.counters.free, address_id)
        return ChannelEndpoint(
            slot, channel, sockets, fd, control_fd, is_connected, status_id, address_id
        )

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
