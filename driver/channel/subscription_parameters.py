"""Validated subscription parameters, from a channel URI and the driver's defaults.

    uri + SubscriptionDefaults  ->  SubscriptionParameters

`udp_channel` checks addresses. Source: spec 9.2, Aeron 1.53.
"""

import enum
from typing import NamedTuple

from windtunnel.driver.base.arith import I32_MAX
from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.channel import uri_param
from windtunnel.driver.channel.timestamp_offsets import parse_offset
from windtunnel.driver.channel.udp_channel import ControlMode
from windtunnel.driver.channel.uri import ChannelUri

DEFAULT = "default"
STATIC = "static"
CUBIC = "cubic"


DEFAULT_FILL_DELAY_NS = 100_000_000
"""Time after which a gap is filled if only a number of datagrams is set: the interval of
heartbeats. A stream that has been silent for longer has no later datagram to wait for."""


class Group(enum.Enum):
    """The values of the `group` parameter, which determines whether a receiver uses group
    semantics, such as NAK backoff.
    """

    TRUE = "true"
    FALSE = "false"
    INFER = "infer"


class SubscriptionDefaults(NamedTuple):
    """The driver's default values for subscription parameters that a URI omits."""

    is_reliable: bool = True
    is_tethered: bool = True
    is_rejoin: bool = True
    is_sparse: bool = True
    is_nak_all_gaps: bool = False
    gap_fill_datagrams: int = 0
    gap_fill_delay_ns: int = 0
    group: Group = Group.INFER
    group_tag: int | None = None
    initial_window_length: int = 128 * 1024
    congestion_control: str = DEFAULT
    """The strategy of all images, or DEFAULT: then channels choose it, and STATIC is the default.
    """
    socket_rcvbuf_length: int = 128 * 1024
    """Receive buffer size in bytes, or 0 for the system's default, `system_rcvbuf_length`."""
    system_rcvbuf_length: int = 212_992
    untethered_window_limit_timeout_ns: int = 5_000_000_000
    untethered_linger_timeout_ns: int | None = None
    """Timeout in nanoseconds, or None for the untethered window limit timeout."""
    untethered_resting_timeout_ns: int = 10_000_000_000


class SubscriptionParameters(NamedTuple):
    """The validated parameters of a subscription."""

    is_reliable: bool
    is_tethered: bool
    is_rejoin: bool
    is_sparse: bool
    group: Group
    initial_window_length: int
    congestion_control: str
    untethered_window_limit_timeout_ns: int
    untethered_linger_timeout_ns: int
    untethered_resting_timeout_ns: int
    group_tag: int | None = None
    session_id: int | None = None
    """The only session to receive, or None to receive all sessions."""
    nak_delay_ns: int | None = None
    """Delay in nanoseconds, or None for the driver's default."""
    is_nak_all_gaps: bool = False
    """Whether NAKs are sent for all gaps at once, with retries after the measured repair time."""
    gap_fill_datagrams: int = 0
    """Number of later datagrams after which a gap of an unreliable stream is filled, or 0."""
    gap_fill_delay_ns: int = 0
    """Time in nanoseconds after which such a gap is filled at the latest, or 0."""
    is_response: bool = False
    response_endpoint: str | None = None
    channel_receive_timestamp_offset: int | None = None
    media_receive_timestamp_offset: int | None = None

    @property
    def is_fill_delayed(self) -> bool:
        """Whether a gap of an unreliable stream is filled on evidence, and not at once."""
        return self.gap_fill_datagrams > 0 or self.gap_fill_delay_ns > 0

    def is_group(self, *, is_multicast: bool) -> bool:
        """Return whether to use group semantics if the SETUP frame does not specify them."""
        return self.group is Group.TRUE or (self.group is Group.INFER and is_multicast)

    def on_endpoint(self, opened: "SubscriptionParameters") -> "SubscriptionParameters":
        """Return the parameters of an image for this subscription. All but these are those of the
        channel that opened the endpoint, which others share by its tag or address.
        """
        return opened._replace(
            is_reliable=self.is_reliable,
            is_sparse=self.is_sparse,
            group=self.group,
            is_nak_all_gaps=self.is_nak_all_gaps,
            gap_fill_datagrams=self.gap_fill_datagrams,
            gap_fill_delay_ns=self.gap_fill_delay_ns,
        )

    def refuse_conflict(
        self, existing: "SubscriptionParameters", channel: str, existing_channel: str
    ) -> None:
        """Raise ConfigurationError if two subscriptions cannot share an endpoint and a stream.

        The channels are used only in the error message.
        """
        for key, requested, found in (
            (uri_param.RELIABLE, self.is_reliable, existing.is_reliable),
            (uri_param.REJOIN, self.is_rejoin, existing.is_rejoin),
            ("isResponse", self.is_response, existing.is_response),
        ):
            if requested != found:
                raise ConfigurationError(
                    f"option conflicts with existing subscription: {key}={str(requested).lower()} "
                    f"existingChannel={existing_channel} channel={channel}"
                )


