"""The channels that subscriptions listen on, and which streams of each are wanted.

Source: spec 3.1 and 9.3, Aeron 1.53.
"""

import numpy as np

from driver.channel import uri_param
from driver.channel.socket_address import write_name
from driver.channel.udp_channel import UdpChannel
from driver.media.channel_sockets import OpenSocket, PublicationSockets
from driver.media_driver import receiver_state, stream_counters
from driver.media_driver.channel_endpoints import ChannelEndpoint, ChannelEndpoints
from driver.media_driver.facilities import Facilities


class ReceiveChannelEndpoints(ChannelEndpoints):
    """The open channels of subscriptions."""

    STATUS_TYPE = stream_counters.RECEIVE_CHANNEL_STATUS
    NAME = "rcv"

    def __init__(self, parts: Facilities) -> None:
        super().__init__(parts, parts.receiver, parts.receiver_proxy)

    def _open_sockets(
        self, channel: UdpChannel
    ) -> tuple[PublicationSockets | OpenSocket, int, int, str, bool]:
        opened = self._parts.sockets.open_subscription(channel)
        return opened, opened.fd, opened.fd, opened.local.text, False

    def _fill_slot(self, endpoint: ChannelEndpoint) -> None:
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
