"""From the text of a channel to its addresses, for every command that names one.

Source: spec 9, Aeron 1.53.
"""

from windtunnel.driver.channel import udp_channel, uri
from windtunnel.driver.channel.udp_channel import UdpChannel
from windtunnel.driver.channel.uri import ChannelUri
from windtunnel.driver.media_driver.conductor.driver_resources import DriverResources


class ChannelReader:
    """Reads channels, and sets apart those whose addresses the system will choose."""

    def __init__(self, parts: DriverResources) -> None:
        self._parts = parts
        self._count = 0

    def parse(self, text: str) -> ChannelUri:
        """The parameters of a channel; InvalidChannelError when it is none."""
        return uri.parse(text)

    def resolve(self, parsed: ChannelUri) -> UdpChannel:
        """The addresses of a UDP channel; UnknownHostError when a name has none."""
        self._count += 1
        return udp_channel.resolve(parsed, self._parts.resolver, self._count)
