"""UDP channels with resolved addresses and a canonical form that identifies their endpoint.

                      local_data           remote_data        local_control    remote_control
    unicast           interface            endpoint           interface        endpoint
    control=          control              endpoint           control          endpoint
    multicast         interface            group              interface        control group

A publication binds `local_data`, unless it is multicast, and sends to `remote_data`. A subscription
binds `remote_data`, and sends control frames to the source of its data, to an explicit control
address (`local_control`) or to the control group (`remote_control`). Channels with the same
`canonical_form` share one endpoint. This module opens no socket. Source: spec 9.3, Aeron 1.53.
"""

import enum
import ipaddress
import socket
from typing import NamedTuple

from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.channel import address_text, timestamp_offsets, uri_param
from windtunnel.driver.channel.interface_search import find_interface, requested_family
from windtunnel.driver.channel.resolver import NetworkInterface, Resolver
from windtunnel.driver.channel.socket_address import SocketAddress
from windtunnel.driver.channel.uri import ChannelUri, InvalidChannelError
from windtunnel.driver.channel.uri_value import parse_int64

ANY_V4 = SocketAddress("0.0.0.0", 0)
ANY_V6 = SocketAddress("::", 0)


class ControlMode(enum.Enum):
    """The values of the `control-mode` parameter, which selects dynamic destinations, manual
    destinations or a response channel.
    """

    NONE = "none"
    DYNAMIC = "dynamic"
    MANUAL = "manual"
    RESPONSE = "response"


class UdpChannel(NamedTuple):
    """A UDP channel with resolved addresses, created by `resolve`."""

    uri: ChannelUri
    canonical_form: str
    local_data: SocketAddress
    remote_data: SocketAddress
    local_control: SocketAddress
    remote_control: SocketAddress
    control_mode: ControlMode = ControlMode.NONE
    has_endpoint: bool = False
    has_control: bool = False
    """Whether `control` is set and used: a multicast channel ignores it, as in Aeron."""
    is_multicast: bool = False
    interface: NetworkInterface | None = None
    """The interface of a multicast channel, or None for unicast."""
    ttl: int | None = None
    """Time to live of multicast datagrams, or None for the driver's default."""
    socket_sndbuf_length: int | None = None
    socket_rcvbuf_length: int | None = None
    receiver_window_length: int | None = None
    nak_delay_ns: int | None = None
    is_ats_requested: bool = False
    """Whether the channel requests Aeron Transport Security (`ats=true`)."""
    channel_tag: int | None = None
    entity_tag: int | None = None

    @property
    def is_multi_destination(self) -> bool:
        """Whether frames are sent to a list of destinations that may change."""
        return self.control_mode in (ControlMode.DYNAMIC, ControlMode.MANUAL)

    @property
    def has_group_semantics(self) -> bool:
        """Whether the channel may have more than one receiver."""
        return self.is_multicast or self.is_multi_destination

    @property
    def is_connectable(self) -> bool:
        """Whether a publication can connect its socket (the channel has one remote address)."""
        return self.control_mode is ControlMode.NONE and self.has_endpoint

    @property
    def is_wildcard(self) -> bool:
        """Whether the channel has neither an address nor a port, such as one that has only a
        tag.
        """
        addresses = (self.local_data, self.remote_data)
        return all(item.is_unspecified and item.port == 0 for item in addresses)

    def matches_tag(self, other: "UdpChannel") -> bool:
        """Return whether both channels have the same channel tag.

        Raises InvalidChannelError if the tags are equal but the control modes differ, or the local
        or remote addresses. A channel without addresses uses those of the other one.
        """
        if self.channel_tag is None or self.channel_tag != other.channel_tag:
            return False
        if self.control_mode not in (ControlMode.NONE, other.control_mode):
            raise InvalidChannelError(
                f"matching tag {self.channel_tag} has mismatched control-mode: "
                f"'{self.uri}' and '{other.uri}'"
            )
        is_equal = (self.local_data, self.remote_data) == (other.local_data, other.remote_data)
        if not is_equal and not self.is_wildcard:
            raise InvalidChannelError(
                f"matching tag {self.channel_tag} has mismatched endpoint or control: '{self.uri}' "
                f"has local {self.local_data} and remote {self.remote_data}, '{other.uri}' has "
                f"local {other.local_data} and remote {other.remote_data}: set the same endpoint, "
                "control and interface, or the tag alone"
            )
        return True


