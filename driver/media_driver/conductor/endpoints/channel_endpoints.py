"""Reference-counted channel endpoints. Channels with the same canonical form share a socket.

An agent polls the socket, so it is closed only after the agent has acknowledged the removal. A
status counter shows clients the state of their channel. `send_channel_endpoints` and
`receive_channel_endpoints` extend this module for the two directions. Source: spec 9.3, 9.4 and
8.3, Aeron 1.53.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.channel import uri_param
from windtunnel.driver.channel.udp_channel import ControlMode, UdpChannel
from windtunnel.driver.channel.uri import InvalidChannelError
from windtunnel.driver.cnc import counters
from windtunnel.driver.media.channel_sockets import OpenSocket, PublicationSockets
from windtunnel.driver.media_driver.agent.agent_proxy import AgentProxy, SlotPool
from windtunnel.driver.media_driver.command_error import CommandPendingError
from windtunnel.driver.media_driver.conductor import stream_counters
from windtunnel.driver.media_driver.conductor.driver_resources import DriverResources
from windtunnel.driver.media_driver.receiver import receiver_state
from windtunnel.driver.media_driver.sender import sender_state


@dataclass(eq=False)
class ChannelEndpoint:
    """An open channel with its sockets and counters."""

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
    """On receive channels, the number of subscriptions by stream id and session id (None for all
    sessions)."""


class ChannelEndpoints(ABC):
    """Base class for the open channel endpoints of the sender and of the receiver."""

    STATUS_TYPE: int
    NAME: str
    COMPARES_DEFAULTS: bool
    """Whether a channel that sets no buffer length must match the driver's default to share an open
    channel."""

    def __init__(self, resources: DriverResources, state: Any, proxy: AgentProxy) -> None:
        self._resources = resources
        self._state = state
        self._proxy = proxy
        self._slots = SlotPool(state.endpoints.size, "channels")
        self._open: dict[int, ChannelEndpoint] = {}
        self._closing: dict[int, ChannelEndpoint] = {}

    def __iter__(self) -> Iterator[ChannelEndpoint]:
        return iter(self._open.values())

    @abstractmethod
    def _open_sockets(
        self, channel: UdpChannel
    ) -> tuple[PublicationSockets | OpenSocket, int, int, str, bool]:
        """Open a channel's sockets.

        Returns: (sockets, data fd, control fd, local address, whether they are connected)"""

    @abstractmethod
    def _on_status_allocated(
        self, undo: ExitStack, slot: int, channel: UdpChannel, registration_id: int
    ) -> None:
        """Allocate what only some channels have. Its counters follow that of the status, as in
        the C driver.
        """

    @abstractmethod
    def _fill_slot(self, endpoint: ChannelEndpoint) -> None:
        """Fill the record of a new channel before the channel is passed to the agent that
        polls it.
        """

    def find(self, channel: UdpChannel) -> ChannelEndpoint | None:
        """Return the open endpoint with the same tag or canonical form as a channel, or None if
        there is no such endpoint.
        """
        tagged = (item for item in self._open.values() if channel.matches_tag(item.channel))
        same = (item for item in self._open.values() if _is_same(channel, item.channel))
        found = next(tagged, None) or next(same, None)
        if found is not None:
            self._refuse_conflict(channel, found)
        return found

    def _refuse_conflict(self, channel: UdpChannel, endpoint: ChannelEndpoint) -> None:
        """Raise ConfigurationError if a channel requests buffer lengths that the open socket does
        not have.
        """
        context, existing = self._resources.context, endpoint.channel
        for key, requested, found, default in (
            (
                uri_param.SOCKET_SNDBUF,
                channel.socket_sndbuf_length,
                existing.socket_sndbuf_length,
                context.socket_sndbuf_length,
            ),
            (
                uri_param.SOCKET_RCVBUF,
                channel.socket_rcvbuf_length,
                existing.socket_rcvbuf_length,
                context.socket_rcvbuf_length,
            ),
        ):
            found = found or default
            if self.COMPARES_DEFAULTS:
                requested = requested or default
            if requested and requested != found:
                raise ConfigurationError(
                    f"{key}={requested} of '{channel.uri}' does not match the open channel "
                    f"'{existing.uri}', which has {found or 'the system default'}"
                )

    def get_or_open(self, channel: UdpChannel, registration_id: int) -> ChannelEndpoint:
        """Return a channel's endpoint and count a reference to it. Opens the endpoint if it does
        not exist.
        """
        if any(_is_same(channel, item.channel) for item in self._closing.values()):
            raise CommandPendingError(f"{channel.canonical_form} is still being closed")
        endpoint = self.find(channel)
        if endpoint is None:
            self._refuse_unknown_tag(channel)
            endpoint = self._open_endpoint(channel, registration_id)
            self._open[endpoint.slot] = endpoint
        endpoint.users += 1
        return endpoint

    def _refuse_unknown_tag(self, channel: UdpChannel) -> None:
        """Raise InvalidChannelError if a channel has only a tag. Called after no open channel with
        this tag was found.
        """
        has_address = channel.has_endpoint or channel.has_control
        has_address = has_address or channel.control_mode is not ControlMode.NONE
        if channel.channel_tag is not None and not has_address:
            raise InvalidChannelError(
                f"{uri_param.TAGS}={channel.channel_tag}: no open channel has this tag, so "
                f"'{channel.uri}' must have endpoint, control, or control-mode=manual"
            )

    def _open_endpoint(self, channel: UdpChannel, registration_id: int) -> ChannelEndpoint:
        # On a failure, release the previous allocations.
        with ExitStack() as undo:
            endpoint = self._allocate_endpoint(undo, channel, registration_id)
            self._fill_slot(endpoint)
            undo.pop_all()
        status_id = endpoint.status_counter_id
        counters.set_release(self._resources.values, status_id, stream_counters.CHANNEL_ACTIVE)
        self._proxy.offer(sender_state.ADD_ENDPOINT, endpoint.slot)
        return endpoint

    def _allocate_endpoint(
        self, undo: ExitStack, channel: UdpChannel, registration_id: int
    ) -> ChannelEndpoint:
        slot = self._slots.acquire()
        undo.callback(self._slots.release, slot)
        sockets, fd, control_fd, local, is_connected = self._open_sockets(channel)
        undo.callback(sockets.close)
        status_id = self._resources.counters.channel_status(
            self.STATUS_TYPE, str(channel.uri), registration_id
        )
        undo.callback(self._resources.counters.free, status_id)
        self._resources.counters.append_label(status_id, f" {local}")
        self._on_status_allocated(undo, slot, channel, registration_id)
        address_id = self._resources.counters.local_address(
            self.NAME, status_id, local, registration_id
        )
        undo.callback(self._resources.counters.free, address_id)
        return ChannelEndpoint(
            slot, channel, sockets, fd, control_fd, is_connected, status_id, address_id
        )

    def release(self, endpoint: ChannelEndpoint) -> None:
        """Drop a reference to an endpoint. An unused endpoint is closed once its agent has released
        it.
        """
        endpoint.users -= 1
        if endpoint.users > 0:
            return
        del self._open[endpoint.slot]
        values = self._resources.values
        counters.set_release(values, endpoint.status_counter_id, stream_counters.CHANNEL_CLOSING)
        self._closing[endpoint.slot] = endpoint
        self._proxy.offer(sender_state.REMOVE_ENDPOINT, endpoint.slot)

    def on_released(self, slot: int) -> None:
        """Close the sockets of a channel that its agent has released."""
        endpoint = self._closing.pop(slot)
        endpoint.sockets.close()
        self._resources.counters.free(endpoint.status_counter_id)
        self._resources.counters.free(endpoint.address_counter_id)
        self._slots.release(slot)

    def by_slot(self, slot: int) -> ChannelEndpoint | None:
        """Return the open endpoint with the given slot, or None if the endpoint is being closed."""
        return self._open.get(slot)

    def close(self) -> None:
        """Close all sockets. Call this only after the agents have stopped."""
        for endpoint in (*self._open.values(), *self._closing.values()):
            endpoint.sockets.close()


def _is_same(channel: UdpChannel, other: UdpChannel) -> bool:
    """Return whether two channels have equal canonical forms, and equal tags if both have tags."""
    if channel.canonical_form != other.canonical_form:
        return False
    return None in (channel.channel_tag, other.channel_tag) or (
        channel.channel_tag == other.channel_tag
    )


assert sender_state.ADD_ENDPOINT == receiver_state.ADD_ENDPOINT
assert sender_state.REMOVE_ENDPOINT == receiver_state.REMOVE_ENDPOINT
