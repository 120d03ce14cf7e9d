"""The record of an image, shared by the receiver and the conductor.

The receiver inserts packets and sends feedback; the conductor detects gaps and advances rcv-pos.
The conductor publishes the position to acknowledge and the lost range in two blocks, each protected
by a sequence lock: the writer increments `begin`, writes the block, then sets `end` to the same
number. A reader reads `end` first and `begin` last. The block is consistent only if both are equal.

    begin_sm_change  | sm_position, sm_window                    | end_sm_change
    begin_loss_change| loss_term_id, loss_offset, loss_length    | end_loss_change

Times are in monotonic nanoseconds. Positions are in bytes from the start of the stream.
"""

import numpy as np

from windtunnel.driver.base.atomics import (
    acquire_fence,
    get_i64,
    get_i64_acquire,
    put_i64,
    put_i64_release,
    release_fence,
)
from windtunnel.driver.kernels.jit import kernel

PUBLICATION_IMAGE = np.dtype(
    (
        np.record,
        [
            # Written by the conductor before the hand-over, then constant.
            ("correlation_id", "i8"),
            ("endpoint", "i8"),  # slot of the receive channel endpoint
            ("log_address", "i8"),
            ("log_length", "i8"),
            ("meta_at", "i8"),
            ("pages_address", "i8"),  # see written_pages
            ("pages_length", "i8"),
            ("session_id", "i8"),
            ("stream_id", "i8"),
            ("initial_term_id", "i8"),
            ("term_length", "i8"),
            ("bits", "i8"),  # log2(term_length)
            ("mtu", "i8"),
            ("window_max", "i8"),
            ("is_reliable", "i8"),
            ("is_group", "i8"),
            ("status_timeout_ns", "i8"),
            ("is_stamping", "i8"),  # receive timestamps are written into its messages
            ("channel_stamp_offset", "i8"),  # offset of the timestamp, or NO_STAMP
            ("media_stamp_offset", "i8"),
            ("is_nak_all_gaps", "i8"),  # open_gaps finds the gaps, not loss_detector
            ("is_fill_delayed", "i8"),  # gaps are filled on evidence; see gap_evidence
            ("fill_datagrams", "i8"),  # later datagrams that are enough, or 0
            ("fill_delay_ns", "i8"),
            ("nak_is_random", "i8"),  # see nak_delay
            ("nak_delay_ns", "i8"),
            ("nak_retry_ns", "i8"),
            ("nak_x_range", "f8"),
            ("nak_x_base", "f8"),
            ("nak_x_factor", "f8"),
            ("nak_scale_ns", "f8"),
            ("congestion_control", "i8"),  # see congestion_control
            ("cubic_packets_max", "i8"),  # see cubic
            ("cubic_is_tcp", "i8"),
            ("cubic_update_ns", "i8"),
            ("rtt_is_measured", "i8"),
            ("rtt_min_ns", "i8"),
            ("rtt_id", "i8"),  # counter ids
            ("cubic_window_id", "i8"),
            ("hwm_id", "i8"),
            ("rcv_pos_id", "i8"),
            ("naks_sent_id", "i8"),
            ("gaps_open_id", "i8"),  # of images with rows for their gaps; see gap_counters
            ("oldest_gap_id", "i8"),
            ("nak_retries_id", "i8"),
            ("repair_time_id", "i8"),
            ("filled_early_id", "i8"),
            # Owned by the receiver.
            ("last_status_position", "i8"),  # of the last status message sent
            ("over_run_threshold", "i8"),
            ("last_status_change", "i8"),
            ("clean_position", "i8"),  # end of what was received; see image_cleaning
            ("last_loss_change", "i8"),
            ("last_nak_term_id", "i8"),  # start of the range of the last NAK
            ("last_nak_offset", "i8"),
            ("next_status_ns", "i8"),
            ("is_status_silent", "i8"),  # a newer image of the same session sends status messages
            ("is_sending_eos", "i8"),  # set by the conductor: the image is draining
            ("connection_count", "i8"),  # rows of its connections that have been used
            ("last_rtt_ns", "i8"),
            ("rtt_timeout_ns", "i8"),
            ("reason_length", "i8"),  # length of the rejection reason
            ("is_rejected", "i8"),
            ("fill_count", "i8"),  # gaps filled; see gap_filling
            ("has_response_session", "i8"),  # for the session id of RSP_SETUP frames
            ("response_session_id", "i8"),
            # Published by the receiver (release; the conductor reads with acquire).
            ("last_packet_ns", "i8"),
            ("is_end_of_stream", "i8"),
            ("is_revoked", "i8"),
            ("reason_row", "i8"),  # row of the rejection reason that ERR frames have
            ("rtt_ns", "i8"),
            ("datagram_count", "i8"),  # datagrams that advanced rcv-hwm; published by rcv-hwm
            # Owned by the conductor.
            ("nak_random", "i8"),
            ("cubic_packets", "i8"),
            ("cubic_peak", "i8"),
            ("cubic_k", "f8"),
            ("cubic_last_loss_ns", "i8"),
            ("cubic_last_update_ns", "i8"),
            ("next_status_position", "i8"),
            ("next_window", "i8"),
            ("gap_term_id", "i8"),  # the active gap
            ("gap_offset", "i8"),
            ("gap_length", "i8"),  # 0 if there is none
            ("gap_deadline_ns", "i8"),  # time of the next NAK
            ("gap_naks", "i8"),  # NAKs for a gap with this start
            ("gap_count", "i8"),  # rows in use; see open_gaps
            ("scanned_position", "i8"),  # gaps are known up to here
            ("seen_packet_ns", "i8"),  # last_packet_ns at the last scan for all gaps
            ("repair_ns", "i8"),  # smoothed time from NAK to repair, 0 if not measured
            ("repair_deviation_ns", "i8"),
            ("counted_loss_term_id", "i8"),  # range that the loss report has already counted
            ("counted_loss_end", "i8"),
            ("loss_entry_at", "i8"),  # offset of its loss report entry, or NO_ENTRY or FULL
            ("loss_entry_address", "i8"),  # bytes of the entry before its first observation
            ("loss_entry_length", "i8"),
            ("first_subscriber", "i8"),  # index into the subscriber positions, -1 if there is none
            ("is_rebuilding", "i8"),
            # Position to acknowledge, from conductor to receiver.
            ("begin_sm_change", "i8"),
            ("sm_position", "i8"),
            ("sm_window", "i8"),
            ("end_sm_change", "i8"),
            # Lost range, from conductor to receiver.
            ("begin_loss_change", "i8"),
            ("loss_term_id", "i8"),
            ("loss_offset", "i8"),
            ("loss_length", "i8"),
            ("lost_range_count", "i8"),  # see lost_ranges
            ("end_loss_change", "i8"),
        ],
    )
)