def resolve(uri: ChannelUri, resolver: Resolver, unique_id: int) -> UdpChannel:
    """Resolve the addresses in a channel URI. Raises InvalidChannelError if the channel is invalid.

    `unique_id` differs in each call, to distinguish channels whose addresses the system chooses.
    """
    if not uri.is_udp:
        raise InvalidChannelError(f"channel '{uri}': expected a udp channel")
    timestamp_offsets.check_offsets(uri)
    tags = parse_tags(uri)
    mode = _control_mode(uri)
    endpoint = _address(uri, uri_param.ENDPOINT, resolver)
    control = _address(uri, uri_param.CONTROL, resolver)
    _check_presence(uri, mode, endpoint, control, tags)
    if endpoint is not None and endpoint.is_multicast:
        addresses = _multicast(uri, endpoint, resolver)
    else:
        addresses = _unicast(uri, endpoint, control, resolver)
    local_data, remote_data, local_control, remote_control, interface = addresses
    is_multicast = interface is not None
    is_chosen_by_system = not is_multicast and (
        (endpoint is None and control is None)
        or (endpoint is not None and endpoint.port == 0)
        or (control is not None and control.port == 0)
    )
    # The SETUP frames of a unicast channel have no TTL, as in the C driver.
    ttl = uri.int32(uri_param.TTL, 0, 255)
    suffix = ""
    if is_chosen_by_system:
        suffix = f"-{unique_id}" if tags[0] is None else f"#{tags[0]}"
    return UdpChannel(
        uri=uri,
        canonical_form=_canonical_form(uri, local_data, remote_data, interface) + suffix,
        local_data=local_data,
        remote_data=remote_data,
        local_control=local_control,
        remote_control=remote_control,
        control_mode=mode,
        has_endpoint=endpoint is not None,
        has_control=control is not None and not is_multicast,
        is_multicast=is_multicast,
        interface=interface,
        ttl=ttl if is_multicast else None,
        socket_sndbuf_length=uri.size(uri_param.SOCKET_SNDBUF, maximum=(1 << 31) - 1),
        socket_rcvbuf_length=uri.size(uri_param.SOCKET_RCVBUF, maximum=(1 << 31) - 1),
        receiver_window_length=uri.size(uri_param.RECEIVER_WINDOW, maximum=(1 << 31) - 1),
        nak_delay_ns=uri.duration_ns(uri_param.NAK_DELAY),
        is_ats_requested=uri.boolean(uri_param.ATS) or False,
        channel_tag=tags[0],
        entity_tag=tags[1],
    )


def parse_tags(uri: ChannelUri) -> tuple[int | None, int | None]:
    """Return the channel tag and the entity tag of a UDP or IPC channel URI. Raises
    InvalidChannelError.
    """
    text = uri.get(uri_param.TAGS)
    if text is None:
        return None, None
    pieces = text.split(",")
    if len(pieces) > 2:
        raise InvalidChannelError(f"{uri_param.TAGS}={text}: expected channelTag[,entityTag]")
    try:
        tags = [parse_int64(uri_param.TAGS, piece) if piece else None for piece in pieces]
    except ConfigurationError as error:
        raise InvalidChannelError(str(error)) from error
    if -1 in tags:
        raise InvalidChannelError(f"{uri_param.TAGS}={text}: the tag -1 is reserved")
    return tags[0], tags[1] if len(tags) == 2 else None


def _control_mode(uri: ChannelUri) -> ControlMode:
    text = uri.get(uri_param.CONTROL_MODE)
    for mode in ControlMode:
        if mode.value == text:
            return mode
    return ControlMode.NONE


