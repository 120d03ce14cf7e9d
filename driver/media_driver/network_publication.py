"""A stream being sent: what the sender keeps about one network publication, as one record.

A record belongs to the sender from the moment it is handed over until the sender has said that it
let go. The conductor reads a few of its words meanwhile; those are published with release through
`words`, the same memory seen as bytes, and stand last in the record. Times are monotonic
nanoseconds; positions count bytes from the start of the stream.
"""

import numpy as np

from driver.base.atomics import get_i64_acquire, put_i64_release
from driver.base.jit import kernel
from driver.base.system import NS_PER_MS
from driver.wire import frame_type

SETUP_INTERVAL_NS = 100 * NS_PER_MS
"""Between SETUP frames while nobody has answered. Source: Aeron 1.53, not configurable."""
HEARTBEAT_INTERVAL_NS = 100 * NS_PER_MS
"""Between heartbeats of an idle stream. Source: Aeron 1.53, not configurable."""

SETUP_GROUP = frame_type.GROUP
"""Flag of a SETUP whose channel has many receivers."""

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
        ("flow_control", "i8"),  # a strategy of flow_control
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
        ("has_spies", "i8"),
        ("max_spy_position", "i8"),
        ("receivers_count", "i8"),
        ("resend_count", "i8"),  # resend actions that are not free
        # Published by the sender for the conductor (release; the conductor reads with acquire).
        ("has_receivers", "i8"),
        ("has_unicast_eos", "i8"),  # a unicast receiver said that it is done with the stream
    ]
)

RECORD_LENGTH = NETWORK_PUBLICATION.itemsize
_FIELDS = dict(NETWORK_PUBLICATION.fields or {})
HAS_RECEIVERS = _FIELDS["has_receivers"][1]
HAS_UNICAST_EOS = _FIELDS["has_unicast_eos"][1]


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
