"""The state of the receiver's compiled kernels: a named tuple of arrays made by the conductor.

The receiver owns the state while it runs, except for the mapped log buffers, the counters, the two
queues, and the image fields that the conductor owns (see `publication_image`).
"""

from typing import Any, NamedTuple

import numpy as np

from windtunnel.driver.base import handoff, idle
from windtunnel.driver.media import link, socket_gate, transport
from windtunnel.driver.media.receive_endpoint import make_receive_endpoints
from windtunnel.driver.media.stream_map import make_stream_map
from windtunnel.driver.media_driver.agent.loss_interceptor import NO_LOSSES, Losses
from windtunnel.driver.media_driver.image.lost_ranges import RANGES_MAX, make_lost_ranges
from windtunnel.driver.media_driver.image.publication_image import make_connections, make_images
from windtunnel.driver.media_driver.receiver.gap_filling import make_filled_gaps
from windtunnel.driver.wire import error, nak

RECEIVE_SLOTS = 64
"""Default maximum number of datagrams per receive call."""
DATA_SLOT_LENGTH = 65_536
"""Buffer length in bytes for one received datagram, sufficient for the longest UDP datagram."""
PENDING_SETUPS_MAX = 1024
REFUSED_SETUPS_MAX = 32_768
"""Number of remembered sessions whose SETUP was refused, a power of two. While 10,000 forged SETUPs
arrive per second, 97 % of the sessions are still known after 100 ms, and 74 % after 1 s."""
CREATIONS_MAX = 1024
"""Maximum number of queued requests to create an image. Acknowledgements have reserved records."""
SCRATCH_LENGTH = 1088
"""Length of the buffer for outgoing frames, sufficient for the longest frame, an error frame."""
assert SCRATCH_LENGTH >= error.LENGTH_MAX

# Commands. An endpoint slot is a slot of `endpoints`. A destination is a slot that serves another
# endpoint slot.
ADD_ENDPOINT = 1  # endpoint slot
REMOVE_ENDPOINT = 2  # endpoint slot; answered by ENDPOINT_RELEASED
ADD_INTEREST = 3  # endpoint slot, stream id, has session, session id
REMOVE_INTEREST = 4  # endpoint slot, stream id, has session, session id
ADD_IMAGE = 5  # image slot
REMOVE_IMAGE = 6  # image slot, cool down unless at its end; answered by IMAGE_RELEASED
IMAGE_FAILED = (
    7  # endpoint slot, stream id, session id, level and restriction in ns: see new_sessions
)
END_COOL_DOWN = 8  # endpoint slot, stream id, session id
START_DRAINING = 9  # image slot, status at once: set EOS in status messages from now on
REJECT_IMAGE = 10  # image slot, length of the reason, its row in the image's `reasons`
SET_RESPONSE_SESSION = 11  # image slot, has one, session id of the response stream
REQUEST_SETUP = (
    12  # endpoint slot, stream id, session id: elicit SETUP at its control addresses now
)
CHANGE_CONTROL_ADDRESS = 13  # endpoint slot, name length, then the name as 7 words of 32 bits

ENDPOINT_RELEASED = 1  # endpoint slot
IMAGE_RELEASED = 2  # image slot
CREATE_IMAGE = 3  # words: see dispatcher.py
SEND_FAILED = 4  # endpoint slot, negative errno
SESSION_LIMIT = 5  # endpoint slot, stream id: the stream has reached its session limit

RECEIVER = np.dtype(
    (
        np.record,
        [
            ("image_count", "i8"),  # entries of `active`
            ("endpoint_count", "i8"),  # entries of `polled`
            ("pending_count", "i8"),  # entries of `pending`
            ("cooling_count", "i8"),  # total entries added to `cooling`
            ("session_limit", "i8"),  # maximum images of one stream on one endpoint
            ("liveness_timeout_ns", "i8"),  # liveness timeout of connections
            ("eliciting_count", "i8"),  # sockets that elicit SETUPs periodically
            ("receive_time_ns", "i8"),  # epoch time of the last datagrams with receive timestamps
            ("is_stopping", "i8"),  # the driver is shutting down: `run` returns
        ],
    )
)

PENDING_SETUP = np.dtype(
    (
        np.record,
        [
            ("endpoint", "i8"),
            ("stream_id", "i8"),
            ("session_id", "i8"),
            ("deadline_ns", "i8"),
        ],
    )
)

REFUSED_SETUP = np.dtype(
    (
        np.record,
        [
            ("endpoint", "i8"),
            ("stream_id", "i8"),
            ("session_id", "i8"),
            ("first_ns", "i8"),  # time of its first SETUP, or of the last one that was accepted
            ("last_ns", "i8"),  # time of its last SETUP
        ],
    )
)

COOLING = np.dtype(
    (
        np.record,
        [
            ("endpoint", "i8"),
            ("stream_id", "i8"),
            ("session_id", "i8"),
        ],
    )
)


def make_cooling(sessions: int) -> np.recarray:
    """Create the ring of sessions in cool-down, COOLING[sessions]. Their images were removed, and
    their packets are ignored.
    """
    return np.zeros(sessions, dtype=COOLING).view(np.recarray)


