"""Everything that the sender's kernels reach: one named tuple of arrays, made once by the
conductor.

The sender owns all of it while it runs, except the log buffers behind the addresses, the counters,
and the two queues.
"""

from typing import Any, NamedTuple

import numpy as np

from driver.base import handoff, idle
from driver.base.system import NS_PER_MS
from driver.media import link, transport
from driver.media.send_endpoint import make_send_endpoints
from driver.media.stream_map import make_stream_map
from driver.media_driver import flow_control, retransmit_handler
from driver.media_driver.network_publication import make_publications

MESSAGES_PER_SEND_MAX = 16
"""Most datagrams of one publication that leave in one system call."""
RECEIVE_SLOTS = 16
CONTROL_SLOT_LENGTH = 2048
"""Longest control frame is an error frame of 1063 bytes."""

ADD_ENDPOINT = 1  # endpoint slot
REMOVE_ENDPOINT = 2  # endpoint slot; answered by ENDPOINT_RELEASED
ADD_PUBLICATION = 3  # publication slot
REMOVE_PUBLICATION = 4  # publication slot; answered by PUBLICATION_RELEASED
END_PUBLICATION = 5  # publication slot, revoked
SET_SPIES = 6  # publication slot, has spies, highest spy position

ENDPOINT_RELEASED = 1  # endpoint slot
PUBLICATION_RELEASED = 2  # publication slot
SEND_FAILED = 3  # endpoint slot, negative errno

SENDER = np.dtype(
    [
        ("publication_count", "i8"),  # entries of `active`
        ("endpoint_count", "i8"),  # entries of `polled`
        ("round_robin", "i8"),
        ("turns_since_poll", "i8"),
        ("poll_ratio", "i8"),  # send this many turns for each turn that polls, while busy
        ("poll_deadline_ns", "i8"),
        ("status_timeout_ns", "i8"),
        ("last_short_sends", "i8"),
    ]
)


class SenderState(NamedTuple):
    """The arrays; see the modules that declare the records for what is in them."""

    agent: np.ndarray  # SENDER[1]
    publications: np.ndarray  # NETWORK_PUBLICATION[n]
    words: np.ndarray  # the same memory as uint8
    receivers: np.ndarray  # RECEIVER[n * RECEIVERS_MAX]
    resends: np.ndarray  # RESEND[n * RESENDS_MAX]
    endpoints: np.ndarray  # SEND_ENDPOINT[m]
    active: np.ndarray  # int64[n], slots of the publications in service
    polled: np.ndarray  # int64[m], slots of the endpoints in service
    streams: np.ndarray  # STREAM_ENTRY[...], to publication slots
    counters: np.ndarray  # uint8, the counter values of cnc.dat
    commands: np.ndarray  # queue, conductor to sender
    events: np.ndarray  # queue, sender to conductor
    record: np.ndarray  # int64[24], scratch for the queues
    scratch: np.ndarray  # uint8[64], control frames being written
    ends: np.ndarray  # int64[MESSAGES_PER_SEND_MAX], position after each datagram of a batch
    outbox: Any  # transport.SendBatch
    inbox: Any  # transport.ReceiveBatch
    links: Any  # link.Links, empty on real sockets
    idle: np.ndarray  # IDLE[1]
    cycle: np.ndarray  # DUTY_CYCLE[1]


def make_sender_state(
    counters: np.ndarray,
    cycle: np.ndarray,
    *,
    publications: int = 1024,
    endpoints: int = 1024,
    poll_ratio: int = 6,
    status_timeout_ns: int = 200 * NS_PER_MS,
    idle_state: np.ndarray | None = None,
    links: Any = None,
) -> SenderState:
    """Blank state for a sender; pages that are never used cost nothing."""
    agent = np.zeros(1, dtype=SENDER).view(np.recarray)
    agent[0].poll_ratio = poll_ratio
    agent[0].status_timeout_ns = status_timeout_ns
    records, words = make_publications(publications)
    return SenderState(
        agent=agent,
        publications=records,
        words=words,
        receivers=flow_control.make_receivers(publications),
        resends=retransmit_handler.make_resends(publications),
        endpoints=make_send_endpoints(endpoints),
        active=np.zeros(publications, dtype=np.int64),
        polled=np.zeros(endpoints, dtype=np.int64),
        streams=make_stream_map(publications),
        counters=counters,
        commands=handoff.make_queue(),
        # An answer about every slot, and one failure that was not heard of yet.
        events=handoff.make_queue(publications + endpoints + 1),
        record=handoff.make_record(),
        scratch=np.zeros(64, dtype=np.uint8),
        ends=np.zeros(MESSAGES_PER_SEND_MAX, dtype=np.int64),
        outbox=transport.make_send_batch(MESSAGES_PER_SEND_MAX),
        inbox=transport.make_receive_batch(RECEIVE_SLOTS, CONTROL_SLOT_LENGTH),
        links=link.NO_LINKS if links is None else links,
        idle=idle.make_idle() if idle_state is None else idle_state,
        cycle=cycle,
    )
