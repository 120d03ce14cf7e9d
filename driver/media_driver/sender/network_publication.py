"""The sender's record for each network publication.

The sender owns a record from the hand-over until it has acknowledged the removal. During this time
the conductor reads some words and writes the spy positions. These shared words are at the end of
the record and are accessed with acquire and release through `words`, a byte view of the same
memory. Times are in monotonic nanoseconds. Positions are in bytes from the start of the stream.
"""

import numpy as np

from windtunnel.driver.base.atomics import get_i64_acquire, put_i64_release
from windtunnel.driver.base.system import NS_PER_MS
from windtunnel.driver.channel.socket_address import NAME_LENGTH_MAX
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.wire import frame_type

SETUP_INTERVAL_NS = 100 * NS_PER_MS
"""Interval of SETUP frames until a receiver responds. Source: Aeron 1.53, not configurable."""
HEARTBEAT_INTERVAL_NS = 100 * NS_PER_MS
"""Interval of heartbeats on an idle stream. Source: Aeron 1.53, not configurable."""

SETUP_GROUP = frame_type.GROUP
"""SETUP frame flag: the channel has group semantics."""
SETUP_RESPONSE = frame_type.SEND_RESPONSE_SETUP
"""SETUP frame flag: requests a RSP_SETUP with the session id of the response stream."""

TO_CHANNEL = 0
"""Value of `route`: send to the endpoint's single address."""
TO_DESTINATIONS = 1
"""Value of `route`: send to all destinations of the endpoint."""
TO_REQUESTER = 2
"""Value of `route`: send to the address that most recently elicited a SETUP."""

NETWORK_PUBLICATION = np.dtype(
    (
        np.record,
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
            ("initial_position", "i8"),  # at which the stream begins
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
            ("has_response_correlation", "i8"),  # whether it requests or is a response stream
            ("response_correlation_id", "i8"),
            ("has_send_timestamp", "i8"),
            ("send_timestamp_offset", "i8"),  # within the payload, or the reserved value
            ("retransmit_delay_ns", "i8"),
            ("retransmit_linger_ns", "i8"),
            ("retransmit_window_multiple", "i8"),
            ("has_retransmit_ranges", "i8"),  # many ranges at once, see `retransmit_ranges`
            ("snd_pos_id", "i8"),  # counter ids
            ("snd_lmt_id", "i8"),
            ("snd_bpe_id", "i8"),
            ("naks_received_id", "i8"),
            ("ranges_id", "i8"),  # only with retransmit ranges, like the next two
            ("bytes_not_resent_id", "i8"),
            ("rtt_id", "i8"),
            # Owned by the sender.
            ("last_setup_ns", "i8"),
            ("last_send_ns", "i8"),  # of data or a heartbeat
            ("has_initial_connection", "i8"),
            ("is_setup_elicited", "i8"),
            ("track_sender_limits", "i8"),  # count back pressure once until data is sent
            ("is_end_of_stream", "i8"),  # set by a command of the conductor
            ("is_revoked", "i8"),
            ("receivers_count", "i8"),
            ("resend_count", "i8"),  # resend actions in use
            ("range_count", "i8"),  # retransmit ranges in use
            ("is_rtt_wanted", "i8"),  # NAKs arrived after the last RTTM request
            ("rtt_request_ns", "i8"),  # timestamp of the RTTM request without a reply, or 0
            ("rtt_deadline_ns", "i8"),  # time from which an RTTM request may be sent
            ("rtt_ns", "i8"),  # smoothed round-trip time, or 0 until it is measured
            ("rtt_deviation_ns", "i8"),
            ("is_response_reported", "i8"),  # RESPONSE_CONNECTED was sent to the conductor
            ("requester_length", "i8"),  # of `requester`; 0 until a SETUP was elicited
            ("requester", "u1", (NAME_LENGTH_MAX,)),
            ("pad", "u1", (4,)),
            # Published by the sender for the conductor (release; the conductor reads with acquire).
            ("has_receivers", "i8"),
            ("has_required_receivers", "i8"),  # has as many receivers as flow control requires
            ("has_unicast_eos", "i8"),  # a unicast receiver sent a status message with EOS
            ("is_behind", "i8"),  # the stream has ended, but a live receiver has not consumed it
            # Published by the conductor for the sender (release; the sender reads with acquire).
            ("has_spies", "i8"),
            ("max_spy_position", "i8"),
        ],
    )
)

RECORD_LENGTH = NETWORK_PUBLICATION.itemsize
_FIELDS = dict(NETWORK_PUBLICATION.fields or {})
HAS_RECEIVERS = _FIELDS["has_receivers"][1]
HAS_REQUIRED_RECEIVERS = _FIELDS["has_required_receivers"][1]
HAS_UNICAST_EOS = _FIELDS["has_unicast_eos"][1]
IS_BEHIND = _FIELDS["is_behind"][1]
HAS_SPIES = _FIELDS["has_spies"][1]
MAX_SPY_POSITION = _FIELDS["max_spy_position"][1]
assert RECORD_LENGTH % 8 == 0 and HAS_RECEIVERS % 8 == 0, "shared words are aligned"


def make_publications(capacity: int) -> tuple[np.recarray, np.ndarray]:
    """Create zeroed publication records. Also returns a uint8 view of the records for atomic access
    to shared fields.
    """
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
def is_behind_acquire(words, slot):
    """Return whether a live receiver has not yet consumed all data from a stream that has ended.

    Only for publications with retransmit ranges.
    """
    return get_i64_acquire(words, slot * RECORD_LENGTH + IS_BEHIND)


@kernel
def set_is_behind_release(words, slot, value):
    put_i64_release(words, slot * RECORD_LENGTH + IS_BEHIND, value)


@kernel
def has_required_receivers_acquire(words, slot):
    """Return whether a publication has enough receivers, not counting spies, to be connected."""
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
    """Publish to the sender whether the stream has spies, and the fastest spy's position.

    Called by the conductor.
    Memory:  the position is published before the flag
    """
    put_i64_release(words, slot * RECORD_LENGTH + MAX_SPY_POSITION, max_position)
    put_i64_release(words, slot * RECORD_LENGTH + HAS_SPIES, has_spies)