class ReceiverState(NamedTuple):
    """The arrays that the receiver's compiled kernels use. The dtype declarations document the
    fields.
    """

    agent: np.ndarray  # RECEIVER[1]
    images: np.ndarray  # PUBLICATION_IMAGE[n]
    words: np.ndarray  # the same memory as uint8
    connections: np.ndarray  # CONNECTION[n * CONNECTIONS_MAX]
    lost_ranges: np.ndarray  # LOST_RANGE[n, RANGES_MAX], see lost_ranges
    filled_gaps: np.ndarray  # FILLED_GAP[n, FILLED_MAX], the last ones that were filled
    reasons: np.ndarray  # uint8[n, 2, 1023], rejection reasons; the conductor writes the row that
    # the receiver does not use, before REJECT_IMAGE
    endpoints: np.ndarray  # RECEIVE_ENDPOINT[m]
    endpoint_words: np.ndarray  # the same memory as uint8
    active: np.ndarray  # int64[n], slots of the active images
    polled: np.ndarray  # int64[m], slots of the active endpoints
    gate: np.ndarray  # GATE[1], of the sockets of these endpoints
    interests: np.ndarray  # STREAM_ENTRY[...], stream -> ALL_SESSIONS or SOME_SESSIONS
    session_interests: (
        np.ndarray
    )  # STREAM_ENTRY[...], session of a stream -> number of subscriptions
    sessions: np.ndarray  # STREAM_ENTRY[...], session of a stream -> image slot or state
    pending: np.ndarray  # PENDING_SETUP[...]
    cooling: np.ndarray  # COOLING[n], a ring of the sessions in cool-down
    restrictions: np.ndarray  # STREAM_ENTRY[...], stream and level -> deadline, see new_sessions
    refused: np.ndarray  # REFUSED_SETUP[REFUSED_SETUPS_MAX], see new_sessions
    counters: np.ndarray  # uint8, the counter values of cnc.dat
    commands: np.ndarray  # queue, conductor to receiver
    events: np.ndarray  # queue, receiver to conductor
    record: np.ndarray  # int64[24], scratch for the queues
    scratch: np.ndarray  # uint8[SCRATCH_LENGTH], frames being written
    naks: np.ndarray  # uint8[RANGES_MAX * nak.LENGTH], the frames of the outbox
    outbox: Any  # transport.SendBatch, whose entries are the frames of `naks`
    inbox: Any  # transport.ReceiveBatch
    losses: Any  # loss_interceptor.Losses, empty without loss interceptors
    links: Any  # link.Links, empty on real sockets
    idle: np.ndarray  # IDLE[1]
    cycle: np.ndarray  # DUTY_CYCLE[1]


def make_receiver_state(
    counters: np.ndarray,
    cycle: np.ndarray,
    *,
    images: int = 1024,
    endpoints: int = 1024,
    session_limit: int = (1 << 31) - 1,
    liveness_timeout_ns: int = 10_000_000_000,
    receive_slots: int = RECEIVE_SLOTS,
    idle_state: np.ndarray | None = None,
    links: Any = None,
    losses: Losses = NO_LOSSES,
) -> ReceiverState:
    """Create the state of a receiver. Unused records occupy no physical memory."""
    agent = np.zeros(1, dtype=RECEIVER).view(np.recarray)
    agent[0].session_limit = session_limit
    agent[0].liveness_timeout_ns = liveness_timeout_ns
    records, words = make_images(images)
    naks = np.zeros(RANGES_MAX * nak.LENGTH, dtype=np.uint8)
    outbox = transport.make_send_batch(RANGES_MAX)
    outbox.vectors["address"] = naks.ctypes.data + nak.LENGTH * np.arange(RANGES_MAX)
    outbox.vectors["length"] = nak.LENGTH
    endpoint_records, endpoint_words = make_receive_endpoints(endpoints)
    return ReceiverState(
        agent=agent,
        images=records,
        words=words,
        connections=make_connections(images),
        lost_ranges=make_lost_ranges(images),
        filled_gaps=make_filled_gaps(images),
        reasons=np.zeros((images, 2, error.TEXT_LENGTH_MAX), dtype=np.uint8),
        endpoints=endpoint_records,
        endpoint_words=endpoint_words,
        active=np.zeros(images, dtype=np.int64),
        polled=np.zeros(endpoints, dtype=np.int64),
        gate=socket_gate.make_gate(),
        interests=make_stream_map(endpoints),
        session_interests=make_stream_map(images),
        # NO_INTEREST entries may use one half. Images, SETUPs and cool-downs share the other half.
        sessions=make_stream_map(4 * images),
        pending=np.zeros(PENDING_SETUPS_MAX, dtype=PENDING_SETUP).view(np.recarray),
        cooling=make_cooling(images),
        # A stream has at most one entry for each of the two levels.
        restrictions=make_stream_map(2 * endpoints),
        refused=np.zeros(REFUSED_SETUPS_MAX, dtype=REFUSED_SETUP).view(np.recarray),
        counters=counters,
        commands=handoff.make_queue(),
        events=handoff.make_queue(images + endpoints + CREATIONS_MAX),
        record=handoff.make_record(),
        scratch=np.zeros(SCRATCH_LENGTH, dtype=np.uint8),
        naks=naks,
        outbox=outbox,
        inbox=transport.make_receive_batch(receive_slots, DATA_SLOT_LENGTH),
        losses=losses,
        links=link.NO_LINKS if links is None else links,
        idle=idle.make_idle() if idle_state is None else idle_state,
        cycle=cycle,
    )
