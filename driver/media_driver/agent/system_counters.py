"""The ids and labels of a driver's system counters, in Aeron's order.

A system counter's id is its index in the file, its key and its registration id.
Source: spec 8.1, Aeron 1.53.
"""

from windtunnel.driver.channel.uri_value import format_duration_ns
from windtunnel.driver.media_driver.context import Context

BYTES_SENT = 0
BYTES_RECEIVED = 1
RECEIVER_PROXY_FAILS = 2
SENDER_PROXY_FAILS = 3
CONDUCTOR_PROXY_FAILS = 4
NAKS_SENT = 5
NAKS_RECEIVED = 6
STATUS_MESSAGES_SENT = 7
STATUS_MESSAGES_RECEIVED = 8
HEARTBEATS_SENT = 9
HEARTBEATS_RECEIVED = 10
RETRANSMITS_SENT = 11
FLOW_CONTROL_UNDER_RUNS = 12
FLOW_CONTROL_OVER_RUNS = 13
INVALID_PACKETS = 14
ERRORS = 15
SHORT_SENDS = 16
FREE_FAILS = 17
SENDER_FLOW_CONTROL_LIMITS = 18
UNBLOCKED_PUBLICATIONS = 19
UNBLOCKED_COMMANDS = 20
POSSIBLE_TTL_ASYMMETRY = 21
CONTROLLABLE_IDLE_STRATEGY = 22
LOSS_GAP_FILLS = 23
CLIENT_TIMEOUTS = 24
RESOLUTION_CHANGES = 25
CONDUCTOR_MAX_CYCLE_TIME = 26
CONDUCTOR_CYCLE_TIME_THRESHOLD_EXCEEDED = 27
SENDER_MAX_CYCLE_TIME = 28
SENDER_CYCLE_TIME_THRESHOLD_EXCEEDED = 29
RECEIVER_MAX_CYCLE_TIME = 30
RECEIVER_CYCLE_TIME_THRESHOLD_EXCEEDED = 31
NAME_RESOLVER_MAX_TIME = 32
NAME_RESOLVER_TIME_THRESHOLD_EXCEEDED = 33
AERON_VERSION = 34
BYTES_CURRENTLY_MAPPED = 35
RETRANSMITTED_BYTES = 36
RETRANSMIT_OVERFLOW = 37
ERROR_FRAMES_RECEIVED = 38
ERROR_FRAMES_SENT = 39
PUBLICATIONS_REVOKED = 40
PUBLICATION_IMAGES_REVOKED = 41
IMAGES_REJECTED = 42
CONTROL_PROTOCOL_VERSION = 43
STATUS_MESSAGES_REJECTED = 44
RESOURCE_PROXY_FAILS = 45

VERSION_TEXT = "version=1.53.0 commit=windtunnel"
VERSION_NUMBER = (1 << 16) | (53 << 8)
CONTROL_PROTOCOL_NUMBER = 1 << 16


def labels(context: Context) -> tuple[str, ...]:
    """Return the labels of all system counters, indexed by counter id."""
    threading_mode = context.threading_mode
    conductor = format_duration_ns(context.conductor_cycle_threshold_ns)
    sender = format_duration_ns(context.sender_cycle_threshold_ns)
    receiver = format_duration_ns(context.receiver_cycle_threshold_ns)
    names = format_duration_ns(context.name_resolver_threshold_ns)
    return (
        "Bytes sent",
        "Bytes received",
        "Failed offers to ReceiverProxy",
        "Failed offers to SenderProxy",
        "Failed offers to DriverConductorProxy",
        "NAKs sent",
        "NAKs received",
        "Status Messages sent",
        "Status Messages received",
        "Heartbeats sent",
        "Heartbeats received",
        "Retransmits sent",
        "Flow control under runs",
        "Flow control over runs",
        "Invalid packets",
        f"Errors: {VERSION_TEXT}",
        "Short sends",
        "Failed attempts to free log buffers",
        "Sender flow control limits, i.e. back-pressure events",
        "Unblocked Publications",
        "Unblocked Control Commands",
        "Possible TTL Asymmetry",
        "ControllableIdleStrategy status",
        "Loss gap fills",
        "Client liveness timeouts",
        f"Resolution changes: driverName={context.resolver_name or ''}",
        f"Conductor max cycle time doing its work in ns: {threading_mode}",
        f"Conductor work cycle exceeded threshold count: threshold={conductor} {threading_mode}",
        f"Sender max cycle time doing its work in ns: {threading_mode}",
        f"Sender work cycle exceeded threshold count: threshold={sender} {threading_mode}",
        f"Receiver max cycle time doing its work in ns: {threading_mode}",
        f"Receiver work cycle exceeded threshold count: threshold={receiver} {threading_mode}",
        "NameResolver max time in ns",
        f"NameResolver exceeded threshold count: threshold={names}",
        f"Aeron software: {VERSION_TEXT}",
        "Bytes currently mapped",
        "Retransmitted bytes",
        "Retransmit Pool Overflow count",
        "Error Frames received",
        "Error Frames sent",
        "Publications Revoked",
        "Publication Images Revoked",
        "Images rejected",
        "Control protocol version",
        "Status Messages rejected",
        "Failed offers to NativeResourceAgentProxy",
    )
