"""The channel endpoints of publications, with their sockets, destinations and re-resolved host
names.

A multi-destination channel has a counter with the number of its destinations. Manual destinations
are stored here with their names, since the sender has only addresses. A name is re-resolved on
inactivity, which the conductor detects for a plain channel, and the sender for a manual
destination. Source: spec 4.9, 8.3 and 9.3, Aeron 1.53.
"""

import os
from contextlib import ExitStack
from dataclasses import dataclass, field

import numpy as np

from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.channel import uri_param
from windtunnel.driver.channel.socket_address import NAME_LENGTH_MAX, SocketAddress, write_name
from windtunnel.driver.channel.timestamp_offsets import parse_offset
from windtunnel.driver.channel.udp_channel import ControlMode, UdpChannel
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.media import send_endpoint
from windtunnel.driver.media.channel_sockets import OpenSocket, PublicationSockets
from windtunnel.driver.media_driver.agent.agent_proxy import fill_record
from windtunnel.driver.media_driver.conductor import stream_counters
from windtunnel.driver.media_driver.conductor.driver_resources import DriverResources
from windtunnel.driver.media_driver.conductor.endpoints.channel_endpoints import (
    ChannelEndpoint,
    ChannelEndpoints,
)
from windtunnel.driver.media_driver.context import SETTINGS
from windtunnel.driver.media_driver.name_resolution.reresolution import Reresolution, WatchedName
from windtunnel.driver.media_driver.sender import destination_tracker, sender_state

_MODES = {
    ControlMode.MANUAL: destination_tracker.MANUAL,
    ControlMode.DYNAMIC: destination_tracker.DYNAMIC,
}


@dataclass(eq=False)
class SendDestination:
    """A destination that a client added to a channel."""

    registration_id: int
    endpoint_text: str
    """The destination's `host:port`, as in the command."""
    address: SocketAddress | None
    """The destination's address, or None until the name is resolved."""
    watched: WatchedName | None = None


@dataclass(eq=False)
class _SendChannel:
    """The destinations of a send channel, and its host name if the name is re-resolved."""

    destinations_id: int | None = None
    destinations: list[SendDestination] = field(default_factory=list)
    watched: WatchedName | None = None


