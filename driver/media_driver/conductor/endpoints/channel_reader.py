"""Parses a command's channel and resolves the addresses in it.

Source: spec 9, Aeron 1.53.
"""

from windtunnel.driver.channel import udp_channel, uri
from windtunnel.driver.channel.udp_channel import UdpChannel
from windtunnel.driver.channel.uri import ChannelUri
from windtunnel.driver.media_driver.conductor.driver_resources import DriverResources


class ChannelReader:
    """Parses channel URIs and resolves their addresses. Gives each channel with a wildcard address
    a unique id.
    """

    def __init__(self, resources: DriverResources) -> None:
        self._resources = resources
        self._count = 0

    def parse(self, text: str) -> ChannelUri:
        """Parse a channel URI. Raises InvalidChannelError if the URI is invalid."""
        return uri.parse(text)

    def resolve(self, parsed: ChannelUri) -> UdpChannel:
        """Resolve the addresses of a UDP channel. Raises UnknownHostError if a host name has no
        address.
        """
        self._count += 1
        return udp_channel.resolve(parsed, self._resources.resolver, self._count)
