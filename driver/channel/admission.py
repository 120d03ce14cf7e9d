"""Checks whether a channel is valid for a publication, a subscription or a destination.

A violated rule raises a ConfigurationError that names the parameter. Most of these errors are
InvalidChannelErrors. Source: spec 9.2, Aeron 1.53.
"""

from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.channel import address_text, uri_param
from windtunnel.driver.channel.udp_channel import ControlMode, UdpChannel
from windtunnel.driver.channel.uri import ChannelUri, InvalidChannelError


def refuse_spy(uri: ChannelUri) -> None:
    """Raise InvalidChannelError if the channel of a publication is a spy channel."""
    if uri.is_spy:
        raise InvalidChannelError(f"channel '{uri}': a spy channel is invalid for a publication")


def check_publication(channel: UdpChannel) -> None:
    """Raise ConfigurationError if a UDP channel is invalid for a publication."""
    refuse_ats(channel)
    mode = channel.control_mode
    if channel.has_control and not channel.has_endpoint and mode is ControlMode.NONE:
        raise InvalidChannelError(
            f"channel '{channel.uri}': control without endpoint requires a control-mode"
        )
    if channel.is_multicast and mode is ControlMode.DYNAMIC:
        raise InvalidChannelError(
            f"channel '{channel.uri}': control-mode=dynamic requires a unicast endpoint, or none"
        )
    is_destination = channel.has_endpoint and not channel.is_multi_destination
    if is_destination and channel.remote_data.port == 0:
        raise InvalidChannelError(
            f"{uri_param.ENDPOINT}={channel.uri.get(uri_param.ENDPOINT)}: "
            "expected a port other than 0 on a publication"
        )


def check_subscription(channel: UdpChannel) -> None:
    """Raise ConfigurationError if a UDP channel is invalid for a subscription."""
    refuse_ats(channel)
    if channel.has_control and channel.local_control.port == 0:
        raise InvalidChannelError(
            f"{uri_param.CONTROL}={channel.uri.get(uri_param.CONTROL)}: "
            "expected a port other than 0 on a subscription"
        )


def refuse_ats(channel: UdpChannel) -> None:
    """Raise ConfigurationError if a UDP channel requests encryption, which this driver does not
    have.
    """
    if channel.is_ats_requested:
        raise ConfigurationError(
            f"{uri_param.ATS}=true: this driver has no Aeron Transport Security and sends data "
            f"without encryption: remove {uri_param.ATS} from '{channel.uri}'"
        )


def check_destination(uri: ChannelUri) -> None:
    """Raise InvalidChannelError if a destination has a parameter that is not allowed on
    destinations.
    """
    for key in uri_param.NOT_FOR_DESTINATIONS:
        if key in uri:
            raise InvalidChannelError(f"{key}={uri.get(key)}: not allowed on a destination")
    if uri.get(uri_param.CONTROL_MODE) == ControlMode.RESPONSE.value:
        raise InvalidChannelError(
            f"{uri_param.CONTROL_MODE}=response: not allowed on a destination"
        )


def check_send_destination(uri: ChannelUri) -> None:
    """Raise ConfigurationError if a channel is invalid as a publication destination."""
    if uri.is_spy:
        raise InvalidChannelError(f"channel '{uri}': Aeron spies are invalid as send destinations")
    endpoint = uri.get(uri_param.ENDPOINT)
    # These two errors have the generic error code, as in the C driver.
    if not uri.is_udp or endpoint is None:
        raise ConfigurationError(
            f"channel '{uri}': a destination must be a UDP channel with an {uri_param.ENDPOINT}"
        )
    if address_text.parse_host_port(uri_param.ENDPOINT, endpoint).port == 0:
        raise ConfigurationError(
            f"{uri_param.ENDPOINT}={endpoint}: expected a port other than 0 on a destination"
        )
    check_destination(uri)