class SendChannelEndpoints(ChannelEndpoints):
    """The open channel endpoints of publications. Re-resolves their host names if `reresolution` is
    set.
    """

    STATUS_TYPE = stream_counters.SEND_CHANNEL_STATUS
    NAME = "snd"
    COMPARES_DEFAULTS = False

    def __init__(
        self, resources: DriverResources, reresolution: Reresolution | None = None
    ) -> None:
        super().__init__(resources, resources.sender, resources.sender_proxy)
        self._reresolution = reresolution
        self._channels: dict[int, _SendChannel] = {}

    def _open_sockets(
        self, channel: UdpChannel
    ) -> tuple[PublicationSockets | OpenSocket, int, int, str, bool]:
        sockets = self._resources.sockets.open_publication(channel)
        # With multicast, the socket that receives from the control group, as in the C driver.
        local = sockets.control.local.text
        return sockets, sockets.frames.fd, sockets.control.fd, local, sockets.is_connected

    def _on_status_allocated(
        self, undo: ExitStack, slot: int, channel: UdpChannel, registration_id: int
    ) -> None:
        self._channels[slot] = send_channel = _SendChannel()
        undo.callback(self._channels.pop, slot)
        if channel.is_multi_destination:
            send_channel.destinations_id = self._resources.counters.channel_status(
                stream_counters.DESTINATIONS, str(channel.uri), registration_id
            )
            undo.callback(self._resources.counters.free, send_channel.destinations_id)

    def _fill_slot(self, endpoint: ChannelEndpoint) -> None:
        slot, channel = endpoint.slot, endpoint.channel
        counter_id = self._channels[slot].destinations_id
        name = np.zeros(NAME_LENGTH_MAX, dtype=np.uint8)
        length = 0
        if not endpoint.is_connected:
            length = write_name(name, channel.remote_data)
        fill_record(
            self._state.endpoints[slot],
            fd=endpoint.fd,
            control_fd=endpoint.control_fd,
            is_connected=int(endpoint.is_connected),
            name_length=length,
            destinations_mode=_MODES.get(channel.control_mode, 0),
            destinations_id=-1 if counter_id is None else counter_id,
            # Measure inactivity from now on.
            last_status_ns=self._resources.clock.now_ns(),
        )
        self._state.endpoints[slot]["name"] = name
        has_one_peer = channel.is_connectable and not channel.is_multicast
        if self._reresolution is not None and has_one_peer:
            self._channels[slot].watched = self._watch_endpoint(self._reresolution, endpoint)

    def _watch_endpoint(self, reresolution: Reresolution, endpoint: ChannelEndpoint) -> WatchedName:
        slot, channel, words = (
            endpoint.slot,
            endpoint.channel,
            self._resources.sender.endpoint_words,
        )

        def set_address(address: SocketAddress) -> None:
            if endpoint.is_connected:
                assert isinstance(endpoint.sockets, PublicationSockets)
                endpoint.sockets.frames.reconnect(address)
            self._offer(sender_state.CHANGE_ENDPOINT_ADDRESS, slot, 0, address)
            # Later channels that share this one by tag must match the new address.
            endpoint.channel = endpoint.channel._replace(remote_data=address)

        watched = WatchedName(
            uri_param.ENDPOINT,
            channel.uri.get(uri_param.ENDPOINT) or "",
            channel.remote_data,
            set_address,
            last_activity_ns=lambda: int(send_endpoint.last_status_acquire(words, slot)),
            retries_each_check=True,
        )
        return reresolution.watch(watched, self._resources.clock.now_ns())

    def _refuse_conflict(self, channel: UdpChannel, endpoint: ChannelEndpoint) -> None:
        key, existing = uri_param.CHANNEL_SEND_TIMESTAMP_OFFSET, endpoint.channel
        if parse_offset(channel.uri, key) != parse_offset(existing.uri, key):
            raise ConfigurationError(
                f"option conflicts with existing publication: {key} of '{channel.uri}' and "
                f"'{existing.uri}'"
            )
        super()._refuse_conflict(channel, endpoint)

    def destinations(self, slot: int) -> list[SendDestination]:
        """Return the destinations of an open channel with control-mode=manual, oldest first."""
        return list(self._channels[slot].destinations)

    def add_destination(self, slot: int, destination: SendDestination) -> None:
        """Add a destination to a channel, and inform the sender."""
        registration_id = destination.registration_id
        if self._reresolution is not None:

            def set_address(address: SocketAddress) -> None:
                destination.address = address
                operation = sender_state.CHANGE_DESTINATION_ADDRESS
                self._offer(operation, slot, registration_id, address)

            destination.watched = self._reresolution.watch(
                WatchedName(
                    uri_param.ENDPOINT, destination.endpoint_text, destination.address, set_address
                ),
                self._resources.clock.now_ns(),
            )
        self._channels[slot].destinations.append(destination)
        self._offer(sender_state.ADD_DESTINATION, slot, registration_id, destination.address)

    def remove_destination(self, slot: int, address: SocketAddress | None) -> None:
        """Remove the most recently added destination with the given address, and inform the
        sender.
        """
        for item in reversed(self._channels[slot].destinations):
            if item.address == address:
                self._drop(slot, item)
                break
        self._offer(sender_state.REMOVE_DESTINATION, slot, 0, address)

    def remove_destination_by_id(self, slot: int, registration_id: int) -> None:
        """Remove the destination with the given registration id, and inform the sender."""
        for item in self.destinations(slot):
            if item.registration_id == registration_id:
                self._drop(slot, item)
        self._proxy.offer(sender_state.REMOVE_DESTINATION_BY_ID, slot, registration_id)

    def _drop(self, slot: int, destination: SendDestination) -> None:
        self._channels[slot].destinations.remove(destination)
        self._unwatch(destination.watched)

    def _unwatch(self, watched: WatchedName | None) -> None:
        if self._reresolution is not None and watched is not None:
            self._reresolution.unwatch(watched)

    def on_silent_destination(self, record: np.ndarray) -> None:
        """Re-resolve the name of an inactive destination (event RESOLVE_DESTINATION)."""
        slot, registration_id = int(record[1]), int(record[2])
        send_channel = self._channels.get(slot)
        for item in send_channel.destinations if send_channel is not None else ():
            is_match = item.registration_id == registration_id
            if self._reresolution is not None and is_match and item.watched is not None:
                self._reresolution.request_lookup(item.watched)

    def on_gso_refused(self, record: np.ndarray) -> None:
        """Record in the error log that the network route of a channel does not accept GSO packets
        (event GSO_REFUSED).
        """
        endpoint = self.by_slot(int(record[1]))
        if endpoint is not None:
            self._resources.record_error(
                ErrorCode.GENERIC_ERROR,
                f"'{endpoint.channel.uri}' refuses UDP segmentation offload: "
                f"{os.strerror(-int(record[2]))}; single datagrams are sent, and offload is tried "
                f"again from time to time unless {SETTINGS['udp_offload'].variable}=false",
                "a channel refuses UDP segmentation offload",
            )

    def _offer(
        self, operation: int, slot: int, registration_id: int, address: SocketAddress | None
    ) -> None:
        length, words = name_words(address)
        self._proxy.offer(operation, slot, registration_id, length, *words)

    def release(self, endpoint: ChannelEndpoint) -> None:
        super().release(endpoint)
        if endpoint.users <= 0:
            send_channel = self._channels[endpoint.slot]
            self._unwatch(send_channel.watched)
            for item in list(send_channel.destinations):
                self._drop(endpoint.slot, item)

    def on_released(self, slot: int) -> None:
        counter_id = self._channels.pop(slot).destinations_id
        super().on_released(slot)
        if counter_id is not None:
            self._resources.counters.free(counter_id)


def name_words(address: SocketAddress | None) -> tuple[int, list[int]]:
    """Encode a socket address for a command to the sender. Returns the address length and the
    command words.
    """
    words = np.zeros(sender_state.NAME_WORDS, dtype=np.int64)
    length = write_name(words.view(np.uint8)[:NAME_LENGTH_MAX], address)
    return length, [int(word) for word in words]
