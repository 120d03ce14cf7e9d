"""The tables `flows` and `gaps`: their columns, and the names of causes and outcomes."""

import pyarrow as pa

FRAME_OUTCOME_NAMES = ("first", "resent", "reordered", "duplicate", "earlier", "late")
KEY = [
    ("vantage_point", pa.string()),
    ("session_id", pa.int32()),
    ("stream_id", pa.int32()),
    ("destination", pa.string()),
]
"""The key columns, with which every table about flows begins."""
FLOWS = pa.schema(
    [
        *KEY,
        *((f"{name}_frames", pa.int64()) for name in FRAME_OUTCOME_NAMES),
        *((f"{name}_bytes", pa.int64()) for name in FRAME_OUTCOME_NAMES),
        ("lost_bytes_min", pa.int64()),
        ("lost_bytes_max", pa.int64()),
        ("requested_bytes", pa.int64()),
        ("refused_bytes", pa.int64()),
        ("messages", pa.int64()),
        ("messages_min", pa.int64()),
        ("gap_fills_min", pa.int64()),
        ("gap_fills_max", pa.int64()),
        ("high_position", pa.int64()),
        ("rebuilt_position", pa.int64()),
        ("naks", pa.int64()),
        ("nak_bytes", pa.int64()),
        ("spurious_naks", pa.int64()),
        ("status_messages", pa.int64()),
        ("unmatched_control", pa.int64()),
        ("reordered_ratio", pa.float64()),
        ("reordered_ns_max", pa.int64()),
        ("reordered_extent_max", pa.int64()),
        ("reordered_extent_mean", pa.float64()),
        ("loss_amplification", pa.float64()),
        ("is_order_known", pa.bool_()),
        ("is_inferred", pa.bool_()),
        ("problem", pa.string()),
    ]
)
"""Columns of the table `flows`. Bytes are stream bytes, including headers and padding.
`lost_bytes_min`, `lost_bytes_max`: bytes whose first transmission was lost before this vantage
point, see `lost_bytes`; in a group without those that another receiver's request repaired before
any later frame arrived. `requested_bytes`: captured bytes that NAKs requested; at most these were
lost behind this vantage point, because a receiver also requests bytes that are late or that it
refused. `refused_bytes`: those of them in packets that a receiver refuses, because they end more
than half a term after the position that it had reported as consumed.
`messages`: complete messages that were captured. `gap_fills_min`, `gap_fills_max`: how many gaps
whose bytes were lost before this vantage point an unreliable receiver behind it has filled with
padding. It fills a gap after a delay that no frame reveals, and drops frames that arrive later, so
a gap that was filled by late originals may or may not be one of them, and so may a packet that it
dropped because it ended too far ahead, see `over_runs`. Both are 0 if a NAK shows that the receiver
is reliable. `messages_min`: messages that are complete without frames in such gaps and packets; an
unreliable receiver delivered at least these and at most `messages`. `rebuilt_position`: end of the
bytes that were all received or skipped. `spurious_naks`: NAKs for bytes that had been captured
before the first NAK. Reordering ratio and extents follow RFC 4737 and exclude retransmits.
`is_order_known`: whether packet identifications show the sending order; if not, `reordered` frames
of a multicast group include those that another receiver requested. `loss_amplification`:
retransmitted bytes per missing byte, over all gaps that were seen or requested here; null if there
are none.
"""
GAPS = pa.schema(
    [
        *KEY,
        ("position", pa.int64()),
        ("length", pa.int64()),
        ("cause", pa.string()),
        ("outcome", pa.string()),
        ("opened_ns", pa.int64()),
        ("first_nak_ns", pa.int64()),
        ("last_nak_ns", pa.int64()),
        ("nak_count", pa.int64()),
        ("resent_frames", pa.int64()),
        ("resent_bytes", pa.int64()),
        ("late_bytes", pa.int64()),
        ("over_filled_bytes", pa.int64()),
        ("refused_bytes", pa.int64()),
        ("first_filled_ns", pa.int64()),
        ("repaired_ns", pa.int64()),
        ("passed_ns", pa.int64()),
        ("time_to_repair_ns", pa.int64()),
        ("time_to_resend_ns", pa.int64()),
    ]
)
"""Columns of the table `gaps`. `time_to_repair_ns`: from the first sign of the gap, a later frame
or a NAK, to the last frame that filled it. It is null for a gap behind the capture point, which
only the receiver can measure. `time_to_resend_ns` is then the time from the first NAK until all of
its bytes had been retransmitted once. They may be retransmitted again, see `over_filled_bytes`, and
`repaired_ns` is the time of the last retransmit. `late_bytes`: bytes filled by late originals.
`over_filled_bytes`: bytes that arrived after the gap had been filled. `refused_bytes`: as in
`flows`.
"""
GAP_CAUSES = ("before capture", "behind capture")
GAP_OUTCOMES = ("repaired", "reordered", "filled", "passed", "elsewhere", "open")
"""Outcomes of a gap:

repaired   filled, at least partly by retransmits; or requested by a NAK, and the receiver continued
reordered  filled by late originals alone
filled     in a multicast group: filled by late originals, or by what another receiver requested,
           if no NAK passed here and the sending order is unknown
passed     skipped by the receiver, as an unreliable subscription does
elsewhere  not taken from this destination by a reliable receiver, which joined later, or received
           the bytes at another destination that was captured here
open       incomplete at the end of the capture
"""