def _address(uri: ChannelUri, key: str, resolver: Resolver) -> SocketAddress | None:
    text = uri.get(key)
    if text is None:
        return None
    parsed = address_text.parse_host_port(key, text)
    host, scope_id = resolver.resolve(parsed.host, key)
    return SocketAddress(host, parsed.port, scope_id)


def _check_presence(
    uri: ChannelUri,
    mode: ControlMode,
    endpoint: SocketAddress | None,
    control: SocketAddress | None,
    tags: tuple[int | None, int | None],
) -> None:
    needs_no_address = mode in (ControlMode.MANUAL, ControlMode.RESPONSE)
    if endpoint is None and control is None and tags[0] is None and not needs_no_address:
        raise InvalidChannelError(
            f"channel '{uri}': expected endpoint, control, tags, control-mode=manual "
            "or control-mode=response"
        )
    if mode is ControlMode.DYNAMIC and control is None:
        raise InvalidChannelError(f"channel '{uri}': control-mode=dynamic requires control")
    is_multicast = endpoint is not None and endpoint.is_multicast
    if control is not None and control.is_multicast and not is_multicast:
        raise InvalidChannelError(
            f"{uri_param.CONTROL}={uri.get(uri_param.CONTROL)}: expected a unicast address"
        )


_Addresses = tuple[
    SocketAddress, SocketAddress, SocketAddress, SocketAddress, NetworkInterface | None
]


def _multicast(uri: ChannelUri, endpoint: SocketAddress, resolver: Resolver) -> _Addresses:
    """Resolve a multicast channel, whose data group has an odd address and whose control group has
    the next address.

    Only the last byte of the address is incremented, and 255 becomes 0 without a carry.
    """
    if endpoint.ip.packed[-1] % 2 == 0:
        raise InvalidChannelError(
            f"{uri_param.ENDPOINT}={uri.get(uri_param.ENDPOINT)}: expected a multicast address "
            "with an odd last byte; the even address after it carries control frames"
        )
    *network, last = endpoint.ip.packed
    control_ip = ipaddress.ip_address(bytes((*network, (last + 1) & 0xFF)))
    remote_control = SocketAddress(str(control_ip), endpoint.port, endpoint.scope_id)
    found, port = find_interface(uri, endpoint.family, resolver, is_multicast=True)
    assert found is not None
    local = SocketAddress(found.host, port, found.scope_id)
    return local, endpoint, local, remote_control, found


def _unicast(
    uri: ChannelUri,
    endpoint: SocketAddress | None,
    control: SocketAddress | None,
    resolver: Resolver,
) -> _Addresses:
    known = endpoint or control
    family = requested_family(uri, resolver) if known is None else known.family
    any_host = ANY_V6 if family == socket.AF_INET6 else ANY_V4
    remote = endpoint or any_host
    if control is not None:
        if control.family != remote.family:
            raise InvalidChannelError(
                f"channel '{uri}': control {control} and endpoint {remote} "
                "have different address families"
            )
        # The interface is not used, but must exist, as in Aeron.
        family = requested_family(uri, resolver) or control.family
        find_interface(uri, family, resolver, is_multicast=False)
        return control, remote, control, remote, None
    found, port = find_interface(uri, any_host.family, resolver, is_multicast=False)
    local = any_host.with_port(port)
    if found is not None:
        local = SocketAddress(found.host, port, found.scope_id)
    return local, remote, local, remote, None


def _canonical_form(
    uri: ChannelUri,
    local: SocketAddress,
    remote: SocketAddress,
    group_interface: NetworkInterface | None,
) -> str:
    """Return the canonical form of a channel, which contains the host names from the URI.

    The canonical form does not change when a name resolves to another address.
    """
    local_text, remote_text = local.text, remote.text
    if group_interface is None:
        local_text = uri.get(uri_param.CONTROL) or local_text
        remote_text = uri.get(uri_param.ENDPOINT) or remote_text
    return f"UDP-{local_text}-{remote_text}"
