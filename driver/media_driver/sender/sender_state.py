"""The state of the sender's compiled kernels: a named tuple of arrays made by the conductor.

The sender owns the state while it runs, except for the mapped log buffers, the counters and the two
queues.
"""

from typing import Any, NamedTuple

import numpy as np

from windtunnel.driver.base import handoff, idle
from windtunnel.driver.base.system import NS_PER_MS
from windtunnel.driver.media import link, segmentation, socket_gate, transport
from windtunnel.driver.media.send_endpoint import make_send_endpoints
from windtunnel.driver.media.stream_map import make_stream_map
from windtunnel.driver.media_driver.agent.loss_interceptor import NO_LOSSES, Losses
from windtunnel.driver.media_driver.sender import (
    flow_control,
    receiver_liveness,
    retransmit_handler,
    retransmit_ranges,
)
from windtunnel.driver.media_driver.sender.destination_tracker import make_destinations
from windtunnel.driver.media_driver.sender.error_frames import make_error_frames
from windtunnel.driver.media_driver.sender.network_publication import make_publications

PACKETS_PER_SEND_MAX = 2
"""Number of full GSO packets that one system call sends. No datagrams follow them, because a packet
of few costs as much as a full one."""
MESSAGES_PER_SEND_MAX = PACKETS_PER_SEND_MAX * segmentation.GSO_SEGMENTS_MAX
"""Maximum number of datagrams per system call."""
MESSAGES_PER_SEND_WITHOUT_GSO = 4
"""Default number of datagrams per system call without GSO. Source: Aeron 1.53."""
RECEIVE_SLOTS = 16
"""Default maximum number of control frames that one poll receives."""
CONTROL_SLOT_LENGTH = 2048
"""Buffer length in bytes for one control frame. The longest is an error frame of 1063 bytes."""

# Commands. A name is a struct sockaddr in four words that start at NAME.
ADD_ENDPOINT = 1  # endpoint slot
REMOVE_ENDPOINT = 2  # endpoint slot; answered by ENDPOINT_RELEASED
ADD_PUBLICATION = 3  # publication slot
REMOVE_PUBLICATION = 4  # publication slot; answered by PUBLICATION_RELEASED
END_PUBLICATION = 5  # publication slot, revoked
ADD_DESTINATION = 6  # endpoint slot, registration id, length of the name, name
REMOVE_DESTINATION = 7  # endpoint slot, -, length of the name, name
REMOVE_DESTINATION_BY_ID = 8  # endpoint slot, registration id
CHANGE_DESTINATION_ADDRESS = 9  # endpoint slot, registration id, length of the name, name
CHANGE_ENDPOINT_ADDRESS = 10  # endpoint slot, -, length of the name, name

# Events. The first two acknowledge commands and have reserved records in the queue.
ENDPOINT_RELEASED = 1  # endpoint slot
PUBLICATION_RELEASED = 2  # publication slot
SEND_FAILED = 3  # endpoint slot, negative errno
PUBLICATION_ERROR = 4  # publication slot, destination's registration id, slot, length of its name
RESPONSE_SETUP = 5  # publication slot, response correlation id, response session id
RESPONSE_CONNECTED = 6  # publication slot, response correlation id
RESOLVE_DESTINATION = 7  # endpoint slot, registration id: no status message for 5 s
GROUP_TAG_MALFORMED = 8  # endpoint slot
GSO_REFUSED = 9  # endpoint slot, negative errno; once per endpoint

NAME = 4
"""Index of the first word of the socket address in a command record."""
NAME_WORDS = 4
EVENT_RESERVE_PER_SLOT = 1
"""Number of event records reserved per slot, for the acknowledgement of the slot's release."""
_FURTHER_EVENTS = 256

SENDER = np.dtype(
    (
        np.record,
        [
            ("publication_count", "i8"),  # entries of `active`
            ("endpoint_count", "i8"),  # entries of `polled`
            ("round_robin", "i8"),
            ("turns_since_poll", "i8"),
            ("poll_ratio", "i8"),  # duty cycles that send per one that polls, while busy
            ("poll_deadline_ns", "i8"),
            ("status_timeout_ns", "i8"),
            ("last_short_sends", "i8"),
            ("resolution_interval_ns", "i8"),  # interval of checks for silent destinations
            ("resolution_deadline_ns", "i8"),
            ("gso_enabled", "i8"),  # GSO packets may be sent, unless an endpoint refused
            ("is_stopping", "i8"),  # the driver is shutting down: `run` returns
        ],
    )
)


