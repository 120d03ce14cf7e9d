"""The channel endpoints of subscriptions, with their sockets, destinations and streams.

A plain channel has one socket. A channel with control-mode=manual has no socket, but each of its
destinations has one, in a slot that serves the channel's slot. Source: spec 3.1, 3.7 and 9.3, Aeron
1.53 (the C driver where the two differ).
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np

from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.channel import uri_param
from windtunnel.driver.channel.socket_address import SocketAddress, write_name
from windtunnel.driver.channel.timestamp_offsets import parse_offset
from windtunnel.driver.channel.udp_channel import ControlMode, UdpChannel
from windtunnel.driver.cnc import counters
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.media import receive_endpoint
from windtunnel.driver.media.channel_sockets import OpenSocket, PublicationSockets
from windtunnel.driver.media_driver.command_error import CommandError
from windtunnel.driver.media_driver.conductor import stream_counters
from windtunnel.driver.media_driver.conductor.driver_resources import DriverResources
from windtunnel.driver.media_driver.conductor.endpoints.channel_endpoints import (
    ChannelEndpoint,
    ChannelEndpoints,
)
from windtunnel.driver.media_driver.image.publication_image import CONNECTIONS_MAX
from windtunnel.driver.media_driver.receiver import receiver_state

NULL_GROUP_TAG = -1
"""Group tag in the error frames of a receiver that has none. Source: Aeron 1.53."""

_STAMPS = (uri_param.CHANNEL_RECEIVE_TIMESTAMP_OFFSET, uri_param.MEDIA_RECEIVE_TIMESTAMP_OFFSET)


class NoSocket:
    """Placeholder for the socket of a multi-destination channel, which has no socket of its own."""

    fd = -1
    local = SocketAddress("0.0.0.0", 0)

    def reconnect(self, peer: SocketAddress) -> None:
        """Do nothing, because there is no socket."""

    def close(self) -> None:
        """Do nothing, because there is no socket to close."""


@dataclass(eq=False)
class ReceiveDestination:
    """A destination of a multi-destination subscription."""

    slot: int
    connection: int
    """Index of the destination in the connections of each image on the channel."""
    channel: UdpChannel
    socket: OpenSocket
    address_counter_id: int


class ReceiveChannelEndpoints(ChannelEndpoints):
    """The open channel endpoints of subscriptions."""

    STATUS_TYPE = stream_counters.RECEIVE_CHANNEL_STATUS
    NAME = "rcv"
    COMPARES_DEFAULTS = True

    def __init__(self, resources: DriverResources) -> None:
        super().__init__(resources, resources.receiver, resources.receiver_proxy)
        self._destinations: dict[int, list[ReceiveDestination]] = {}
        """The destinations of each multi-destination channel, by the channel's slot."""
        self._closing_destinations: dict[int, ReceiveDestination] = {}
        self.on_control_opened: Callable[[int, UdpChannel], None] = lambda slot, channel: None
        """Function that is called with the slot of each opened socket that has an explicit control
        address."""
        self.on_control_closed: Callable[[int], None] = lambda slot: None
        """Function that is called with the slot of each closed socket, with or without a control
        address."""

    def _open_sockets(
        self, channel: UdpChannel
    ) -> tuple[PublicationSockets | OpenSocket, int, int, str, bool]:
        opened = self._resources.sockets.open_subscription(channel)
        return opened, opened.fd, opened.fd, opened.local.text, False

    def _on_status_allocated(
        self, undo: ExitStack, slot: int, channel: UdpChannel, registration_id: int
    ) -> None:
        """Allocate nothing."""

    def _allocate_endpoint(
        self, undo: ExitStack, channel: UdpChannel, registration_id: int
    ) -> ChannelEndpoint:
        if channel.control_mode is not ControlMode.MANUAL:
            return super()._allocate_endpoint(undo, channel, registration_id)
        slot = self._slots.acquire()
        undo.callback(self._slots.release, slot)
        status_id = self._resources.counters.channel_status(
            self.STATUS_TYPE, str(channel.uri), registration_id
        )
        # As in Aeron, the label of a channel without an address ends with a space.
        self._resources.counters.append_label(status_id, " ")
        none = counters.NULL_COUNTER_ID
        return ChannelEndpoint(slot, channel, NoSocket(), -1, -1, False, status_id, none)

    def _fill_slot(self, endpoint: ChannelEndpoint) -> None:
        self._fill_transport(endpoint.slot, endpoint.slot, 0, endpoint.fd, endpoint.channel)
        rec, channel = self._state.endpoints[endpoint.slot], endpoint.channel
        tag = channel.uri.int64(uri_param.GROUP_TAG)
        tag = self._resources.context.receiver_group_tag if tag is None else tag
        rec["has_group_tag"] = int(tag is not None)
        rec["group_tag"] = NULL_GROUP_TAG if tag is None else tag
        rec["receiver_id"] = self._resources.random.getrandbits(63)
        rec["is_stamping"] = int(any(key in channel.uri for key in _STAMPS))
        self._notify_control_opened(endpoint.slot, channel)

    def _refuse_conflict(self, channel: UdpChannel, endpoint: ChannelEndpoint) -> None:
        existing = endpoint.channel
        for key in _STAMPS:
            if parse_offset(channel.uri, key) != parse_offset(existing.uri, key):
                raise ConfigurationError(
                    f"option conflicts with existing subscription: {key} of '{channel.uri}' and "
                    f"'{existing.uri}'"
                )
        if self._has_one_socket(channel, endpoint):
            super()._refuse_conflict(channel, endpoint)

    def _has_one_socket(self, channel: UdpChannel, endpoint: ChannelEndpoint) -> bool:
        """Return whether the buffers of one socket are shared by a channel and an open endpoint.

        A multi-destination channel has no socket of its own. As in the C driver, one that has only
        a tag is compared with a single destination.
        """
        if endpoint.channel.control_mode is not ControlMode.MANUAL:
            return True
        is_manual = channel.control_mode is ControlMode.MANUAL
        return not is_manual and len(self._destinations.get(endpoint.slot, ())) == 1

    def _notify_control_opened(self, slot: int, channel: UdpChannel) -> None:
        if self._state.endpoints[slot]["solicits_setup"]:
            self.on_control_opened(slot, channel)

    def _fill_transport(
        self, slot: int, serves: int, connection: int, fd: int, channel: UdpChannel
    ) -> None:
        self._state.endpoints[slot] = np.zeros((), dtype=receive_endpoint.RECEIVE_ENDPOINT)
        rec = self._state.endpoints[slot]
        control = channel.remote_control if channel.is_multicast else channel.local_control
        name = np.zeros(28, dtype=np.uint8)
        has_control = fd != -1 and (channel.is_multicast or channel.has_control)
        rec["fd"], rec["serves"], rec["connection"] = fd, serves, connection
        rec["has_control"] = int(has_control)
        rec["control_length"] = write_name(name, control) if has_control else 0
        rec["control"] = name
        rec["solicits_setup"] = int(has_control and not channel.is_multicast)
        rec["is_multicast"] = int(channel.is_multicast)
        rec["ttl"] = channel.ttl or 0

    def add_destination(
        self, endpoint: ChannelEndpoint, channel: UdpChannel, registration_id: int
    ) -> None:
        """Add a destination to a channel. Raises CommandError if all destinations of the channel
        are in use.
        """
        existing = self._destinations.setdefault(endpoint.slot, [])
        taken = {item.connection for item in existing}
        connection = next(i for i in range(CONNECTIONS_MAX + 1) if i not in taken)
        if connection == CONNECTIONS_MAX:
            raise CommandError(
                f"all {CONNECTIONS_MAX} destinations of a subscription are in use",
                ErrorCode.RESOURCE_TEMPORARILY_UNAVAILABLE,
            )
        # A destination uses the buffer lengths of its channel and must not set different ones.
        channel = channel._replace(
            socket_rcvbuf_length=endpoint.channel.socket_rcvbuf_length,
            socket_sndbuf_length=endpoint.channel.socket_sndbuf_length,
        )
        with ExitStack() as undo:
            slot = self._slots.acquire()
            undo.callback(self._slots.release, slot)
            opened = self._resources.sockets.open_subscription(channel)
            undo.callback(opened.close)
            address_id = self._resources.counters.local_address(
                self.NAME, endpoint.status_counter_id, opened.local.text, registration_id
            )
            self._fill_transport(slot, endpoint.slot, connection, opened.fd, channel)
            undo.pop_all()
        stamping = self._state.endpoints[endpoint.slot]["is_stamping"]
        self._state.endpoints[slot]["is_stamping"] = stamping
        existing.append(ReceiveDestination(slot, connection, channel, opened, address_id))
        self._notify_control_opened(slot, channel)
        self._proxy.offer(receiver_state.ADD_ENDPOINT, slot)

    def remove_destination(self, endpoint: ChannelEndpoint, channel: UdpChannel) -> None:
        """Remove the most recently added destination whose canonical form equals that of the given
        channel. Does nothing if there is none.
        """
        for item in reversed(self._destinations.get(endpoint.slot, [])):
            if item.channel.canonical_form == channel.canonical_form:
                self._destinations[endpoint.slot].remove(item)
                self._close_destination(item)
                return

    def _close_destination(self, item: ReceiveDestination) -> None:
        self.on_control_closed(item.slot)
        self._closing_destinations[item.slot] = item
        self._proxy.offer(receiver_state.REMOVE_ENDPOINT, item.slot)

    def destinations(self, endpoint: ChannelEndpoint) -> Iterator[ReceiveDestination]:
        """Yield the destinations of a multi-destination channel, or nothing for a plain channel."""
        yield from self._destinations.get(endpoint.slot, ())

    def has_transport(self, endpoint: ChannelEndpoint | None, slot: int) -> bool:
        """Return whether a slot belongs to a channel or to one of the channel's destinations."""
        if endpoint is None or slot == endpoint.slot:
            return endpoint is not None
        return any(item.slot == slot for item in self.destinations(endpoint))

    def last_activity_ns(self, slot: int) -> int:
        """Return the time, in monotonic nanoseconds, at which a socket received its last valid
        frame.
        """
        return int(receive_endpoint.last_activity_acquire(self._state.endpoint_words, slot))

    def change_control(self, slot: int, address: SocketAddress) -> None:
        """Set the control address of a socket after the address's host name was resolved again."""
        name = np.zeros(28, dtype=np.uint8)
        length = write_name(name, address)
        words = (int(word) for word in name.view(np.int32))
        self._proxy.offer(receiver_state.CHANGE_CONTROL_ADDRESS, slot, length, *words)
        endpoint = self._open.get(slot)
        if endpoint is not None:
            # Later channels that share this channel by its tag must match the new address.
            endpoint.channel = endpoint.channel._replace(local_control=address, local_data=address)

    def release(self, endpoint: ChannelEndpoint) -> None:
        """Drop a reference to a channel. An unused channel closes with all its destinations."""
        if endpoint.users == 1:
            self.on_control_closed(endpoint.slot)
            for item in self._destinations.pop(endpoint.slot, []):
                self._close_destination(item)
        super().release(endpoint)

    def on_released(self, slot: int) -> None:
        """Close a socket that the receiver has released."""
        destination = self._closing_destinations.pop(slot, None)
        if destination is not None:
            destination.socket.close()
            self._resources.counters.free(destination.address_counter_id)
            self._slots.release(slot)
        elif self._closing[slot].address_counter_id == counters.NULL_COUNTER_ID:
            self._resources.counters.free(self._closing.pop(slot).status_counter_id)
            self._slots.release(slot)
        else:
            super().on_released(slot)

    def close(self) -> None:
        """Close all sockets. Call this only after the receiver has stopped."""
        for items in (*self._destinations.values(), [*self._closing_destinations.values()]):
            for item in items:
                item.socket.close()
        super().close()

    def check_interest_capacity(self) -> None:
        """Raise CommandError if the receiver has no space for another stream subscription."""
        # The tables keep one entry free (see `stream_map`).
        capacity = min(self._state.interests.size, self._state.session_interests.size) - 1
        if sum(len(endpoint.interests) for endpoint in self) >= capacity:
            raise CommandError(
                f"all {capacity} stream subscriptions are in use",
                ErrorCode.RESOURCE_TEMPORARILY_UNAVAILABLE,
            )

    def add_interest(
        self, endpoint: ChannelEndpoint, stream_id: int, session_id: int | None
    ) -> None:
        """Increment the number of subscriptions to a whole stream or to one session. Informs the
        receiver of the first subscription.
        """
        endpoint.interests[stream_id, session_id] += 1
        if endpoint.interests[stream_id, session_id] == 1:
            self._send_interest(receiver_state.ADD_INTEREST, endpoint, stream_id, session_id)

    def remove_interest(
        self, endpoint: ChannelEndpoint, stream_id: int, session_id: int | None
    ) -> None:
        """Decrement the number of subscriptions to a whole stream or to one session. Informs the
        receiver if no subscription is left.
        """
        endpoint.interests[stream_id, session_id] -= 1
        if endpoint.interests[stream_id, session_id] == 0:
            del endpoint.interests[stream_id, session_id]
            self._send_interest(receiver_state.REMOVE_INTEREST, endpoint, stream_id, session_id)

    def _send_interest(
        self, operation: int, endpoint: ChannelEndpoint, stream_id: int, session_id: int | None
    ) -> None:
        has_session = int(session_id is not None)
        self._proxy.offer(operation, endpoint.slot, stream_id, has_session, session_id or 0)