def parse(uri: ChannelUri, defaults: SubscriptionDefaults) -> SubscriptionParameters:
    """Parse a subscription's parameters. Raises ConfigurationError if one of them is invalid."""
    limit_ns = _or_default(
        uri.duration_ns(uri_param.UNTETHERED_WINDOW_LIMIT_TIMEOUT),
        defaults.untethered_window_limit_timeout_ns,
    )
    linger_ns = _or_default(defaults.untethered_linger_timeout_ns, limit_ns)
    group_tag = uri.int64(uri_param.GROUP_TAG)
    return SubscriptionParameters(
        is_reliable=_flag(uri, uri_param.RELIABLE, defaults.is_reliable),
        is_tethered=_flag(uri, uri_param.TETHER, defaults.is_tethered),
        is_rejoin=_flag(uri, uri_param.REJOIN, defaults.is_rejoin),
        is_sparse=_flag(uri, uri_param.SPARSE, defaults.is_sparse),
        group=_group(uri, defaults),
        initial_window_length=_window_length(uri, defaults),
        congestion_control=_congestion_control(uri, defaults),
        untethered_window_limit_timeout_ns=limit_ns,
        # As in the C driver, 0 selects the default.
        untethered_linger_timeout_ns=(
            uri.duration_ns(uri_param.UNTETHERED_LINGER_TIMEOUT) or linger_ns
        ),
        untethered_resting_timeout_ns=_or_default(
            uri.duration_ns(uri_param.UNTETHERED_RESTING_TIMEOUT),
            defaults.untethered_resting_timeout_ns,
        ),
        group_tag=defaults.group_tag if group_tag is None else group_tag,
        session_id=uri.int32(uri_param.SESSION_ID),
        nak_delay_ns=uri.duration_ns(uri_param.NAK_DELAY),
        is_nak_all_gaps=_flag(uri, uri_param.NAK_ALL_GAPS, defaults.is_nak_all_gaps),
        gap_fill_datagrams=_or_default(
            uri.int32(uri_param.GAP_FILL_DATAGRAMS, 0), defaults.gap_fill_datagrams
        ),
        gap_fill_delay_ns=_or_default(
            uri.duration_ns(uri_param.GAP_FILL_DELAY), defaults.gap_fill_delay_ns
        ),
        is_response=uri.get(uri_param.CONTROL_MODE) == ControlMode.RESPONSE.value,
        response_endpoint=uri.get(uri_param.RESPONSE_ENDPOINT),
        channel_receive_timestamp_offset=parse_offset(
            uri, uri_param.CHANNEL_RECEIVE_TIMESTAMP_OFFSET
        ),
        media_receive_timestamp_offset=parse_offset(uri, uri_param.MEDIA_RECEIVE_TIMESTAMP_OFFSET),
    )


def _window_length(uri: ChannelUri, defaults: SubscriptionDefaults) -> int:
    window = uri.size(uri_param.RECEIVER_WINDOW, 1, I32_MAX)
    text = uri.get(uri_param.RECEIVER_WINDOW)
    if window is None:
        window = defaults.initial_window_length
    # A spy reads from the log of a publication, and has no socket.
    if uri.is_udp and not uri.is_spy:
        configured = uri.size(uri_param.SOCKET_RCVBUF)
        rcvbuf_length = configured or defaults.socket_rcvbuf_length or defaults.system_rcvbuf_length
        if window > rcvbuf_length:
            raise ConfigurationError(
                f"{uri_param.RECEIVER_WINDOW}={text or window}: expected at most {rcvbuf_length} "
                f"bytes, the size of the socket's receive buffer: raise {uri_param.SOCKET_RCVBUF} "
                "or aeron.socket.so_rcvbuf"
            )
    return window


def _congestion_control(uri: ChannelUri, defaults: SubscriptionDefaults) -> str:
    text = uri.get(uri_param.CONGESTION_CONTROL) or STATIC
    if text not in (STATIC, CUBIC):
        raise ConfigurationError(
            f"{uri_param.CONGESTION_CONTROL}={text}: expected {STATIC} or {CUBIC}"
        )
    # As in the C driver, a strategy in the driver's settings replaces that of channels.
    return text if defaults.congestion_control == DEFAULT else defaults.congestion_control


def _group(uri: ChannelUri, defaults: SubscriptionDefaults) -> Group:
    text = uri.get(uri_param.GROUP)
    if text is None:
        return defaults.group
    for group in Group:
        if group.value == text:
            return group
    raise ConfigurationError(f"{uri_param.GROUP}={text}: expected true, false or infer")


def _flag(uri: ChannelUri, key: str, default: bool) -> bool:
    value = uri.boolean(key)
    return default if value is None else value


def _or_default(value: int | None, default: int) -> int:
    return default if value is None else value