class SenderState(NamedTuple):
    """The arrays that contain the sender's state. The declarations of their dtypes document the
    record fields.
    """

    agent: np.ndarray  # SENDER[1]
    publications: np.ndarray  # NETWORK_PUBLICATION[n]
    words: np.ndarray  # the same memory as uint8
    receivers: np.ndarray  # RECEIVER[n * RECEIVERS_MAX], liveness
    flows: np.ndarray  # FLOW_CONTROL[n]
    flow_receivers: np.ndarray  # FLOW_RECEIVER[n * RECEIVERS_MAX], flow control
    resends: np.ndarray  # RESEND[n * RESENDS_MAX]
    ranges: np.ndarray  # RETRANSMIT_RANGE[n * RANGES_MAX]
    endpoints: np.ndarray  # SEND_ENDPOINT[m]
    endpoint_words: np.ndarray  # the same memory as uint8
    destinations: np.ndarray  # DESTINATION[m * DESTINATIONS_MAX]
    active: np.ndarray  # int64[n], slots of the active publications
    polled: np.ndarray  # int64[m], slots of the active endpoints
    gate: np.ndarray  # GATE[1], of the control sockets of these endpoints
    streams: np.ndarray  # STREAM_ENTRY[...], to publication slots
    counters: np.ndarray  # uint8, the counter values of cnc.dat
    commands: np.ndarray  # queue, conductor to sender
    events: np.ndarray  # queue, sender to conductor
    error_frames: np.ndarray  # uint8, ring of error frames, sender to conductor
    record: np.ndarray  # int64[24], scratch for the queues
    record_bytes: np.ndarray  # the same memory as uint8
    scratch: np.ndarray  # uint8[64], control frames being written
    ends: np.ndarray  # int64[MESSAGES_PER_SEND_MAX], position after each datagram of a batch
    outbox: Any  # transport.SendBatch
    inbox: Any  # transport.ReceiveBatch
    links: Any  # link.Links, empty on real sockets
    losses: Any  # loss_interceptor.Losses, empty without loss interceptors
    idle: np.ndarray  # IDLE[1]
    cycle: np.ndarray  # DUTY_CYCLE[1]


def make_sender_state(
    counters: np.ndarray,
    cycle: np.ndarray,
    *,
    publications: int = 1024,
    endpoints: int = 1024,
    poll_ratio: int = 6,
    receive_slots: int = RECEIVE_SLOTS,
    status_timeout_ns: int = 200 * NS_PER_MS,
    resolution_interval_ns: int = 1000 * NS_PER_MS,
    idle_state: np.ndarray | None = None,
    links: Any = None,
    gso_enabled: bool = False,
    losses: Losses = NO_LOSSES,
) -> SenderState:
    """Create the state of a sender. The operating system allocates each memory page only when the
    page is first used.
    """
    agent = np.zeros(1, dtype=SENDER).view(np.recarray)
    agent[0].poll_ratio = poll_ratio
    agent[0].status_timeout_ns = status_timeout_ns
    agent[0].resolution_interval_ns = resolution_interval_ns
    agent[0].gso_enabled = int(gso_enabled)
    records, words = make_publications(publications)
    endpoint_records, endpoint_words = make_send_endpoints(endpoints)
    record = handoff.make_record()
    return SenderState(
        agent=agent,
        publications=records,
        words=words,
        receivers=receiver_liveness.make_receivers(publications),
        flows=flow_control.make_flows(publications),
        flow_receivers=flow_control.make_flow_receivers(publications),
        resends=retransmit_handler.make_resends(publications),
        ranges=retransmit_ranges.make_ranges(publications),
        endpoints=endpoint_records,
        endpoint_words=endpoint_words,
        destinations=make_destinations(endpoints),
        active=np.zeros(publications, dtype=np.int64),
        polled=np.zeros(endpoints, dtype=np.int64),
        gate=socket_gate.make_gate(),
        streams=make_stream_map(publications),
        counters=counters,
        commands=handoff.make_queue(),
        events=handoff.make_queue(
            EVENT_RESERVE_PER_SLOT * (publications + endpoints) + _FURTHER_EVENTS
        ),
        error_frames=make_error_frames(),
        record=record,
        record_bytes=record.view(np.uint8),
        scratch=np.zeros(64, dtype=np.uint8),
        ends=np.zeros(MESSAGES_PER_SEND_MAX, dtype=np.int64),
        outbox=transport.make_send_batch(MESSAGES_PER_SEND_MAX),
        inbox=transport.make_receive_batch(receive_slots, CONTROL_SLOT_LENGTH),
        links=link.NO_LINKS if links is None else links,
        losses=losses,
        idle=idle.make_idle() if idle_state is None else idle_state,
        cycle=cycle,
    )