NO_STAMP = -1
"""Timestamp offset of an image without receive timestamps. Other values are a payload offset or
RESERVED_OFFSET."""

CONNECTIONS_MAX = 16
"""Maximum number of connections of one image: the sockets on which its stream is received."""

NEVER_NS = -(1 << 62)

CONNECTION = np.dtype(
    (
        np.record,
        [
            ("is_known", "i8"),
            ("transport", "i8"),  # slot of its socket
            ("control_length", "i8"),  # 0 until the address of the source is known
            ("control", "u1", (28,)),  # struct sockaddr that feedback is sent to
            ("pad", "u1", (4,)),
            ("last_activity_ns", "i8"),
            ("last_frame_ns", "i8"),
            ("unspent_bytes", "i8"),  # feedback that may be sent, see image_connections
            ("status_bytes", "i8"),  # of these, what NAKs leave for status messages
            ("is_eos", "i8"),
            ("eos_position", "i8"),
        ],
    )
)

RECORD_LENGTH = PUBLICATION_IMAGE.itemsize


def _offset_of(name: str) -> int:
    return int(dict(PUBLICATION_IMAGE.fields or {})[name][1])


LAST_PACKET_NS = _offset_of("last_packet_ns")
IS_END_OF_STREAM = _offset_of("is_end_of_stream")
IS_REVOKED = _offset_of("is_revoked")
REASON_ROW = _offset_of("reason_row")
RTT_NS = _offset_of("rtt_ns")
_LAST_LOSS_CHANGE = _offset_of("last_loss_change")
_BEGIN_SM = _offset_of("begin_sm_change")
_SM_POSITION = _offset_of("sm_position")
_SM_WINDOW = _offset_of("sm_window")
_END_SM = _offset_of("end_sm_change")
_BEGIN_LOSS = _offset_of("begin_loss_change")
_LOSS_TERM_ID = _offset_of("loss_term_id")
_LOSS_OFFSET = _offset_of("loss_offset")
_LOSS_LENGTH = _offset_of("loss_length")
_LOST_RANGE_COUNT = _offset_of("lost_range_count")
_END_LOSS = _offset_of("end_loss_change")


