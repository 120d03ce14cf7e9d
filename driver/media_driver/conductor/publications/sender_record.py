"""Fills the sender's records of a new publication before the sender receives them.

Flow control is a property of the channel: if publications share a channel, the `fc=` parameter of
the first publication applies. It is ignored on a channel without group semantics. Source: spec 4.1
to 4.10, Aeron 1.53.
"""

from windtunnel.driver.base.arith import I64_MAX
from windtunnel.driver.channel import flow_control_parameters, uri_param
from windtunnel.driver.channel.flow_control_parameters import FlowControlParameters
from windtunnel.driver.channel.publication_parameters import (
    NULL_CORRELATION_ID,
    PublicationParameters,
)
from windtunnel.driver.channel.udp_channel import ControlMode, UdpChannel
from windtunnel.driver.logbuffer.log_buffer import LogBuffer
from windtunnel.driver.media_driver.agent.agent_proxy import fill_record
from windtunnel.driver.media_driver.conductor import stream_counters
from windtunnel.driver.media_driver.conductor.driver_resources import DriverResources
from windtunnel.driver.media_driver.conductor.endpoints.channel_endpoints import ChannelEndpoint
from windtunnel.driver.media_driver.conductor.publications.publication_log import StreamStart
from windtunnel.driver.media_driver.context import Context
from windtunnel.driver.media_driver.sender import flow_control
from windtunnel.driver.media_driver.sender import network_publication as sending
from windtunnel.driver.media_driver.sender.sender_state import (
    MESSAGES_PER_SEND_MAX,
    MESSAGES_PER_SEND_WITHOUT_GSO,
)

NULL_GROUP_TAG = -1

_STRATEGIES = {
    flow_control_parameters.MAX: flow_control.MAX,
    flow_control_parameters.MIN: flow_control.MIN,
    flow_control_parameters.TAGGED: flow_control.TAGGED,
}


def fill_sender_record(
    resources: DriverResources,
    slot: int,
    identity: tuple[int, int, int],
    endpoint: ChannelEndpoint,
    log: LogBuffer,
    parameters: PublicationParameters,
    start: StreamStart,
    counter_ids: list[int],
) -> None:
    """Fill the sender's record `publications[slot]` for a new publication.

    `identity` is registration, session and stream id. The counters are pub-pos, pub-lmt, snd-pos,
    snd-lmt, snd-bpe and snd-naks-received, and with retransmit ranges `RETRANSMIT_COUNTERS`. The
    counter fc-receivers is allocated and appended for flow control that counts its receivers.
    """
    context, channel = resources.context, endpoint.channel
    registration_id, session_id, stream_id = identity
    is_group = channel.has_group_semantics
    flow = _flow_control_of(channel, context)
    offset = parameters.send_timestamp_offset
    values = {
        "registration_id": registration_id,
        "endpoint": endpoint.slot,
        "log_address": log.address,
        "log_length": log.length,
        "meta_at": log.meta_at,
        "session_id": session_id,
        "stream_id": stream_id,
        "initial_term_id": start.initial_term_id,
        "initial_position": start.position,
        "term_length": log.term_length,
        "bits": log.bits,
        "mtu": parameters.mtu_length,
        "ttl": channel.ttl or 0,
        "is_group": int(is_group),
        "signal_eos": int(parameters.signal_eos),
        "spies_simulate_connection": int(parameters.spies_simulate_connection),
        "setup_flags": _setup_flags(channel, parameters),
        "max_messages_per_send": _messages_per_send_max(context),
        "max_resend": parameters.max_resend if is_group else 1,
        "connection_timeout_ns": context.publication_connection_timeout_ns,
        "route": _route_of(channel),
        "has_response_correlation": int(parameters.response_correlation_id != NULL_CORRELATION_ID),
        "response_correlation_id": parameters.response_correlation_id,
        "has_send_timestamp": int(offset is not None),
        "send_timestamp_offset": offset or 0,
        # Aeron has no separate settings for groups.
        "retransmit_delay_ns": context.retransmit_unicast_delay_ns,
        "retransmit_linger_ns": context.retransmit_unicast_linger_ns,
        "retransmit_window_multiple": _retransmit_window_multiple(channel, flow, context),
        "snd_pos_id": counter_ids[2],
        "snd_lmt_id": counter_ids[3],
        "snd_bpe_id": counter_ids[4],
        "naks_received_id": counter_ids[5],
        "has_retransmit_ranges": int(parameters.has_retransmit_ranges),
    }
    values |= zip(("ranges_id", "bytes_not_resent_id", "rtt_id"), counter_ids[6:], strict=False)
    fill_record(resources.sender.publications[slot], **values)
    receivers_id = flow_control.NO_COUNTER
    if _STRATEGIES[flow.strategy] != flow_control.MAX:
        receivers_id = _allocate_receivers_counter(resources, identity, channel)
        counter_ids.append(receivers_id)
    _fill_flow_control(resources, slot, flow, receivers_id)


