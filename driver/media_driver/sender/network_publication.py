"""A stream being sent: what the sender keeps about one network publication, as one record.

A record belongs to the sender from the moment it is handed over until the sender has said that it
let go. The conductor reads a few of its words meanwhile, and writes what it knows of spies; those
are published with release through `words`, the same memory seen as bytes, and stand last in the
record. Times are monotonic nanoseconds; positions count bytes from the start of the stream.
"""

import numpy as np

from windtunnel.driver.base.atomics import get_i64_acquire, put_i64_release
from windtunnel.driver.base.system import NS_PER_MS
from windtunnel.driver.channel.socket_address import NAME_LENGTH_MAX
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.wire import frame_type

SETUP_INTERVAL_NS = 100 * NS_PER_MS
"""Between SETUP frames while nobody has answered. Source: Aeron 1.53, not configurable."""
HEARTBEAT_INTERVAL_NS = 100 * NS_PER_MS
"""Between heartbeats of an idle stream. Source: Aeron 1.53, not configurable."""

SETUP_GROUP = frame_type.GROUP
"""Flag of a SETUP whose channel has many receivers."""
SETUP_RESPONSE = frame_type.SEND_RESPONSE_SETUP
"""Flag of a SETUP that asks to be told on which session the answers will come."""

TO_CHANNEL = 0
"""Route: everything goes to the endpoint's one address."""
TO_DESTINATIONS = 1
"""Route: everything goes to all destinations of the endpoint."""
TO_REQUESTER = 2
"""Route: everything goes to the address that asked for a SETUP of this stream last."""

NETWORK_PUBLICATION = np.dtype(
    [
        # Written by the conductor before the hand-over, then constant.
        ("registration_id", "i8"),
        ("endpoint", "i8"),  # slot of the send channel endpoint
        ("log_address", "i8"),
        ("log_length", "i8"),
        ("meta_at", "i8"),
        ("session_id", "i8"),
        ("stream_id", "i8"),
        ("initial_term_id", "i8"),
        ("term_length", "i8"),
        ("bits", "i8"),  # log2(term_length)
        ("mtu", "i8"),
        ("ttl", "i8"),
        ("is_group", "i8"),  # multicast or multi-destination semantics
        ("signal_eos", "i8"),
        ("spies_simulate_connection", "i8"),
        ("setup_flags", "i8"),
        ("max_messages_per_send", "i8"),
        ("max_resend", "i8"),
        ("connection_timeout_ns", "i8"),
        ("route", "i8"),  # TO_CHANNEL, TO_DESTINATIONS or TO_REQUESTER
        ("has_response_correlation", "i8"),  # it asks for, or it is, a stream of responses
        ("response_correlation_id", "i8"),
        ("has_send_timestamp", "i8"),
        ("send_timestamp_offset", "i8"),  # within the payload, or the reserved value
        ("retransmit_delay_ns", "i8"),
        ("retransmit_linger_ns", "i8"),
        ("retransmit_window_multiple", "i8"),
        ("snd_pos_id", "i8"),  # counter ids
        ("snd_lmt_id", "i8"),
        ("snd_bpe_id", "i8"),
        ("naks_received_id", "i8"),
        # The sender's own.
        ("last_setup_ns", "i8"),
        ("last_send_ns", "i8"),  # data or heartbeat
        ("has_initial_connection", "i8"),
        ("is_setup_elicited", "i8"),
        ("is_limit_watched", "i8"),  # latch: being held back counts once until data is sent again
        ("is_end_of_stream", "i8"),  # told by the conductor through the queue
        ("is_revoked", "i8"),
        ("receivers_count", "i8"),
        ("resend_count", "i8"),  # resend actions that are not free
        ("is_response_told", "i8"),  # the conductor knows that a response stream is connected
        ("requester_length", "i8"),  # of `requester`; 0 until somebody asked for a SETUP
        ("requester", "u1", (NAME_LENGTH_MAX,)),
        ("pad", "u1", (4,)),
        # Published by the sender for the conductor (release; the conductor reads with acquire).
        ("has_receivers", "i8"),
        ("has_required_receivers", "i8"),  # has receivers, and as many as flow control asks for
        ("has_unicast_eos", "i8"),  # a unicast receiver said that it is done with the stream
        # Published by the conductor for the sender (release; the sender reads with acquire).
        ("has_spies", "i8"),
        ("max_spy_position", "i8"),
    ]
)

RECORD_LENGTH = NETWORK_PUBLICATION.itemsize
_FIELDS = dict(NETWORK_PUBLICATION.fields or {})
HAS_RECEIVERS = _FIELDS["has_receivers"][1]
HAS_REQUIRED_RECEIVERS = _FIELDS["has_required_receivers"][1]
HAS_UNICAST_EOS = _FIELDS["has_unicast_eos"][1]
HAS_SPIES = _FIELDS["has_spies"][1]
MAX_SPY_POSITION = _FIELDS["max_spy_position"][1]
assert RECORD_LENGTH % 8 == 0 and HAS_RECEIVERS % 8 == 0, "shared words are aligned"


def make_publications(capacity: int) -> tuple[np.recarray, np.ndarray]:
    """Blank records, and the same memory as uint8 for the shared words."""
    records = np.zeros(capacity, dtype=NETWORK_PUBLICATION)
    return records.view(np.recarray), records.view(np.uint8)


@kernel
def has_receivers_acquire(words, slot):
    return get_i64_acquire(words, slot * RECORD_LENGTH + HAS_RECEIVERS)


@kernel
def set_has_receivers_release(words, slot, value):
    put_i64_release(words, slot * RECORD_LENGTH + HAS_RECEIVERS, value)


@kernel
def has_unicast_eos_acquire(words, slot):
    return get_i64_acquire(words, slot * RECORD_LENGTH + HAS_UNICAST_EOS)


@kernel
def set_has_unicast_eos_release(words, slot, value):
    put_i64_release(words, slot * RECORD_LENGTH + HAS_UNICAST_EOS, value)


@kernel
def has_required_receivers_acquire(words, slot):
    """Whether the receivers alone make the publication connected."""
    return get_i64_acquire(words, slot * RECORD_LENGTH + HAS_REQUIRED_RECEIVERS)


@kernel
def set_has_required_receivers_release(words, slot, value):
    put_i64_release(words, slot * RECORD_LENGTH + HAS_REQUIRED_RECEIVERS, value)


@kernel
def has_spies_acquire(words, slot):
    return get_i64_acquire(words, slot * RECORD_LENGTH + HAS_SPIES)


@kernel
def max_spy_position_acquire(words, slot):
    return get_i64_acquire(words, slot * RECORD_LENGTH + MAX_SPY_POSITION)


@kernel
def set_spies_release(words, slot, has_spies, max_position):
    """For the conductor: whether spies read this stream, and how far the fastest has come.

    Memory:  the position is published before the flag, so whoever sees spies sees theirs
    """
    put_i64_release(words, slot * RECORD_LENGTH + MAX_SPY_POSITION, max_position)
    put_i64_release(words, slot * RECORD_LENGTH + HAS_SPIES, has_spies)
