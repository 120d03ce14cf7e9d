"""The channels that publications send on, as the conductor keeps them for the sender.

A multi-destination channel has a counter of its destinations, and its manual ones are remembered
here with the names they were given by, since the sender knows addresses only. A name that nothing
is heard from is looked up again: of a plain channel the conductor sees that itself, of a manual
destination the sender tells. Source: spec 4.9, 8.3 and 9.3, Aeron 1.53.
"""

from contextlib import ExitStack
from dataclasses import dataclass, field, replace

import numpy as np

from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.channel import uri_param
from windtunnel.driver.channel.socket_address import NAME_LENGTH_MAX, SocketAddress, write_name
from windtunnel.driver.channel.timestamp_offsets import parse_offset
from windtunnel.driver.channel.udp_channel import ControlMode, UdpChannel
from windtunnel.driver.media import send_endpoint
from windtunnel.driver.media.channel_sockets import OpenSocket, PublicationSockets
from windtunnel.driver.media_driver.agent.agent_proxy import fill_record
from windtunnel.driver.media_driver.conductor import stream_counters
from windtunnel.driver.media_driver.conductor.driver_resources import DriverResources
from windtunnel.driver.media_driver.conductor.endpoints.channel_endpoints import (
    ChannelEndpoint,
    ChannelEndpoints,
)
from windtunnel.driver.media_driver.name_resolution.reresolution import Reresolution, Watched
from windtunnel.driver.media_driver.sender import destination_tracker, sender_state

_MODES = {
    ControlMode.MANUAL: destination_tracker.MANUAL,
    ControlMode.DYNAMIC: destination_tracker.DYNAMIC,
}


@dataclass(eq=False)
class SendDestination:
    """One place that a client added to a channel."""

    registration_id: int
    endpoint_text: str
    """`host:port` as it was written."""
    address: SocketAddress | None
    """None while the name is not known."""
    watched: Watched | None = None


@dataclass(eq=False)
class _Extras:
    """What a send channel has beside its endpoint."""

    destinations_id: int | None = None
    destinations: list[SendDestination] = field(default_factory=list)
    watched: Watched | None = None