def _allocate_receivers_counter(
    resources: DriverResources, identity: tuple[int, int, int], channel: UdpChannel
) -> int:
    registration_id, session_id, stream_id = identity
    return resources.counters.stream(
        stream_counters.FLOW_CONTROL_RECEIVERS,
        registration_id,
        stream_counters.NO_OWNER,
        session_id,
        stream_id,
        str(channel.uri),
    )


def _fill_flow_control(
    resources: DriverResources, slot: int, flow: FlowControlParameters, receivers_id: int
) -> None:
    context = resources.context
    timeout_ns, tag, min_size = flow.receiver_timeout_ns, flow.group_tag, flow.group_min_size
    if tag is None:
        tag = context.flow_control_group_tag
    fill_record(
        resources.sender.flows[slot],
        strategy=_STRATEGIES[flow.strategy],
        receiver_timeout_ns=(
            context.flow_control_receiver_timeout_ns if timeout_ns is None else timeout_ns
        ),
        group_tag=NULL_GROUP_TAG if tag is None else tag,
        group_min_size=context.flow_control_group_min_size if min_size is None else min_size,
        receivers_id=receivers_id,
        latch_limit=flow_control.NO_LATCH,
        overflow_limits=I64_MAX,
    )


def _flow_control_of(channel: UdpChannel, context: Context) -> FlowControlParameters:
    if not channel.has_group_semantics:
        return FlowControlParameters(context.unicast_flow_control)
    text = channel.uri.get(uri_param.FLOW_CONTROL)
    if text is None:
        return FlowControlParameters(context.multicast_flow_control)
    return flow_control_parameters.parse(text)


def _retransmit_window_multiple(
    channel: UdpChannel, flow: FlowControlParameters, context: Context
) -> int:
    if flow.retransmit_window_multiple is not None:
        return flow.retransmit_window_multiple
    if channel.has_group_semantics:
        return context.multicast_retransmit_window_multiple
    return context.unicast_retransmit_window_multiple


def _route_of(channel: UdpChannel) -> int:
    if channel.is_multi_destination:
        return sending.TO_DESTINATIONS
    if channel.control_mode is ControlMode.RESPONSE:
        return sending.TO_REQUESTER
    return sending.TO_CHANNEL


def _setup_flags(channel: UdpChannel, parameters: PublicationParameters) -> int:
    flags = sending.SETUP_GROUP if channel.has_group_semantics else 0
    asks_for_response = parameters.response_correlation_id != NULL_CORRELATION_ID
    if asks_for_response and channel.control_mode is not ControlMode.RESPONSE:
        flags |= sending.SETUP_RESPONSE
    return flags


def _messages_per_send_max(context: Context) -> int:
    """Return the maximum number of datagrams per system call. The default depends on whether GSO is
    enabled.
    """
    if context.messages_per_send_max is not None:
        return context.messages_per_send_max
    return MESSAGES_PER_SEND_MAX if context.udp_offload else MESSAGES_PER_SEND_WITHOUT_GSO
