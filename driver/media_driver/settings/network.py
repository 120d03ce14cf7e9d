"""Settings of what goes over the network: sockets, flow and congestion control, repair, names.

Names, defaults and bounds are those of the C driver. Source: spec 10.1, Aeron 1.53.
"""

from dataclasses import dataclass
from typing import Annotated

from windtunnel.driver.channel.flow_control_parameters import MAX, MIN, TAGGED
from windtunnel.driver.channel.subscription_parameters import CUBIC, STATIC
from windtunnel.driver.media_driver.settings import loss_interceptors
from windtunnel.driver.media_driver.settings.loss_interceptors import (
    FixedLoss,
    MultiGapLoss,
    RandomLoss,
)
from windtunnel.driver.media_driver.settings.setting import Arguments, PortRange, Tag, Words
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
    "default": STATIC,
    "aeron_congestion_control_default_strategy_supplier": STATIC,
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


@dataclass(frozen=True, kw_only=True)
class NetworkSettings:
    """Durations in nanoseconds and lengths in bytes unless a name says else."""

    socket_rcvbuf_length: Annotated[
        int, Size("AERON_SOCKET_SO_RCVBUF", "receive buffer of a socket; 0 is the system's")
    ] = 128 * KIB
    socket_sndbuf_length: Annotated[
        int, Size("AERON_SOCKET_SO_SNDBUF", "send buffer of a socket; 0 is the system's")
    ] = 0
    socket_multicast_ttl: Annotated[
        int, Number("AERON_SOCKET_MULTICAST_TTL", "hops of a multicast; 0 is the system's", 0, 255)
    ] = 0
    udp_offload: Annotated[
        bool,
        Flag(
            "WINDTUNNEL_UDP_OFFLOAD",
            "hand the system runs of datagrams to cut up (GSO, GRO); off where a link treats each "
            "datagram by itself",
        ),
    ] = True
    driver_connect: Annotated[
        bool, Flag("AERON_DRIVER_CONNECT", "connect the sockets of unicast publications")
    ] = True
    sender_wildcard_ports: Annotated[
        tuple[int, int], PortRange("AERON_SENDER_WILDCARD_PORT_RANGE", "ports of sending sockets")
    ] = (0, 0)
    receiver_wildcard_ports: Annotated[
        tuple[int, int],
        PortRange("AERON_RECEIVER_WILDCARD_PORT_RANGE", "ports of endpoints with port 0"),
    ] = (0, 0)
    receiver_io_vector_capacity: Annotated[
        int,
        Number(
            "AERON_RECEIVER_IO_VECTOR_CAPACITY", "datagrams of one receive", 1, IO_VECTOR_LENGTH_MAX
        ),
    ] = 4
    sender_io_vector_capacity: Annotated[
        int,
        Number(
            "AERON_SENDER_IO_VECTOR_CAPACITY",
            "datagrams of one control poll",
            1,
            IO_VECTOR_LENGTH_MAX,
        ),
    ] = 4
    messages_per_send_max: Annotated[
        int,
        Number(
            "AERON_NETWORK_PUBLICATION_MAX_MESSAGES_PER_SEND",
            "datagrams of one publication in one turn",
            1,
            IO_VECTOR_LENGTH_MAX,
        ),
    ] = 4
    send_to_status_poll_ratio: Annotated[
        int, Number("AERON_SEND_TO_STATUS_POLL_RATIO", "turns of sending to one of polling", 1, 255)
    ] = 6

    unicast_flow_control: Annotated[
        str, Choice("AERON_UNICAST_FLOWCONTROL_SUPPLIER", "who holds a sender back", _FLOW_CONTROLS)
    ] = MAX
    multicast_flow_control: Annotated[
        str,
        Choice("AERON_MULTICAST_FLOWCONTROL_SUPPLIER", "who holds a sender back", _FLOW_CONTROLS),
    ] = MAX
    unicast_retransmit_window_multiple: Annotated[
        int, Number("AERON_UNICAST_FLOW_CONTROL_RRWM", "windows that one NAK may ask for", 1)
    ] = 16
    multicast_retransmit_window_multiple: Annotated[
        int, Number("AERON_MULTICAST_FLOW_CONTROL_RRWM", "windows that one NAK may ask for", 1)
    ] = 4
    flow_control_receiver_timeout_ns: Annotated[
        int, Duration("AERON_FLOW_CONTROL_RECEIVER_TIMEOUT", "silence of a receiver that counts")
    ] = 5 * SECOND
    flow_control_group_tag: Annotated[
        int | None, Tag("AERON_FLOW_CONTROL_GROUP_TAG", "receivers that `tagged` waits for")
    ] = None
    flow_control_group_min_size: Annotated[
        int, Number("AERON_FLOW_CONTROL_GROUP_MIN_SIZE", "receivers that make a connection", 0)
    ] = 0
    receiver_group_tag: Annotated[
        int | None, Tag("AERON_RECEIVER_GROUP_TAG", "tag that status messages carry")
    ] = None
    congestion_control: Annotated[
        str,
        Choice("AERON_CONGESTIONCONTROL_SUPPLIER", "window of a receiver", _CONGESTION_CONTROLS),
    ] = STATIC
    cubic_measure_rtt: Annotated[
        bool, Flag("AERON_CUBICCONGESTIONCONTROL_MEASURERTT", "ask senders for the round trip")
    ] = False
    cubic_initial_rtt_ns: Annotated[
        int, Duration("AERON_CUBICCONGESTIONCONTROL_INITIALRTT", "round trip until it is measured")
    ] = 100 * US
    cubic_tcp_mode: Annotated[
        bool, Flag("AERON_CUBICCONGESTIONCONTROL_TCPMODE", "be no worse than TCP")
    ] = False

    nak_unicast_delay_ns: Annotated[
        int,
        Duration(
            "AERON_NAK_UNICAST_DELAY",
            "from a gap to its NAK; 0 is the least",
            NAK_DELAY_NS_MIN,
            zero_is=NAK_DELAY_NS_MIN,
        ),
    ] = NAK_DELAY_NS_MIN
    nak_unicast_retry_delay_ratio: Annotated[
        int,
        Number("AERON_NAK_UNICAST_RETRY_DELAY_RATIO", "delays from a NAK to the next", 1, 1 << 62),
    ] = 100
    nak_multicast_group_size: Annotated[
        int, Number("AERON_NAK_MULTICAST_GROUP_SIZE", "receivers that a back-off expects", 1)
    ] = 10
    nak_multicast_max_backoff_ns: Annotated[
        int, Duration("AERON_NAK_MULTICAST_MAX_BACKOFF", "longest back-off of a NAK", US)
    ] = 10 * MS
    retransmit_unicast_delay_ns: Annotated[
        int, Duration("AERON_RETRANSMIT_UNICAST_DELAY", "from a NAK to the retransmit")
    ] = 0
    retransmit_unicast_linger_ns: Annotated[
        int, Duration("AERON_RETRANSMIT_UNICAST_LINGER", "NAKs for it are ignored meanwhile")
    ] = 10 * MS

    name_resolver: Annotated[
        str, Choice("AERON_NAME_RESOLVER_SUPPLIER", "who turns names to addresses", _RESOLVERS)
    ] = "default"
    name_resolver_init_args: Annotated[
        str, Setting("AERON_NAME_RESOLVER_INIT_ARGS", "rows of csv_table, joined by |")
    ] = ""
    name_resolver_threshold_ns: Annotated[
        int, Duration("AERON_DRIVER_NAME_RESOLVER_THRESHOLD", "longer look-ups are counted")
    ] = 5 * SECOND
    reresolution_check_interval_ns: Annotated[
        int,
        Duration("AERON_DRIVER_RERESOLUTION_CHECK_INTERVAL", "between looks at quiet endpoints"),
    ] = SECOND
    resolver_name: Annotated[
        str, Setting("AERON_DRIVER_RESOLVER_NAME", "name of this driver among drivers")
    ] = ""
    resolver_interface: Annotated[
        str,
        Setting("AERON_DRIVER_RESOLVER_INTERFACE", "host:port where drivers hear of each other"),
    ] = ""
    resolver_bootstrap_neighbor: Annotated[
        str, Setting("AERON_DRIVER_RESOLVER_BOOTSTRAP_NEIGHBOR", "host:port of others, by commas")
    ] = ""
    resolver_neighbor_timeout_ns: Annotated[
        int, Duration("AERON_DRIVER_RESOLVER_NEIGHBOR_TIMEOUT", "silence of a neighbour", MS)
    ] = 10 * SECOND
    resolver_self_resolution_interval_ns: Annotated[
        int, Duration("AERON_DRIVER_RESOLVER_SELF_RESOLUTION_INTERVAL", "between own frames", MS)
    ] = SECOND
    resolver_neighbor_resolution_interval_ns: Annotated[
        int,
        Duration("AERON_DRIVER_RESOLVER_NEIGHBOR_RESOLUTION_INTERVAL", "between neighbours'", MS),
    ] = 2 * SECOND
    resolver_bootstrap_neighbor_resolution_interval_ns: Annotated[
        int,
        Duration(
            "AERON_DRIVER_RESOLVER_BOOTSTRAP_NEIGHBOR_RESOLUTION_INTERVAL",
            "between look-ups of the bootstrap neighbour",
            MS,
        ),
    ] = 10 * SECOND

    incoming_interceptors: Annotated[
        tuple[str, ...],
        Words("AERON_UDP_CHANNEL_INCOMING_INTERCEPTORS", "who may drop what comes in", _INCOMING),
    ] = ()
    outgoing_interceptors: Annotated[
        tuple[str, ...],
        Words("AERON_UDP_CHANNEL_OUTGOING_INTERCEPTORS", "Aeron has none of its own", {}),
    ] = ()
    random_loss: Annotated[
        RandomLoss,
        Arguments(
            "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_LOSS_ARGS",
            "what `loss` drops",
            loss_interceptors.parse_random_loss,
            "rate=0.1|seed=1|recv-msg-mask=0x2",
        ),
    ] = _NO_RANDOM_LOSS
    fixed_loss: Annotated[
        FixedLoss,
        Arguments(
            "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_FIXED_LOSS_ARGS",
            "what `fixed-loss` drops",
            loss_interceptors.parse_fixed_loss,
            "term-id=0|term-offset=0|length=1",
        ),
    ] = _NO_FIXED_LOSS
    multi_gap_loss: Annotated[
        MultiGapLoss,
        Arguments(
            "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_MULTI_GAP_LOSS_ARGS",
            "what `multi-gap-loss` drops",
            loss_interceptors.parse_multi_gap_loss,
            "term-id=0|gap-radix=8192|gap-length=1408|total-gaps=10",
        ),
    ] = _NO_MULTI_GAP_LOSS