class SendChannelEndpoints(ChannelEndpoints):
    """The open channels of publications; without `names` no name is ever looked up again."""

    STATUS_TYPE = stream_counters.SEND_CHANNEL_STATUS
    NAME = "snd"
    COMPARES_DEFAULTS = False

    def __init__(self, parts: DriverResources, names: Reresolution | None = None) -> None:
        super().__init__(parts, parts.sender, parts.sender_proxy)
        self._names = names
        self._extras: dict[int, _Extras] = {}

    def _open_sockets(
        self, channel: UdpChannel
    ) -> tuple[PublicationSockets | OpenSocket, int, int, str, bool]:
        sockets = self._parts.sockets.open_publication(channel)
        frames = sockets.frames
        return sockets, frames.fd, sockets.control.fd, frames.local.text, sockets.is_connected

    def _take_endpoint(
        self, undo: ExitStack, channel: UdpChannel, registration_id: int
    ) -> ChannelEndpoint:
        endpoint = super()._take_endpoint(undo, channel, registration_id)
        extras = _Extras()
        if channel.is_multi_destination:
            extras.destinations_id = self._parts.counters.channel_status(
                stream_counters.DESTINATIONS, str(channel.uri), registration_id
            )
        self._extras[endpoint.slot] = extras
        return endpoint

    def _fill_slot(self, endpoint: ChannelEndpoint) -> None:
        slot, channel = endpoint.slot, endpoint.channel
        counter_id = self._extras[slot].destinations_id
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
            # As if one had just come, so that its silence is measured from here.
            last_status_ns=self._parts.clock.now_ns(),
        )
        self._state.endpoints[slot]["name"] = name
        has_one_peer = channel.is_connectable and not channel.is_multicast
        if self._names is not None and has_one_peer:
            self._extras[slot].watched = self._watch_endpoint(self._names, endpoint)

    def _watch_endpoint(self, names: Reresolution, endpoint: ChannelEndpoint) -> Watched:
        slot, channel, words = endpoint.slot, endpoint.channel, self._parts.sender.endpoint_words

        def change(address: SocketAddress) -> None:
            if endpoint.is_connected:
                assert isinstance(endpoint.sockets, PublicationSockets)
                endpoint.sockets.frames.reconnect(address)
            self._ask(sender_state.CHANGE_ENDPOINT_ADDRESS, slot, 0, address)
            # Who names the channel by tag and says where it goes says where it goes now.
            endpoint.channel = replace(endpoint.channel, remote_data=address)

        watched = Watched(
            uri_param.ENDPOINT,
            channel.uri.get(uri_param.ENDPOINT) or "",
            channel.remote_data,
            change,
            last_activity_ns=lambda: int(send_endpoint.last_status_acquire(words, slot)),
            is_asked_each_check=True,
        )
        return names.watch(watched, self._parts.clock.now_ns())

    def _refuse_conflict(self, channel: UdpChannel, existing: UdpChannel) -> None:
        key = uri_param.CHANNEL_SEND_TIMESTAMP_OFFSET
        if parse_offset(channel.uri, key) != parse_offset(existing.uri, key):
            raise ConfigurationError(
                f"option conflicts with existing publication: {key} of '{channel.uri}' and "
                f"'{existing.uri}'"
            )
        super()._refuse_conflict(channel, existing)

    def destinations(self, slot: int) -> list[SendDestination]:
        """Of an open channel in MANUAL mode, oldest first."""
        return list(self._extras[slot].destinations)

    def add_destination(self, slot: int, destination: SendDestination) -> None:
        """Have the sender send to one more place."""
        registration_id = destination.registration_id
        if self._names is not None:

            def change(address: SocketAddress) -> None:
                destination.address = address
                operation = sender_state.CHANGE_DESTINATION_ADDRESS
                self._ask(operation, slot, registration_id, address)

            destination.watched = self._names.watch(
                Watched(uri_param.ENDPOINT, destination.endpoint_text, destination.address, change),
                self._parts.clock.now_ns(),
            )
        self._extras[slot].destinations.append(destination)
        self._ask(sender_state.ADD_DESTINATION, slot, registration_id, destination.address)

    def remove_destination(self, slot: int, address: SocketAddress | None) -> None:
        """Have the sender forget the youngest destination with that address."""
        for item in reversed(self._extras[slot].destinations):
            if item.address == address:
                self._forget(slot, item)
                break
        self._ask(sender_state.REMOVE_DESTINATION, slot, 0, address)

    def remove_destination_by_id(self, slot: int, registration_id: int) -> None:
        """Have the sender forget the destination that a command added."""
        for item in self.destinations(slot):
            if item.registration_id == registration_id:
                self._forget(slot, item)
        self._proxy.ask(sender_state.REMOVE_DESTINATION_BY_ID, slot, registration_id)

    def _forget(self, slot: int, destination: SendDestination) -> None:
        self._extras[slot].destinations.remove(destination)
        self._unwatch(destination.watched)

    def _unwatch(self, watched: Watched | None) -> None:
        if self._names is not None and watched is not None:
            self._names.unwatch(watched)

    def on_silent_destination(self, record: np.ndarray) -> None:
        """RESOLVE_DESTINATION: nothing was heard from a destination for too long."""
        slot, registration_id = int(record[1]), int(record[2])
        extras = self._extras.get(slot)
        for item in extras.destinations if extras is not None else ():
            is_it = item.registration_id == registration_id
            if self._names is not None and is_it and item.watched is not None:
                self._names.ask(item.watched)

    def _ask(
        self, operation: int, slot: int, registration_id: int, address: SocketAddress | None
    ) -> None:
        length, words = name_words(address)
        self._proxy.ask(operation, slot, registration_id, length, *words)

    def release(self, endpoint: ChannelEndpoint) -> None:
        super().release(endpoint)
        if endpoint.users <= 0:
            extras = self._extras[endpoint.slot]
            self._unwatch(extras.watched)
            for item in list(extras.destinations):
                self._forget(endpoint.slot, item)

    def on_released(self, slot: int) -> None:
        counter_id = self._extras.pop(slot).destinations_id
        super().on_released(slot)
        if counter_id is not None:
            self._parts.counters.free(counter_id)


def name_words(address: SocketAddress | None) -> tuple[int, list[int]]:
    """An address as commands carry it: the length of its name, and the words that hold it."""
    words = np.zeros(sender_state.NAME_WORDS, dtype=np.int64)
    length = write_name(words.view(np.uint8)[:NAME_LENGTH_MAX], address)
    return length, [int(word) for word in words]
