"""Settings for sockets, flow control, congestion control, loss recovery and name resolution.

Names, defaults and ranges are the same as in the C driver, except for default batch sizes. These
are larger, because system calls for a few datagrams are slow. Source: spec 10.1, Aeron 1.53.
"""

from dataclasses import dataclass
from typing import Annotated

from windtunnel.driver.channel.flow_control_parameters import MAX, MIN, TAGGED
from windtunnel.driver.channel.subscription_parameters import CUBIC, DEFAULT, STATIC
from windtunnel.driver.media_driver.settings import loss_interceptors
from windtunnel.driver.media_driver.settings.loss_interceptors import (
    FixedLoss,
    MultiGapLoss,
    RandomLoss,
)
from windtunnel.driver.media_driver.settings.setting import (
    Arguments,
    OptionalNumber,
    PortRange,
    Tag,
    Words,
)
from windtunnel.driver.settings.kinds import Choice, Duration, Flag, Number, Setting, Size
from windtunnel.driver.settings.units import KIB, MS, SECOND, US

IO_VECTOR_LENGTH_MAX = 16
NAK_DELAY_NS_MIN = US

_FLOW_CONTROLS = {
    "max": MAX,
    "unicast": MAX,
    "unicast_max": MAX,
    "multicast_max": MAX,
    "aeron_unicast_flow_control_strategy_supplier": MAX,
    "aeron_max_multicast_flow_control_strategy_supplier": MAX,
    "min": MIN,
    "multicast_min": MIN,
    "aeron_min_flow_control_strategy_supplier": MIN,
    "tagged": TAGGED,
    "multicast_tagged": TAGGED,
    "aeron_tagged_flow_control_strategy_supplier": TAGGED,
}
_CONGESTION_CONTROLS = {
    "static": STATIC,
    "default": DEFAULT,
    "aeron_congestion_control_default_strategy_supplier": DEFAULT,
    "aeron_static_window_congestion_control_strategy_supplier": STATIC,
    "cubic": CUBIC,
    "aeron_cubic_congestion_control_strategy_supplier": CUBIC,
}
_RESOLVERS = {
    "default": "default",
    "aeron_default_name_resolver_supplier": "default",
    "driver": "driver",
    "aeron_driver_name_resolver_supplier": "driver",
    "csv_table": "csv_table",
    "aeron_csv_table_name_resolver_supplier": "csv_table",
}
_INCOMING = {
    loss_interceptors.LOSS: loss_interceptors.LOSS,
    "aeron_udp_channel_interceptor_loss_load": loss_interceptors.LOSS,
    loss_interceptors.FIXED_LOSS: loss_interceptors.FIXED_LOSS,
    "aeron_udp_channel_interceptor_fixed_loss_load": loss_interceptors.FIXED_LOSS,
    loss_interceptors.MULTI_GAP_LOSS: loss_interceptors.MULTI_GAP_LOSS,
    "aeron_udp_channel_interceptor_multi_gap_loss_load": loss_interceptors.MULTI_GAP_LOSS,
}
_NO_RANDOM_LOSS = RandomLoss()
_NO_FIXED_LOSS = FixedLoss()
_NO_MULTI_GAP_LOSS = MultiGapLoss()


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class NetworkSettings:
    """Network settings. Unless stated otherwise, the units are nanoseconds and bytes."""

    socket_rcvbuf_length: Annotated[
        int,
        Size(
            "AERON_SOCKET_SO_RCVBUF", "socket receive buffer length; 0 selects the system's default"
        ),
    ] = 128 * KIB
    socket_sndbuf_length: Annotated[
        int,
        Size("AERON_SOCKET_SO_SNDBUF", "socket send buffer length; 0 selects the system's default"),
    ] = 0
    socket_multicast_ttl: Annotated[
        int,
        Number(
            "AERON_SOCKET_MULTICAST_TTL",
            "time-to-live of multicast datagrams; 0 selects the system's default",
            0,
            255,
        ),
    ] = 0
    udp_offload: Annotated[
        bool,
        Flag(
            "WINDTUNNEL_UDP_OFFLOAD",
            "use UDP segmentation offload (GSO, GRO); turn it off if a link acts on "
            "single datagrams",
        ),
    ] = True
    driver_connect: Annotated[
        bool, Flag("AERON_DRIVER_CONNECT", "connect the sockets of unicast publications")
    ] = True
    sender_wildcard_ports: Annotated[
        tuple[int, int],
        PortRange(
            "AERON_SENDER_WILDCARD_PORT_RANGE", "ports of publications whose `control` has port 0"
        ),
    ] = (0, 0)
    receiver_wildcard_ports: Annotated[
        tuple[int, int],
        PortRange("AERON_RECEIVER_WILDCARD_PORT_RANGE", "local ports of endpoints with port 0"),
    ] = (0, 0)
    receiver_io_vector_capacity: Annotated[
        int | None,
        OptionalNumber(
            "AERON_RECEIVER_IO_VECTOR_CAPACITY",
            "maximum number of datagrams, or GRO packets, per receive call; 64 if not set, and "
            "fewer after long packets",
            1,
            IO_VECTOR_LENGTH_MAX,
        ),
    ] = None
    sender_io_vector_capacity: Annotated[
        int | None,
        OptionalNumber(
            "AERON_SENDER_IO_VECTOR_CAPACITY",
            "maximum number of datagrams per poll for control frames; 16 if not set",
            1,
            IO_VECTOR_LENGTH_MAX,
        ),
    ] = None
    messages_per_send_max: Annotated[
        int | None,
        OptionalNumber(
            "AERON_NETWORK_PUBLICATION_MAX_MESSAGES_PER_SEND",
            "maximum number of datagrams that a publication sends per call; if not set, those of "
            "two full GSO packets with UDP offload, and 4 without",
            1,
            IO_VECTOR_LENGTH_MAX,
        ),
    ] = None
    send_to_status_poll_ratio: Annotated[
        int,
        Number(
            "AERON_SEND_TO_STATUS_POLL_RATIO",
            "duty cycles that send data per poll for status messages",
            1,
            255,
        ),
    ] = 6

    unicast_flow_control: Annotated[
        str,
        Choice(
            "AERON_UNICAST_FLOWCONTROL_SUPPLIER",
            "flow control strategy of unicast publications",
            _FLOW_CONTROLS,
        ),
    ] = MAX
    multicast_flow_control: Annotated[
        str,
        Choice(
            "AERON_MULTICAST_FLOWCONTROL_SUPPLIER",
            "flow control strategy of multicast publications",
            _FLOW_CONTROLS,
        ),
    ] = MAX
    unicast_retransmit_window_multiple: Annotated[
        int,
        Number(
            "AERON_UNICAST_FLOW_CONTROL_RRWM",
            "maximum length of a retransmit, in receiver windows (unicast)",
            1,
        ),
    ] = 16
    multicast_retransmit_window_multiple: Annotated[
        int,
        Number(
            "AERON_MULTICAST_FLOW_CONTROL_RRWM",
            "maximum length of a retransmit, in receiver windows (multicast)",
            1,
        ),
    ] = 4
    flow_control_receiver_timeout_ns: Annotated[
        int,
        Duration(
            "AERON_FLOW_CONTROL_RECEIVER_TIMEOUT",
            "time without a status message until a receiver is dropped",
        ),
    ] = 5 * SECOND
    flow_control_group_tag: Annotated[
        int | None,
        Tag(
            "AERON_FLOW_CONTROL_GROUP_TAG",
            "group tag of the receivers that tagged flow control follows",
        ),
    ] = None
    flow_control_group_min_size: Annotated[
        int,
        Number(
            "AERON_FLOW_CONTROL_GROUP_MIN_SIZE",
            "receivers required before a publication is connected",
            0,
        ),
    ] = 0
    receiver_group_tag: Annotated[
        int | None, Tag("AERON_RECEIVER_GROUP_TAG", "group tag in the status messages of receivers")
    ] = None
    congestion_control: Annotated[
        str,
        Choice(
            "AERON_CONGESTIONCONTROL_SUPPLIER",
            "congestion control of receivers; default: that of the channel (cc), or static",
            _CONGESTION_CONTROLS,
        ),
    ] = DEFAULT
    cubic_measure_rtt: Annotated[
        bool, Flag("AERON_CUBICCONGESTIONCONTROL_MEASURERTT", "measure the round-trip time")
    ] = False
    cubic_initial_rtt_ns: Annotated[
        int,
        Duration(
            "AERON_CUBICCONGESTIONCONTROL_INITIALRTT",
            "round-trip time assumed until it is measured",
        ),
    ] = 100 * US
    cubic_tcp_mode: Annotated[
        bool,
        Flag(
            "AERON_CUBICCONGESTIONCONTROL_TCPMODE", "let the window grow at least as fast as TCP's"
        ),
    ] = False

    nak_unicast_delay_ns: Annotated[
        int,
        Duration(
            "AERON_NAK_UNICAST_DELAY",
            "delay from the detection of a gap to its NAK; 0 counts as 1us",
            NAK_DELAY_NS_MIN,
            value_of_zero=NAK_DELAY_NS_MIN,
        ),
    ] = NAK_DELAY_NS_MIN
    nak_unicast_retry_delay_ratio: Annotated[
        int,
        Number(
            "AERON_NAK_UNICAST_RETRY_DELAY_RATIO",
            "delay until the next NAK, as a multiple of the first delay",
            1,
            1 << 62,
        ),
    ] = 100
    nak_multicast_group_size: Annotated[
        int,
        Number(
            "AERON_NAK_MULTICAST_GROUP_SIZE", "group size that the multicast NAK backoff assumes", 1
        ),
    ] = 10
    nak_multicast_max_backoff_ns: Annotated[
        int, Duration("AERON_NAK_MULTICAST_MAX_BACKOFF", "maximum multicast NAK backoff", US)
    ] = 10 * MS
    retransmit_unicast_delay_ns: Annotated[
        int, Duration("AERON_RETRANSMIT_UNICAST_DELAY", "delay from a NAK to the retransmit")
    ] = 0
    retransmit_unicast_linger_ns: Annotated[
        int,
        Duration(
            "AERON_RETRANSMIT_UNICAST_LINGER",
            "time after a retransmit during which its NAKs are ignored",
        ),
    ] = 10 * MS

    name_resolver: Annotated[
        str, Choice("AERON_NAME_RESOLVER_SUPPLIER", "name resolver", _RESOLVERS)
    ] = "default"
    name_resolver_init_args: Annotated[
        str,
        Setting("AERON_NAME_RESOLVER_INIT_ARGS", "rows of the csv_table resolver, separated by |"),
    ] = ""
    name_resolver_threshold_ns: Annotated[
        int,
        Duration(
            "AERON_DRIVER_NAME_RESOLVER_THRESHOLD", "name lookups that take longer are counted"
        ),
    ] = 5 * SECOND
    reresolution_check_interval_ns: Annotated[
        int,
        Duration(
            "AERON_DRIVER_RERESOLUTION_CHECK_INTERVAL",
            "interval between re-resolution checks of inactive endpoints",
        ),
    ] = SECOND
    resolver_name: Annotated[
        str,
        Setting("AERON_DRIVER_RESOLVER_NAME", "name of this driver in the driver name resolver"),
    ] = ""
    resolver_interface: Annotated[
        str,
        Setting(
            "AERON_DRIVER_RESOLVER_INTERFACE", "host:port on which the driver name resolver listens"
        ),
    ] = ""
    resolver_bootstrap_neighbor: Annotated[
        str,
        Setting(
            "AERON_DRIVER_RESOLVER_BOOTSTRAP_NEIGHBOR",
            "host:port of bootstrap neighbors, separated by commas",
        ),
    ] = ""
    resolver_neighbor_timeout_ns: Annotated[
        int,
        Duration(
            "AERON_DRIVER_RESOLVER_NEIGHBOR_TIMEOUT",
            "time without a frame until a neighbor is removed",
            MS,
        ),
    ] = 10 * SECOND
    resolver_self_resolution_interval_ns: Annotated[
        int,
        Duration(
            "AERON_DRIVER_RESOLVER_SELF_RESOLUTION_INTERVAL",
            "interval between frames that announce this driver",
            MS,
        ),
    ] = SECOND
    resolver_neighbor_resolution_interval_ns: Annotated[
        int,
        Duration(
            "AERON_DRIVER_RESOLVER_NEIGHBOR_RESOLUTION_INTERVAL",
            "interval between frames that announce neighbors",
            MS,
        ),
    ] = 2 * SECOND
    resolver_bootstrap_neighbor_resolution_interval_ns: Annotated[
        int,
        Duration(
            "AERON_DRIVER_RESOLVER_BOOTSTRAP_NEIGHBOR_RESOLUTION_INTERVAL",
            "interval between lookups of bootstrap neighbors",
            MS,
        ),
    ] = 10 * SECOND

    incoming_interceptors: Annotated[
        tuple[str, ...],
        Words(
            "AERON_UDP_CHANNEL_INCOMING_INTERCEPTORS",
            "interceptors that drop incoming frames",
            _INCOMING,
        ),
    ] = ()
    outgoing_interceptors: Annotated[
        tuple[str, ...],
        Words(
            "AERON_UDP_CHANNEL_OUTGOING_INTERCEPTORS",
            "interceptors of outgoing frames; none are available",
            {},
        ),
    ] = ()
    random_loss: Annotated[
        RandomLoss,
        Arguments(
            "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_LOSS_ARGS",
            "arguments of the `loss` interceptor",
            loss_interceptors.parse_random_loss,
            "rate=0.1|seed=1|recv-msg-mask=0x2",
        ),
    ] = _NO_RANDOM_LOSS
    fixed_loss: Annotated[
        FixedLoss,
        Arguments(
            "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_FIXED_LOSS_ARGS",
            "arguments of the `fixed-loss` interceptor",
            loss_interceptors.parse_fixed_loss,
            "term-id=0|term-offset=0|length=1",
        ),
    ] = _NO_FIXED_LOSS
    multi_gap_loss: Annotated[
        MultiGapLoss,
        Arguments(
            "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_MULTI_GAP_LOSS_ARGS",
            "arguments of the `multi-gap-loss` interceptor",
            loss_interceptors.parse_multi_gap_loss,
            "term-id=0|gap-radix=8192|gap-length=1408|total-gaps=10",
        ),
    ] = _NO_MULTI_GAP_LOSS
