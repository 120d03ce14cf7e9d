"""A stall is explained by the message, and the PAD before it, that the subscriber waits for.

log    | m0 | PAD | m1 |         m0 arrives after 30 ms, m1 after 60 ms
"""

import numpy as np
import pytest

from windtunnel.harness.artifact.middlebox.frame_class import DATA, PAD
from windtunnel.harness.dissect.driver_files.expected_log import (
    EXPECTED_FRAME,
    NO_MESSAGE,
    ExpectedLog,
)
from windtunnel.harness.verdict.views.reader_gaps import NEVER_NS, ReaderGaps
from windtunnel.harness.verdict.views.stalls.stalled_time import stalled_ns, stalls

MS = 1_000_000
LOG = ExpectedLog(
    np.array(
        [
            (0, 0, 0, 132, 0xC0, DATA),
            (160, NO_MESSAGE, 0, 96, 0xC0, PAD),
            (256, 1, 100, 132, 0xC0, DATA),
        ],
        dtype=EXPECTED_FRAME,
    ),
    np.array([160, 416]),
    0,
    416,
)


def stalled_ms(arrived_ms, delivered_ms, lost=(), sent_ms=(10, 10, 40)):
    """Return the stalled time by cause in ms; by default, frames are sent when they are due."""
    arrived_ns = np.array(arrived_ms) * MS
    gaps = ReaderGaps(
        sent_ns=np.array(sent_ms) * MS,
        arrived_ns=np.where(arrived_ns < 0, NEVER_NS, arrived_ns),
        is_lost=np.isin(np.arange(3), lost),
        count=len(lost),
        repair_ns=np.zeros(0, dtype=np.int64),
        resent_frames=0,
        resent_bytes=0,
        naks=0,
        requested=0,
        rejected_frames=0,
        unneeded_frames=0,
        late_ns=np.zeros(0, dtype=np.int64),
        lost_frames=0,
        lost_bytes=0,
    )
    due_ns, times_ns = np.array([10, 40]) * MS, np.array(delivered_ms) * MS
    found = stalled_ns(stalls(gaps, LOG, np.arange(2), times_ns, due_ns, []))
    return {cause: each / MS for cause, each in found.items()}


@pytest.mark.parametrize(
    ("lost", "expected"),
    [((), {"link": 239, "reader": 1}), ((1,), {"repair": 239, "reader": 1})],
)
def test_a_message_waits_for_the_pad_before_it(lost, expected):
    assert stalled_ms([30, 300, 60], [31, 301], lost) == expected


def test_the_transit_of_a_frame_that_was_sent_late_is_not_a_delay_of_the_link():
    # The frames of message 1 are sent 100 ms after it was due. Each needs 20 ms.
    sent_ms, arrived_ms = [10, 140, 140], [30, 160, 160]
    assert stalled_ms(arrived_ms, [31, 161], sent_ms=sent_ms) == {"window": 99, "reader": 1}
    assert stalled_ms([30, 190, 160], [31, 191], sent_ms=sent_ms) == {
        "window": 99,
        "link": 30,
        "reader": 1,
    }


def test_a_message_does_not_wait_for_the_pad_after_it():
    # Message 1 was the fastest, with 51 ms, so message 0 stalls from 61 ms on.
    assert stalled_ms([30, 100, 80], [90, 91], lost=[1]) == {"reader": 29}