def make_images(capacity: int) -> tuple[np.recarray, np.ndarray]:
    """Create zeroed image records. Also returns a uint8 view of the records for atomic access to
    shared fields.
    """
    records = np.zeros(capacity, dtype=PUBLICATION_IMAGE)
    return records.view(np.recarray), records.view(np.uint8)


def make_connections(images: int) -> np.recarray:
    """Create an array of zeroed connection records, CONNECTIONS_MAX per image."""
    return np.zeros(images * CONNECTIONS_MAX, dtype=CONNECTION).view(np.recarray)


@kernel
def shared_acquire(words, slot, field_offset):
    """Read a 64-bit field that the receiver publishes in an image's record, with acquire
    semantics.
    """
    return get_i64_acquire(words, slot * RECORD_LENGTH + field_offset)


@kernel
def set_shared_release(words, slot, field_offset, value):
    put_i64_release(words, slot * RECORD_LENGTH + field_offset, value)


@kernel
def publish_status(words, slot, position, window):
    """Publish the next status message's position and window. Called by the conductor."""
    at = slot * RECORD_LENGTH
    change = get_i64(words, at + _BEGIN_SM) + 1
    put_i64_release(words, at + _BEGIN_SM, change)
    release_fence()
    put_i64(words, at + _SM_POSITION, position)
    put_i64(words, at + _SM_WINDOW, window)
    put_i64_release(words, at + _END_SM, change)


@kernel
def status_change_acquire(words, slot):
    return get_i64_acquire(words, slot * RECORD_LENGTH + _END_SM)


@kernel
def read_status(words, slot):
    """Read the next status message's position and window. Called by the receiver.

    Returns: (change, position, window), where change is -1 if a write was in progress
    """
    at = slot * RECORD_LENGTH
    change = get_i64_acquire(words, at + _END_SM)
    position = get_i64(words, at + _SM_POSITION)
    window = get_i64(words, at + _SM_WINDOW)
    acquire_fence()
    if get_i64_acquire(words, at + _BEGIN_SM) != change:
        change = -1
    return change, position, window


@kernel
def publish_loss(words, slot, term_id, offset, length):
    """Publish the lost range of an image to the receiver. Called by the conductor."""
    at = slot * RECORD_LENGTH
    change = get_i64(words, at + _BEGIN_LOSS) + 1
    put_i64_release(words, at + _BEGIN_LOSS, change)
    release_fence()
    put_i64(words, at + _LOSS_TERM_ID, term_id)
    put_i64(words, at + _LOSS_OFFSET, offset)
    put_i64(words, at + _LOSS_LENGTH, length)
    put_i64_release(words, at + _END_LOSS, change)


@kernel
def publish_lost_ranges(words, slot, count):
    """Publish that the first `count` lost ranges of an image are written. Called by the conductor,
    and only after the receiver has taken the last ones.
    """
    at = slot * RECORD_LENGTH
    put_i64(words, at + _LOST_RANGE_COUNT, count)
    put_i64_release(words, at + _END_LOSS, get_i64(words, at + _END_LOSS) + 1)


@kernel
def loss_change_acquire(words, slot):
    return get_i64_acquire(words, slot * RECORD_LENGTH + _END_LOSS)


@kernel
def set_loss_taken_release(words, slot, change):
    """Publish that the loss with this change number was processed. Called by the receiver."""
    put_i64_release(words, slot * RECORD_LENGTH + _LAST_LOSS_CHANGE, change)


@kernel
def is_loss_taken(words, slot):
    """Return whether the receiver has processed the last loss. Called by the conductor."""
    taken = get_i64_acquire(words, slot * RECORD_LENGTH + _LAST_LOSS_CHANGE)
    return taken == get_i64(words, slot * RECORD_LENGTH + _END_LOSS)


@kernel
def read_loss(words, slot):
    """Read the lost range of an image. Called by the receiver.

    Returns: (change, term_id, offset, length), where change is -1 if a write was in progress
    """
    at = slot * RECORD_LENGTH
    change = get_i64_acquire(words, at + _END_LOSS)
    term_id = get_i64(words, at + _LOSS_TERM_ID)
    offset = get_i64(words, at + _LOSS_OFFSET)
    length = get_i64(words, at + _LOSS_LENGTH)
    acquire_fence()
    if get_i64_acquire(words, at + _BEGIN_LOSS) != change:
        change = -1
    return change, term_id, offset, length
