"""The channels that publications send on, as the conductor keeps them for the sender.

Source: spec 9.3, Aeron 1.53.
"""

import numpy as np

from driver.channel.socket_address import write_name
from driver.channel.udp_channel import UdpChannel
from driver.media.channel_sockets import OpenSocket, PublicationSockets
from driver.media_driver import stream_counters
from driver.media_driver.channel_endpoints import ChannelEndpoint, ChannelEndpoints
from driver.media_driver.facilities import Facilities


class SendChannelEndpoints(ChannelEndpoints):
    """The open channels of publications."""

    STATUS_TYPE = stream_counters.SEND_CHANNEL_STATUS
    NAME = "snd"

    def __init__(self, parts: Facilities) -> None:
        super().__init__(parts, parts.sender, parts.sender_proxy)

    def _open_sockets(
        self, channel: UdpChannel
    ) -> tuple[PublicationSockets | OpenSocket, int, int, str, bool]:
        sockets = self._parts.sockets.open_publication(channel)
        frames = sockets.frames
        return sockets, frames.fd, sockets.control.fd, frames.local.text, sockets.is_connected

    def _fill_slot(self, endpoint: ChannelEndpoint) -> None:
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
